from __future__ import annotations

import time

import numpy as np
import pytest

from rooflines.errors import FileFormatError
from rooflines.serving.trace import read_trace

GOOD = "arrival_s,prompt_tokens,output_tokens\n"


def written(tmp_path, text):
    path = tmp_path / "trace.csv"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_trace_by_hand(tmp_path):
    trace = read_trace(written(tmp_path, GOOD + "10,100,11\n0,300,31\n20,200,21\n"))
    assert trace.requests == 3
    assert trace.duration_s == 20.0
    assert trace.rate_per_s == pytest.approx(0.1)
    assert trace.gap_variation == 0.0
    assert trace.workload.mean_prompt == pytest.approx(200.0)
    assert trace.workload.decode_tokens == pytest.approx(20.0)


@pytest.mark.parametrize(
    "header_and_rows",
    [
        "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.6805900,374,44\n2023-11-16 18:15:50.9951690,396,109\n",
        "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n5,ChatGPT,374,44,418,Conversation log\n9.314579,ChatGPT,396,109,505,Conversation log\n",
    ],
    ids=["azure", "burstgpt"],
)
def test_published_traces_are_understood(tmp_path, header_and_rows):
    trace = read_trace(written(tmp_path, header_and_rows))
    assert trace.duration_s == pytest.approx(4.314579)
    assert trace.workload.mean_prompt == pytest.approx(385.0)
    assert trace.workload.mean_output == pytest.approx(76.5)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "not a CSV"),
        (GOOD.replace(",", ";") + "0;10;10\n1;10;10\n", "trace .* is written with semicolons"),
        # Read by position, the first cell of each row would become its name and the others move to the left.
        (GOOD + "0,10,10,1\n1,10,10,1\n", "a row has more cells than the header has names"),
        (GOOD, "0 requests"),
        (GOOD + "1,10,10\n", "1 requests"),
        ("arrival_s,prompt_tokens\n1,2\n2,3\n", "no column output_tokens"),
        (GOOD + "0,10,10\n-1,10,10\n", "line 3: arrival_s is -1"),
        (GOOD + "0,10,10\n1,-5,10\n", "line 3: prompt_tokens is -5"),
        (GOOD + "0,10,10\n1,10,0\n", "line 3: output_tokens is 0"),
        (GOOD + "0,10,10\n1,10,2.5\n", "line 3: output_tokens is 2.5"),
        (GOOD + "0,10,10\n1,,10\n2,,10\n", r"line 3: prompt_tokens is nan.*2 such rows"),
        (GOOD + "0,10,10\nlater,10,10\n", "line 3: arrival_s is later"),
        (GOOD + "0,10,10\n1,inf,10\n", "line 3: prompt_tokens is inf"),
        (GOOD + "0,10,10\n1,9e12,10\n", "line 3: prompt_tokens"),
        (GOOD + "5,10,10\n5,10,10\n", "arrive at once"),
        (GOOD + "0,10,1\n1,10,1\n", "more than one token"),
    ],
)
def test_a_bad_trace_is_one_clear_line(tmp_path, text, reason):
    with pytest.raises(FileFormatError, match=reason) as caught:
        read_trace(written(tmp_path, text))
    assert "\n" not in str(caught.value)


def test_a_file_that_is_missing_or_binary(tmp_path):
    with pytest.raises(FileFormatError, match="No such file"):
        read_trace(tmp_path / "none.csv")
    path = tmp_path / "binary.csv"
    path.write_bytes(bytes(range(256)) * 8)
    with pytest.raises(FileFormatError, match=r"trace .*binary.csv is not a CSV file"):
        read_trace(path)


def test_a_file_of_a_spreadsheet_begins_with_a_mark(tmp_path):
    path = tmp_path / "trace.csv"
    path.write_text(GOOD + "0,100,11\n10,300,31\n", encoding="utf-8-sig")
    assert read_trace(path).rate_per_s == pytest.approx(0.1)


def test_the_busiest_minute_is_found(tmp_path):
    quiet, burst = np.arange(0.0, 3600.0, 10.0), np.linspace(1000.0, 1059.0, 600)
    rows = "".join(f"{arrival},100,10\n" for arrival in [*quiet, *burst])
    trace = read_trace(written(tmp_path, GOOD + rows))
    assert trace.peak_rate_per_s == pytest.approx(606 / 60.0, rel=0.01)
    assert trace.rate_per_s < 0.3
    assert trace.gap_variation > 1.5


def test_poisson_arrivals_have_a_variation_of_one(tmp_path):
    arrivals = np.cumsum(np.random.default_rng(3).exponential(1.0, 20_000))
    rows = "".join(f"{arrival},100,10\n" for arrival in arrivals)
    assert read_trace(written(tmp_path, GOOD + rows)).gap_variation == pytest.approx(1.0, abs=0.05)


@pytest.mark.slow
def test_a_million_rows_take_seconds(tmp_path):
    count = 1_000_000
    rng = np.random.default_rng(5)
    columns = (
        np.cumsum(rng.exponential(0.01, count)),
        rng.integers(1, 4000, count),
        rng.integers(2, 900, count),
    )
    path = tmp_path / "trace.csv"
    np.savetxt(
        path,
        np.column_stack(columns),
        fmt=["%.3f", "%d", "%d"],
        delimiter=",",
        header=GOOD.strip(),
        comments="",
    )
    started = time.process_time()
    trace = read_trace(path)
    values, _ = trace.workload.prompt_slices()
    assert time.process_time() - started < 5.0
    assert trace.requests == count
    assert values.size == 16
