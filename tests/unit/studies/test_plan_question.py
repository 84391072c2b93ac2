from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rooflines.errors import InputError
from rooflines.studies.plan import PlanQuestion, make_plan

QUESTION = PlanQuestion(
    hardware="h100-sxm5-80gb",
    target="llama-3.1-8b",
    drafters=("eagle3",),
    acceptance="0.8",
    draft_lengths=(4,),
    batches=(1,),
    context=1024,
    calibration="textbook",
)


@pytest.mark.parametrize(
    ("field", "given"),
    [
        ("drafters", "eagle3"),
        ("drafters", ["eagle3"]),
        ("acceptance", 0.8),
        ("acceptance", np.float64(0.8)),
        ("draft_lengths", 4),
        ("draft_lengths", [4]),
        ("draft_lengths", np.array([4])),
        ("draft_lengths", range(4, 5)),
        ("batches", 1),
        ("batches", [np.int64(1)]),
    ],
)
def test_one_value_stands_for_a_list_of_it_and_a_number_for_its_text(field, given):
    assert replace(QUESTION, **{field: given}) == QUESTION


def test_what_python_wrote_is_answered_like_the_command_line():
    asked = replace(QUESTION, drafters="eagle3", acceptance=0.8, draft_lengths=4, batches=1)
    assert make_plan(asked).document() == make_plan(QUESTION).document()


@pytest.mark.parametrize(
    ("field", "given", "message"),
    [
        ("drafters", (), "a plan needs a drafter"),
        ("drafters", None, "drafters are None: give a list, such as"),
        ("drafters", (4,), "drafters hold 4, which is no text"),
        ("acceptance", None, "acceptance is None: give a rate such as 0.8"),
        ("acceptance", (0.8, 0.7), "acceptances hold 0.8, which is no text: .* conditional:0.8,0.7"),
        ("acceptance", True, "acceptance is True"),
        ("draft_lengths", (), "give one of 1 or more"),
        ("draft_lengths", (2, -1), "draft length is -1: it must be 0 or more"),
        ("draft_lengths", (1.5,), "draft lengths hold 1.5, which is no whole number"),
        ("draft_lengths", "1..8", "draft lengths hold '1..8', which is no whole number"),
        ("batches", (), "batches of 1 or more sequences: give at least one"),
        ("batches", (8, 0), "batches of 1 or more sequences"),
        ("batches", (True,), "batches hold True, which is no whole number"),
        ("context", -1, "context is -1"),
    ],
)
def test_what_is_no_question_is_refused_in_words(field, given, message):
    with pytest.raises(InputError, match=message):
        replace(QUESTION, **{field: given})
