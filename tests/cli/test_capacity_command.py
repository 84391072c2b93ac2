from __future__ import annotations

import csv
import io
import json
from itertools import pairwise
from pathlib import Path

import pytest
from click.testing import CliRunner

from rooflines.cli import main

SAMPLES = Path(__file__).parent.parent / "unit" / "measurement" / "samples"
BASE = [
    "capacity",
    "--hardware=h100-sxm5-80gb",
    "--target=llama-3.1-8b",
    "--prompt-tokens=1024",
    "--output-tokens=256",
    "--calibration=textbook",
]


def run(*arguments):
    return CliRunner().invoke(main, [*BASE, *arguments])


def test_the_answer_comes_first_then_what_it_rests_on_then_tables():
    result = run("--rate=50", "--slo-tpot=15 ms", "--drafter=ngram", "--acceptance=0.5")
    assert result.exit_code == 0, result.stderr
    places = [
        result.stdout.index(part)
        for part in (
            "needs",
            "Basis:",
            "Memory of one card",
            "What one engine carries",
            "What the load needs",
            "One engine: percentiles",
            "One engine by load",
            "Not modelled:",
        )
    ]
    assert places == sorted(places)
    assert "J/token at most (TDP)" in result.stdout


def test_all_formats_say_the_same():
    asked = ("--rate=50", "--slo-tpot=15 ms")
    document = json.loads(run(*asked, "--format=json").stdout)
    (row,) = csv.DictReader(io.StringIO(run(*asked, "--format=csv").stdout))
    assert document["schema_version"] == 1
    assert int(row["cards"]) == document["rows"][0]["cards"]
    assert float(row["tpot_s"]) == document["rows"][0]["tpot_s"]
    assert "| " in run(*asked, "--format=markdown").stdout


def test_options_change_only_what_they_say():
    result = run(
        "--rate=50",
        "--price=2",
        "--option=tp=2",
        "--option=hardware=b200-sxm-180gb;price=3;weight-dtype=fp8",
        "--format=json",
    )
    options = json.loads(result.stdout)["question"]["options"]
    assert [option["tensor_parallel"] for option in options] == [1, 2, 1]
    assert [option["price_per_hour"] for option in options] == [2.0, 2.0, 3.0]
    assert [option["weight_dtype"] for option in options] == [None, None, "fp8"]


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        (["--rate=20/s", "--price=$2.5"], ["--rate=20", "--price=2.5"]),
        (["--rate=2e1 requests/s", "--price=€ 2.5/h"], ["--rate=20", "--price=2.5"]),
        (
            ["--rate=20", "--price=1", "--option=tp=2;price=$2"],
            ["--rate=20", "--price=1", "--option=tp=2;price=2"],
        ),
    ],
)
def test_amounts_are_taken_with_their_units(typed, meant):
    result = run(*typed)
    assert result.exit_code == 0, result.stderr
    assert result.stdout == run(*meant).stdout


def test_the_price_of_one_device_is_not_that_of_another():
    result = run("--rate=50", "--price=2", "--option=hardware=b200-sxm-180gb", "--format=json")
    assert json.loads(result.stdout)["question"]["options"][1]["price_per_hour"] is None


def test_a_figure_is_written_beside_the_answer(tmp_path):
    figure = tmp_path / "pareto.svg"
    result = run(f"--figure={figure}", "--drafter=ngram", "--acceptance=0.5")
    assert result.exit_code == 0, result.stderr
    assert figure.read_text(encoding="utf-8").startswith("<?xml")
    assert "wrote" not in result.stdout


def test_a_file_instead_of_the_terminal(tmp_path):
    target = tmp_path / "answer.json"
    assert run("--format=json", f"--output={target}").exit_code == 0
    assert json.loads(target.read_text(encoding="utf-8"))["answer"]["text"]


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--slo-tpot=30"], "--slo-tpot: '30' has no unit; write a number and its unit, such as '30 ms'"),
        (["--slo-ttft=3 GB"], "--slo-ttft: '3 GB' is in byte; s is needed; write a number"),
        (["--slo-ttft=soon"], "--slo-ttft: 'soon' is not a quantity; write a number"),
        (["--cycle-overhead=1"], "host time per cycle: '1' has no unit"),
        (["--cycle-overhead=vlm"], "or name an engine: sglang"),
        (
            ["--request-overhead=5"],
            "--request-overhead: '5' has no unit; write a number and its unit, such as '5 ms'",
        ),
        (["--request-overhead=-1 ms"], "--request-overhead: '-1 ms' must be finite and not negative"),
        (["--rate=-1"], "above 0"),
        (["--rate=1e30"], "at most 1e+09"),
        (["--rate=nan"], "above 0"),
        (["--drafter=ngram"], "acceptance"),
        (["--draft-length=4@2"], "draft length"),
        (["--option=tp=two"], "number is needed"),
        (["--option=colour=red"], "unknown key of an option"),
        (["--option=tp=2;tp=4"], "stands once"),
        (["--prompt-tokens=many"], "prompt tokens 'many'"),
        (["--trace=none.csv"], "not both"),
        (["--figure=picture.gif"], "a figure is written as"),
        (["--prefix-hit=1"], "prefix-cache"),
        (["--batched-tokens=100"], "no prompt can start"),
        (["--target=llama-3.1-405b"], "does not fit"),
        (["--percentile=100"], "percentile"),
        (["--percentile=0.95"], "0.95 is a share; percentiles are in percent: 95, not 0.95"),
        (["--percentile=1"], "percentiles are in percent"),
        (["--rate=20x"], "'20x': write a number, such as 20 or 20/s"),
        (["--price=cheap"], "'cheap': write a number, such as 2.5"),
        (["--option=tp=2;price=cheap"], "number is needed"),
        (
            ["--kv-transfer=50"],
            "--kv-transfer: '50' has no unit; write a number and its unit, such as '50 GB/s'",
        ),
        (["--kv-transfer=0 B/s"], "above 0"),
        (["--slo-tpot=0 s"], "above 0"),
        (["--output-tokens=1"], "more than one token"),
    ],
)
def test_a_mistake_is_one_line(arguments, reason):
    result = run(*arguments)
    assert result.exit_code == 2
    (line,) = result.stderr.splitlines()
    assert line.startswith("rooflines: ")
    assert reason in line
    assert result.stdout == ""


def test_a_bad_trace_is_one_line(tmp_path):
    path = tmp_path / "trace.csv"
    path.write_text("arrival_s,prompt_tokens,output_tokens\n0,10,10\n-3,10,10\n", encoding="utf-8")
    result = CliRunner().invoke(
        main, ["capacity", "--hardware=h100-sxm5-80gb", "--target=llama-3.1-8b", f"--trace={path}"]
    )
    assert result.exit_code == 2
    (line,) = result.stderr.splitlines()
    assert "line 3: arrival_s is -3" in line


def test_a_page_is_written_beside_the_answer(tmp_path):
    result = run(f"--html={tmp_path / 'a.html'}", "--format=json")
    assert result.exit_code == 0, result.stderr
    page = (tmp_path / "a.html").read_text(encoding="utf-8")
    assert json.loads(result.stdout)["answer"]["text"] in page
    refused = run(f"--html={tmp_path / 'a.txt'}")
    assert refused.exit_code == 2
    assert ".html" in refused.stderr


def test_a_benchmark_client_starts_all_its_requests_together():
    asked = ("--concurrency=1,4,64", "--drafter=ngram:hit=0.5", "--acceptance=0.5")
    rows = json.loads(run(*asked, "--format=json").stdout)["closed"]
    assert [(row["drafter"], row["concurrency"]) for row in rows[:3]] == [
        ("none", 1),
        ("none", 4),
        ("none", 64),
    ]
    assert len(rows) == 6
    plain = rows[:3]
    for before, after in pairwise(plain):
        assert after["ttft_s"] > before["ttft_s"]
        assert after["tpot_s"] > before["tpot_s"]
        assert after["tokens_per_s_per_card"] > before["tokens_per_s_per_card"]
    # Little's law over a request.
    for row in rows:
        alone = row["requests_per_s"] * 255 * row["tpot_s"]
        assert alone == pytest.approx(row["batch"], rel=1e-6)
    assert "requests at once" in run(*asked).stdout


@pytest.mark.parametrize("text", ["0", "many", "4,-1"])
def test_a_concurrency_that_is_none_is_refused_in_one_line(text):
    result = run(f"--concurrency={text}")
    assert result.exit_code == 2
    assert len(result.stderr.strip().splitlines()) == 1


def test_a_client_has_no_place_where_prompts_are_processed_apart():
    result = run("--concurrency=4", "--kv-transfer=50 GB/s")
    assert result.exit_code == 2
    assert "--concurrency with --kv-transfer" in result.stderr
    assert "leave the link out" in result.stderr


def test_acceptance_is_taken_from_what_an_engine_printed():
    printed = run("--drafter=eagle3", "--draft-length=2", f"--acceptance-from={SAMPLES / 'vllm-after.prom'}")
    assert printed.exit_code == 0, printed.stderr
    assert "acceptance of eagle3 from vllm-after.prom, llama, 1,100 cycles" in printed.stdout
    given = run(
        "--drafter=eagle3", "--draft-length=2", "--acceptance=survival:0.6955,0.4136", "--format=json"
    )
    both = [json.loads(given.stdout)]
    from_file = (f"--acceptance-from={SAMPLES / 'vllm-after.prom'}", "--format=json")
    both.append(json.loads(run("--drafter=eagle3", "--draft-length=2", *from_file).stdout))
    goodputs = [document["rows"][1]["goodput_requests_per_s"] for document in both]
    assert goodputs[0] == pytest.approx(goodputs[1], rel=1e-3)
    assert not any("acceptance of" in part for part in both[0]["basis"])


def test_each_drafter_takes_its_own_file_also_where_another_option_has_it():
    asked = ("--drafter=eagle3", "--option=drafter=ngram", "--draft-length=2")
    file = SAMPLES / "vllm-after.prom"
    shared = run(*asked, f"--acceptance-from={file}")
    assert shared.exit_code == 2
    assert "holds the acceptance of one drafter, and 2 are compared" in shared.stderr
    apart = run(*asked, f"--acceptance-from=eagle3={file}", "--acceptance=ngram=0.4", "--format=json")
    assert apart.exit_code == 0, apart.stderr
    document = json.loads(apart.stdout)
    assert document["question"]["acceptance_sources"] == ["", "vllm-after.prom, llama, 1,100 cycles"]
    assert [row["drafter"] for row in document["rows"]] == ["none", "eagle3", "none", "ngram"]


def test_a_curve_takes_acceptance_from_a_file_too(tmp_path):
    asked = [*BASE[1:], "--drafter=eagle3", "--draft-length=2", f"--output={tmp_path / 'pareto.svg'}"]
    result = CliRunner().invoke(
        main, ["plot", "pareto", *asked, f"--acceptance-from={SAMPLES / 'vllm-after.prom'}"]
    )
    assert result.exit_code == 0, result.stderr
    assert (tmp_path / "pareto.svg").stat().st_size > 0
    missing = CliRunner().invoke(main, ["plot", "pareto", *asked, "--acceptance-from=none.log"])
    assert missing.exit_code == 2
    assert "none.log" in missing.stderr
