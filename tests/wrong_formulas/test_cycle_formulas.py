"""Known faults of other tools about passes, cycles and capacity, injected one by one: each must turn a check red.

A check is a function that passes on our formulas and raises AssertionError on a wrong one. Every test runs its check
twice: as it is, and with the fault in place.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rooflines.costs import attention
from rooflines.costs.passes import decode_pass, verify_pass
from rooflines.hardware.catalogue import load_hardware
from rooflines.hardware.profile import HardwareProfile
from rooflines.serving.memory import memory_fit
from rooflines.speculation.acceptance import Acceptance
from rooflines.speculation.cycle import cycle, cycle_times
from rooflines.speculation.drafters.independent import IndependentDrafter
from rooflines.studies.serve import make_deployment, make_machine
from rooflines.timing.deployment import Deployment
from rooflines.timing.roofline import pass_time


def served(hardware="a100-sxm-80gb", target="llama-2-7b", drafter="tinyllama-1.1b-v1.0"):
    machine = make_machine(hardware, "textbook")
    whole = make_deployment(target, machine)
    return whole, IndependentDrafter(make_deployment(drafter, machine), whole.model)


def check_verify_is_dear_where_arithmetic_binds():
    """At batch 64 five positions a sequence are 320 rows: beyond the ridge of 153, so no longer one step."""
    target, drafter = served()
    outcome = cycle(cycle_times(target, drafter, 64.0, 0.0, 4.0), Acceptance.constant(0.8))
    rows, ridge = 64 * 5, target.machine.profile.ridge_point("bf16")
    assert rows / ridge > 2
    assert outcome.verify_s / outcome.target_step_s == pytest.approx(rows / ridge, rel=0.15)


def check_verify_reads_the_cache_once():
    """Batch 64 at context 4096: the cache is most of the traffic, and five positions share one reading of it."""
    target, _ = served()
    decode, verify = target.decode(64.0, 4096.0), target.verify(64.0, 4096.0, 5.0)
    kv = [
        float(time.operator.cost.kv_bytes) * time.operator.count
        for one in (decode, verify)
        for time in one.operators
        if time.operator.name == "attention"
    ]
    assert kv[1] == pytest.approx(kv[0], rel=0.01)
    assert verify.seconds < 1.2 * decode.seconds


def check_tokens_of_a_cycle():
    """Leviathan's equation 1 at alpha 0.8 and gamma 4, and its limits."""
    target, drafter = served()
    times = cycle_times(target, drafter, 1.0, 1024.0, 4.0)
    assert cycle(times, Acceptance.constant(0.8)).tokens_per_cycle == pytest.approx(3.3616)
    assert cycle(times, Acceptance.constant(1.0)).tokens_per_cycle == 5.0
    assert cycle(times, Acceptance.constant(0.99)).tokens_per_cycle == pytest.approx(4.90099501)


def check_capacity_is_stated_memory():
    """An H100 has 81,559 MiB (nvidia-smi), that is 85.52e9 bytes: 80e9 is 6.4 % less, 80 GiB 0.4 % more."""
    target, _ = served("h100-sxm5-80gb")
    assert memory_fit(target, None, 1.0, 1024.0).capacity_bytes == pytest.approx(81_559 * 2**20, rel=1e-6)


def check_dense_peaks():
    """Datasheets print the sparse peak first; dense ones give the ridge points that kernels show."""
    for name, ridge in (("h100-sxm5-80gb", 295), ("a100-sxm-80gb", 153), ("h200-sxm-141gb", 206)):
        assert load_hardware(name).ridge_point("bf16") == pytest.approx(ridge, abs=0.5)


def check_kv_heads():
    """Llama-3.1-70B caches 8 kv heads of its 64 query heads: 327,680 bytes a position, not 2.6 million."""
    machine = make_machine("h100-sxm5-80gb", "textbook")
    target = make_deployment("llama-3.1-70b", machine)
    cost = decode_pass(target.model, 1.0, 999.0).cost
    assert cost.kv_bytes == 1000 * 2 * 80 * 8 * 128 * 2


def check_weights_move_once():
    target, _ = served()
    weights = [float(verify_pass(target.model, 8.0, 512.0, float(n)).cost.weight_bytes) for n in (1, 2, 9)]
    assert weights[0] == weights[1] == weights[2]


CHECKS = [
    check_verify_is_dear_where_arithmetic_binds,
    check_verify_reads_the_cache_once,
    check_tokens_of_a_cycle,
    check_capacity_is_stated_memory,
    check_dense_peaks,
    check_kv_heads,
    check_weights_move_once,
]


@pytest.mark.parametrize("check", CHECKS)
def test_our_formulas_pass_every_check(check):
    check()


def turns_red(check):
    with pytest.raises(AssertionError):
        check()


def test_verify_priced_as_one_decode(monkeypatch):
    """Leviathan's assumption outside its domain, as calculators of theorem 3.8 make it."""
    monkeypatch.setattr(Deployment, "verify", lambda self, *shape: self.decode(*shape[:2]))
    turns_red(check_verify_is_dear_where_arithmetic_binds)


def test_verify_priced_as_many_sequences(monkeypatch):
    """Positions counted as a larger batch, so that each of them reads the cache anew."""

    def as_sequences(self, batch, context, width, *_):
        return self.decode(batch * np.asarray(width), context)

    monkeypatch.setattr(Deployment, "verify", as_sequences)
    turns_red(check_verify_reads_the_cache_once)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda self, length: 1 + np.asarray(length) * self.listed[0],
        lambda self, length: np.minimum(sum(self.listed[0] ** k for k in range(5)), length),
        lambda self, _: sum(self.listed[0] ** k for k in range(1, 5)),
    ],
    ids=["1 + gamma alpha", "capped at gamma", "without the target's own token"],
)
def test_wrong_tokens_per_cycle(monkeypatch, wrong):
    monkeypatch.setattr(Acceptance, "tokens_per_cycle", wrong)
    turns_red(check_tokens_of_a_cycle)


@pytest.mark.parametrize("capacity", [80e9, 80 * 2.0**30], ids=["GB", "GiB"])
def test_capacity_read_off_the_name(monkeypatch, capacity):
    monkeypatch.setattr(HardwareProfile, "capacity_bytes", property(lambda _: capacity))
    turns_red(check_capacity_is_stated_memory)


def test_sparse_peaks(monkeypatch):
    dense = HardwareProfile.peak_flop_per_s
    monkeypatch.setattr(HardwareProfile, "peak_flop_per_s", lambda self, dtype: 2 * dense(self, dtype))
    turns_red(check_dense_peaks)


def test_kv_counted_with_query_heads(monkeypatch):
    grouped = attention._core

    def ungrouped(name, setting, *, heads, **rest):
        return grouped(name, setting, heads=(heads[0], heads[0]), **rest)

    monkeypatch.setattr(attention, "_core", ungrouped)
    turns_red(check_kv_heads)


def test_weights_read_per_position(monkeypatch):
    once = attention.layer_linear

    def per_position(*arguments):
        operator, setting = once(*arguments), arguments[-1]
        cost = replace(operator.cost, weight_bytes=operator.cost.weight_bytes * setting.shape.new_tokens)
        return replace(operator, cost=cost)

    monkeypatch.setattr(attention, "layer_linear", per_position)
    turns_red(check_weights_move_once)


def test_the_faults_change_what_a_plan_says():
    """Why they matter: at batch 64 the verdicts of the two wrong verify models differ by a factor above two."""
    target, drafter = served()
    times = cycle_times(target, drafter, 64.0, 1024.0, 4.0)
    many = pass_time(decode_pass(target.model, 64.0 * 5, 1024.0), target.machine)
    right, free, dear = (
        float(cycle(replace(times, verify=verify), Acceptance.constant(0.8)).speedup)
        for verify in (times.verify, times.target, many)
    )
    assert dear < 1 < right < free
    assert free > 2 * dear
