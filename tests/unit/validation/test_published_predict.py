"""A published speedup out of facts: the parts of a prediction, and what each of them does."""

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial
from pathlib import Path

import numpy as np
import pytest

from rooflines.costs.routing import SHARED_EXPERTS, UNIFORM
from rooflines.engines.host import host_time
from rooflines.errors import InputError
from rooflines.speculation.cycle import cycle_times
from rooflines.studies.serve import make_machine
from rooflines.timing.deployment import Deployment
from rooflines.validation.published import predict
from rooflines.validation.published.predict import (
    OUTPUT,
    PROMPT,
    predict_claim,
    predict_claims,
)
from rooflines.validation.published.proposals import Proposal
from rooflines.validation.published.rows import read_claims
from rooflines.validation.published.sources import Source, calibration_name

TABLES = Path(__file__).parent / "published"


@cache
def machine(device, calibration):
    return make_machine(device, calibration)


def claims(file="speedups.csv"):
    return read_claims(TABLES / file)[0]


def claim(**wanted):
    return next(one for one in claims() if all(getattr(one, name) == value for name, value in wanted.items()))


@pytest.fixture
def chain():
    return claim(source="specbundle2026", model="llama-3.1-8b")


def test_the_equation(chain):
    found = predict_claim(chain, machine)
    tau, prompts = chain.tokens_per_cycle, found.parts.prompt_s
    plain_s = found.parts.step_s + prompts
    cycle_s = found.parts.draft_s + found.parts.verify_s + found.parts.cycle_host_s + tau * prompts
    assert found.speedup == pytest.approx(tau * plain_s / cycle_s)
    assert found.cycle_cost == pytest.approx(cycle_s / plain_s)
    assert found.bare_speedup == pytest.approx(
        tau * found.parts.step_s / (found.parts.draft_s + found.parts.verify_s)
    )
    assert found.error == pytest.approx(found.speedup / chain.speedup - 1)
    assert found.measured_cycle_cost == pytest.approx(tau / chain.speedup)


def test_the_measured_speedup_does_not_move_a_prediction(chain):
    """Nothing is fitted to the row."""
    other = predict_claim(replace(chain, speedup=10 * chain.speedup), machine)
    assert other.speedup == predict_claim(chain, machine).speedup


def test_prompts_are_what_speculation_does_not_speed_up(chain):
    busy = replace(chain, batch=64)
    decode_only = replace(busy, known=Source("sglang", busy.known.tier))
    with_prompts, without = predict_claim(busy, machine), predict_claim(decode_only, machine)
    assert without.parts.prompt_s == 0.0
    # They take their share of both runs, so they pull a speedup towards 1 from either side.
    assert 1.0 > with_prompts.speedup > without.speedup
    better = replace(busy, acceptance="accepted-length:5.0@5", tokens_per_cycle=5.0)
    bare = replace(better, known=decode_only.known)
    assert 1.0 < predict_claim(better, machine).speedup < predict_claim(bare, machine).speedup
    peak_flop_per_s = machine(busy.device, "auto").profile.peak_flop_per_s("bf16")
    assert with_prompts.parts.prompt_s > 64 * (2 * 8e9 * PROMPT) / peak_flop_per_s / OUTPUT


def test_host_time_comes_from_another_source_than_the_row(chain):
    own = predict_claim(claim(source="specdecodebench2026"), machine)
    assert own.host is None
    assert own.parts.cycle_host_s == 0.0
    other = predict_claim(chain, machine)
    assert other.host.measured_by == ""
    assert other.parts.cycle_host_s == pytest.approx(1.107e-3, rel=0.01)


def test_host_time_of_several_devices_and_of_the_device_itself(chain):
    assert predict_claim(replace(chain, devices=4), machine).host.ranks == 8
    moved = predict_claim(replace(chain, device="b200-sxm-180gb"), machine)
    assert moved.host.device == "b200-sxm-180gb"
    assert moved.parts.cycle_host_s == pytest.approx(2.03e-3, rel=0.01)


def test_kernels_are_those_of_the_rows_engine(chain):
    assert "sglang" in predict_claim(chain, machine).basis
    assert "trtllm" in predict_claim(replace(chain, known=Source("tensorrt-llm", "x")), machine).basis
    assert calibration_name("h200-sxm-141gb", "vllm").startswith("h200-sxm-141gb.vllm-")
    # The newest of several, and its own kernels before those that it can be given.
    assert calibration_name("b200-sxm-180gb", "sglang") == "b200-sxm-180gb.sglang-0.5.14"
    assert calibration_name("h100-sxm5-80gb", "sglang-overlap") == "h100-sxm5-80gb.sglang-0.5.14"
    # Nobody measured the kernels: that of the device, whichever it is.
    assert calibration_name("rtx-4090", "sglang") == calibration_name("h100-sxm5-80gb", "mlx") == "auto"


def test_experts_are_shared_as_a_plan_assumes(monkeypatch):
    """With the one default of deployments; as if all positions were strangers, verifying is dearer."""
    row = claim(model="kimi-k2")
    shared = predict_claim(row, machine)
    target, _ = predict._deployment(row, machine(row.device, calibration_name(row.device, row.known.engine)))
    assert target.routing == SHARED_EXPERTS
    monkeypatch.setattr(predict, "Deployment", partial(Deployment, routing=UNIFORM))
    alone = predict_claim(row, machine)
    assert alone.parts.step_s == shared.parts.step_s
    assert alone.parts.verify_s > 1.05 * shared.parts.verify_s


def test_host_time_that_grows_with_the_batch():
    rows = [one for one in claims() if one.table.startswith("Table 5") and one.proposal.kind == "dflash"]
    small, large = (predict_claim(replace(rows[0], batch=batch), machine) for batch in (1, 32))
    assert small.parts.cycle_host_s == pytest.approx(2.03e-3, rel=0.01)
    assert large.parts.cycle_host_s == pytest.approx(4.67e-3, rel=0.01)


def test_trees_take_more_attention_kernels_in_sglang():
    tree = next(one for one in claims() if "topk=4" in one.proposal.text)
    masked = replace(tree, known=replace(tree.known, masked_trees=True))
    more = predict_claim(tree, machine).parts.verify_s - predict_claim(masked, machine).parts.verify_s
    # 32 layers of the verify pass and 6 further levels of the drafter's one layer, 15 to 25 us each.
    assert 38 * 15e-6 < more < 38 * 25e-6


def test_states_of_recurrent_layers_are_copied_in_sglang(chain, monkeypatch):
    hybrid = replace(
        chain,
        model="qwen3-next-80b-a3b",
        weights="fp8-block",
        proposal=Proposal("eagle3", "eagle3", 3),
        batch=8,
    )
    copied = predict_claim(hybrid, machine).parts.verify_s
    # 36 layers of 8 sequences with 32 heads of 128 x 128 numbers of 32 bits, read and written at 4.8 TB/s at best.
    least_s = 2 * 36 * 8 * 32 * 128 * 128 * 4 / 4.8e12
    monkeypatch.setattr(predict, "STATE_COPIERS", ())
    assert least_s < copied - predict_claim(hybrid, machine).parts.verify_s < 2 * least_s


def test_a_model_without_recurrent_layers_copies_none(chain, monkeypatch):
    copied = predict_claim(chain, machine)
    monkeypatch.setattr(predict, "STATE_COPIERS", ())
    assert predict_claim(chain, machine).parts == copied.parts


def test_rows_of_quantised_weights_cost_more_in_llama_cpp():
    row = claim(source="qwen38_mtp_community")
    assert row.weights == "q4_k"
    found = predict_claim(row, machine)
    other = predict_claim(replace(row, known=replace(row.known, engine="mlx")), machine)
    assert found.parts.verify_s == pytest.approx(found.parts.step_s * (1.243 + 1.358) / 2)
    assert found.speedup < other.speedup


def test_passes_that_the_host_launches_take_its_time():
    row = claim(source="cast2026")
    found, host = predict_claim(row, machine), host_time("transformers", "cast2026").time
    assert found.parts.step_s == pytest.approx(host.pass_s + 36 * host.layer_s)
    assert found.parts.verify_s == found.parts.step_s
    assert found.parts.draft_s == pytest.approx(host.pass_s + 5 * host.layer_s)


def test_the_smallest_parallelism_that_fits(chain):
    assert predict_claim(chain, machine).tensor == 1
    assert predict_claim(claim(model="kimi-k2"), machine).tensor == 8
    assert predict_claim(replace(chain, devices=4), machine).tensor == 4
    with pytest.raises(InputError, match="does not fit on 8 x"):
        predict_claim(replace(claim(model="kimi-k2"), weights="fp64"), machine)


def test_what_cannot_be_priced_comes_back_with_its_line(chain):
    # A drafter of another vocabulary: named by the registry, not skipped.
    odd = replace(chain, proposal=replace(chain.proposal, text="independent:qwen3-0.6b", kind="independent"))
    found, unused = predict_claims([chain, odd], machine)
    assert len(found) == 1
    assert unused[0].line == odd.line
    assert "vocabulary" in unused[0].reason


def test_claims_that_share_a_prediction_get_the_one_of_their_own(chain):
    """What is computed once for several rows is what each would get alone."""
    length = chain.proposal.draft_length
    alike = [
        chain,
        replace(chain, line=chain.line + 1, speedup=9.0, task="another"),
        replace(chain, acceptance=f"accepted-length:1.5@{length}", tokens_per_cycle=1.5),
        replace(chain, batch=8),
        replace(chain, source="another"),
        replace(chain, known=replace(chain.known, whole_requests=False)),
    ]
    found, unused = predict_claims(alike, machine)
    assert not unused
    assert [one.claim for one in found] == alike
    assert found == [predict_claim(one, machine) for one in alike]
    assert len({one.speedup for one in found}) >= 4


def test_a_configuration_is_priced_once(chain, monkeypatch):
    priced = []

    def counted(*given):
        priced.append(given)
        return cycle_times(*given)

    monkeypatch.setattr("rooflines.validation.published.predict.cycle_times", counted)
    other = replace(chain, acceptance=f"accepted-length:1.5@{chain.proposal.draft_length}")
    found, _ = predict_claims([chain, other, replace(chain, batch=2)], machine)
    assert len(priced) == 2
    assert found[0].parts.step_s == found[1].parts.step_s < found[2].parts.step_s


def test_a_context_that_is_stated_is_used(chain):
    long = predict_claim(replace(chain, context=100_000.0), machine)
    assert long.parts.step_s > 1.5 * predict_claim(chain, machine).parts.step_s


def test_a_weaker_draft_gains_less(chain):
    speedups = []
    for tau in (1.0, 2.0, 4.0):
        text = f"accepted-length:{tau}@{chain.proposal.draft_length}"
        speedups.append(predict_claim(replace(chain, acceptance=text, tokens_per_cycle=tau), machine).speedup)
    assert np.all(np.diff(speedups) > 0)
    assert speedups[0] < 1.0


def test_an_interval_holds_the_prediction_and_widens_with_what_is_not_known(chain):
    found = predict_claim(chain, machine)
    assert found.low < found.speedup < found.high
    # A chain of a dense model, whose verify pass is nearly its step: most of the error cancels.
    assert found.high / found.low < 1.5
    launched = predict_claim(claim(source="cast2026"), machine)
    assert launched.parts.launched
    unpacked = predict_claim(claim(source="qwen38_mtp_community"), machine)
    assert unpacked.parts.unpacked
    assert unpacked.high / unpacked.low > found.high / found.low


def test_the_textbook_states_no_errors_but_those_of_assumptions(chain):
    def textbook(device, calibration):
        assert calibration
        return make_machine(device, "textbook")

    bare = replace(chain, known=Source("", chain.known.tier))
    found = predict_claim(bare, textbook)
    assert found.low == pytest.approx(found.speedup) == pytest.approx(found.high)
    with_host = predict_claim(chain, textbook)
    assert with_host.high > with_host.speedup
