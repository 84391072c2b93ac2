from __future__ import annotations

import json

import numpy as np
import pytest

from rooflines.costs.cost import Pass
from rooflines.costs.setting import Shape
from rooflines.errors import ConfigError, InputError, RooflinesError, UnknownNameError
from rooflines.models.drafter_catalogue import find_drafter, list_drafter_presets
from rooflines.models.readers import read_model
from rooflines.models.standard_drafters import standard_drafter
from rooflines.speculation.drafters.registry import ALSO_CALLED, KINDS, make_drafter
from rooflines.studies.serve import make_deployment, make_machine
from rooflines.timing.roofline import pass_time

HARDWARE = "h100-sxm5-80gb"
EVERY_KIND = {
    "independent": "independent:llama-3.2-1b",
    "medusa": "medusa",
    "eagle": "eagle",
    "eagle2": "eagle2",
    "eagle3": "eagle3",
    "p-eagle": "p-eagle:qwen3-8b-peagle",
    "dflash": "dflash",
    "dspark": "dspark",
    "domino": "domino:qwen3-8b-domino",
    "mtp": "mtp",
    "ngram": "ngram",
    "layerskip": "layerskip:layers=8",
    "quantized": "quantized:int4-g128",
    "sparse-kv": "sparse-kv:window=256",
}


def served(model="llama-3.1-8b", calibration="none", **changes):
    return make_deployment(
        model, make_machine(HARDWARE, calibration, changes.pop("overhead", "0 s")), **changes
    )


def target_of(kind):
    return served("qwen3-8b" if kind in ("p-eagle", "domino") else "llama-3.1-8b")


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_tried_here(kind):
    drafter = make_drafter(EVERY_KIND[kind], target_of(kind))
    assert drafter.name.startswith(kind)
    draft = drafter.draft(1.0, 1024.0, 2.0)
    assert draft.seconds > 0
    assert KINDS[kind].meaning


@pytest.mark.parametrize("kind", [kind for kind in KINDS if "depth" in KINDS[kind].parameters])
def test_a_fixed_depth_replaces_the_draft_lengths_of_a_plan(kind):
    text = EVERY_KIND[kind]
    fixed = f"{text}{',' if ':' in text else ':'}depth=3"
    drafter = make_drafter(fixed, target_of(kind))
    assert drafter.draft_lengths((1, 2, 8)) == (3,)
    assert drafter.draft_lengths((0, 2)) == (0, 3)
    assert "depth=3" in drafter.name


@pytest.mark.parametrize(
    ("text", "asked", "possible"),
    [
        ("dflash", (1, 15, 16, 31), (1, 15)),
        ("dflash", (20, 30), (15,)),
        ("dflash:block=10", (1, 2), (9,)),
        ("dspark", (1, 7, 8), (1, 7)),
        ("dspark:block=4", (8,), (4,)),
        ("medusa", (2, 5, 6), (2, 5)),
        ("eagle3", (1, 40), (1, 40)),
        ("ngram", (0, 3), (0, 3)),
    ],
)
def test_draft_lengths_that_a_family_can_draft(text, asked, possible):
    assert make_drafter(text, served()).draft_lengths(asked) == possible


@pytest.mark.parametrize(("text", "length"), [("dflash", 16.0), ("dspark", 8.0), ("medusa", 6.0)])
def test_a_draft_beyond_what_a_head_can_is_refused(text, length):
    with pytest.raises(InputError, match="draft fewer"):
        make_drafter(text, served()).draft(1.0, 512.0, length)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("eagle3:topk=10", "both topk"),
        ("eagle3:nodes=10", "both topk"),
        ("eagle3:topk=1,nodes=10", "no nodes"),
        ("eagle3:topk=ten,nodes=9", "whole number"),
        ("eagle3:depth=0", "1 or more"),
        ("eagle3:depth=-1", "1 or more"),
        ("eagle3:depth=²", "whole number"),
        ("eagle3:topk=100,nodes=9", "within 1..64"),
        ("eagle3:qwen3-8b-dflash", "write dflash:"),
        ("eagle3:qwen3-8b-eagle3", "another target|tokenizer"),
        ("eagle3:no-such-head", "drafter head"),
        ("eagle3:layers=2", "parameter of eagle3"),
        ("eagel3", "did you mean|eagle3"),
        ("p-eagle", "give a config"),
        ("domino", "give a config"),
        ("dflash:block=1", "2 or more"),
        ("dflash:block=40", "15 tokens at most"),
        ("medusa:depth=9", "5 tokens at most"),
        ("mtp:llama-3.2-1b", "no model"),
        ("ngram:llama-3.2-1b", "no model"),
        ("ngram:host=20", "unit"),
        ("ngram:hit=1.4", "within 0..1"),
        ("ngram:ends=often", "within 0..1"),
        ("layerskip", "layerskip:layers=8"),
        ("layerskip:layers=32", "31 or fewer"),
        ("quantized", "quantized:int4-g128"),
        ("quantized:int3x", "int3x"),
        ("sparse-kv", "sparse-kv:window=256"),
        ("independent", "needs its model"),
        ("independent:qwen3-0.6b", "tokenizer"),
    ],
)
def test_what_makes_no_drafter_is_refused_in_one_line(text, message):
    with pytest.raises(RooflinesError, match=message) as caught:
        make_drafter(text, served())
    assert "\n" not in str(caught.value)


def test_a_head_made_for_another_width_is_refused():
    with pytest.raises(InputError, match="another target"):
        make_drafter("eagle3:llama3-70b-eagle3", served())


@pytest.mark.parametrize("kind", ["eagle", "eagle3", "medusa", "dflash", "dspark"])
def test_a_usual_shape_says_so_and_a_preset_does_not(kind):
    assert "derived from llama-3.1-8b" in make_drafter(kind, served()).warnings()[0]
    assert not make_drafter("eagle3:eagle3-llama3.1-8b", served()).warnings()


def test_presets_are_found_as_hugging_face_writes_them():
    head = find_drafter("yuhuili/EAGLE3-LLaMA3.1-Instruct-8B", "eagle3", read_model("llama-3.1-8b"))
    assert head.parameters == 424_689_664
    assert "eagle3-llama3.1-8b" in list_drafter_presets()


@pytest.mark.parametrize(
    ("repository", "method", "preset"),
    [
        ("z-lab/Qwen3-8B-DFlash-b16", "dflash", "qwen3-8b-dflash"),
        ("deepseek-ai/dspark_qwen3_8b_block7", "dspark", "qwen3-8b-dspark"),
        ("lmsys/SGLang-EAGLE3-Qwen3-30B-A3B-Instruct-2507-SpecForge", "eagle3", "qwen3-30b-a3b-eagle3"),
    ],
)
def test_repositories_of_shipped_heads_find_them(repository, method, preset):
    target = read_model(preset.removesuffix(f"-{method}"))
    assert find_drafter(repository, method, target) == find_drafter(preset, method, target)


@pytest.mark.parametrize(
    "text",
    [
        "dflash:z-lab/Qwen3-8B-DFlash-b8",  # a block of 8 is another head than one of 16
        "eagle3:yuhuili/EAGLE3-LLaMA3.3-Instruct-70B",  # 3.3 is not 3
    ],
)
def test_an_unknown_head_is_answered_with_those_that_draft_so(text):
    with pytest.raises(UnknownNameError) as refused:
        make_drafter(text, served())
    kind = text.partition(":")[0]
    alike = [name for name in list_drafter_presets() if name.endswith(kind) or name.startswith(kind)]
    assert len(alike) > 2
    assert f"(presets of {kind}: {', '.join(alike)}; or a path" in str(refused.value)


def test_a_head_from_a_file(tmp_path):
    shape = {
        "model_type": "llama",
        "hidden_size": 4096,
        "intermediate_size": 14336,
        "num_attention_heads": 32,
    }
    config = {**shape, "num_key_value_heads": 8, "num_hidden_layers": 1, "vocab_size": 128_256}
    file = tmp_path / "config.json"
    file.write_text(json.dumps({**config, "draft_vocab_size": 16_000, "dtype": "bfloat16"}), encoding="utf-8")
    drafter = make_drafter(f"eagle3:{tmp_path}", served())
    usual = make_drafter("eagle3", served())
    assert usual.weight_bytes() - drafter.weight_bytes() == pytest.approx(2 * 16_000 * 4096)


@pytest.mark.parametrize("text", ["eagle", "eagle3", "medusa", "dflash", "dspark", "mtp"])
def test_on_one_device_a_head_weighs_and_caches_what_its_spec_says(text):
    drafter = make_drafter(text, served())
    spec = drafter.head.spec
    assert drafter.weight_bytes() == spec.weight_bytes
    assert drafter.kv_cache_bytes(3.0, 1000.0) == 3 * spec.kv_bytes(1000)


@pytest.mark.parametrize("text", ["eagle", "eagle3", "medusa", "dflash", "dspark", "mtp"])
def test_more_devices_hold_less_each_and_no_more_together_than_copies(text):
    one, four = (make_drafter(text, served(tensor=t)) for t in (1, 4))
    assert one.weight_bytes() / 4 <= four.weight_bytes() < one.weight_bytes()
    assert four.kv_cache_bytes(1.0, 64.0) * 4 == one.kv_cache_bytes(1.0, 64.0)


@pytest.mark.parametrize("text", ["ngram", "layerskip:layers=4", "sparse-kv:window=64"])
def test_what_needs_no_memory(text):
    drafter = make_drafter(text, served())
    assert drafter.weight_bytes() == 0
    assert drafter.kv_cache_bytes(8.0, 1024.0) == 0


def test_an_eagle3_pass_multiplies_each_of_its_weights_once_a_position():
    """Fuse, layer and own head; the embedding is gathered. Attention: 4 H d a pair."""
    head = make_drafter("eagle3", served()).head
    shape = Shape(2.0, 3.0, 100.0, 3.0)
    matrices = head.spec.parameters - 4 * 4096  # three norms of the layer and one before the head
    pairs = 3 * 100 + 6
    expected = 2 * 6 * matrices + 2 * 4 * 32 * 128 * pairs
    assert head.forward(shape, head.entry(shape)).cost.matmul_flops == expected


def test_an_eagle_step_reads_its_own_weights_and_the_targets_head():
    head = make_drafter("eagle", served()).head
    shape = Shape(1.0, 1.0, 0.0, 1.0)
    read = head.forward(shape, head.entry(shape)).cost.weight_bytes
    final_norm = 2 * 4096  # the target's, before its head
    assert read == head.spec.weight_bytes + 2 * 128_256 * 4096 + final_norm


def test_drafting_one_token_is_one_pass_and_each_further_level_one_more():
    drafter = make_drafter("eagle3", served(overhead="1 ms"))
    one, two, three = (float(drafter.draft(1.0, 1000.0, float(n)).seconds) for n in (1, 2, 3))
    assert one > 1e-3
    assert two - one == pytest.approx(three - two, rel=1e-2)
    assert two - one > 1e-3


def test_a_block_is_one_pass_whatever_its_length():
    drafter = make_drafter("dflash", served(overhead="1 ms"))
    short, long = (float(drafter.draft(1.0, 1000.0, float(n)).seconds) for n in (2, 15))
    assert long - short < 0.05 * (short - 1e-3)


def test_a_block_attends_both_ways_and_makes_keys_for_what_was_emitted():
    head = make_drafter("dflash", served()).head
    block = head.forward(Shape(1.0, 16.0, 1000.0, 15.0))
    attention = next(op for op in block.operators if op.name == "attention")
    assert attention.count == 5
    assert attention.cost.matmul_flops == 4 * 32 * 128 * 16 * (1000 + 16)
    injected = make_drafter("dflash", served())._injected(Shape(1.0, 16.0, 1000.0))
    assert sum(op.cost.matmul_flops * op.count for op in injected) == 2 * 16 * (
        5 * 4096 * 4096 + 5 * 2 * 1024 * 4096
    )


def test_dspark_adds_a_low_rank_step_for_each_token():
    """2 r V FLOPs and r V weights a step, with r = 256 (and the confidence head)."""
    drafter = make_drafter("dspark", served())
    steps = drafter.sequential(Shape(4.0, 7.0, 100.0, 7.0), 7.0)
    low_rank = next(op for op in steps if op.name == "markov head")
    assert low_rank.cost.matmul_flops == 7 * 4 * 2 * 256 * 128_256
    assert low_rank.cost.weight_bytes == 7 * 256 * 128_256 * 2
    assert {op.name for op in steps} == {"markov head", "confidence", "sampling"}
    body = make_drafter("dflash", served())
    assert drafter.draft(1.0, 64.0, 7.0).seconds > body.draft(1.0, 64.0, 7.0).seconds


def test_medusa_runs_each_head_once_on_one_position():
    drafter = make_drafter("medusa", served("vicuna-7b-v1.3", calibration="textbook"))
    read = 147_853_312 * 2  # bytes of one head of Vicuna-7B
    assert drafter.draft(1.0, 1024.0, 1.0).seconds == pytest.approx(read / 3.35e12, rel=0.01)
    assert drafter.draft(1.0, 1024.0, 5.0).seconds == pytest.approx(
        5 * drafter.draft(1.0, 1024.0, 1.0).seconds
    )


def test_a_tree_widens_the_steps_and_the_verify_pass():
    chain, tree = (make_drafter(text, served()) for text in ("eagle3", "eagle3:topk=10,nodes=59"))
    wide = tree.draft(64.0, 1024.0, 6.0)
    assert (wide.verify_width, wide.ancestors) == (60.0, 3600.0)
    assert wide.tree.top_k == 10
    assert wide.seconds > chain.draft(64.0, 1024.0, 6.0).seconds
    assert chain.draft(64.0, 1024.0, 6.0).verify_width == 7.0


def test_experts_of_an_mtp_module_are_read_as_a_pass_hits_them():
    """DeepSeek-V3's module has 256 experts of its own; a step at batch 1 reads 8 of them."""
    target = make_deployment("deepseek-v3", make_machine("h200-sxm-141gb", "none"), tensor=8)
    head = make_drafter("mtp", target).head

    def expert_bytes(batch: float) -> float:
        found: Pass = head.forward(Shape(batch, 1.0, 64.0))
        return sum(op.cost.weight_bytes for op in found.operators if op.kind == "moe")

    assert expert_bytes(64.0) / expert_bytes(1.0) == pytest.approx(222.5 / 8, rel=1e-3)


def test_a_lookup_costs_what_was_measured_or_a_share_of_verifying():
    target = served()
    measured = make_drafter("ngram:host=20us", target).draft(16.0, 512.0, 4.0)
    assert measured.seconds == pytest.approx(16 * 20e-6)
    usual = make_drafter("ngram", target)
    assert usual.draft(16.0, 512.0, 4.0).seconds == pytest.approx(
        0.005875 * target.verify(16.0, 512.0, 5.0).seconds
    )
    assert "host=" in usual.warnings()[0]
    assert "hit=" in usual.warnings()[1]
    assert not make_drafter("ngram:host=20us,hit=0.4", target).warnings()


def test_an_early_exit_costs_its_share_of_the_layers():
    target = served(calibration="textbook")
    half = make_drafter("layerskip:layers=16", target).deployment
    whole = {op.operator.name: op.seconds for op in target.decode(1.0, 1024.0).operators}
    for op in half.decode(1.0, 1024.0).operators:
        inside = op.operator.count >= 16
        assert op.seconds == pytest.approx(whole[op.operator.name] / (2 if inside else 1)), op.operator.name


def test_a_quantized_copy_is_another_set_of_weights_on_the_same_cache():
    target = served()
    drafter = make_drafter("quantized:int4-g128", target)
    bf16 = target.model.parameters_total * 2
    outside = 2 * 128_256 * 4096 * 2
    assert drafter.weight_bytes() == pytest.approx((bf16 - outside) * 4.156 / 16 + outside, rel=0.001)
    assert drafter.draft(1.0, 1024.0, 1.0).seconds < target.decode(1.0, 1024.0).seconds


@pytest.mark.parametrize("text", ["independent:llama-3.2-1b,window=256", "sparse-kv:window=256"])
def test_a_window_ends_the_growth_with_the_context(text):
    drafter = make_drafter(text, served())
    near, far = (float(drafter.draft(32.0, context, 3.0).seconds) for context in (1000.0, 100_000.0))
    assert far == pytest.approx(near, rel=1e-9)
    assert float(make_drafter("independent:llama-3.2-1b", served()).draft(32.0, 1e5, 3.0).seconds) > 2 * near


def test_host_time_is_paid_by_each_pass_and_not_inside_one():
    plain, slow = served(), served(overhead="1 ms")
    added = {
        text: float(make_drafter(text, slow).draft(1.0, 64.0, 4.0).seconds)
        - float(make_drafter(text, plain).draft(1.0, 64.0, 4.0).seconds)
        for text in ("independent:llama-3.2-1b", "eagle3", "mtp", "dflash", "dspark", "medusa")
    }
    expected = {"independent:llama-3.2-1b": 4, "eagle3": 4, "mtp": 4, "dflash": 1, "dspark": 1, "medusa": 0}
    assert added == pytest.approx({text: count * 1e-3 for text, count in expected.items()}, abs=1e-9)


def test_usual_shapes_refuse_what_has_none():
    with pytest.raises(ConfigError, match="no usual shape"):
        standard_drafter("domino", read_model("llama-3.1-8b"))


@pytest.mark.parametrize(("given", "called"), [(given, called) for given, called in ALSO_CALLED.items()])
def test_words_of_others_are_refused_with_ours(given, called):
    target = served()
    with pytest.raises(UnknownNameError, match=f"a plan calls it {called};"):
        make_drafter(given, target)
    filled = called.replace("=N", "=8").replace(":MODEL", ":llama-3.2-1b")
    assert make_drafter(filled, target).name == filled


def test_an_unknown_kind_suggests_the_near_one():
    with pytest.raises(UnknownNameError, match="eagle3"):
        make_drafter("eagel3", served())


def test_a_grid_gives_what_its_points_give():
    batches, contexts = np.array([[1.0], [16.0]]), 700.0
    lengths = np.array([0.0, 1.0, 4.0])
    for text in (*EVERY_KIND.values(), "eagle3:topk=4,nodes=9"):
        if text.startswith(("p-eagle", "domino")):
            continue
        drafter = make_drafter(text, served())
        whole = np.broadcast_to(drafter.draft(batches, contexts, lengths).seconds, (2, 3))
        for i, j in np.ndindex(2, 3):
            one = drafter.draft(float(batches[i, 0]), contexts, float(lengths[j])).seconds
            assert whole[i, j] == pytest.approx(float(one), rel=1e-12), text


def test_times_of_operators_inside_a_pass_exclude_the_host():
    head = make_drafter("medusa", served(overhead="1 ms")).head
    operators = head.choice(4.0, Shape(4.0, 1.0, 64.0))
    timed = pass_time(Pass("draft", tuple(operators)), head.target.machine)
    assert head.inside(operators).seconds == pytest.approx(timed.seconds - 1e-3)


def test_logits_over_several_devices_are_gathered_before_a_choice():
    head = make_drafter("dspark", served(tensor=4)).head
    gathered, chosen = head.choice(3.0, Shape(3.0, 1.0, 64.0))
    assert gathered.cost.network_bytes == 3 * 128_256 * 2 * 3 / 4
    assert chosen.name == "sampling"


def test_a_window_over_latents():
    target = make_deployment("deepseek-v2-lite", make_machine(HARDWARE, "none"))
    drafter = make_drafter("sparse-kv:window=256", target)
    near, far = (float(drafter.draft(32.0, context, 3.0).seconds) for context in (1000.0, 100_000.0))
    assert far == pytest.approx(near, rel=1e-9)


def test_a_window_that_cuts_nothing_is_refused():
    with pytest.raises(InputError, match="no attention that sees more than 8192"):
        make_drafter("sparse-kv:window=8192", served("mistral-7b-v0.1"))


def test_a_module_beside_an_encoder_attends_to_nothing_of_it():
    target = make_deployment("t5-v1_1-base", make_machine(HARDWARE, "none"), encoder_positions=128)
    names = {op.name for op in make_drafter("mtp", target).head.forward(Shape(1.0, 1.0, 16.0)).operators}
    assert "attention" in names
    assert not any(name.startswith("cross") for name in names)
