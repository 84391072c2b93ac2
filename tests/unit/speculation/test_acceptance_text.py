from __future__ import annotations

import pytest

from rooflines.errors import InputError, UnknownNameError
from rooflines.speculation.acceptance_text import parse_acceptance, parse_branches
from rooflines.speculation.definitions import DEFINITIONS

# One way to write each definition, and tokens per cycle at draft length 3.
WRITTEN = {
    "constant": ("constant:0.8", 2.952),
    "conditional": ("conditional:0.8,0.75,0.5", 1 + 0.8 + 0.6 + 0.3),
    "survival": ("survival:0.76,0.56,0.43", 2.75),
    "accepted-length": ("accepted-length:2.698@3", 2.698),
    "accepted-drafts": ("accepted-drafts:1.698@3", 2.698),
    "accepted-per-drafted": ("accepted-per-drafted:0.566@3", 2.698),
    "tau-per-width": ("tau-per-width:0.6745@3", 2.698),
    "n-alpha": ("n-alpha:0.79,0.74,0.72", 1 + 0.79 + 0.79 * 0.74 + 0.79 * 0.74 * 0.72),
    "medusa": ("medusa:0.6,0.1;0.4,0.2;0.3", 1 + 0.6 + 0.24 + 0.072),
    "sequoia": ("sequoia:0.6,0.2,0.1", 1 + 0.6 + 0.36 + 0.216),
    "decay": ("decay:0.8,0.5", 1 + 0.8 + 0.8 * 0.4 + 0.8 * 0.4 * 0.2),
    "histogram": ("histogram:40,30,20,10", 1 + 0.6 + 0.3 + 0.1),
}


def test_every_definition_is_written_here():
    assert set(WRITTEN) == {definition.name for definition in DEFINITIONS}


@pytest.mark.parametrize("name", WRITTEN)
def test_each_definition(name):
    text, tokens = WRITTEN[name]
    assert parse_acceptance(text).tokens_per_cycle(3) == pytest.approx(tokens, abs=1e-9)


def test_a_bare_number_is_a_constant_alpha_of_any_length():
    acceptance = parse_acceptance(" 0.8 ")
    assert acceptance.listed == (0.8,)
    assert acceptance.measured_length is None


@pytest.mark.parametrize(
    ("text", "measured"),
    [
        ("conditional:0.8,0.7", 2),
        ("survival:0.8,0.7,0.6", 3),
        ("accepted-length:3.1@5", 5),
        ("accepted-length:1.8@1,2.4@2,2.9@4", 4),
        ("histogram:1,2,3", 2),
        ("medusa:0.6;0.4", 2),
        ("decay:0.8,0.9", None),
        ("sequoia:0.6,0.1", None),
    ],
)
def test_what_counts_as_measured(text, measured):
    assert parse_acceptance(text).measured_length == measured


def test_several_accepted_lengths_show_the_fall_along_the_draft():
    # DeepSeek-V4 MTP, SemiAnalysis InferenceX: 1.79 at 1, 2.27 at 2, 2.49 at 3, 2.58 at 8.
    acceptance = parse_acceptance("accepted-length:1.79@1,2.27@2,2.49@3,2.58@8")
    assert acceptance.decay == pytest.approx(0.75, abs=0.03)
    assert acceptance.tokens_per_cycle(5) == pytest.approx(2.55, rel=0.02)


def test_survival_that_reaches_0_stays_there():
    assert parse_acceptance("survival:0.5,0,0").tokens_per_cycle(9) == pytest.approx(1.5)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("1.2", "within 0..1"),
        ("-1", "within 0..1"),
        ("nan", "within 0..1"),
        ("", "no number"),
        ("80%", "0.8, not 80%"),
        ("high", "DEFINITION:VALUES"),
        ("conditional:", "write conditional:C1,C2"),
        ("conditional:0.8,,0.7", "no number"),
        ("conditional:0.8,x", "'x' is no number"),
        ("conditional:0.8@3", "takes no draft length"),
        ("conditional:0.8;0.7", "without ';'"),
        ("constant:0.8,0.7", "one number"),
        ("survival:0.5,0.6", "rises from 0.5 to 0.6 at position 2"),
        ("survival:1.5", "within 0..1"),
        (
            "accepted-length:3.1",
            "draft length GAMMA that it was measured at: write accepted-length:3.1@GAMMA",
        ),
        ("accepted-length:99", "write accepted-length:99@GAMMA"),
        ("accepted-length:3.1@5,2.0", "means nothing without"),
        ("accepted-length:6.1@5", "within 1..6"),
        ("accepted-length:0.9@5", "within 1..6"),
        ("accepted-length:nan@5", "impossible"),
        ("accepted-length:3.1@x", "no whole number"),
        ("accepted-length:3.1@0", "not 1 or more"),
        ("accepted-length:3.1@5,3.2@5", "measure a second"),
        ("accepted-drafts:5.1@5", "within 1..6"),
        ("accepted-per-drafted:1.01@3", "within 0..1"),
        ("tau-per-width:0.1@3", "within 1..4"),
        ("tau-per-width:1.1@3", "within 0..1"),
        ("medusa:0.8,0.9", "sum to 1.7"),
        ("sequoia:0.6,0.6", "sum to 1.2"),
        ("decay:0.8", "ALPHA,R"),
        ("decay:0.8,-0.5", "0 or more"),
        ("histogram:5", "2 or more"),
        ("histogram:0,0", "not all 0"),
        ("histogram:1,-1", "0 or more"),
    ],
)
def test_impossible_values_are_refused_in_one_line(text, says):
    with pytest.raises(InputError) as refused:
        parse_acceptance(text)
    assert says in str(refused.value)
    assert "\n" not in str(refused.value)


def test_unknown_definitions_come_with_near_matches():
    with pytest.raises(UnknownNameError, match="did you mean 'survival'"):
        parse_acceptance("survivl:0.5")
    with pytest.raises(UnknownNameError, match="acceptance preset"):
        parse_acceptance("preset:nothing-like-it")


def test_presets_by_name():
    assert parse_acceptance("preset:mtp-deepseek-v3-low").tokens_per_cycle(1) == pytest.approx(1.85)
    assert parse_branches("preset:medusa-vicuna-7b").row(1)[0] == pytest.approx(0.5604)


def test_branches_for_trees():
    assert parse_branches("medusa:0.6,0.1;0.4").rates == ((0.6, 0.1), (0.4,))
    sequoia = parse_branches("sequoia:0.6,0.2")
    assert sequoia.row(7) == (0.6, 0.2)
    for text in ("conditional:0.8,0.7", "sequoia:0.6;0.4"):
        with pytest.raises(InputError, match="second and further guesses"):
            parse_branches(text)
    with pytest.raises(InputError, match="no values"):
        parse_branches("medusa:")
