"""Tables are recognised by their columns, grouped, and every row is used or left out for a reason."""

from __future__ import annotations

import csv
import io

import numpy as np
import pytest

from rooflines.errors import FileFormatError
from rooflines.validation.kernel_tables import read_kernel_table
from rooflines.validation.kernel_tables.names import find_device, format_of

GEMM = "gpu,engine,engine_version,gemm_dtype,m,n,k,time_us"


def table(tmp_path, header, *rows, name="rows.csv"):
    file = tmp_path / name
    file.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    return read_kernel_table(file)


@pytest.fixture(scope="module")
def folder(root):
    return root / "tests" / "reference" / "kernels"


@pytest.mark.parametrize(
    ("file", "kind", "operators"),
    [
        ("gemm_bf16.csv", "linear kernels", {"linear"}),
        ("gemm_fp8.csv", "linear kernels", {"linear"}),
        ("gemm_4bit.csv", "linear kernels", {"linear"}),
        ("attention_decode.csv", "decode attention", {"decode_attention"}),
        ("attention_prefill.csv", "prefill attention", {"prefill_attention"}),
        ("moe_layer.csv", "layers of routed experts", {"moe"}),
        ("allreduce.csv", "all-reduces", {"collective"}),
        ("vidur_allreduce.csv", "all-reduces", {"collective"}),
        ("vidur_layer_ops.csv", "layer operators", {"linear", "layer", "small"}),
        ("verify_premium.csv", "layers of linear kernels", {"layer"}),
    ],
)
def test_each_kind_is_known_by_its_columns(folder, tmp_path, file, kind, operators):
    renamed = tmp_path / "anything.csv"
    renamed.write_bytes((folder / file).read_bytes())
    found = read_kernel_table(renamed)
    assert found.kind == kind
    assert {rows.group.operator for rows in found.groups} == operators


@pytest.mark.parametrize("file", ["gemm_bf16.csv", "attention_decode.csv", "moe_layer.csv", "allreduce.csv"])
def test_every_row_is_used_or_left_out_once(folder, file):
    found = read_kernel_table(folder / file)
    with (folder / file).open(encoding="utf-8") as text:
        given = len(list(csv.DictReader(text)))
    used = sum(len(rows.measured_s) for rows in found.groups)
    assert used + sum(one.rows for one in found.left_out) == given
    lines = np.concatenate([rows.line for rows in found.groups])
    assert len(np.unique(lines)) == len(lines)
    assert lines.min() >= 2


def test_rows_keep_their_line_and_time_in_si(tmp_path):
    found = table(
        tmp_path,
        GEMM,
        "h100_sxm,vllm,1,bfloat16,16,8192,8192,50.5",
        "h100_sxm,vllm,1,bfloat16,1,8192,8192,49",
    )
    (rows,) = found.groups
    assert rows.line.tolist() == [2, 3]
    assert rows.measured_s == pytest.approx([50.5e-6, 49e-6])
    assert rows.group.device == "h100-sxm5-80gb"
    assert rows.group.dtype == "bf16"
    assert rows.region.tolist() == ["m <= 64", "m <= 64"]
    assert rows.shape.tolist() == ["8192x8192"] * 2


def test_unknown_devices_dtypes_and_impossible_times_are_left_out_with_a_reason(tmp_path):
    found = table(
        tmp_path,
        GEMM,
        "b61,vllm,1,bfloat16,16,8192,8192,500",
        "h100_sxm,vllm,1,fp11,16,8192,8192,50",
        "h100_sxm,vllm,1,bfloat16,16,8192,8192,0",
        "h100_sxm,vllm,1,bfloat16,16,8192,8192,-3",
        "a100_sxm,vllm,1,fp8,16,8192,8192,50",
        "l40s,vllm,1,bfloat16,16,8192,8192,300",
    )
    assert [len(rows.measured_s) for rows in found.groups] == [1]
    reasons = {one.reason: one.rows for one in found.left_out}
    assert reasons["device 'b61' is in no profile"] == 1
    assert reasons["dtype 'fp11' is not known"] == 1
    assert reasons["a size or time is not above zero"] == 2
    assert any("states no dense fp8 peak" in reason for reason in reasons)


@pytest.mark.parametrize(
    ("name", "device"),
    [
        ("a30", "a30"),
        ("b60", "arc-pro-b60"),
        ("h20_sxm", "h20-96gb"),
        ("A800", "a800-sxm4-80gb"),
        ("RTX A6000", "rtx-a6000"),
    ],
)
def test_devices_that_tables_name_have_profiles(name, device):
    assert find_device(name.lower()).id == device


@pytest.mark.parametrize(
    ("name", "bits", "arithmetic"),
    [
        ("w4afp8", 4 + 16 / 128, "fp8"),
        ("w4a8_mxfp4_mxfp8", 4 + 8 / 32, "fp8"),
        ("w4a16_mxfp4_cutlass", 4 + 8 / 32, "bf16"),
        ("w8a8_int8", 8, "int8"),
    ],
)
def test_words_for_dtypes_say_what_is_stored_and_what_it_is_multiplied_in(name, bits, arithmetic):
    """Weights of 4 bits with a scale a group, and the wider operand's arithmetic."""
    found = format_of(name)
    assert (found.bits, found.arithmetic) == (bits, arithmetic)


def test_cells_that_hold_no_number_are_named_and_cost_only_their_row(tmp_path):
    row = "h100_sxm,vllm,1,bfloat16,{},8192,8192,{}"
    found = table(
        tmp_path,
        GEMM,
        row.format(16, 50),
        row.format(16, "fast"),
        row.format("", 50),
        row.format(16, "inf"),
        row.format("1e300", 50),
        row.format(16, "1e13"),
        row.format(1.5, 50),
        row.format("", ""),
    )
    assert {one.reason: one.rows for one in found.left_out} == {
        "column time_us holds no number ('fast' in line 3)": 2,
        "column m holds no number ('' in line 4)": 2,
        "a size or time is beyond 1e+12": 2,
        "a size is not a whole number": 1,
    }
    assert [rows.line.tolist() for rows in found.groups] == [[2]]


def test_blanks_around_cells_and_empty_lines_change_nothing(tmp_path):
    rows = ["h100_sxm,vllm,1,bfloat16,16,8192,8192,50", "", "h100_sxm,vllm,1,bfloat16,32,8192,8192,51"]
    spread = [line.replace(",", " , ") for line in (GEMM, *rows)]
    for lines in ([GEMM, *rows], [*spread, "", " "]):
        (found,) = table(tmp_path, *lines).groups
        assert found.line.tolist() == [2, 4]
        assert found.size.tolist() == [16, 32]


def test_a_missing_peak_costs_the_layers_of_one_device_alone(tmp_path):
    """The A100 has no fp8 arithmetic."""
    found = table(
        tmp_path,
        "gpu,engine,dtype,layer,m,layer_gemm_time_us",
        "a100_sxm,vllm,fp8,Llama-2-7B tp1,16,300",
        "h100_sxm,vllm,fp8,Llama-2-7B tp1,16,150",
        "h100_sxm,vllm,fp8,Llama-2-7B tp7,16,150",
    )
    assert [rows.group.device for rows in found.groups] == ["h100-sxm5-80gb"]
    reasons = [one.reason for one in found.left_out]
    assert len(reasons) == 2
    assert any("states no dense fp8 peak" in reason for reason in reasons)
    assert any("its degree does not divide it" in reason for reason in reasons)


def test_layers_that_beat_the_memory_or_the_peak_are_left_out(tmp_path):
    """The four products of a Llama-2-7B layer read 405 MB, which takes an H100 121 us."""
    row = "h100_sxm,vllm,bfloat16,{},{},{}"
    found = table(
        tmp_path,
        "gpu,engine,dtype,layer,m,layer_gemm_time_us",
        row.format("Llama-2-7B tp1", 1, 160),
        row.format("Llama-2-7B tp1", 1, 100),
        row.format("Llama-2-7B tp1", 4096, 1000),
        row.format("Llama-9-7B tp1", 1, 160),
    )
    assert [rows.line.tolist() for rows in found.groups] == [[2]]
    assert {one.reason for one in found.left_out} == {
        "faster than the memory allows: read from a cache",
        "faster than the stated dense peak allows",
        "the layer is of no known dense model, or its degree does not divide it",
    }


def test_names_that_stand_for_several_devices_or_for_files_say_so(tmp_path):
    row = "{},vllm,1,bfloat16,16,8192,8192,50"
    found = table(tmp_path, GEMM, *(row.format(name) for name in ("gh200", "../none.toml", "h100_sxm")))
    reasons = {one.reason for one in found.left_out}
    assert "device '../none.toml' is in no profile" in reasons
    assert any("'gh200' is ambiguous: choose" in reason for reason in reasons)
    assert len(found.groups) == 1


@pytest.mark.parametrize(
    ("flag", "used"), [("0", 0), ("0.0", 0), ("False", 0), ("1", 1), ("1.0", 1), ("", 1)]
)
def test_the_flag_of_cached_weights_is_read_as_it_is_written(tmp_path, flag, used):
    """Without it, 128 MiB of weights are larger than the 50 MiB of an H100."""
    found = table(tmp_path, f"{GEMM},weights_exceed_l2", f"h100_sxm,vllm,1,bfloat16,16,8192,8192,50,{flag}")
    assert len(found.groups) == used


def test_heads_that_do_not_divide_and_experts_that_do_not_exist_are_left_out(tmp_path):
    heads = "gpu,engine,batch,q_heads,kv_heads,head_dim,context_tokens,kv_cache_dtype,time_us"
    found = table(tmp_path, heads, "h100_sxm,vllm,64,32,5,128,8192,bfloat16,1000")
    assert [one.reason for one in found.left_out] == ["query heads are no multiple of the KV heads"]
    layers = (
        "gpu,engine,moe_dtype,num_tokens,hidden_size,expert_ffn_size,top_k,num_experts,distribution,time_us"
    )
    row = "h100_sxm,vllm,bfloat16,16,4096,1536,{},{},{},1000"
    found = table(
        tmp_path,
        layers,
        row.format(8, 4, "uniform"),
        row.format(8, 10**9, "power_law_1.2"),
        row.format(8, 128, "zipf"),
    )
    assert sorted(one.reason for one in found.left_out) == [
        "how experts were chosen is not known",
        "more experts per token than there are, or more than 8,192 of them",
        "more experts per token than there are, or more than 8,192 of them",
    ]


def test_rows_that_cannot_be_used_do_not_decide_on_others(tmp_path):
    """A time of zero under one routing makes the other's one-token rows no outliers."""
    header = (
        "gpu,engine,moe_dtype,num_tokens,hidden_size,expert_ffn_size,top_k,num_experts,distribution,time_us"
    )
    found = table(
        tmp_path,
        header,
        "h100_sxm,vllm,bfloat16,1,7168,2048,8,256,balanced,500",
        "h100_sxm,vllm,bfloat16,1,7168,2048,8,256,uniform,0",
    )
    assert [rows.line.tolist() for rows in found.groups] == [[2]]
    assert [one.reason for one in found.left_out] == ["a size or time is not above zero"]


def test_devices_that_no_calibration_knows_are_read_too(tmp_path):
    found = table(
        tmp_path,
        GEMM,
        *(
            f"{gpu},vllm,1,bfloat16,16,16384,8192,{us}"
            for gpu, us in (("b300_sxm", 45), ("gb300", 45), ("rtx_pro_6000_server", 180))
        ),
    )
    assert {rows.group.device for rows in found.groups} == {"b300-sxm", "gb300", "rtx-pro-6000-blackwell"}


def test_a_table_without_the_flag_is_judged_by_the_size_of_the_cache(tmp_path):
    """A100 has 40 MiB: 16 bits of 2048 x 8192 are 32 MiB, of 4096 x 8192 they are 64 MiB."""
    found = table(
        tmp_path,
        GEMM,
        "a100_sxm,vllm,1,bfloat16,16,2048,8192,30",
        "a100_sxm,vllm,1,bfloat16,16,4096,8192,60",
    )
    assert found.groups[0].shape.tolist() == ["4096x8192"]
    assert "fit the last-level cache" in found.left_out[0].reason


@pytest.mark.parametrize(
    ("header", "rows", "message"),
    [
        ("a,b", ["1,2"], "columns are those of no table of kernels"),
        (GEMM.replace(",time_us", ""), ["h100_sxm,vllm,1,bfloat16,1,2,3"], "lack time_us"),
        (GEMM, [], "no rows"),
        (GEMM.replace(",", ";"), ["h100_sxm;vllm;1;bfloat16;1;2;3;4"], "written with semicolons: save it"),
        (GEMM.replace(",", "\t"), ["h100_sxm\tvllm"], "written with tabs: save it with commas"),
        (GEMM, ["h100_sxm,vllm,1,bfloat16,1,4096,4096,1,2"], "a row has more cells than the header"),
    ],
)
def test_bad_tables_are_refused_in_one_line(tmp_path, header, rows, message):
    with pytest.raises(FileFormatError, match=message) as refused:
        table(tmp_path, header, *rows)
    assert "\n" not in str(refused.value)
    assert "rows.csv" in str(refused.value)


def test_files_that_are_no_tables_are_refused(tmp_path):
    with pytest.raises(FileFormatError, match="cannot be read"):
        read_kernel_table(tmp_path / "missing.csv")
    with pytest.raises(FileFormatError, match="cannot be read"):
        read_kernel_table(tmp_path)
    binary = tmp_path / "binary.csv"
    binary.write_bytes(bytes(range(128, 256)) * 3)
    with pytest.raises(FileFormatError, match="not a CSV file"):
        read_kernel_table(binary)
    empty = tmp_path / "empty.csv"
    empty.touch()
    with pytest.raises(FileFormatError, match="not a CSV file"):
        read_kernel_table(empty)


def test_further_columns_and_another_order_change_nothing(folder, tmp_path):
    with (folder / "allreduce.csv").open(encoding="utf-8") as text:
        rows = list(csv.DictReader(text))
    names = [*reversed(rows[0]), "note"]
    written = io.StringIO()
    writer = csv.DictWriter(written, names)
    writer.writeheader()
    writer.writerows({**row, "note": "x"} for row in rows)
    file = tmp_path / "allreduce.csv"
    file.write_text(written.getvalue(), encoding="utf-8")
    one, other = read_kernel_table(folder / "allreduce.csv"), read_kernel_table(file)
    assert [rows.group for rows in one.groups] == [rows.group for rows in other.groups]
    assert (
        np.concatenate([g.measured_s for g in one.groups]).tolist()
        == np.concatenate([g.measured_s for g in other.groups]).tolist()
    )


def test_a_kernel_that_a_user_chose_is_a_stack_of_its_own(tmp_path):
    header = "gpu,engine,engine_version,kernel_source,batch,q_heads,kv_heads,head_dim,context_tokens,kv_cache_dtype,time_us"
    found = table(
        tmp_path,
        header,
        "b200_sxm,sglang,0.5,flashinfer,64,32,8,128,8192,bfloat16,400",
        "b200_sxm,sglang,0.5,trtllm_mha,64,32,8,128,8192,bfloat16,350",
    )
    assert {rows.group.stack for rows in found.groups} == {"sglang 0.5 flashinfer", "sglang 0.5"}
