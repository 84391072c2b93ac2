from __future__ import annotations

import csv
import io
import json

import pytest
from click.testing import CliRunner

from rooflines.cli import main
from rooflines.costs.cost import MEMORY_KINDS

GOOD = {
    "--hardware": "a100-sxm-80gb",
    "--model": "llama-2-7b",
    "--phase": "decode",
    "--context": "1024",
    "--calibration": "textbook",
}


def run(**changes):
    options = {**GOOD, **{f"--{key.replace('_', '-')}": value for key, value in changes.items()}}
    return CliRunner().invoke(main, ["intensity", *(part for pair in options.items() for part in pair)])


def document(**changes):
    result = run(format="json", **changes)
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def test_a_decode_reads_two_bytes_for_two_flops():
    result = document(context="0")
    assert result["total"]["intensity_flop_per_byte"] == pytest.approx(1.0, rel=0.005)
    assert "is bound by memory bandwidth" in result["answer"]["text"]
    assert "against a ridge point of 153 for fp16" in result["answer"]["text"]


def test_every_arithmetic_of_a_pass_has_its_ridge_point_that_of_most_flops_first():
    """DeepSeek-V3 has linear layers in FP8 and attention in BF16, which has more of the FLOPs of long contexts."""
    mixed = {"hardware": "h100-sxm5-80gb", "model": "deepseek-v3", "batch": "8"}
    short, long = (document(**mixed, context=context)["answer"]["text"] for context in ("16", "32768"))
    assert short.endswith("against ridge points of 591 for fp8 and 295 for bf16.")
    assert long.endswith("against ridge points of 295 for bf16 and 591 for fp8.")


def test_words_basis_and_table_in_that_order():
    lines = run().stdout.splitlines()
    assert lines[0].startswith("A decode pass of llama-2-7b on NVIDIA A100 SXM4 80GB takes 6.7")
    assert lines[1].startswith("Basis: textbook roofline")
    assert lines[-1].split()[0] == "total"


def test_columns_that_are_empty_throughout_are_left_out_for_people():
    assert "network" not in run().stdout
    assert "network" in run(tp="2", hardware="h100-sxm5-80gb").stdout
    assert "network_bytes" in run(format="csv").stdout


@pytest.mark.parametrize("phase", ["decode", "prefill", "verify"])
@pytest.mark.parametrize("calibration", ["textbook", "none"])
def test_the_total_is_the_sum_of_the_rows(phase, calibration):
    width = {"draft_length": "4"} if phase == "verify" else {}
    result = document(phase=phase, batch="8", calibration=calibration, **width)
    for name in ("flops", "time_s", "share", "network_bytes", *MEMORY_KINDS):
        assert result["total"][name] == pytest.approx(sum(row[name] for row in result["rows"]), rel=1e-9), (
            name
        )


def test_the_host_overhead_is_in_the_total_alone():
    plain, slow = document(), document(overhead="1 ms")
    assert slow["total"]["time_s"] - plain["total"]["time_s"] == pytest.approx(1e-3)
    assert [row["time_s"] for row in slow["rows"]] == [row["time_s"] for row in plain["rows"]]
    assert sum(row["share"] for row in slow["rows"]) < 1


def test_a_verify_is_named_by_either_length():
    by_draft, by_width = document(phase="verify", draft_length="4"), document(phase="verify", new_tokens="5")
    assert by_draft == by_width


def test_a_verify_moves_weights_and_cache_once():
    decode, verify = document()["total"], document(phase="verify", draft_length="7")["total"]
    assert verify["weight_bytes"] == decode["weight_bytes"]
    assert verify["kv_bytes"] - decode["kv_bytes"] == 7 * 2 * 32 * 4096 * 2
    assert verify["flops"] == pytest.approx(8 * decode["flops"], rel=0.01)


def test_a_long_prefill_is_bound_by_arithmetic():
    result = document(phase="prefill", context="4096")
    assert result["total"]["bound"] == "compute"
    assert result["total"]["attainable_flop_per_s"] == pytest.approx(312e12)


def test_attainable_is_the_roof():
    for row in document(batch="4")["rows"]:
        if row["flops"]:
            assert row["attainable_flop_per_s"] == pytest.approx(
                min(312e12, row["intensity_flop_per_byte"] * 2.039e12), rel=1e-3
            )


def test_csv_and_json_hold_the_same_rows():
    result = document()
    written = list(csv.DictReader(io.StringIO(run(format="csv").stdout)))
    for line, row in zip(written, [*result["rows"], result["total"]], strict=True):
        assert line == {key: "" if value is None else str(value) for key, value in row.items()}


def test_tensor_parallelism_divides_and_adds_collectives():
    one, two = (document(hardware="h100-sxm5-80gb", tp=degree) for degree in ("1", "2"))
    assert two["total"]["weight_bytes"] == pytest.approx(one["total"]["weight_bytes"] / 2, rel=1e-3)
    reduced = [
        row
        for row in two["rows"]
        if "all-reduce" in row["operator"] and row["operator"] != "embedding all-reduce"
    ]
    assert sum(row["count"] for row in reduced) == 2 * 32
    assert one["total"]["network_bytes"] == 0
