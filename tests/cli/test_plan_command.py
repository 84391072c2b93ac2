from __future__ import annotations

import csv
import io
import json

import pytest
from click.testing import CliRunner

from rooflines.cli import main

GOOD = {
    "--hardware": "a100-sxm-80gb",
    "--target": "llama-2-7b",
    "--drafter": "independent:tinyllama-1.1b-v1.0",
    "--acceptance": "0.8",
    "--context": "1024",
    "--calibration": "textbook",
}


def plan(*more, **changes):
    options = {**GOOD, **{f"--{key.replace('_', '-')}": value for key, value in changes.items()}}
    return CliRunner().invoke(main, ["plan", *(part for pair in options.items() for part in pair), *more])


def document(*more, **changes):
    result = plan(*more, format="json", **changes)
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def test_the_answer_comes_first_in_words():
    lines = plan(batch="1,8").stdout.splitlines()
    assert lines[0].startswith("llama-2-7b on NVIDIA A100 SXM4 80GB: At batch 1 draft ")
    assert "At batch 8 draft " in lines[0]
    assert "textbook roofline" in lines[2]
    assert "Acceptance: 0.8, as given" in lines[2]


def test_text_tells_what_it_rests_on_and_leaves_out_in_that_order():
    text = plan(batch="1,8").stdout
    parts = [
        "At batch 1",
        "Basis:",
        "tokens/cycle",
        "Memory of one device",
        "What would change",
        "Not modelled:",
    ]
    assert [text.index(part) for part in parts] == sorted(text.index(part) for part in parts)


def test_markdown_has_tables_that_markdown_reads():
    tables = [line for line in plan(format="markdown").stdout.splitlines() if line.startswith("|")]
    assert len({line.count("|") for line in tables[:10]}) == 1
    assert tables[1].startswith("|---:|")


def test_csv_and_json_hold_the_same_rows():
    rows = document(batch="1,200", draft_length="1..3")["rows"]
    written = list(csv.DictReader(io.StringIO(plan(batch="1,200", draft_length="1..3", format="csv").stdout)))
    assert len(written) == len(rows) == 6
    for line, row in zip(written, rows, strict=True):
        assert line == {key: "" if value is None else str(value) for key, value in row.items()}


def test_rows_are_the_product_of_drafters_batches_and_draft_lengths():
    rows = document("--drafter", "independent:llama-2-7b", batch="1,4", draft_length="2,5")["rows"]
    keys = [(row["drafter"], row["batch"], row["draft_length"]) for row in rows]
    assert len(keys) == len(set(keys)) == 8


def test_the_recommendation_is_the_best_row():
    answer = document(batch="1,8,64", draft_length="1..8")
    for entry in answer["answer"]["recommendation"]:
        rows = [row for row in answer["rows"] if row["batch"] == entry["batch"]]
        best = max(rows, key=lambda row: row["speedup"])
        assert (entry["draft_length"], entry["speedup"]) == (best["draft_length"], best["speedup"])
        assert entry["speculate"]


def test_what_never_pays_is_said_plainly():
    result = document(acceptance="0.05", batch="1,8", draft_length="4,8")
    assert [entry["speculate"] for entry in result["answer"]["recommendation"]] == [False, False]
    assert [entry["draft_length"] for entry in result["answer"]["recommendation"]] == [0, 0]
    assert result["answer"]["crossover_batch"] == 1
    assert "do not speculate" in result["answer"]["text"]
    assert "It pays at no batch." in result["answer"]["text"]


def test_what_does_not_fit_gets_no_speed_and_the_largest_batch_that_does():
    result = document(batch="8,4096", draft_length="4")
    fits, not_fits = result["rows"]
    assert fits["speedup"] > 1
    timed = ("target_step_s", "draft_s", "verify_s", "cycle_cost", "cost_ratio", "speedup", "tokens_per_s")
    assert all(not_fits[name] is None for name in timed)
    assert not_fits["tokens_per_cycle"] == pytest.approx(3.3616)
    room = result["memory"][1]["largest_batch"]
    assert [row["fits"] for row in result["memory"]] == [True, False]
    assert (
        f"Batch 4096 does not fit in memory (the largest batch that does is {room})"
        in result["answer"]["text"]
    )
    assert document(batch=str(room), draft_length="4")["memory"][0]["fits"]
    assert not document(batch=str(room + 1), draft_length="4")["memory"][0]["fits"]


def test_a_target_that_fits_nowhere_gets_no_speed_and_no_crossover():
    result = document(target="llama-2-70b", drafter="independent:llama-2-7b", batch="1")
    assert "no batch does" in result["answer"]["text"]
    assert result["answer"]["crossover_batch"] is None
    assert result["answer"]["recommendation"][0]["largest_batch"] == 0
    assert {row["speedup"] for row in result["rows"]} == {None}
    assert "pays" not in result["answer"]["text"]


def test_a_drafter_larger_than_its_target_is_a_warning():
    result = plan(target="llama-2-7b", drafter="independent:llama-2-13b", format="json")
    assert result.exit_code == 0
    assert "rooflines: warning: independent:llama-2-13b: the drafter llama-2-13b" in result.stderr
    assert "larger than its target" in result.stderr
    (note,) = json.loads(result.stdout)["warnings"]
    assert note in result.stderr


def test_vocabularies_that_differ_by_padding_are_a_warning():
    result = plan(target="qwen2.5-7b", drafter="independent:qwen2.5-0.5b")
    assert result.exit_code == 0
    assert "differ by padding" in result.stderr
    assert "151,936" in result.stderr


def test_a_pair_without_oddities_has_no_warning():
    assert plan().stderr == ""


def test_acceptance_beyond_what_was_measured_is_marked():
    result = document(acceptance="conditional:0.9,0.8", draft_length="1..4")
    assert [row["extrapolated"] for row in result["rows"]] == [False, False, True, True]
    assert "measured up to draft length 2" in result["warnings"][0]


def test_overheads_are_charged_where_they_belong():
    plain = document(draft_length="4")["rows"][0]
    a_pass = document(draft_length="4", overhead="300 us")["rows"][0]
    a_cycle = document(draft_length="4", cycle_overhead="1 ms")["rows"][0]
    assert a_pass["target_step_s"] - plain["target_step_s"] == pytest.approx(300e-6)
    assert a_pass["verify_s"] - plain["verify_s"] == pytest.approx(300e-6)
    assert a_pass["draft_s"] - plain["draft_s"] == pytest.approx(4 * 300e-6)
    assert a_cycle["overhead_s"] == pytest.approx(1e-3)
    assert a_cycle["target_step_s"] == plain["target_step_s"]
    assert a_cycle["speedup"] < plain["speedup"]


def test_the_break_even_acceptance_of_a_row_gives_speedup_one():
    row = document(batch="8", draft_length="4")["rows"][0]
    again = document(batch="8", draft_length="4", acceptance=repr(row["break_even_acceptance"]))["rows"][0]
    assert again["speedup"] == pytest.approx(1.0, abs=1e-9)


def test_columns_agree_with_each_other():
    for row in document(batch="1,64", draft_length="1,4", cycle_overhead="100 us")["rows"]:
        whole = row["draft_s"] + row["verify_s"] + row["overhead_s"]
        assert row["cycle_cost"] == pytest.approx(whole / row["target_step_s"])
        assert row["speedup"] == pytest.approx(row["tokens_per_cycle"] / row["cycle_cost"])
        assert row["cost_ratio"] == pytest.approx(row["draft_s"] / row["draft_length"] / row["target_step_s"])
        assert row["tokens_per_s_per_sequence"] == pytest.approx(row["tokens_per_cycle"] / whole)
        assert row["tokens_per_s"] == pytest.approx(row["batch"] * row["tokens_per_s_per_sequence"])
        assert row["verify_width"] == row["draft_length"] + 1
        assert row["leviathan_speedup"] == pytest.approx(
            row["tokens_per_cycle"] / (row["cost_ratio"] * row["draft_length"] + 1)
        )


@pytest.fixture
def earlier(tmp_path):
    file = tmp_path / "old.json"
    assert plan(batch="1,8", draft_length="1..4", format="json", output=str(file)).exit_code == 0
    return file


def test_comparing_with_the_same_answer_finds_nothing(earlier):
    result = plan(batch="1,8", draft_length="1..4", compare=str(earlier))
    assert (result.exit_code, result.stdout) == (0, "Nothing changed.\n")


def test_comparing_says_what_changed(earlier):
    result = plan(batch="1,8,16", draft_length="1..4", acceptance="0.5", compare=str(earlier))
    assert result.exit_code == 0
    assert "question: acceptance was '0.8' and is '0.5'" in result.stdout
    assert "batch 1: speedup was 2.08" in result.stdout
    assert "batch 1: draft length was 4 and is " in result.stdout
    assert "batch 16: not asked before" in result.stdout


def test_comparing_names_another_basis(earlier):
    result = plan(batch="1,8", draft_length="1..4", calibration="none", compare=str(earlier))
    assert "basis: was 'textbook roofline" in result.stdout


@pytest.mark.parametrize(
    "old",
    [
        {"schema_version": 1, "answer": {}},
        {"schema_version": 1, "question": {}, "answer": {"recommendation": [{}]}},
        {"schema_version": 1, "question": [], "answer": []},
        {"schema_version": 2, "answer": {}},
        {},
    ],
)
def test_a_document_that_is_no_plan_is_refused_in_one_line(tmp_path, old):
    file = tmp_path / "old.json"
    file.write_text(json.dumps(old), encoding="utf-8")
    result = plan(compare=str(file))
    assert (result.exit_code, result.stdout) == (2, "")
    assert isinstance(result.exception, SystemExit)
    assert len(result.stderr.splitlines()) == 1
    assert "the earlier answer" in result.stderr


def test_a_page_is_written_beside_the_answer(tmp_path):
    answer = document(batch="1,8", html=str(tmp_path / "a.html"))
    assert answer["answer"]["text"] in (tmp_path / "a.html").read_text(encoding="utf-8")
    refused = plan(html=str(tmp_path / "a.txt"))
    assert refused.exit_code == 2
    assert ".html" in refused.stderr


@pytest.mark.parametrize(
    ("name", "message"),
    [("gone.json", "cannot be read"), ("old.json", "looks like no known output"), ("gone.toml", "gone.toml")],
)
def test_a_file_without_step_times_is_refused_in_one_line(tmp_path, name, message):
    (tmp_path / "old.json").write_text("{}", encoding="utf-8")
    result = plan(steps=str(tmp_path / name))
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1
