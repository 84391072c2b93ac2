"""The loop on SmolLM2-135M-Instruct: lossless in fp32, explained in bf16, predicted from its own components."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs torch and transformers (extra [oracle])")
pytest.importorskip("transformers", reason="needs torch and transformers (extra [oracle])")

from rooflines.measurement.models import load_model
from rooflines.measurement.speculation.choices import parse_drafter
from rooflines.measurement.speculation.prompts import choose_prompts
from rooflines.measurement.speculation.record import is_near_tie
from rooflines.measurement.speculation.session import Question, measure_speculation
from rooflines.measurement.speculation.summary import measured_speedup

pytestmark = [pytest.mark.torch, pytest.mark.slow]


def _measure(folder, output, dtype, drafters, *, length, tokens, prompts):
    question = Question(tuple(map(parse_drafter, drafters)), (length,), choose_prompts(prompts), tokens)
    return measure_speculation(load_model(str(folder), dtype), question, output, lambda _done, _total: None)


# torch's 4-bit kernels are five times slower than a whole pass in fp32, so the copy gets few tokens.
@pytest.mark.parametrize(
    ("drafters", "tokens", "most_accepted"),
    [(("prompt-lookup", "early-exit:20"), 24, 0.9), (("int4",), 8, 1.0)],
)
def test_in_fp32_greedy_speculation_says_what_plain_decoding_says(
    smollm2, tmp_path, drafters, tokens, most_accepted
):
    file = _measure(
        smollm2, tmp_path / "f.json", "fp32", drafters, length=2, tokens=tokens, prompts=["code-stack"]
    )
    assert not any(run.divergences for run in file.runs)
    cycles = [cycle for run in file.runs for cycle in run.cycles]
    share = sum(cycle.accepted for cycle in cycles) / sum(cycle.drafted for cycle in cycles)
    assert 0 < share <= most_accepted  # both kept and refused tokens were compared, or the copy is good


@pytest.fixture(scope="module")
def bf16(smollm2, tmp_path_factory):
    output = tmp_path_factory.mktemp("bf16") / "f.json"
    drafters = ("prompt-lookup", "int4")
    return _measure(smollm2, output, "bf16", drafters, length=4, tokens=48, prompts=["copying-minutes"])


def test_in_bf16_differences_are_near_ties(bf16):
    assert all(is_near_tie(one) for run in bf16.runs for one in run.divergences)


def test_speculation_pays_on_copying(bf16):
    by_drafter = {run.drafter: measured_speedup(run) for run in bf16.runs}
    assert by_drafter["prompt-lookup"] > 1.5
    assert by_drafter["int4"] > 1.2


def test_a_speedup_is_what_its_components_make_it(bf16):
    """tau T(1) / (k draft step + T(n)), each from samples that are not part of the cycles."""
    for run in bf16.runs:
        times = {
            case: [one.seconds[0] for one in run.samples if one.case == case] for case in ("step", "draft")
        }
        drafts = sum(cycle.drafted for cycle in run.cycles) if run.drafter == "int4" else len(run.cycles)
        cycles_s = drafts * np.mean(times["draft"]) + len(run.cycles) * np.mean(times["step"])
        assert sum(run.plain_s) / cycles_s == pytest.approx(measured_speedup(run), rel=0.10)
