"""Shapes that one device took too long for, beside another of the same silicon."""

from __future__ import annotations

import pytest

from rooflines.hardware.catalogue import load_hardware
from rooflines.validation.kernel_tables.read import read_kernel_table
from rooflines.validation.kernel_tables.sisters import MARGIN, SILICON

HEADER = (
    "gpu,engine,engine_version,moe_dtype,num_tokens,hidden_size,expert_ffn_size,top_k,num_experts,"
    "distribution,time_us"
)
TOKENS = (16, 64, 256, 1024)


def table(tmp_path, *parts):
    """Layers of experts; each part is a device, a shape, and how long they took over 1 ms and the tokens."""
    lines = [
        f"{device},trtllm,1.0,bfloat16,{tokens},4096,{width},8,128,balanced,{1000.0 * factor + tokens:g}"
        for device, width, factor in parts
        for tokens in TOKENS
    ]
    path = tmp_path / "experts.csv"
    path.write_text("\n".join([HEADER, *lines]) + "\n", encoding="utf-8")
    return read_kernel_table(path)


def odd(found):
    return {(one.group.device, one.rows): one.reason for one in found.left_out if "datasheets" in one.reason}


def shapes(found, device):
    return {str(shape) for rows in found.groups if rows.group.device == device for shape in rows.shape}


def test_a_shape_that_only_one_device_is_slow_at_is_left_out_by_name(tmp_path):
    found = table(
        tmp_path, ("b200_sxm", 1536, 2.0), ("b200_sxm", 2048, 1.0), ("gb200", 1536, 1.0), ("gb200", 2048, 1.0)
    )
    ((place, reason),) = odd(found).items()
    assert place == ("b200-sxm-180gb", len(TOKENS))
    assert "gb200" in reason
    assert shapes(found, "b200-sxm-180gb") == {"4096x2048x8x128"}
    assert shapes(found, "gb200") == {"4096x1536x8x128", "4096x2048x8x128"}


def test_a_group_with_nothing_left_is_gone(tmp_path):
    found = table(tmp_path, ("b200_sxm", 1536, 1.0), ("gb200", 1536, 2.0))
    assert [place for place, _ in odd(found)] == ["gb200"]
    assert {rows.group.device for rows in found.groups} == {"b200-sxm-180gb"}


@pytest.mark.parametrize(("share", "left_out"), [(0.9, 0), (1.1, 1)])
def test_what_the_datasheets_allow_is_not_held_against_a_device(tmp_path, share, left_out):
    """Weights of these layers wait for the memory: H100 may be slower than H200 by their bandwidths."""
    allowed = (
        load_hardware("h200-sxm").bandwidth_bytes_per_s / load_hardware("h100-sxm").bandwidth_bytes_per_s
    )
    assert allowed > 1.3
    # The largest of these rows add a millisecond to both.
    factor = MARGIN * allowed * share
    found = table(tmp_path, ("h100_sxm", 1536, 8 * factor), ("h200_sxm", 1536, 8.0))
    assert len(odd(found)) == left_out


def test_devices_of_another_silicon_and_few_sizes_are_not_compared(tmp_path):
    assert not odd(table(tmp_path, ("b200_sxm", 1536, 9.0), ("h200_sxm", 1536, 1.0)))
    text = "\n".join(
        [HEADER]
        + [
            f"{device},trtllm,1.0,bfloat16,{tokens},4096,1536,8,128,balanced,{time}"
            for device, time in (("b200_sxm", 9000), ("gb200", 1000))
            for tokens in TOKENS[:2]
        ]
    )
    (tmp_path / "two.csv").write_text(text + "\n", encoding="utf-8")
    assert not odd(read_kernel_table(tmp_path / "two.csv"))


def test_devices_of_one_silicon_are_in_the_catalogue_and_in_one_set():
    every = [device for one in SILICON for device in one]
    assert len(every) == len(set(every))
    for device in every:
        assert load_hardware(device).id == device
