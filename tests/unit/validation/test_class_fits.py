"""Fits find the constants that made the times, predict shapes they never saw, and refuse what cannot be told."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rooflines.costs.cost import Cost, Operator
from rooflines.errors import CannotTellError, InputError
from rooflines.hardware.catalogue import load_hardware
from rooflines.hardware.constants import Constants
from rooflines.timing.roofline import operator_time
from rooflines.validation.class_fits import fit_class, held_out_s, predicted_s, with_constants
from rooflines.validation.class_forms import FORMS, form_of
from rooflines.validation.kernel_tables import Group, KernelRows, read_kernel_table
from rooflines.validation.kernel_tables.collective import all_reduces

H100 = load_hardware("h100-sxm5-80gb")
SIZES = np.geomspace(1e6, 1e10, 12)
N = len(SIZES)


def rows(operator, shape=None):
    group = Group(H100.id, "engine", "1", "", operator.kind, "bf16")
    shapes = np.array([f"s{i % 4}" for i in range(N)]) if shape is None else shape
    blank = np.full(N, "all")
    return KernelRows(group, (operator,), np.ones(N), shapes, blank, SIZES, np.arange(N) + 2)


def timed(one, constants):
    return replace(one, measured_s=predicted_s(one, with_constants(H100, constants)))


TOKENS = np.geomspace(64, 16384, N)
MADE = {
    "decode_attention": (
        Operator("attention", "decode_attention", Cost(kv_bytes=SIZES, kernels=1.0)),
        Constants(0.82, 1.0, 13e-6, 2.5),
    ),
    "prefill_attention": (
        Operator(
            "attention",
            "prefill_attention",
            Cost(
                matmul_flops=TOKENS**2 * 1e5 * np.tile([1.0, 4.0, 16.0], 4),
                kv_bytes=TOKENS * np.tile([1e3, 1e5], 6),
                kernels=1.0,
            ),
            query_tokens=TOKENS,
        ),
        Constants(0.4, 0.55, 11e-6, 1.0, token_overhead_s=20e-9, kv_traffic=2.0),
    ),
    "moe": (
        Operator(
            "experts",
            "moe",
            Cost(
                matmul_flops=np.geomspace(1e9, 3e13, N), weight_bytes=np.tile([4e8, 2e9, 8e9], 4), kernels=1.0
            ),
            rows=np.geomspace(1, 512, N),
            tokens_per_expert=np.geomspace(0.125, 64, N),
        ),
        Constants(0.9, 0.3, 30e-6, 2.5, saturation_tokens=40.0, narrow_tile_share=0.25),
    ),
    "small": (
        Operator("norm", "small", Cost(activation_bytes=SIZES, kernels=1.0)),
        Constants(0.7, 1.0, 3e-6, 1.0),
    ),
}


@pytest.mark.parametrize("kind", MADE)
def test_constants_that_made_the_times_are_found(kind):
    operator, true = MADE[kind]
    found = fit_class([timed(rows(operator), true)], H100)
    for name in FORMS[kind].free:
        assert getattr(found, name) == pytest.approx(getattr(true, name), rel=0.02), name
    for name, value in FORMS[kind].fixed.items():
        assert getattr(found, name) == value


def test_collectives_are_fitted_over_numbers_of_devices_together():
    true = Constants(0.6, 1.0, 4e-6, 1.0, rank_overhead_s=1.5e-6, rank_contention=0.4, bulk_overhead_s=2e-5)
    groups = [timed(rows(all_reduces(SIZES, ranks)), true) for ranks in (2, 4, 8)]
    found = fit_class(groups, H100)
    for name in FORMS["collective"].free:
        assert getattr(found, name) == pytest.approx(getattr(true, name), rel=0.02), name


def test_only_kernels_of_serving_engines_sum_in_one_stage():
    assert form_of("collective", "bf16", H100, 4, "vllm").fixed["one_stage_bytes"] == 512 * 1024
    assert "one_stage_bytes" not in form_of("collective", "bf16", H100, 4, "nccl").fixed


@pytest.mark.parametrize(
    ("engine", "device", "limit"),
    [
        ("vllm", "h100-sxm", 64 * 2**20),
        ("vllm", "a100-sxm4-80gb", 8 * 2**20),
        ("sglang", "gb200", 16 * 2**20 + 1),
        ("sglang", "l40s", 8 * 2**20 + 1),
        ("trtllm", "b200", 8e6),
    ],
)
def test_each_engine_leaves_messages_of_a_size_to_nccl(engine, device, limit):
    form = form_of("collective", "bf16", load_hardware(device), 4, engine)
    assert form.fixed["bulk_from_bytes"] == limit
    assert "bulk_overhead_s" in form.free


def test_a_few_odd_kernels_do_not_steer_a_fit():
    operator, true = MADE["decode_attention"]
    one = timed(rows(operator), true)
    odd = one.measured_s.copy()
    odd[8] *= 6
    found = fit_class([replace(one, measured_s=odd)], H100)
    assert found.bandwidth_efficiency == pytest.approx(true.bandwidth_efficiency, rel=0.05)


def test_predictions_go_through_the_time_form_of_plans():
    operator, true = MADE["moe"]
    machine = with_constants(H100, true)
    twice = replace(rows(operator), operators=(operator, operator))
    assert predicted_s(twice, machine) == pytest.approx(
        2 * np.asarray(operator_time(operator, machine).seconds)
    )


def test_a_held_out_shape_never_shapes_its_own_prediction():
    operator, true = MADE["decode_attention"]
    one = timed(rows(operator), true)
    slow = np.where(one.shape == "s1", 2.0, 1.0)
    (predicted,) = held_out_s([replace(one, measured_s=one.measured_s * slow)], H100, folds=4)
    assert predicted[one.shape == "s1"] == pytest.approx(one.measured_s[one.shape == "s1"], rel=1e-3)


def test_one_shape_leaves_nothing_to_hold_out():
    operator, true = MADE["moe"]
    one = timed(rows(operator, np.full(N, "only")), true)
    assert np.isnan(held_out_s([one], H100)[0]).all()


def test_too_few_rows_or_sizes_are_refused_with_advice():
    operator, true = MADE["prefill_attention"]
    some = timed(rows(operator), true).rows(np.arange(N) < 3)
    with pytest.raises(CannotTellError, match=r"3 row\(s\).*prompts of 64 to 16k tokens"):
        fit_class([some], H100)
    ring = timed(rows(all_reduces(SIZES, 2), np.full(N, "1024")), Constants(0.6, 1.0, 4e-6, 1.0))
    with pytest.raises(CannotTellError, match=r"1 shape\(s\).*messages of 1 KiB to 64 MiB"):
        fit_class([ring], H100)


def test_classes_are_fitted_one_by_one():
    with pytest.raises(InputError, match="0 operator classes"):
        fit_class([], H100)
    with pytest.raises(InputError, match="2 operator classes"):
        fit_class([rows(MADE["moe"][0]), rows(MADE["small"][0])], H100)
    with pytest.raises(InputError, match=r"'recurrent' has no form here"):
        form_of("recurrent", "bf16", H100, 8)
    with pytest.raises(InputError, match="at least 2"):
        held_out_s([rows(MADE["small"][0])], H100, folds=1)


@pytest.mark.parametrize(
    ("file", "tolerance"),
    [
        ("attention_decode.csv", 0.08),
        ("attention_prefill.csv", 0.15),
        ("moe_layer.csv", 0.15),
        ("allreduce.csv", 0.08),
    ],
)
def test_shapes_that_were_held_out_are_predicted_better_than_by_the_roofline(root, file, tolerance):
    """A few rows of each table on an H100; wider than on whole tables, since few shapes are left to fit."""
    table = read_kernel_table(root / "tests/reference/kernels" / file)
    for dtype in {one.group.dtype for one in table.groups}:
        groups = [one for one in table.groups if one.group.dtype == dtype]
        held_out = np.concatenate(held_out_s(groups, H100))
        measured = np.concatenate([one.measured_s for one in groups])
        plain = np.concatenate([predicted_s(one, with_constants(H100, Constants())) for one in groups])
        error = np.median(np.abs(held_out / measured - 1))
        assert error <= tolerance
        assert error < np.median(np.abs(plain / measured - 1)) / 2
