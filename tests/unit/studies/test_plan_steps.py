"""Plans on measured steps: the table answers, constants do not, and the words say why."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rooflines.errors import InputError, UnknownNameError
from rooflines.hardware.calibration import Calibration, StepTime
from rooflines.hardware.calibration_files import write_calibration
from rooflines.measurement.files import write_measured
from rooflines.measurement.schema import Inputs, Step, StepsFile
from rooflines.studies.plan import PlanQuestion, make_plan, served_target

# One core of an AMD EPYC, SmolLM2-135M-Instruct under llama.cpp, measured in one session (2026-11-30): T(n) / T(1)
# of the bf16 model with 65 tokens/s of plain decoding, and T(n) of its Q4_1 copy, which 29-38 tokens/s came of at an
# acceptance of 0.87-0.98.
BF16 = {1: 1 / 65, 2: 2.1 / 65, 4: 3.2 / 65, 8: 3.2 / 65}
Q4 = {1: 0.0138487, 2: 0.0223722, 4: 0.0326986, 8: 0.0576024}
PARAMETERS = 134_515_008


def steps_at(path, seconds, batch=1, parameters=PARAMETERS, notes=()):
    cells = [
        Step(batch=size, new_positions=width, context=128, seconds=(time * size,))
        for size in range(1, batch + 1)
        for width, time in seconds.items()
    ]
    file = StepsFile(
        created="2026-11-30",
        rooflines="1",
        versions={"llama.cpp": "b1"},
        inputs=Inputs(options={"model_n_params": parameters}),
        source=f"llama-bench, build b1, {path.name}",
        notes=notes,
        steps=tuple(cells),
    )
    write_measured(file, path)
    return str(path)


@pytest.fixture
def question(root, tmp_path):
    draft = steps_at(tmp_path / "q4.json", Q4, batch=2)
    return PlanQuestion(
        hardware=str(root / "docs" / "example-project" / "measurements" / "machine.toml"),
        target="smollm2-135m",
        drafters=(f"independent:smollm2-135m,weight-dtype=q4_1,steps={draft}",),
        acceptance="0.9",
        draft_lengths=(1, 3, 7),
        batches=(1,),
        context=128,
        steps=steps_at(tmp_path / "bf16.json", BF16, batch=2),
    )


def test_a_cheap_draft_of_high_acceptance_slows_its_target_down_and_the_words_say_why(question):
    plan = make_plan(question)
    assert [entry["speculate"] for entry in plan.recommendation] == [False]
    # Seen: 29-38 tokens/s.
    assert all(29 < row["tokens_per_s"] < 42 for row in plan.rows)
    assert "do not speculate" in plan.text
    best = max(plan.rows, key=lambda row: row["speedup"])
    assert f"verifying {best['verify_width']:g} positions costs " in plan.text
    assert f"{best['verify_s'] / best['target_step_s']:.2f} plain steps and drafting " in plan.text
    assert "llama-bench, build b1, bf16.json" in plan.basis
    assert "draft from measured steps (llama-bench, build b1, q4.json)" in plan.basis
    assert not plan.warnings


def test_times_are_those_of_the_table(question):
    first, middle, last = make_plan(question).rows
    assert first["target_step_s"] == pytest.approx(1 / 65)
    assert [row["verify_s"] for row in (first, middle, last)] == pytest.approx([BF16[2], BF16[4], BF16[8]])
    # gamma steps, and one position to catch up after all drafted tokens were kept.
    assert first["draft_s"] == pytest.approx(Q4[1] + 0.9 * (Q4[2] - Q4[1]))
    assert first["verify_bound"] == "measured"


def test_a_reason_stands_where_speculation_pays_too(question):
    plan = make_plan(replace(question, acceptance="0.9", drafters=("ngram:host=1us",)))
    assert plan.recommendation[0]["speculate"]
    assert "(verifying 8 positions costs 3.20 plain steps and drafting 0.00, for 5.70 tokens)" in plan.text


def test_batches_are_searched_as_far_as_they_were_measured(question):
    plan = make_plan(replace(question, batches=(1, 2), drafters=("ngram:host=1us",)))
    assert plan.crossovers[0]["searched_to"] == 2
    assert plan.crossovers[0]["operator"] is None
    with pytest.raises(InputError, match="batch = 3 was not measured"):
        make_plan(replace(question, batches=(3,)))
    with pytest.raises(InputError, match="= 10 was not measured: steps are known from 1 to 8"):
        make_plan(replace(question, draft_lengths=(9,)))


def test_where_it_stops_paying_is_said_without_what_binds(question):
    text = make_plan(replace(question, batches=(1, 2))).text
    assert text.endswith("It pays at no batch.")


def test_explanations_leave_out_what_only_constants_know(question):
    (row,) = make_plan(replace(question, explain=True)).realities
    assert row["memory_bound_width"] is None
    assert row["verify_cost"] > 2


def test_lookups_take_their_share_of_the_measured_verify_pass(question):
    (row,) = make_plan(replace(question, drafters=("ngram",), draft_lengths=(3,))).rows
    assert row["draft_s"] == pytest.approx(0.005875 * BF16[4])


@pytest.mark.parametrize("drafter", ["quantized:q4_1", "layerskip:layers=10", "sparse-kv:window=64"])
def test_every_drafter_that_steps_takes_measured_steps(question, tmp_path, drafter):
    path = steps_at(tmp_path / "own.json", {1: 0.002})
    plan = make_plan(replace(question, drafters=(f"{drafter},steps={path}",), draft_lengths=(3,)))
    assert plan.rows[0]["draft_s"] == pytest.approx(3 * 0.002)
    assert plan.rows[0]["drafter"].endswith("steps=own")


def test_measured_and_predicted_times_of_one_cycle_are_told(question):
    target_only = make_plan(replace(question, drafters=("quantized:q4_1",)))
    assert any("its own are not" in note and "steps=FILE" in note for note in target_only.warnings)
    draft_only = make_plan(replace(question, steps=None))
    assert any("those of the target are not" in note for note in draft_only.warnings)
    assert "draft from measured steps" in draft_only.basis


def test_notes_of_a_file_are_warnings(question, tmp_path):
    noted = steps_at(tmp_path / "noted.json", BF16, notes=("logits of the last position only",))
    assert any(
        "noted.json" in one and "last position" in one
        for one in make_plan(replace(question, steps=noted)).warnings
    )


def test_steps_of_another_model_are_refused(question, tmp_path):
    other = steps_at(tmp_path / "other.json", BF16, parameters=1_700_000_000)
    with pytest.raises(InputError, match="a model of 1,700M parameters and smollm2-135m has 135M"):
        make_plan(replace(question, steps=other))


def test_a_drafter_without_steps_of_its_own_refuses_some(question):
    with pytest.raises(UnknownNameError, match="steps"):
        make_plan(replace(question, drafters=(f"ngram:steps={question.steps}",)))


def test_a_calibration_that_holds_a_table_times_its_model(question, tmp_path):
    cells = tuple(StepTime(batch=1, new_positions=n, context=128, time_s=s) for n, s in BF16.items())
    table = Calibration(
        name="table", device="mine", stack="torch 2", created="2026-11-30", sources=("mine",), steps=cells
    )
    write_calibration(table, tmp_path / "table.toml")
    plan = make_plan(replace(question, steps=str(tmp_path / "table.toml")))
    assert [row["verify_s"] for row in plan.rows] == pytest.approx([BF16[2], BF16[4], BF16[8]], rel=1e-3)
    with pytest.raises(InputError, match="rooflines plan as --steps"):
        make_plan(replace(question, steps=None, calibration=str(tmp_path / "table.toml")))


def test_a_table_of_what_constants_say_gives_the_plan_of_the_constants(question, tmp_path):
    """The table changes where times come from, and nothing else of a cycle."""
    served = served_target(question)
    widths = range(1, 9)
    times = {width: float(served.verify(1.0, 128.0, float(width)).seconds) for width in widths}
    assert times[1] == pytest.approx(float(served.decode(1.0, 128.0).seconds), rel=1e-9)
    asked = replace(question, drafters=("quantized:q4_1", "ngram"), draft_lengths=(1, 2, 5, 7))
    known = make_plan(replace(asked, steps=None))
    measured = make_plan(replace(asked, steps=steps_at(tmp_path / "same.json", times)))
    for one, other in zip(known.rows, measured.rows, strict=True):
        for column in (
            "target_step_s",
            "draft_s",
            "verify_s",
            "cycle_cost",
            "speedup",
            "break_even_acceptance",
        ):
            assert other[column] == pytest.approx(one[column], rel=1e-9), column
    assert known.memory == measured.memory
