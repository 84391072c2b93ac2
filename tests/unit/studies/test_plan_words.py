from __future__ import annotations

import copy

import pytest

from rooflines.errors import FileFormatError
from rooflines.speculation.crossover import Crossover
from rooflines.studies.plan_words import answer_text, compare_plans
from rooflines.studies.serve import make_deployment, make_machine


@pytest.fixture(scope="module")
def target():
    return make_deployment("llama-2-7b", make_machine("a100-sxm-80gb", "textbook"))


def entry(batch, **changes):
    given = {
        "batch": batch,
        "fits": True,
        "largest_batch": 100,
        "speculate": True,
        "drafter": "independent:small",
        "draft_length": 4,
        "verify_width": 5.0,
        "speedup": 2.0,
        "speedup_low": None,
        "speedup_high": None,
        "certain": None,
        "measured_length": None,
        "longest_compared": False,
        "break_even_acceptance": 0.4,
    }
    if "draft_length" in changes and "verify_width" not in changes:
        given["verify_width"] = changes["draft_length"] + 1.0
    return {**given, **changes}


def words(target, entries, ends, crossover_batch=None):
    return answer_text(target, entries, ends, crossover_batch)


def test_each_batch_gets_a_sentence(target):
    text = words(target, [entry(1), entry(8, draft_length=3, speedup=1.5)], [("d", Crossover(None, 64))])
    assert text == (
        "llama-2-7b on NVIDIA A100 SXM4 80GB: At batch 1 draft 4: 2.00x. At batch 8 draft 3: 1.50x. "
        "It still pays at batch 64, the largest that fits or was searched."
    )


def test_an_interval_stands_beside_a_speedup(target):
    known = entry(1, speedup=1.93, speedup_low=1.81, speedup_high=2.06, certain=True)
    text = words(target, [known], [("d", Crossover(None, 64))])
    assert "At batch 1 draft 4: 1.93x (1.81-2.06). It still pays" in text


def test_an_interval_around_1_tells_nothing(target):
    shaky = entry(1, speedup=1.02, speedup_low=0.94, speedup_high=1.11, certain=False)
    text = words(target, [shaky], [("d", Crossover(None, 64))])
    assert "1.02x (0.94-1.11)" in text
    assert "Whether it pays cannot be told: the 90 % interval includes 1." in text


def test_plain_decoding_that_an_interval_doubts_is_still_plain_decoding(target):
    shaky = entry(1, speculate=False, speedup=0.98, speedup_low=0.92, speedup_high=1.03, certain=False)
    text = words(target, [shaky], [("d", Crossover(None, 64))])
    told = "do not speculate (best 0.98x (0.92-1.03): the 90 % interval includes 1, so that it may pay)."
    assert told in text
    assert "cannot be told" not in text


def test_a_draft_beyond_what_was_measured_says_so(target):
    text = words(target, [entry(1, draft_length=8, measured_length=5)], [("d", Crossover(None, 64))])
    assert "At batch 1 draft 8 (beyond the 5 positions measured): 2.00x." in text
    text = words(target, [entry(1, draft_length=8, measured_length=1)], [("d", Crossover(None, 64))])
    assert "draft 8 (beyond the 1 position measured): 2.00x." in text


def test_batches_of_equal_advice_share_a_sentence(target):
    entries = [entry(batch, speedup=2.5 - batch / 100) for batch in range(1, 52)]
    entries += [entry(batch, draft_length=3, speedup=1.5) for batch in (52, 53)]
    entries += [entry(batch, speculate=False, draft_length=0, speedup=0.9) for batch in (60, 61, 64)]
    entries += [entry(batch, fits=False, largest_batch=100) for batch in (101, 102)]
    text = answer_text(target, entries, [("d", Crossover(None, 64))], None, {60: "it is dear"})
    assert text.removeprefix("llama-2-7b on NVIDIA A100 SXM4 80GB: ").startswith(
        "At batches 1-51 draft 4: 2.49x to 1.99x. At batch 52 draft 3: 1.50x. At batch 53 draft 3: 1.50x. "
        "At batches 60-61, 64 do not speculate (best 0.90x to 0.90x: at batch 60, it is dear). "
        "Batches 101-102 do not fit in memory (the largest batch that does is 100)."
    )


def test_advice_that_differs_in_what_is_told_is_not_grouped(target):
    entries = [entry(batch, measured_length=None if batch < 3 else 3) for batch in (1, 2, 3, 4)]
    text = words(target, entries, [("d", Crossover(None, 64))])
    assert text.count("At batch ") == len(entries)


def test_drafts_on_the_edge_of_those_compared_are_told_once(target):
    entries = [entry(batch, draft_length=8, longest_compared=batch < 8) for batch in (1, 4, 8)]
    text = words(target, entries, [("d", Crossover(None, 64))])
    assert text.count("longest draft compared") == 1
    assert "At batches 1, 4 that is the longest draft compared: longer ones may gain more." in text


def test_a_tree_is_told_with_its_nodes(target):
    text = words(target, [entry(1, draft_length=6, verify_width=60.0)], [("d", Crossover(None, 64))])
    assert "At batch 1 draft 6 deep, 59 nodes: 2.00x." in text


def test_several_devices_are_counted():
    many = make_deployment("llama-2-7b", make_machine("a100-sxm-80gb", "textbook"), tensor=4)
    assert words(many, [entry(1)], [("d", Crossover(None, 8))]).startswith("llama-2-7b on 4 x NVIDIA A100")


def test_the_drafter_is_named_where_several_compete(target):
    entries = [entry(1, drafter="one"), entry(8, drafter="two")]
    text = words(target, entries, [("one", Crossover(None, 9)), ("two", Crossover(None, 9))])
    assert "At batch 1 draft 4 with one: 2.00x. At batch 8 draft 4 with two: 2.00x." in text


def test_a_batch_that_does_not_pay(target):
    text = words(
        target, [entry(64, speculate=False, speedup=0.8)], [("d", Crossover(1, 64, "head", "memory"))], 1
    )
    assert "At batch 64 do not speculate (best 0.80x). It pays at no batch." in text


def test_where_it_ends_and_why(target):
    text = words(target, [entry(1)], [("d", Crossover(40, 64, "down projection", "compute"))], 40)
    assert text.endswith(
        "It stops paying at batch 40, where arithmetic binds the down projection of the verify pass."
    )


def test_the_last_of_several_drafters_ends_it(target):
    ends = [("one", Crossover(10, 64, "head", "memory")), ("two", Crossover(40, 64, "attention", "compute"))]
    assert "batch 40, where arithmetic binds the attention" in words(target, [entry(1)], ends, 40)


def test_nothing_that_fits_gets_no_sentence_on_paying(target):
    text = words(target, [entry(1, fits=False, largest_batch=0)], [("d", Crossover(None, 0))])
    assert text.endswith("Batch 1 does not fit in memory (no batch does).")


OLD = {
    "schema_version": 1,
    "question": {"acceptance": "0.8", "context": 1024},
    "answer": {
        "recommendation": [entry(1), entry(8)],
        "crossover_batch": 40,
        "break_even_acceptance": 0.4,
    },
    "basis": "textbook",
}


def changed(path, value):
    new = copy.deepcopy(OLD)
    *steps, last = path
    place = new
    for step in steps:
        place = place[step]
    place[last] = value
    return new


def test_equal_answers_differ_in_nothing():
    assert compare_plans(OLD, copy.deepcopy(OLD)) == []


def test_rounding_is_no_change():
    near = changed(("answer", "recommendation", 0, "speedup"), 2.0 * (1 + 1e-12))
    assert compare_plans(OLD, near) == []


@pytest.mark.parametrize(
    ("path", "value", "line"),
    [
        (("question", "context"), 2048, "question: context was 1024 and is 2048"),
        (("basis",), "measured", "basis: was 'textbook' and is 'measured'"),
        (("answer", "recommendation", 0, "speedup"), 1.5, "batch 1: speedup was 2x and is 1.5x"),
        (("answer", "recommendation", 1, "speedup"), None, "batch 8: speedup was 2x and is none"),
        (("answer", "recommendation", 1, "draft_length"), 5, "batch 8: draft length was 4 and is 5"),
        (
            ("answer", "recommendation", 1, "drafter"),
            "two",
            "batch 8: drafter was independent:small and is two",
        ),
        (("answer", "recommendation", 0, "fits"), False, "batch 1: fits was True and is False"),
        (("answer", "crossover_batch"), None, "crossover batch: was 40 and is None"),
        (("answer", "break_even_acceptance"), 0.5, "break even acceptance: was 0.4 and is 0.5"),
    ],
)
def test_one_change_is_one_line(path, value, line):
    assert compare_plans(OLD, changed(path, value)) == [line]


def test_a_new_batch_is_named():
    new = copy.deepcopy(OLD)
    new["answer"]["recommendation"].append(entry(16))
    assert compare_plans(OLD, new) == ["batch 16: not asked before"]


@pytest.mark.parametrize(
    ("old", "message"),
    [
        ({}, "is no plan as `rooflines plan --format json` writes it: it has no schema_version"),
        ({"answer": {}}, "it has no schema_version"),
        ({"schema_version": 1}, "it has no answer"),
        ({"schema_version": 7, "answer": {}}, "has schema_version 7 and 1 is needed: ask for it again"),
    ],
)
def test_what_is_no_plan_or_one_of_another_version_is_refused(old, message):
    with pytest.raises(FileFormatError, match=message):
        compare_plans(old, OLD)


@pytest.mark.parametrize("answer", [None, [], {}, {"recommendation": [1]}, {"recommendation": [{}]}])
def test_a_damaged_document_is_refused(answer):
    with pytest.raises(FileFormatError, match="no plan"):
        compare_plans({**OLD, "answer": answer}, OLD)
