from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rooflines.errors import FileFormatError, InputError
from rooflines.measurement.files import Journal, measured_schema, read_measured, write_measured
from rooflines.measurement.schema import (
    Cycle,
    DecodeFile,
    Inputs,
    MachineFacts,
    MachineFile,
    ProbeSample,
    Sample,
    SpeculationFile,
    SpeculationRun,
    Stability,
    Step,
    StepsFile,
)

MACHINE = MachineFacts(
    device="EPYC",
    kind="cpu",
    cpu="EPYC",
    cores=2,
    threads=1,
    memory_bytes=24 * 10**9,
    caches=(),
    system="Linux 6",
)
STABLE = Stability(run_delay_share=0.01, iqr_share=0.02, stable=True, advice="the machine held still")
HEADER = {
    "created": "2026-11-30T07:30:00+00:00",
    "rooflines": "0.1.0",
    "machine": MACHINE,
    "versions": {"python": "3.11"},
    "inputs": Inputs(model="m", config="{}", options={"batch": [1, 2]}),
    "stability": STABLE,
}
SAMPLE = Sample(
    case="step", batch=1, new_positions=2, context=8, depth=3, cpu_s=(0.1, 0.2), wall_s=(0.1, 0.3)
)
CYCLE = Cycle(
    draft_s=0.1,
    verify_s=0.2,
    other_s=0.0,
    wall_s=0.3,
    drafted=4,
    accepted=2,
    emitted=3,
    verify_width=5,
    context=9,
)
RUN = SpeculationRun(
    drafter="int4",
    parameters={"group": 32},
    prompt="p1",
    prompt_kind="chat",
    draft_length=4,
    temperature=0.0,
    forced_acceptance=None,
    cycles=(CYCLE,),
    plain_s=(0.1,),
    plain_wall_s=(0.1,),
    samples=(SAMPLE,),
)
PROBE = ProbeSample(
    quantity="read", dtype="fp32", shape=(8,), moved_bytes=32.0, flops=0.0, cpu_s=(1e-6,), wall_s=(1e-6,)
)
FILES = [
    MachineFile(**HEADER, samples=(PROBE,)),
    DecodeFile(**HEADER, samples=(SAMPLE,)),
    SpeculationFile(**HEADER, runs=(RUN,)),
    StepsFile(
        **HEADER, source="llama-bench", steps=(Step(batch=1, new_positions=1, context=0, seconds=(0.5,)),)
    ),
]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.kind)
def test_what_is_written_is_read_back_as_its_own_kind(file, tmp_path):
    write_measured(file, tmp_path / "m.json")
    again = read_measured(tmp_path / "m.json")
    assert type(again) is type(file)
    assert again == file


def test_the_published_schema_is_what_the_reader_accepts(validator_of):
    """Made by: json.dumps(measured_schema(), indent=2, sort_keys=True)."""
    validator = validator_of("measurements")
    assert validator.schema == json.loads(json.dumps(measured_schema()))
    for file in FILES:
        document = json.loads(file.model_dump_json())
        validator.validate(document)
        assert list(validator.iter_errors({**document, "more": 1}))
        assert list(validator.iter_errors({**document, "schema_version": 2}))


def test_a_file_is_never_replaced(tmp_path):
    path = tmp_path / "m.json"
    write_measured(FILES[1], path)
    before = path.read_bytes()
    with pytest.raises(InputError, match="never replaced: name another"):
        write_measured(FILES[2], path)
    with pytest.raises(InputError, match="never replaced"):
        Journal.open(path, {})
    assert path.read_bytes() == before
    assert [one.name for one in tmp_path.iterdir()] == ["m.json"]


def test_a_missing_folder_is_said_before_anything_is_measured(tmp_path):
    with pytest.raises(InputError, match="no folder: make it first"):
        Journal.open(tmp_path / "none" / "m.json", {})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "Invalid JSON"),
        ("[]", "should be an object"),
        ("{}", "kind"),
        ('{"kind": "guess"}', "'machine', 'decode', 'speculation', 'steps'"),
        ('{"kind": "decode"}', "created: Field required"),
    ],
)
def test_a_file_that_is_none_is_refused_by_its_name_in_one_line(text, words, tmp_path):
    path = tmp_path / "m.json"
    path.write_text(text)
    with pytest.raises(FileFormatError, match=r"m\.json") as refused:
        read_measured(path)
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("schema_version", 2, "schema_version"),
        ("samples", [], "at least 1 item"),
        ("extra", 1, "extra: unknown field"),
    ],
)
def test_a_field_that_is_wrong_is_named(field, value, words, tmp_path):
    data = json.loads(FILES[1].model_dump_json()) | {field: value}
    path = tmp_path / "m.json"
    path.write_text(json.dumps(data))
    with pytest.raises(FileFormatError, match=words):
        read_measured(path)


def test_a_missing_file_is_one_line(tmp_path):
    with pytest.raises(FileFormatError, match="No such file"):
        read_measured(tmp_path / "none.json")


def test_samples_of_unequal_clocks_and_impossible_counts_are_refused():
    with pytest.raises(ValueError, match="one time each per repetition"):
        Sample(case="step", batch=1, new_positions=1, context=0, depth=1, cpu_s=(0.1,), wall_s=())
    with pytest.raises(ValueError, match="accepted is at most drafted"):
        Cycle.model_validate(CYCLE.model_dump() | {"accepted": 5})
    with pytest.raises(ValueError, match="emitted at most accepted"):
        Cycle.model_validate(CYCLE.model_dump() | {"emitted": 4})


def test_the_clock_to_use_is_the_device_s_where_there_is_one():
    assert SAMPLE.seconds == (0.1, 0.2)
    assert SAMPLE.model_copy(update={"device_s": (0.3, 0.4)}).seconds == (0.3, 0.4)


def test_a_killed_run_continues_with_its_finished_parts(tmp_path):
    target = tmp_path / "m.json"
    first = Journal.open(target, {"model": "m", "positions": (1, 2)})
    first.add("round 1", [[0.25]])
    second = Journal.open(target, {"model": "m", "positions": [1, 2]})
    assert second.parts == {"round 1": [[0.25]]}
    second.add("round 2", [[0.5]])
    second.finish(FILES[1], target)
    assert [one.name for one in tmp_path.iterdir()] == ["m.json"]


@given(cut=st.integers(min_value=1, max_value=60))
def test_whatever_the_kill_cuts_off_is_measured_again(cut, tmp_path_factory):
    target = tmp_path_factory.mktemp("journal") / "m.json"
    journal = Journal.open(target, {"model": "m"})
    journal.add("1", 1.5)
    journal.add("2", 2.5)
    whole = journal.path.read_text()
    lines = whole.splitlines(keepends=True)
    journal.path.write_text(whole[: max(len(whole) - cut, len(lines[0]))])
    kept = Journal.open(target, {"model": "m"})
    # Without its newline a line is still whole.
    assert kept.parts == (
        {"1": 1.5, "2": 2.5} if cut == 1 else {"1": 1.5} if cut <= len(lines[2]) + 1 else {}
    )
    kept.add("3", 3.5)
    assert Journal.open(target, {"model": "m"}).parts == kept.parts


def test_a_journal_of_another_question_is_refused_and_what_differs_named(tmp_path):
    target = tmp_path / "m.json"
    Journal.open(target, {"model": "m", "dtype": "bf16"})
    with pytest.raises(InputError, match="different: dtype"):
        Journal.open(target, {"model": "m", "dtype": "fp32"})


def test_a_journal_that_is_none_is_refused_and_kept(tmp_path):
    (tmp_path / "m.json.partial").write_text('"my notes"\n')
    with pytest.raises(FileFormatError, match="no journal of measurements"):
        Journal.open(tmp_path / "m.json", {})
    assert (tmp_path / "m.json.partial").read_text() == '"my notes"\n'
