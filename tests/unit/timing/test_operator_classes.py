"""What the constants of attention, experts and collectives do to an operator's time, worked out by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rooflines.costs.cost import Cost, Operator
from rooflines.hardware.catalogue import load_hardware
from rooflines.hardware.constants import Constants
from rooflines.timing.forms import faster_protocol_s, reduced_bytes, widened
from rooflines.timing.machine import Machine
from rooflines.timing.roofline import operator_time

H100 = load_hardware("h100-sxm5-80gb")


def seconds(operator, **constants):
    return operator_time(operator, Machine(H100, lambda _: Constants(**constants), "by hand")).seconds


def test_a_serial_loop_adds_time_per_position_whatever_the_heads():
    one = Operator("attention", "prefill_attention", Cost(kernels=1.0), query_tokens=1000.0)
    assert seconds(one, overhead_s=10e-6, token_overhead_s=20e-9) == pytest.approx(30e-6)


def test_experts_saturate_in_positions_per_expert_not_in_positions_of_the_prompt():
    cost = Cost(matmul_flops=989.5e12)
    one = Operator("experts", "moe", cost, rows=30.0, query_tokens=1.0)
    assert seconds(one, saturation_tokens=60.0) == pytest.approx(1.0 + 60.0 / 30.0)


def test_narrow_tiles_of_experts_end_between_one_and_two_positions_per_expert():
    few = Operator("experts", "moe", Cost(matmul_flops=989.5e12), rows=16.0, tokens_per_expert=1.0)
    half, two, more = (replace(few, tokens_per_expert=each) for each in (1.5, 2.0, 30.0))
    assert seconds(few, saturation_tokens=64.0, narrow_tile_share=0.25) == pytest.approx(2.0)
    assert seconds(half, saturation_tokens=64.0, narrow_tile_share=0.25) == pytest.approx(3.5)
    assert seconds(two, saturation_tokens=64.0, narrow_tile_share=0.25) == pytest.approx(5.0)
    assert seconds(more, saturation_tokens=64.0, narrow_tile_share=0.25) == pytest.approx(5.0)


@pytest.mark.parametrize(("ranks", "change"), [(4, 512 * 1024), (8, 256 * 1024)])
def test_small_messages_are_read_whole_and_two_stages_begin_where_they_take_as_long(ranks, change):
    def moved(message):
        return reduced_bytes(2 * (ranks - 1) / ranks * message, ranks, 1.0, 512 * 1024)

    assert moved(1024.0) == pytest.approx((ranks - 1) * 1024)
    assert moved(change) == pytest.approx((ranks - 1) * change)
    assert moved(2.0 * change) - moved(change) == pytest.approx(2 * (ranks - 1) / ranks * change)


def test_only_sums_have_one_stage_and_two_devices_need_no_second():
    gather = Operator("gather", "collective", Cost(network_bytes=1e4, kernels=1.0), ranks=8)
    total, pair = replace(gather, reduces=True), replace(gather, reduces=True, ranks=2)
    assert seconds(gather, one_stage_bytes=524288.0) == seconds(gather)
    assert seconds(total, one_stage_bytes=524288.0) == pytest.approx(4 * seconds(total))
    assert seconds(pair, one_stage_bytes=524288.0) == pytest.approx(seconds(pair))


def test_the_faster_protocol_runs_and_they_meet_where_the_latency_is_worth_it():
    """Half of the bandwidth costs as much again as the bytes take, which the other's latency ends."""
    assert faster_protocol_s(3e-6, 20e-6) == pytest.approx(6e-6)
    assert faster_protocol_s(20e-6, 20e-6) == pytest.approx(40e-6)
    assert faster_protocol_s(300e-6, 20e-6) == pytest.approx(320e-6)


def test_kernels_of_engines_leave_large_sums_to_nccl_and_all_gathers_always():
    # 450 GB/s a direction: a message over two devices sends its own size, 10 us.
    pair = Operator("all-reduce", "collective", Cost(network_bytes=4.5e6, kernels=1.0), ranks=2, reduces=True)
    limits = {"one_stage_bytes": 1.0, "bulk_overhead_s": 5e-6}
    assert seconds(pair, **limits) == pytest.approx(10e-6)
    assert seconds(pair, **limits, bulk_from_bytes=4.6e6) == pytest.approx(10e-6)
    assert seconds(pair, **limits, bulk_from_bytes=4.5e6) == pytest.approx(15e-6)
    assert seconds(replace(pair, reduces=False), **limits, bulk_from_bytes=4.6e6) == pytest.approx(15e-6)
    eight = replace(pair, cost=Cost(network_bytes=2 * 7 / 8 * 4.5e6, kernels=1.0), ranks=8)
    assert seconds(eight, **limits, bulk_from_bytes=4.5e6) == pytest.approx(17.5e-6 + 5e-6)


@pytest.mark.parametrize(("ranks", "expected"), [(2, 5e-6), (4, 9e-6), (8, 17e-6)])
def test_latency_of_a_collective_grows_by_device(ranks, expected):
    one = Operator("all-reduce", "collective", Cost(kernels=1.0), ranks=ranks)
    assert seconds(one, overhead_s=5e-6, rank_overhead_s=2e-6) == pytest.approx(expected)


def test_a_shared_link_is_divided_and_an_own_one_is_not():
    one = Operator("all-reduce", "collective", Cost(network_bytes=450e9, kernels=1.0), ranks=8)
    assert seconds(one) == pytest.approx(1.0)
    assert seconds(one, rank_contention=1.0) == pytest.approx(4.0)
    assert seconds(one, rank_contention=2.0) == pytest.approx(16.0)


def test_query_rows_are_free_up_to_32_and_stop_costing_more_at_64():
    rows = np.array([1.0, 32.0, 48.0, 64.0, 1000.0])
    assert widened(rows, 1.8) == pytest.approx([1.0, 1.0, 1.4, 1.8, 1.8])
    assert widened(1000.0, 1.0) == 1.0


def test_the_floor_of_attention_is_not_widened():
    one = Operator("attention", "decode_attention", Cost(kv_bytes=3.35e12, kernels=1.0), query_rows=64.0)
    assert seconds(one, overhead_s=0.5, wide_factor=2.0) == pytest.approx(2.5)


def test_prefill_moves_new_keys_and_values_more_than_once():
    one = Operator("attention", "prefill_attention", Cost(kv_bytes=3.35e12, activation_bytes=3.35e12))
    assert seconds(one) == pytest.approx(2.0)
    assert seconds(one, kv_traffic=3.0) == pytest.approx(4.0)
