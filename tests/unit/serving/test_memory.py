from __future__ import annotations

from dataclasses import replace

import pytest

from rooflines.serving.memory import DEFAULT_RESERVE, largest_batch, memory_fit
from rooflines.speculation.drafters.independent import IndependentDrafter
from rooflines.studies.serve import make_deployment, make_machine


def served(hardware, target, drafter=None, tensor=1, **formats):
    machine = make_machine(hardware, "textbook")
    whole = make_deployment(target, machine, tensor=tensor, **formats)
    if drafter is None:
        return whole, None
    return whole, IndependentDrafter(make_deployment(drafter, machine, tensor=tensor), whole.model)


CASES = [
    ("a100-sxm-80gb", "llama-2-7b", None, 1, 1024, 0),
    ("a100-sxm-80gb", "llama-2-7b", "tinyllama-1.1b-v1.0", 1, 1024, 8),
    ("h100-sxm5-80gb", "llama-3.1-70b", "llama-3.2-1b", 4, 8192, 5),
    ("h100-sxm5-80gb", "llama-3.1-70b", "llama-3.2-1b", 1, 1024, 4),
    ("l4", "qwen3-8b", "qwen3-0.6b", 1, 4096, 3),
    ("h200-sxm-141gb", "mistral-7b-v0.1", None, 1, 32768, 0),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(map(str, case)))
@pytest.mark.parametrize("reserve", [0.0, DEFAULT_RESERVE, 0.5])
def test_the_largest_batch_is_the_largest_that_fits(case, reserve):
    *serving, context, length = case
    pair = served(*serving)
    found = largest_batch(*pair, float(context), float(length), reserve=reserve)
    tried = 0
    while memory_fit(*pair, float(tried + 1), float(context), float(length), reserve=reserve).fits:
        tried += 1
        if tried > found + 1:
            break
    assert found == tried


def test_the_cases_contain_some_that_fit_and_some_that_never_do():
    rooms = [largest_batch(*served(h, t, d, tp), float(s), float(n)) for h, t, d, tp, s, n in CASES]
    assert 0 in rooms
    assert max(rooms) > 50


def test_llama_2_7b_by_hand():
    """6.738e9 bf16 parameters; per position 2 x 32 layers x 4096 values of 2 bytes."""
    target, _ = served("a100-sxm-80gb", "llama-2-7b")
    fit = memory_fit(target, None, 8.0, 1024.0, 4.0)
    assert fit.weights_bytes == pytest.approx(2 * 6_738_415_616, rel=1e-6)
    assert fit.kv_bytes == 8 * (1024 + 5) * 2 * 32 * 4096 * 2
    assert fit.logits_bytes == 8 * 5 * 32000 * 4
    assert fit.drafter_weights_bytes == fit.drafter_kv_bytes == 0
    assert fit.used_bytes == fit.weights_bytes + fit.kv_bytes + fit.logits_bytes
    assert fit.reserve_bytes == pytest.approx(0.1 * fit.capacity_bytes)


def test_capacity_is_what_the_device_has_and_not_its_name():
    """nvidia-smi shows 81,559 MiB on an 80 GB H100: neither 80e9 nor 80 x 2^30 bytes."""
    target, _ = served("h100-sxm5-80gb", "llama-2-7b")
    assert memory_fit(target, None, 1.0, 1.0).capacity_bytes == 81_559 * 2**20


def test_a_drafter_takes_room_of_its_own():
    alone = served("a100-sxm-80gb", "llama-2-7b")
    both = served("a100-sxm-80gb", "llama-2-7b", "tinyllama-1.1b-v1.0")
    assert largest_batch(*both, 1024.0) < largest_batch(*alone, 1024.0)
    fit = memory_fit(*both, 1.0, 1024.0, 4.0)
    assert fit.drafter_weights_bytes == pytest.approx(2 * 1_100_048_384, rel=2e-6)
    assert fit.drafter_kv_bytes == (1024 + 5) * 2 * 22 * 4 * 64 * 2


def test_tensor_parallelism_divides_weights_heads_and_vocabulary():
    one, _ = served("h100-sxm5-80gb", "llama-3.1-70b")
    four, _ = served("h100-sxm5-80gb", "llama-3.1-70b", tensor=4)
    whole, share = memory_fit(one, None, 4.0, 1000.0, 3.0), memory_fit(four, None, 4.0, 1000.0, 3.0)
    assert share.kv_bytes == whole.kv_bytes / 4
    assert share.logits_bytes == whole.logits_bytes / 4
    assert whole.weights_bytes / 4 <= share.weights_bytes < 1.001 * whole.weights_bytes / 4
    assert whole.weights_bytes == pytest.approx(141.1e9, rel=0.001)


def test_kv_heads_are_replicated_beyond_their_number():
    """Eight kv heads on 16 devices: each holds one, so half of the memory is copies."""
    eight, _ = served("h100-sxm5-80gb", "llama-3.1-70b", tensor=8)
    sixteen, _ = served("h100-sxm5-80gb", "llama-3.1-70b", tensor=16)
    assert memory_fit(eight, None, 1.0, 999.0).kv_bytes == memory_fit(sixteen, None, 1.0, 999.0).kv_bytes


def test_smaller_formats_leave_room_for_more_sequences():
    rooms = [
        largest_batch(*served("l40s", "llama-2-7b", weight_dtype=weights, kv_dtype=kv), 2048.0)
        for weights, kv in ((None, None), ("fp8", None), ("fp8", "fp8"))
    ]
    assert rooms == sorted(rooms)
    assert rooms[0] < rooms[1] < rooms[2]


def test_a_window_bounds_the_cache():
    windowed, _ = served("h200-sxm-141gb", "mistral-7b-v0.1")
    long, longer = (memory_fit(windowed, None, 1.0, context).kv_bytes for context in (8192.0, 65536.0))
    assert long == longer


def test_weights_beyond_the_memory_leave_no_batch():
    target, _ = served("h100-sxm5-80gb", "llama-3.1-70b")
    assert largest_batch(target, None, 1.0) == 0
    assert not memory_fit(target, None, 1.0, 1.0).fits


def test_exactly_full_fits():
    target, _ = served("a100-sxm-80gb", "llama-2-7b")
    fit = memory_fit(target, None, 2.0, 64.0, reserve=0.0)
    assert replace(fit, capacity_bytes=float(fit.used_bytes)).fits
    assert not replace(fit, capacity_bytes=float(fit.used_bytes) - 1).fits
