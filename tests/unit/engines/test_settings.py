"""Settings as engines read them: parsed back, and held against the rules in their sources."""

from __future__ import annotations

import json
import shlex
from itertools import pairwise

import pytest

from rooflines.engines.served import Served
from rooflines.engines.settings import WRITERS, Advice, Range, StepCost, settings_text
from rooflines.errors import InputError, UnknownNameError

RANGES = (Range(1, 16, 5), Range(17, 64, 3), Range(65, 200, 0))


SERVED = Served(
    checkpoint_dtype="bf16",
    weight_dtype="bf16",
    memory_reserve=0.1,
    cache_share=0.875,
    positions=2054,
    largest_batch=200,
    asked_batch=64,
)


def advice(family="eagle3", ranges=RANGES, single=None, served=SERVED, **more):
    only = ranges[0].draft_length if single is None else single
    return Advice(family, "meta-llama/Llama-3.1-8B-Instruct", "yuhuili/EAGLE3", ranges, only, served, **more)


def command(text):
    (line,) = (line for line in text.splitlines() if line.startswith(("vllm ", "python ", "llama-server ")))
    words = shlex.split(line)
    return {flag: value for flag, value in zip(words, [*words[1:], ""], strict=True) if flag.startswith("--")}


def vllm_config(text):
    return json.loads(command(text)["--speculative-config"])


def vllm_length(schedule, batch):
    """What vLLM 0.33.0 drafts at a batch: inclusive ranges, the last carried on (dynamic/utils.py)."""
    inside = [tokens for first, last, tokens in schedule if first <= batch <= last]
    return inside[0] if inside else schedule[-1][2]


def trtllm_length(schedule, batch):
    """What TensorRT-LLM drafts: the entry of the smallest key that is not below the batch, else 0."""
    keys = [key for key in sorted(schedule) if batch <= key]
    return schedule[keys[0]] if keys else 0


def sglang_steps(config, batch):
    """What SGLang drafts: the entry of the largest key that is not above the batch."""
    return config[str(max(int(key) for key in config if int(key) <= batch))]["candidate_steps"]


def test_vllm_gets_the_schedule_as_inclusive_ranges_from_one():
    config = vllm_config(settings_text(advice(), "vllm"))
    assert (config["method"], config["model"], config["num_speculative_tokens"]) == (
        "eagle3",
        "yuhuili/EAGLE3",
        5,
    )
    schedule = config["num_speculative_tokens_per_batch_size"]
    assert schedule[0][0] == 1
    assert all(after[0] == before[1] + 1 for before, after in pairwise(schedule))
    assert [vllm_length(schedule, batch) for batch in (1, 16, 17, 64, 65, 500)] == [5, 5, 3, 3, 0, 0]


def test_one_range_needs_no_schedule():
    config = vllm_config(settings_text(advice(ranges=(Range(1, 8, 4),)), "vllm"))
    assert config == {"method": "eagle3", "model": "yuhuili/EAGLE3", "num_speculative_tokens": 4}


def test_sglang_counts_the_anchor_and_adapts_chains_by_the_smallest_batch():
    text = settings_text(advice(), "sglang")
    flags = command(text)
    assert flags["--speculative-algorithm"] == "EAGLE3"
    assert flags["--speculative-num-steps"] == "5"
    assert flags["--speculative-eagle-topk"] == "1"
    assert flags["--speculative-num-draft-tokens"] == "6"
    config = json.loads(text.splitlines()[1])
    assert [sglang_steps(config, batch) for batch in (1, 16, 17, 64, 65)] == [[5], [5], [3], [3], [0]]
    # "--speculative-num-steps is not in the adaptive config candidate_steps" is an error there.
    assert 5 in [step for entry in config.values() for step in entry["candidate_steps"]]


def test_sglang_trees_count_the_root_among_their_draft_tokens():
    # EAGLE's total_token 60 is 59 drafted nodes and the root (EAGLE-3, arXiv 2503.01840, appendix A).
    flags = command(settings_text(advice(ranges=(Range(1, 4, 6),), top_k=10, nodes=59), "sglang"))
    assert flags["--speculative-num-steps"] == "6"
    assert flags["--speculative-eagle-topk"] == "10"
    assert flags["--speculative-num-draft-tokens"] == "60"


def test_sglang_blocks_of_dflash_hold_the_anchor_and_those_of_dspark_do_not():
    flags = command(settings_text(advice("dflash", (Range(1, 4, 15),)), "sglang"))
    assert flags["--speculative-dflash-block-size"] == "16"
    costs = (StepCost(1, 7, 8, 0.01), StepCost(8, 7, 8, 0.02), StepCost(4, 15, 16, 0.025))
    text = settings_text(advice("dspark", (Range(1, 4, 7),), costs=costs), "sglang")
    assert command(text)["--speculative-dspark-block-size"] == "7"
    table = json.loads(text.splitlines()[1])
    # SpsCostTable wants rising tokens; 8 x 8 and 4 x 16 are the same batch of 64, of which the slower counts.
    assert table["sample_batch_tokens"] == [8, 64]
    assert table["sample_steps_per_sec"] == pytest.approx([100, 40])
    assert table["max_batch_tokens"] == 64


def test_what_sglang_cannot_adapt_is_said():
    text = settings_text(advice("independent", single=3), "sglang")
    assert command(text)["--speculative-num-steps"] == "3"
    assert command(text)["--speculative-num-draft-tokens"] == "4"
    assert "# SGLang adapts chains of EAGLE and EAGLE3 only: 3 is written, where the plan has:" in text
    assert "#   batch 17..64: 3" in text.splitlines()


@pytest.mark.parametrize(
    ("name", "more"),
    [("llamacpp", {}), ("sglang", {"family": "independent"}), ("trtllm", {"top_k": 4, "nodes": 0})],
)
def test_engines_of_one_length_leave_off_what_gains_at_no_batch_asked_for(name, more):
    lines = settings_text(advice(single=0, **more), name).splitlines()
    assert lines[0].endswith("none gains over the batches asked for: leave speculation off.")
    assert lines[2:] == [f"#   batch {one.first}..{one.last}: {one.draft_length}" for one in RANGES]


def trtllm(text):
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    lines = lines[lines.index("speculative_config:") :]
    values = dict(line.strip().split(": ", 1) for line in lines[1:] if not line.endswith(":"))
    schedule = {int(key): int(value) for key, value in values.items() if key.isdecimal()}
    return values, schedule


def test_tensorrt_schedule_is_keyed_by_the_largest_batch_and_ends_in_none():
    values, schedule = trtllm(settings_text(advice(), "trtllm"))
    assert (values["decoding_type"], values["max_draft_len"]) == ("Eagle3", "5")
    assert [trtllm_length(schedule, batch) for batch in (1, 16, 17, 64, 65, 500)] == [5, 5, 3, 3, 0, 0]


def test_tensorrt_says_since_when_keys_are_upper_bounds():
    # Releases before read {16: 5, 64: 3} as "from batch 16 on"; nothing in the file tells them apart.
    assert "releases before pull request 10860 take them as the smallest" in settings_text(advice(), "trtllm")


@pytest.mark.parametrize(
    ("ranges", "entries", "note"),
    [
        (
            (Range(1, 4, 2), Range(5, 8, 4)),
            {1: 4, 4: 2, 8: 4},
            "The first entry must be max_draft_len, 4: the plan has 2 there",
        ),
        (
            (Range(1, 1, 3), Range(2, 6, 5), Range(7, 8, 2), Range(9, 9, 3)),
            {1: 5, 6: 5, 8: 2, 9: 3},
            "The first entry must be max_draft_len, 5: the plan has 3 there",
        ),
        ((Range(1, 4, 0), Range(5, 8, 3)), {1: 3, 4: 0, 8: 3}, "max_draft_len, 3: the plan has 0 there"),
        ((Range(1, 4, 3), Range(5, 8, 0), Range(9, 16, 2)), {4: 3, 8: 0, 16: 2}, "Beyond batch 16"),
    ],
)
def test_tensorrt_schedules_begin_with_the_longest_draft_as_its_validator_demands(ranges, entries, note):
    text = settings_text(advice(ranges=ranges), "trtllm")
    values, schedule = trtllm(text)
    assert schedule == entries
    assert schedule[min(schedule)] == int(values["max_draft_len"]) == max(schedule.values())
    assert list(schedule) == sorted(schedule)
    assert note in text


def test_tensorrt_trees_do_not_count_the_root():
    values, schedule = trtllm(settings_text(advice(ranges=(Range(1, 4, 6),), top_k=10, nodes=59), "trtllm"))
    assert (values["max_total_draft_tokens"], values["dynamic_tree_max_topK"]) == ("59", "10")
    assert schedule == {}


def test_tensorrt_settings_carry_the_cost_table():
    costs = (StepCost(8, 4, 5, 0.0125), StepCost(1, 4, 5, 0.01))
    lines = settings_text(advice(costs=costs), "trtllm").splitlines()
    heading = lines.index("# Planned cost table (batch, draft length: ms per cycle):")
    assert lines[heading + 1 : heading + 3] == ["#   1, 4: 10", "#   8, 4: 12.5"]


def test_llama_has_one_length_and_says_where_the_plan_has_another():
    text = settings_text(advice(single=3), "llamacpp")
    flags = command(text)
    assert (flags["--spec-type"], flags["--spec-draft-n-max"]) == ("draft-eagle3", "3")
    assert text.splitlines()[1:5] == [
        "# llama.cpp has one draft length for all batches: 3 is written, where the plan has:",
        "#   batch 1..16: 5",
        "#   batch 17..64: 3",
        "#   batch 65..200: 0",
    ]
    ngram = command(settings_text(advice("ngram", (Range(1, 4, 8),)), "llamacpp"))
    assert (ngram["--spec-type"], ngram["--spec-ngram-simple-size-m"]) == ("ngram-simple", "8")
    assert "--spec-draft-model" not in ngram


@pytest.mark.parametrize("name", ["vllm", "llamacpp"])
def test_engines_that_verify_chains_refuse_trees(name):
    with pytest.raises(InputError, match="chains only"):
        settings_text(advice(ranges=(Range(1, 4, 6),), top_k=10, nodes=59), name)


@pytest.mark.parametrize("name", WRITERS)
def test_plain_decoding_needs_no_settings(name):
    assert settings_text(advice(ranges=(Range(1, 200, 0),)), name).startswith("# Plain decoding")


@pytest.mark.parametrize("name", WRITERS)
def test_a_drafter_without_a_checkpoint_is_left_to_be_filled_in(name):
    derived = Advice("independent", "target", None, (Range(1, 8, 4),), 4, SERVED)
    assert "PATH-OF-THE-DRAFTER" in settings_text(derived, name)


@pytest.mark.parametrize("name", WRITERS)
def test_names_with_spaces_stay_one_word(name):
    text = settings_text(
        Advice("independent", "my target", "my draft.gguf", (Range(1, 8, 4),), 4, SERVED), name
    )
    words = text if name == "trtllm" else json.dumps(shlex.split(text.splitlines()[0]))
    assert "my draft.gguf" in words


def test_llama_loads_files_of_its_own_format():
    flags = command(settings_text(advice(), "llamacpp"))
    assert flags["--model"] == "PATH-OF-THE-TARGET.gguf"
    assert flags["--spec-draft-model"] == "PATH-OF-THE-DRAFTER.gguf"
    own = Advice("independent", "target-Q4_K_M.gguf", "draft.gguf", (Range(1, 8, 4),), 4, SERVED)
    flags = command(settings_text(own, "llamacpp"))
    assert (flags["--model"], flags["--spec-draft-model"]) == ("target-Q4_K_M.gguf", "draft.gguf")


def test_engines_are_named_as_people_write_them():
    for name in ("vLLM", "SGLang", "TensorRT-LLM", "TRTLLM", "llama.cpp", "llama-cpp"):
        assert settings_text(advice(ranges=(Range(1, 8, 4),)), name)


def test_where_the_plan_ends_is_said_only_of_a_schedule():
    assert "Beyond batch 200 vLLM keeps the last entry (0)" in settings_text(advice(), "vllm")
    assert "Beyond" not in settings_text(advice(ranges=(Range(1, 172, 4),)), "vllm")


def test_what_no_engine_can_start_is_refused():
    with pytest.raises(InputError, match="no settings can start this plan: m ships no MTP module"):
        settings_text(advice("mtp", missing="m ships no MTP module"), "vllm")
    with pytest.raises(UnknownNameError, match="did you mean 'vllm'"):  # the engine is looked at first
        settings_text(advice("mtp", missing="m ships no MTP module"), "vlm")


@pytest.mark.parametrize("name", WRITERS)
def test_notes_stand_behind_the_settings(name):
    lines = settings_text(advice(notes=("Check the checkpoint.",)), name).splitlines()
    assert lines[-1] == "# Check the checkpoint."
    assert not lines[0].startswith("#")


def test_unknown_engines_gaps_and_half_a_tree_are_refused():
    with pytest.raises(UnknownNameError, match="trtllm"):
        settings_text(advice(), "trtlm")
    with pytest.raises(InputError, match="without a gap"):
        advice(ranges=(Range(1, 4, 3), Range(6, 8, 2)))
    with pytest.raises(InputError, match="both a top-k"):
        advice(top_k=4)
