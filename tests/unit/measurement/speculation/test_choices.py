from __future__ import annotations

import pytest

from rooflines.errors import InputError, UnknownNameError
from rooflines.measurement.speculation.choices import FORMS, parse_drafter
from rooflines.measurement.speculation.drafters import ModelDrafter, PromptLookup
from rooflines.measurement.speculation.sampling import Sampling


class Named:
    """Stands for a model; remembers which it is."""

    def __init__(self, name):
        self.name = name

    def new_cache(self, positions):
        return f"own cache of {positions}"


class Shelf:
    layers = 30

    def int4_copy(self):
        return Named("int4")

    def early_exit(self, layers):
        return Named(f"exit {layers}")

    def independent(self, name):
        return Named(name)


def _opened(text):
    return parse_drafter(text).opener(Shelf(), Sampling(), 3)("target's cache", 99)


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("prompt-lookup", "prompt-lookup longest=3 shortest=1"),
        ("prompt-lookup:shortest=2", "prompt-lookup longest=3 shortest=2"),
        ("int4", "int4 cache=shared"),
        ("int4:cache=own", "int4 cache=own"),
        ("early-exit:10", "early-exit layers=10"),
        ("independent:a/b:c", "independent model=a/b:c"),
        ("forced:0.8", "int4 cache=shared forced=0.8"),
        ("forced:1:early-exit:2", "early-exit layers=2 forced=1"),
    ],
)
def test_what_is_typed_is_understood(text, label):
    assert parse_drafter(text).label == label


@pytest.mark.parametrize(
    ("text", "model", "cache"),
    [
        ("int4", "int4", "target's cache"),
        ("int4:cache=own", "int4", "own cache of 99"),
        ("early-exit:10", "exit 10", "target's cache"),
        ("independent:small", "small", "own cache of 99"),
        ("forced:0.5:independent:small", "small", "own cache of 99"),
    ],
)
def test_who_drafts_and_in_which_cache(text, model, cache):
    drafter = _opened(text)
    assert isinstance(drafter, ModelDrafter)
    assert (drafter.model.name, drafter.cache) == (model, cache)


def test_prompt_lookup_needs_no_model():
    assert _opened("prompt-lookup:longest=4,shortest=2") == PromptLookup(4, 2)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("early-exit", "number of layers is missing"),
        ("early-exit:x", "must be a whole number"),
        ("early-exit:0", "must be a whole number"),
        ("independent", "its model is missing"),
        ("int4:cache=both", "must be shared or own"),
        ("int4:speed=9", "'speed=9' is not understood"),
        ("int4:cache", "'cache' is not understood"),
        ("prompt-lookup:longest=0", "must be a whole number"),
        ("prompt-lookup:longest=1,shortest=2", "must not exceed"),
        ("prompt-lookup:longest=999", "nor longest 64"),
        ("forced", "is no probability"),
        ("forced:nan", "must be 0 to 1"),
        ("forced:1.2", "must be 0 to 1"),
        ("forced:0.5:forced:0.5", "forced twice"),
        ("forced:0.5:early-exit", "number of layers is missing"),
    ],
)
def test_mistakes_are_named_with_the_form_to_write(text, said):
    with pytest.raises(InputError, match=said) as raised:
        parse_drafter(text)
    assert any(form in str(raised.value) for form in FORMS.values())


def test_unknown_drafters_are_refused_with_near_matches():
    with pytest.raises(UnknownNameError, match="did you mean 'early-exit'"):
        parse_drafter("earlyexit:3")


def test_an_early_exit_must_leave_early():
    parse_drafter("early-exit:29").check(30)
    with pytest.raises(InputError, match="the target has 30"):
        parse_drafter("early-exit:30").check(30)
    parse_drafter("int4").check(1)
