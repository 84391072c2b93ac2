from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from rooflines.errors import FileFormatError
from rooflines.serving.uncertain import ClientEnds
from rooflines.studies.serve import make_machine
from rooflines.validation.serving import judge_serving, order_of, overall, predict_serving
from rooflines.validation.serving_tables import ServedAs, read_serving, served_as

# Rows of AIConfigurator's silicon_sample.csv (Apache-2.0, Copyright (c) 2025-2026 NVIDIA CORPORATION &
# AFFILIATES, https://github.com/ai-dynamo/aiconfigurator): vLLM, Llama-3.1-70B in fp8 on 2 and 4 H100, and one
# row of a rack.
RUNS = Path(__file__).parent / "serving_runs.csv"


def machine(device):
    return make_machine(device, "textbook")


@pytest.fixture(scope="module")
def rows():
    return read_serving(RUNS)


@pytest.fixture(scope="module")
def found(rows):
    return predict_serving(rows, machine, machine)


def test_what_a_row_ran(rows):
    served = served_as(rows[0])
    assert served.device == "h100-sxm5-80gb"
    assert served.model.name == "llama-3.1-70b"
    assert (served.weights, served.kv) == ("fp8", None)
    assert served.parallelism.tensor == 2
    assert (served.prompt, served.output, served.sequences, served.at_most) == (1024, 1024, 4.0, 4)
    assert rows[0].tpot_s == pytest.approx(17.407e-3)


def changed(row, texts=None, **numbers):
    return replace(row, texts={**row.texts, **(texts or {})}, numbers={**row.numbers, **numbers})


def test_formats_follow_the_server(rows):
    blackwell = served_as(changed(rows[0], {"system": "b200_sxm"}))
    assert blackwell.kv == "fp8"
    assert served_as(changed(rows[0], {"backend": "trtllm"})).kv == "fp8"
    assert served_as(changed(rows[0], {"system": "b200_sxm", "origin_file": "mine.csv"})).kv is None
    assert served_as(changed(rows[0], {"gemm_quant_mode": ""})).weights is None
    shipped = served_as(changed(rows[0], {"model_path": "openai/gpt-oss-120b", "gemm_quant_mode": "nvfp4"}))
    assert shipped.weights is None


def test_groups_of_devices_that_share_experts_split_the_requests(rows):
    texts = {"model_path": "deepseek-ai/DeepSeek-R1"}
    row = changed(
        rows[0], texts, tp_size=1.0, moe_ep_size=8.0, attention_dp_size=8.0, concurrency=64.0, batch_size=8.0
    )
    served = served_as(row)
    assert (served.sequences, served.at_most) == (8.0, 8)
    assert served.parallelism.devices == 8


@pytest.mark.parametrize(
    ("texts", "numbers", "reason"),
    [
        ({"system": "abacus"}, {}, "no profile"),
        ({"model_path": "nobody/Nothing"}, {}, "unknown model"),
        ({}, {"tp_size": 72.0}, "a rack"),
        ({}, {"tp_size": 1.0, "moe_ep_size": 8.0, "attention_dp_size": 64.0}, "contradict"),
        ({}, {"concurrency": float("nan"), "batch_size": float("nan")}, "neither concurrency"),
    ],
)
def test_rows_that_say_too_little_are_left_out(rows, texts, numbers, reason):
    answer = served_as(changed(rows[0], texts, **numbers))
    assert isinstance(answer, str)
    assert reason in answer


def test_every_row_is_predicted_or_left_out(rows, found):
    predicted, left = found
    assert len(predicted) + len(left) == len(rows)
    assert any("rack" in one.reason for one in left)
    for one in predicted:
        assert one.tpot_s == one.plain_tpot_s
        assert 0 < one.batch <= one.served.sequences


def test_throughput_is_littles_law(found):
    one = found[0][0]
    # Outputs are drawn between 819 and 1024 tokens.
    each = 921.6 / (one.row.ttft_s + 920.6 * one.row.tpot_s)
    assert one.measured_tokens_per_s == pytest.approx(
        one.served.sequences * each / one.served.parallelism.tensor
    )


def test_repeated_rows_count_once(rows, found):
    again, left = predict_serving([*rows, *rows], machine, machine)
    assert len(again) == len(found[0])
    assert sum("repeats" in one.reason for one in left) == len(found[0])


def test_the_constants_of_a_device_are_read_once(rows, found):
    asked = []
    predict_serving(rows, lambda device: asked.append(device) or machine(device), machine)
    assert sorted(asked) == sorted({one.served.device for one in found[0]})
    assert len(found[0]) > len(asked)


def test_errors_by_hand(found):
    predicted = [
        replace(one, tpot_s=one.row.tpot_s * factor)
        for one, factor in zip(found[0][:3], (0.9, 1.2, 1.3), strict=True)
    ]
    (verdict,) = judge_serving(predicted)
    assert verdict.rows == 3
    assert verdict.tpot_median_abs_error == pytest.approx(0.2)
    assert verdict.tpot_bias == pytest.approx(0.2)
    assert verdict.tpot_p90_abs_error == pytest.approx(np.quantile([0.1, 0.2, 0.3], 0.9))
    assert overall(predicted).tpot_median_abs_error == verdict.tpot_median_abs_error


def test_coverage_by_hand(found):
    def between(one, tpot, ttft):
        """Intervals whose ends are these times the measured times."""
        ends = ClientEnds(
            tuple(end * one.row.tpot_s for end in tpot),
            tuple(end * one.row.ttft_s for end in ttft),
            (0.0, 1.0),
        )
        return replace(one, ends=ends)

    first, second, third, fourth = found[0][:4]
    (verdict,) = judge_serving(
        [
            between(first, (0.9, 1.1), (0.5, 2.0)),
            between(second, (1.0, 1.0), (1.1, 2.0)),
            between(third, (1.1, 1.2), (0.5, 0.9)),
            replace(fourth, ends=None),
        ]
    )
    assert verdict.rows == 4
    assert verdict.tpot_coverage == pytest.approx(2 / 3)
    assert verdict.ttft_coverage == pytest.approx(1 / 3)


def test_the_textbook_has_no_intervals(found):
    assert all(one.ends is None for one in found[0])
    assert overall(found[0]).tpot_coverage is None


def test_every_prediction_lies_inside_its_interval(rows):
    predicted, _ = predict_serving(rows, make_machine, machine)
    for one in predicted:
        assert one.ends.tpot_s[0] < one.tpot_s < one.ends.tpot_s[1]
        assert one.ends.ttft_s[0] < one.ttft_s < one.ends.ttft_s[1]
    # Measured times of this server are within 10 % of the predicted ones, and intervals are wider.
    assert overall(predicted).tpot_coverage == 1.0


def test_the_order_of_pairs(found):
    exact = [replace(one, tpot_s=one.row.tpot_s, ttft_s=one.row.ttft_s) for one in found[0]]
    truth = order_of(exact)
    assert truth.pairs > 0
    assert truth.share == 1.0
    swapped = [replace(one, tpot_s=1 / one.row.tpot_s, ttft_s=0.0) for one in exact]
    assert order_of(swapped).right < truth.right
    assert order_of([]).share is None


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "not a CSV"),
        ("a,b\n1,2\n", "no column system"),
        (
            "system,model_path,tp_size,isl,osl,silicon_ttft_ms,silicon_tpot_ms\nx,y,1,1,1,1,1\n",
            "no column concurrency",
        ),
        ("system;model_path\nx;y\n", "written with semicolons: save it with commas"),
    ],
)
def test_a_bad_table_is_one_clear_line(tmp_path, text, reason):
    path = tmp_path / "runs.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(FileFormatError, match=reason) as caught:
        read_serving(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("cell", "reason"),
    [
        ({"silicon_tpot_ms": "-1"}, "silicon_tpot_ms -1 lies outside"),
        ({"silicon_ttft_ms": ""}, "silicon_ttft_ms is not stated"),
        ({"isl": "inf"}, "isl inf lies outside"),
        ({"tp_size": "1.5"}, "tp_size 1.5 is not a whole number"),
        ({"moe_ep_size": "all"}, "moe_ep_size 'all' is no number"),
        ({"concurrency": "1e300"}, "concurrency 1e300 lies outside"),
        ({"gemm_quant_mode": "weird"}, "format 'weird' is not known"),
        ({"system": "gh200"}, "'gh200' is ambiguous"),
        ({"system": "abacus"}, "device 'abacus' is in no profile"),
        ({"moe_ep_size": "0", "attention_dp_size": "", "batch_size": "nan"}, None),
    ],
)
def test_a_cell_that_cannot_be_costs_its_own_row(tmp_path, cell, reason):
    good = {
        "system": "h100_sxm",
        "backend": "vllm",
        "model_path": "Qwen/Qwen3-8B",
        "gemm_quant_mode": "bfloat16",
        "tp_size": "1.0",
        "moe_ep_size": "1",
        "attention_dp_size": "1",
        "isl": "1024",
        "osl": "128",
        "concurrency": "4",
        "batch_size": "4",
        "silicon_ttft_ms": "50",
        "silicon_tpot_ms": "8.5",
    }
    path = tmp_path / "runs.csv"
    lines = [",".join(good), ",".join(good.values()), "", ",".join({**good, **cell}.values())]
    path.write_text("\n".join(lines), encoding="utf-8")
    first, second = read_serving(path)
    assert (first.line, second.line) == (2, 4)
    assert isinstance(served_as(first), ServedAs)
    served = served_as(second)
    if reason is None:
        assert isinstance(served, ServedAs)
    else:
        assert reason in served


def test_what_may_have_run_with_drafts_is_left_out(rows):
    drafted = changed(rows[0], {"model_path": "deepseek-ai/DeepSeek-R1", "backend": "trtllm"})
    assert "MTP" in served_as(drafted)


def test_requests_that_start_together_wait_for_each_other(found):
    """Sixteen prompts of 1024 tokens take two steps of 8192: the first of ten waves is the longest."""
    chosen = [one for one in found[0] if (one.served.prompt, one.served.sequences) == (1024, 64.0)]
    assert chosen
    lone = [one for one in found[0] if (one.served.prompt, one.served.sequences) == (1024, 4.0)]
    assert chosen[0].ttft_s > 2.0 * lone[0].ttft_s
