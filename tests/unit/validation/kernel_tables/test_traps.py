"""Rows that measured something else than a kernel's own time are named; honest rows are kept."""

from __future__ import annotations

import numpy as np
import pytest

from rooflines.hardware.catalogue import load_hardware
from rooflines.validation.kernel_tables import read_kernel_table
from rooflines.validation.kernel_tables.linear import products
from rooflines.validation.kernel_tables.names import format_of
from rooflines.validation.kernel_tables.traps import host_bound, odd_single_row, too_fast

H100 = load_hardware("h100-sxm5-80gb")


def kernels(m, n=8192, k=8192, dtype="bfloat16"):
    m = np.asarray(m, dtype=float)
    return products(m, np.full_like(m, n), np.full_like(m, k), format_of(dtype))


def named(rules, row):
    return [reason for rule, reason in rules if rule[row]]


def test_no_kernel_beats_the_datasheet():
    """8192 x 8192 in 16 bits are 134 MB: 40.1 us at 3.35 TB/s; 4096 positions of it take 556 us at 989.5 TFLOP/s."""
    operator = kernels([1, 1, 4096, 4096])
    rules = too_fast((operator,), np.array([39e-6, 41e-6, 540e-6, 600e-6]), H100)
    assert named(rules, 0) == ["faster than the memory allows: read from a cache"]
    assert named(rules, 1) == []
    assert named(rules, 2) == ["faster than the stated dense peak allows"]
    assert named(rules, 3) == []


def test_a_floor_of_the_host_is_found_in_short_kernels_only():
    operator = kernels([1, 2, 4, 8, 8192], n=2048, k=2048)
    waiting = np.array([170e-6, 172e-6, 171e-6, 175e-6, 300e-6])
    rules = host_bound(operator, waiting, H100)
    assert [bool(named(rules, row)) for row in range(5)] == [True, True, True, True, False]
    assert not any(rule.any() for rule, _ in host_bound(operator, waiting / 20, H100))


def test_the_odd_kernel_for_one_position_is_named_for_its_shape_only():
    m = np.array([1.0, 2.0, 3.0, 4.0, 1.0, 2.0, 3.0])
    shape = np.array(["a"] * 4 + ["b"] * 3)
    seconds = np.array([33.0, 18.6, 18.7, 18.6, 20.0, 19.0, 19.0])
    ((odd, reason),) = odd_single_row(m, shape, seconds)
    assert odd.tolist() == [True] + [False] * 6
    assert "one position" in reason


def test_small_caches_are_left_out_of_decode_attention(root):
    found = read_kernel_table(root / "tests/reference/kernels/attention_decode.csv")
    smallest = min(float(np.min(rows.size)) for rows in found.groups)
    assert smallest > 2 * H100.last_level_cache_bytes
    assert {one.reason.split(",")[0] for one in found.left_out} == {"KV within twice the last-level cache"}


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("h100_sxm,vllm,1,vLLM_custom_eager,8,1048576,60", "launched by the host"),
        ("h100_sxm,nccl,2,NCCL,16,1048576,60", "spans nodes"),
        ("h100_sxm,nccl,2,NCCL,1,1048576,60", "one device reduces nothing"),
    ],
)
def test_collectives_that_profiles_cannot_answer_for(tmp_path, row, reason):
    file = tmp_path / "rows.csv"
    file.write_text("gpu,engine,engine_version,kernel_source,num_gpus,message_bytes,time_us\n" + row + "\n")
    found = read_kernel_table(file)
    assert not found.groups
    assert reason in found.left_out[0].reason


def test_four_devices_without_links_between_pairs_are_left_out(root):
    found = read_kernel_table(root / "tests/reference/kernels/vidur_allreduce.csv")
    kept = {(rows.group.kernel, rows.group.variant) for rows in found.groups}
    assert kept == {("a100_pairwise_nvlink", "2 devices"), *(("h100_dgx", f"{n} devices") for n in (2, 4, 8))}


def test_a_routing_that_slows_one_token_is_named_and_the_other_kept(tmp_path):
    """One token hits two of eight experts under any routing, so 120 beside 70 us is another kernel."""
    header = "gpu,engine,engine_version,moe_dtype,num_tokens,hidden_size,expert_ffn_size,top_k,num_experts,distribution,time_us"
    cells = "b200_sxm,trtllm,1,nvfp4,{},4096,14336,2,8,{},{}"
    given = [
        (1, "balanced", 70),
        (64, "balanced", 167),
        (1, "power_law_1.2", 120),
        (64, "power_law_1.2", 317),
    ]
    file = tmp_path / "rows.csv"
    file.write_text("\n".join([header, *(cells.format(*row) for row in given)]) + "\n")
    found = read_kernel_table(file)
    assert {rows.group.variant for rows in found.groups} == {"balanced"}
    (left,) = [one for one in found.left_out if one.group.variant == "power_law_1.2"]
    assert left.rows == 2
    assert "one token took longer" in left.reason
