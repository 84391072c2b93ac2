"""Every reader on a small sample made by hand from the tool's documented format (samples/)."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import numpy as np
import pytest

from rooflines.errors import FileFormatError, InputError, RooflinesError, UnknownNameError
from rooflines.measurement.readers.catalogue import (
    READERS,
    acceptance_from,
    acceptance_text_from,
    import_file,
    recognise,
)
from rooflines.measurement.readers.steps import steps_file

SAMPLES = Path(__file__).parent / "samples"
# Sample -> the kind that it is.
KINDS = {
    "vllm-serve.json": "vllm-serve",
    "vllm-latency.json": "vllm-latency",
    "vllm-throughput.json": "vllm-throughput",
    "vllm.log": "vllm-log",
    "vllm-2025.log": "vllm-log",
    "vllm-after.prom": "prometheus",
    "sglang.prom": "prometheus",
    "sglang-bench.jsonl": "sglang-bench",
    "sglang-new.log": "sglang-log",
    "sglang-old.log": "sglang-log",
    "llama-server.log": "llama-log",
    "llama-server-old.log": "llama-log",
    "llama-statistics.log": "llama-log",
    "llama-simple.log": "llama-log",
    "llama-batched.txt": "llama-batched-bench",
    "llama-batched.jsonl": "llama-batched-bench",
    "llama-bench.json": "llama-bench",
    "trtllm-bench.json": "trtllm-bench",
    "transformers.jsonl": "transformers",
    "survival.csv": "csv",
    "lengths.csv": "csv",
    "histogram.csv": "csv",
}


def read(name, **options):
    return import_file(KINDS[name], SAMPLES / name, **options)


def only(name, **options):
    (record,) = read(name, **options).acceptance
    return record


def altered(tmp_path, name, *changes):
    text = (SAMPLES / name).read_text(encoding="utf-8")
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("name", KINDS)
def test_files_are_recognised_by_what_stands_in_them(name):
    assert recognise((SAMPLES / name).read_text(encoding="utf-8"), name).kind == KINDS[name]


def test_every_reader_has_a_sample():
    assert {reader.kind for reader in READERS} == set(KINDS.values())


def test_vllm_rates_by_position_are_survival_and_agree_with_the_length_beside_them():
    record = only("vllm-serve.json")
    assert record.text == "survival:0.75,0.5,0.25"
    assert record.tokens_per_cycle == 2.5
    assert record.cycles == 6400
    assert record.acceptance().tokens_per_cycle(3) == pytest.approx(2.5)
    # c_2 = a_2 / a_1, not a_2: what is printed as a "rate" of position 2 is no conditional rate.
    assert record.acceptance().conditional(2) == pytest.approx(2 / 3)


def test_vllm_serve_tells_load_in_seconds():
    (run,) = read("vllm-serve.json").serving
    assert (run.concurrency, run.requests, run.input_tokens, run.output_tokens) == (8, 80, 100, 200)
    assert run.output_tokens_per_s == 800
    assert run.latencies_s["mean_tpot"] == pytest.approx(0.0095)
    assert run.latencies_s["p99_ttft"] == pytest.approx(0.048)


def test_vllm_without_rates_by_position_gives_the_length_at_the_mean_draft(tmp_path):
    path = altered(tmp_path, "vllm-serve.json", ("[0.75, 0.5, 0.25]", "[]"))
    assert acceptance_text_from(path) == "accepted-length:2.5@3"


def test_vllm_without_speculation_has_load_and_no_acceptance(tmp_path):
    path = altered(tmp_path, "vllm-serve.json", ('"spec_decode_num_drafts": 6400', '"other": 1'))
    found = import_file("vllm-serve", path)
    assert not found.acceptance
    assert found.serving
    with pytest.raises(FileFormatError, match="says nothing about accepted drafts"):
        acceptance_text_from(path)


def test_vllm_latency_and_throughput_keep_seconds_and_say_what_they_lack():
    latency = read("vllm-latency.json")
    assert latency.serving[0].latencies_s["mean_batch"] == 1.25
    assert latency.serving[0].latencies_s["p99_batch"] == 1.299
    assert "prompt and output lengths are not in the file" in latency.notes[0]
    throughput = read("vllm-throughput.json")
    assert throughput.serving[0].duration_s == 50
    assert throughput.settings["tokens_per_second"] == 7680
    # Prompt tokens are among them, so it must not pass for a rate of output.
    assert throughput.serving[0].output_tokens_per_s is None


def test_vllm_log_weighs_intervals_by_their_cycles_also_where_nothing_was_accepted():
    # 4800 accepted at 0.75 + 0.5 + 0.25 are 3200 cycles; 4800 drafted over 3 positions are 1600 more.
    record = only("vllm.log")
    assert record.cycles == 4800
    np.testing.assert_allclose(record.values, [0.5, 1 / 3, 1 / 6])


def test_an_older_line_of_the_log_says_the_same_in_another_order():
    record = only("vllm-2025.log")
    assert (record.cycles, record.values) == (129, (0.543, 0.357, 0.264))  # 387 drafted / 3
    assert record.tokens_per_cycle == pytest.approx(2.16, abs=0.005)


def test_counters_are_differenced_by_engine_and_position():
    record = only("vllm-after.prom", before=SAMPLES / "vllm-before.prom")
    # (700 - 100) + (400 - 0) drafts; position 0: (465 - 15) + 300; position 1: (255 - 5) + 200.
    assert record.cycles == 1000
    assert record.text == "survival:0.75,0.45"
    assert record.tokens_per_cycle == pytest.approx(1 + (700 + 500) / 1000)
    assert record.tokens_per_cycle == pytest.approx(record.acceptance().tokens_per_cycle(2))


def test_counters_alone_are_since_the_start_and_say_so():
    found = read("vllm-after.prom")
    assert found.acceptance[0].cycles == 1100
    assert "since the server was started" in found.notes[0]


def test_scrapes_in_the_wrong_order_are_refused():
    with pytest.raises(InputError, match="falls by"):
        import_file("prometheus", SAMPLES / "vllm-before.prom", before=SAMPLES / "vllm-after.prom")


def test_a_time_without_drafts_is_told_from_a_file_without_counters():
    same = SAMPLES / "vllm-after.prom"
    with pytest.raises(FileFormatError, match="counts no drafts since the earlier scrape"):
        import_file("prometheus", same, before=same)


def test_metrics_of_an_older_engine_are_refused_by_name(tmp_path):
    path = tmp_path / "metrics"
    path.write_text('vllm:spec_decode_draft_acceptance_rate{model_name="m"} 0.6\n', encoding="utf-8")
    with pytest.raises(FileFormatError, match="V0 engine"):
        import_file("prometheus", path)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("} 700.0", "} NaN", "counts nothing"),
        ("} 700.0", "} many", "value many"),
        ('position="1"', 'position="x"', "position x"),
    ],
)
def test_counters_that_count_nothing_are_refused(tmp_path, old, new, message):
    with pytest.raises(FileFormatError, match=message):
        import_file("prometheus", altered(tmp_path, "vllm-after.prom", (old, new)))


def test_metrics_without_speculation_say_which_counters_are_missing(tmp_path):
    path = tmp_path / "metrics"
    path.write_text('vllm:num_requests_running{model_name="m"} 8\n', encoding="utf-8")
    with pytest.raises(FileFormatError, match="spec_decode_num_drafts_total"):
        import_file("prometheus", path)


def test_sglang_width_counts_the_anchor():
    assert only("sglang.prom").text == "accepted-length:2.6@3"
    assert only("sglang-bench.jsonl").text == "accepted-length:2.62@3"
    assert only("sglang-new.log").draft_length == 3


def test_sglang_bench_says_its_version_and_its_load():
    found = read("sglang-bench.jsonl")
    assert found.versions == {"sglang": "0.5.23"}
    assert found.serving[0].concurrency == 15.6
    assert found.serving[0].output_tokens == 250
    assert "not of the run alone" in found.notes[0]


def test_both_meanings_of_sglangs_accept_rate_give_the_same_acceptance():
    new, old = only("sglang-new.log"), only("sglang-old.log")
    assert new.meaning.endswith("accepted-per-drafted")
    assert old.meaning.endswith("tau-per-width")
    # (1 x 2.60 + 3 x 3.00) / 4: intervals weigh as many requests as were running.
    assert new.tokens_per_cycle == pytest.approx(2.9)
    assert old.draft_length == new.draft_length == 3  # the older log does not say it: the two numbers do


def test_a_rate_that_fits_no_definition_at_the_stated_length_is_refused():
    with pytest.raises(InputError, match="fit no definition"):
        read("sglang-new.log", draft_length=5)


def test_a_log_without_rates_needs_the_draft_length(tmp_path):
    path = altered(
        tmp_path,
        "sglang-old.log",
        (", accept rate: 0.65", ""),
        (", accept rate: 0.75", ""),
        (", accept rate: 0.34", ""),
    )
    with pytest.raises(InputError, match="state the draft length"):
        import_file("sglang-log", path)
    (record,) = import_file("sglang-log", path, draft_length=3).acceptance
    assert record.draft_length == 3


def test_llama_rates_by_position_are_weighted_by_passes():
    # 1797 / (.727 + .513) = 1449 passes, and 100 / (.6 + .4) = 100.
    record = only("llama-server.log")
    assert record.cycles == 1549
    np.testing.assert_allclose(record.values, [0.7188, 0.5057], atol=1e-4)
    # 1 + (1797 + 100) / 1549 from the counts: pooling loses nothing but the printed rounding.
    assert record.tokens_per_cycle == pytest.approx(1 + 1897 / 1549, abs=2e-3)


def test_llama_totals_give_cycles_since_each_emits_one_token_more_than_it_accepts():
    record = only("llama-simple.log")
    assert (record.cycles, record.draft_length) == (40, 4)
    assert record.tokens_per_cycle == pytest.approx(128 / 40)


def test_llama_statistics_count_drafts_of_each_kind():
    found = read("llama-statistics.log", draft_length=16)
    assert [record.label for record in found.acceptance] == ["ngram_simple", "draft"]
    assert [record.tokens_per_cycle for record in found.acceptance] == pytest.approx([15.6, 10.8])
    assert "shorter" in found.notes[0]
    with pytest.raises(InputError, match="2 runs that are not one acceptance"):
        acceptance_text_from(SAMPLES / "llama-statistics.log", draft_length=16)


def test_llama_ratio_alone_needs_the_draft_length():
    with pytest.raises(InputError, match="state the draft length"):
        read("llama-server-old.log")
    record = only("llama-server-old.log", draft_length=4)
    assert record.text == "accepted-per-drafted:0.57575758@4"
    assert record.acceptance().accepted_per_cycle(4) == pytest.approx(4 * 171 / 297)


def test_llama_bench_becomes_a_table_of_step_times():
    found = read("llama-bench.json")
    cells = [(step.new_positions, step.context, step.seconds) for step in found.steps]
    assert cells == [
        (4, 128, (0.03,)),
        (1, 144, (0.0135625, 0.014, 0.014, 0.0144375)),  # 32 tokens one by one: the middle of their contexts
    ]
    assert any("left out: -p 1 after 128 tokens, a single pass of 15 ms" in note for note in found.notes)
    assert found.versions == {"llama.cpp": "7310 (b9a1c5f)"}
    assert any("8 tokens do not fit one pass of 4" in note for note in found.notes)
    assert any("logits of the last position only" in note for note in found.notes)


def test_steps_become_a_file_of_measurements_with_its_verdict():
    file = steps_file(read("llama-bench.json"), created="now", written_by="1")
    assert file.created == "2026-11-30T03:22:30Z"
    assert file.inputs.model == "m.gguf"
    assert file.inputs.options["n_threads"] == 1
    assert file.machine is None
    assert file.stability is not None
    assert file.stability.iqr_share == pytest.approx(1 / 64)
    with pytest.raises(InputError, match="no times of single passes"):
        steps_file(read("vllm-serve.json"), created="now", written_by="1")


def test_runs_of_different_settings_in_one_file_are_refused(tmp_path):
    path = altered(
        tmp_path,
        "llama-bench.json",
        (
            '"n_threads": 1, "type_k": "f16", "type_v": "f16", "n_gpu_layers": -1, "flash_attn": -1, "n_prompt": 4',
            '"n_threads": 2, "type_k": "f16", "type_v": "f16", "n_gpu_layers": -1, "flash_attn": -1, "n_prompt": 4',
        ),
    )
    with pytest.raises(FileFormatError, match="differ in n_threads"):
        import_file("llama-bench", path)


def test_batched_bench_gives_seconds_of_one_step():
    table = read("llama-batched.txt")
    cells = [(step.batch, step.new_positions, step.context, step.seconds[0]) for step in table.steps]
    assert cells == [
        (1, 1, 192, pytest.approx(0.01)),
        (1, 128, 0, 0.02),  # 128 prompt tokens are one pass of n_ubatch 512, 8 x 128 are not
        (8, 1, 192, pytest.approx(0.015)),
    ]
    lines = read("llama-batched.jsonl")
    assert [(step.batch, step.new_positions) for step in lines.steps] == [(8, 1), (1, 128)]
    assert any("shared by 8 sequences" in note for note in lines.notes)


def test_tensorrt_takes_the_ratio_of_means_not_the_mean_of_ratios():
    # 100 output tokens, 60 of them accepted drafts: 40 iterations of 3 drafted tokens each.
    record = only("trtllm-bench.json")
    assert (record.draft_length, record.cycles) == (3, 400)
    assert record.tokens_per_cycle == pytest.approx(2.5)  # its percentiles average to 2.55
    assert read("trtllm-bench.json").serving[0].latencies_s["mean_tpot"] == pytest.approx(0.0299)


@pytest.mark.parametrize(
    ("name", "change", "version"),
    [
        ("trtllm-bench.json", ('"version": "1.2.0"', '"version": "2.0.0"'), "TensorRT-LLM 2.0.0"),
        ("sglang-bench.jsonl", ('"version": "0.5.23"', '"version": "0.9.1"'), "SGLang 0.9.1"),
    ],
)
def test_unknown_versions_are_refused_by_name(tmp_path, name, change, version):
    with pytest.raises(FileFormatError, match=version):
        import_file(KINDS[name], altered(tmp_path, name, change))


def test_transformers_cycles_without_candidates_are_left_out():
    found = read("transformers.jsonl")
    assert found.acceptance[0].text == "histogram:1,2,0,1"
    assert found.acceptance[0].tokens_per_cycle == pytest.approx(1 + 5 / 4)
    assert found.acceptance[0].acceptance().tokens_per_cycle(3) == pytest.approx(2.25)
    assert "1 of 5 cycles had no draft" in found.notes[0]


def test_transformers_drafts_of_different_lengths_are_told(tmp_path):
    path = altered(
        tmp_path,
        "transformers.jsonl",
        ('"candidate_length": 3, "n_matches": 0', '"candidate_length": 5, "n_matches": 0'),
    )
    assert "3 to 5 tokens long" in import_file("transformers", path).notes[0]


def test_more_matches_than_candidates_are_refused(tmp_path):
    path = altered(tmp_path, "transformers.jsonl", ('"n_matches": 3', '"n_matches": 4'))
    with pytest.raises(FileFormatError, match="4 matches of 3 candidates"):
        import_file("transformers", path)


def test_tables_of_ones_own():
    assert acceptance_text_from(SAMPLES / "survival.csv") == "survival:0.72,0.51"
    assert acceptance_text_from(SAMPLES / "lengths.csv") == "accepted-length:2.1@2,2.9@4"
    assert acceptance_text_from(SAMPLES / "histogram.csv") == "histogram:30,20,50"
    fitted = acceptance_from(SAMPLES / "lengths.csv")
    assert fitted.tokens_per_cycle(2) == pytest.approx(2.1, rel=0.02)
    assert fitted.tokens_per_cycle(4) == pytest.approx(2.9, rel=0.02)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("position,rate\n1,0.5\n", "write position,survival"),
        ("position,survival\n", "no rows"),
        ("position,survival\n1,half\n", "line 2"),
        ("position,survival\n2,0.5\n", "must count 1, 2"),
        ("accepted,cycles\n0,inf\n", "not finite"),
        ("draft_length,accepted-length\n0,1.0\n", "no whole number of 1 or more"),
        ("", "no rows"),
    ],
)
def test_tables_that_say_nothing_are_refused(tmp_path, text, message):
    path = tmp_path / "own.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(FileFormatError, match=message):
        import_file("csv", path)


@pytest.mark.parametrize("name", [name for name in KINDS if name.endswith((".json", ".jsonl"))])
def test_json_without_its_fields_is_refused_naming_them(tmp_path, name):
    path = tmp_path / name
    path.write_text('{"other": 1}', encoding="utf-8")
    with pytest.raises(FileFormatError, match="it lacks "):
        import_file(KINDS[name], path)


@pytest.mark.parametrize("kind", [reader.kind for reader in READERS])
@pytest.mark.parametrize("text", ["", "{", "[]", "[1]", "nothing of the sort", '{"a": null}', "\x00"])
def test_no_reader_falls_over_what_it_does_not_know(tmp_path, kind, text):
    path = tmp_path / "file"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(RooflinesError):
        import_file(kind, path)


@pytest.mark.parametrize("name", [name for name in KINDS if name.endswith(".json")])
def test_fields_of_a_wrong_type_are_refused_not_believed(tmp_path, name):
    value = json.loads((SAMPLES / name).read_text(encoding="utf-8"))
    record = value[0] if isinstance(value, list) else value
    fields = [key for key, cell in record.items() if isinstance(cell, int | float) and cell]
    wrong = 0
    for field in fields:
        broken = {**record, field: "many"}
        path = tmp_path / name
        path.write_text(json.dumps([broken, *value[1:]] if isinstance(value, list) else broken), "utf-8")
        try:
            import_file(KINDS[name], path)
        except RooflinesError:
            wrong += 1
    # What is not read may be anything; what is must be a number.
    assert wrong >= min(2, len(fields))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("position,survival\n1,0.5\n2,0.6\n", "survival rises"),
        ("position,conditional\n1,1.5\n", "within 0..1"),
        ("draft_length,accepted-length\n2,3.5\n", "impossible"),
    ],
)
def test_impossible_acceptance_is_refused_where_it_is_read(tmp_path, text, message):
    path = tmp_path / "own.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=message):
        import_file("csv", path)


@pytest.mark.parametrize("name", KINDS)
def test_damaged_files_are_read_or_refused_never_fallen_over(tmp_path, name):
    """Characters changed, dropped and slipped in, the same ones every time."""
    text = (SAMPLES / name).read_text(encoding="utf-8")
    random = np.random.default_rng(len(text))
    for _ in range(25):
        letters = list(text)
        for where in random.random(3):
            place = int(where * len(letters))
            change = random.integers(3)
            slipped = str(
                random.choice(["0", "-", "9999999", "null", "1e400", "NaN", "[]", "{}", ",", '"x"'])
            )
            if change == 0:
                letters[place] = slipped
            elif change == 1:
                del letters[place : place + int(random.integers(1, 30))]
            else:
                letters.insert(place, slipped)
        path = tmp_path / name
        path.write_text("".join(letters), encoding="utf-8")
        with contextlib.suppress(RooflinesError):
            import_file(KINDS[name], path, draft_length=3)


def test_what_cannot_be_read_or_has_no_place_is_refused(tmp_path):
    with pytest.raises(FileFormatError, match="cannot be read"):
        import_file("csv", tmp_path / "missing.csv")
    with pytest.raises(UnknownNameError, match="llama-bench"):
        import_file("lama-bench", SAMPLES / "llama-bench.json")
    with pytest.raises(InputError, match="belongs to prometheus"):
        import_file("csv", SAMPLES / "survival.csv", before=SAMPLES / "survival.csv")
    with pytest.raises(InputError, match="give 1 or more"):
        import_file("llama-log", SAMPLES / "llama-server-old.log", draft_length=0)
    with pytest.raises(FileFormatError, match="looks like no known output"):
        recognise("good morning", "letter.txt")


@pytest.mark.parametrize("rate", ["Infinity", "1e999"])
def test_a_request_rate_without_limit_can_be_written_as_json(tmp_path, rate):
    text = (SAMPLES / "vllm-serve.json").read_text(encoding="utf-8")
    record = json.loads(text.splitlines()[0])
    record["request_rate"] = "RATE"
    file = tmp_path / "run.json"
    file.write_text(json.dumps(record).replace('"RATE"', rate), encoding="utf-8")
    found = import_file("vllm-serve", file)
    assert found.settings["request_rate"] == "inf"
    json.dumps(found.model_dump(mode="json"), allow_nan=False)


LINE = "INFO SpecDecoding metrics: {length}Accepted: {accepted} tokens, Drafted: {drafted} tokens, Rate: 1%\n"


def test_lines_of_vllm_without_rates_by_position_are_read_by_their_lengths(tmp_path):
    """Tokens per cycle of both: 1 + (470 + 400) / ((1000 + 1000) / 3)."""
    path = tmp_path / "old.log"
    lines = [("Mean acceptance length: 2.41, ", 470, 1000), ("Mean acceptance length: 2.20, ", 400, 1000)]
    path.write_text(
        "".join(LINE.format(length=one, accepted=two, drafted=three) for one, two, three in lines)
    )
    (found,) = import_file("vllm-log", path).acceptance
    assert found.text == "accepted-length:2.305@3"
    assert found.cycles == 667
    assert acceptance_text_from(path) == found.text


@pytest.mark.parametrize("length", ["", "Mean acceptance length: 2.50, "])  # 3.19 drafted a cycle
def test_where_lines_do_not_tell_the_draft_length_it_must_be_given(tmp_path, length):
    path = tmp_path / "older.log"
    path.write_text(LINE.format(length=length, accepted=470, drafted=1000))
    with pytest.raises(FileFormatError, match=r"give it .*--draft-length N"):
        import_file("vllm-log", path)
    (found,) = import_file("vllm-log", path, draft_length=4).acceptance
    assert found.text == "accepted-length:2.88@4"
