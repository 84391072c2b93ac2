"""Published facts that a plan starts from, and our own predictions of a common job, changed only on purpose."""

from __future__ import annotations

import pytest

from rooflines.hardware.catalogue import load_hardware
from rooflines.studies.plan import PlanQuestion, make_plan
from rooflines.studies.serve import make_deployment, make_machine


def test_llama_2_7b_on_an_a100():
    """Ideal models agree on 6.28-6.98 ms: 13.2 GB of weights and 0.54 GB of cache over 2.039 TB/s make 6.75 ms."""
    target = make_deployment("llama-2-7b", make_machine("a100-sxm-80gb", "textbook"), weight_dtype="bf16")
    step_s = float(target.decode(1.0, 1024.0).seconds)
    assert 6.7e-3 <= step_s <= 6.9e-3
    by_hand = (6_738_415_616 - 32000 * 4096) * 2 + 1025 * 2 * 32 * 4096 * 2
    assert step_s == pytest.approx(by_hand / 2.039e12, rel=0.005)


@pytest.mark.parametrize(
    ("device", "ridge"),
    [("h100-sxm5-80gb", 295), ("a100-sxm-80gb", 153), ("h200-sxm-141gb", 206)],
)
def test_ridge_points(device, ridge):
    """Dense bf16 peak over bandwidth of the vendors' datasheets: 989.5 / 3.35, 312 / 2.039, 989.5 / 4.8."""
    assert load_hardware(device).ridge_point("bf16") == pytest.approx(ridge, abs=0.5)


# Our own predictions at alpha 0.8, gamma 4, context 1024: (batch, speedup, target step in ms, verify in ms) by calibration.
# They change only on purpose. Two other ideal models that read KV once and price the verify say, at contexts of their
# own, 1.94/2.05/1.98 and 1.92/2.04/2.06 for the 7B model and 3.13/3.10/2.84 and 2.79/2.73/2.41 for the 70B model.
SEVEN = ("a100-sxm-80gb", "llama-2-7b", "independent:tinyllama-1.1b-v1.0", 1)
SEVENTY = ("h100-sxm5-80gb", "llama-3.1-70b", "independent:llama-3.2-1b", 4)
COMMON_JOB = [
    (
        SEVEN,
        "textbook",
        [(1, 2.085, 6.7495, 6.7706), (8, 2.1847, 8.6296, 8.7983), (64, 2.0482, 23.6697, 31.4197)],
    ),
    (
        SEVEN,
        "none",
        [(1, 1.6614, 9.8834, 9.907), (8, 1.7731, 11.9143, 12.1036), (64, 1.7699, 28.162, 39.7856)],
    ),
    (
        SEVEN,
        "a100-sxm4-80gb.vllm-0.14.0",
        [(1, 1.6734, 10.8031, 10.8295), (8, 1.7693, 13.2674, 13.8547), (64, 1.8171, 33.3545, 46.2034)],
    ),
    (
        SEVENTY,
        "textbook",
        [(1, 3.1158, 10.416, 10.4834), (8, 2.9711, 10.7091, 11.2476), (64, 2.2763, 13.0537, 17.49)],
    ),
    (
        SEVENTY,
        "none",
        [(1, 2.6446, 16.7145, 16.8629), (8, 2.5311, 17.1633, 18.2337), (64, 1.8443, 20.3017, 31.142)],
    ),
    (
        SEVENTY,
        "h100-sxm5-80gb.vllm-0.24.0",
        [(1, 2.6178, 16.5835, 16.7301), (8, 2.5088, 17.0271, 18.0923), (64, 1.9114, 20.1458, 29.4489)],
    ),
]


@pytest.mark.parametrize(("job", "calibration", "expected"), COMMON_JOB)
def test_the_common_job(job, calibration, expected):
    hardware, target, drafter, tensor = job
    question = PlanQuestion(
        hardware,
        target,
        (drafter,),
        "0.8",
        (4,),
        (1, 8, 64),
        1024,
        tensor_parallel=tensor,
        calibration=calibration,
    )
    for row, (batch, speedup, step_ms, verify_ms) in zip(make_plan(question).rows, expected, strict=True):
        assert row["batch"] == batch
        assert row["tokens_per_cycle"] == pytest.approx(3.3616, rel=1e-12)
        assert row["speedup"] == pytest.approx(speedup, rel=2e-3)
        assert 1e3 * row["target_step_s"] == pytest.approx(step_ms, rel=2e-3)
        assert 1e3 * row["verify_s"] == pytest.approx(verify_ms, rel=2e-3)


def test_the_common_job_lies_among_other_ideal_models():
    """Within a fifth of two published models of the 7B job, which differ in context, drafter and capacity."""
    others = [(1.94, 1.92), (2.05, 2.04), (1.98, 2.06)]
    for (_, speedup, *_), pair in zip(COMMON_JOB[0][2], others, strict=True):
        assert 0.9 * min(pair) < speedup < 1.2 * max(pair)
