from __future__ import annotations

import inspect
import pickle

import pytest

from rooflines import errors
from rooflines.errors import (
    AmbiguousNameError,
    CannotTellError,
    ConfigError,
    MissingPeakError,
    ProfileError,
    RooflinesError,
    UnknownNameError,
    UnsupportedArchitectureError,
    near_matches,
)

DEVICES = ("h100-sxm5-80gb", "h100-pcie-80gb", "h100-nvl-94gb", "a100-sxm4-80gb", "mi300x")
FAMILY = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, RooflinesError)]


def test_every_error_of_the_module_belongs_to_the_family():
    raised = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, Exception)]
    assert set(raised) == set(FAMILY)
    assert len(FAMILY) > 10


@pytest.mark.parametrize("kind", FAMILY)
def test_bad_input_exits_with_two_and_only_too_little_evidence_with_three(kind):
    assert kind.exit_code == (3 if kind is CannotTellError else 2)


@pytest.mark.parametrize(
    ("special", "general"),
    [(MissingPeakError, ProfileError), (UnsupportedArchitectureError, ConfigError)],
)
def test_a_special_error_is_caught_as_the_general_one(special, general):
    assert issubclass(special, general)


def test_an_unknown_name_says_what_was_given_what_is_near_and_what_to_do():
    error = UnknownNameError("hardware", "h100-sxm4-80gb", DEVICES, "(rooflines hardware list shows all)")
    assert error.near[0] == "h100-sxm5-80gb"
    assert str(error).startswith("unknown hardware 'h100-sxm4-80gb'; did you mean 'h100-sxm5-80gb'")
    assert str(error).endswith("? (rooflines hardware list shows all)")


def test_an_unknown_name_like_nothing_suggests_nothing():
    error = UnknownNameError("hardware", "zzz", DEVICES)
    assert str(error) == "unknown hardware 'zzz'"
    assert error.near == ()


def test_an_ambiguous_name_says_between_what_to_choose():
    error = AmbiguousNameError("hardware", "h100", DEVICES[:3])
    assert str(error) == (
        "hardware 'h100' is ambiguous: choose 'h100-sxm5-80gb', 'h100-pcie-80gb' or 'h100-nvl-94gb'"
    )
    assert error.candidates == DEVICES[:3]


@pytest.mark.parametrize(
    ("given", "first"),
    [
        ("mi30x", "mi300x"),
        ("MI-300X", "mi300x"),
        ("a100_sxm4_80gb", "a100-sxm4-80gb"),
        ("nvl", "h100-nvl-94gb"),
        ("H100 PCIe 80GB", "h100-pcie-80gb"),
    ],
)
def test_near_matches_ignore_case_and_separators(given, first):
    assert near_matches(given, DEVICES)[0] == first


@pytest.mark.parametrize("given", ["", "---", "...", "x", "1"])
def test_nothing_is_near_to_almost_nothing(given):
    assert near_matches(given, DEVICES) == ()


def test_near_matches_are_few_and_distinct():
    near = near_matches("h100", DEVICES)
    assert len(near) == len(set(near)) == 3
    assert all(name.startswith("h100") for name in near)
    assert len(near_matches("h100", DEVICES, count=1)) == 1


@pytest.mark.parametrize(
    "error",
    [
        UnknownNameError("hardware", "h10", DEVICES),
        AmbiguousNameError("hardware", "h100", DEVICES[:3]),
        CannotTellError("too noisy"),
    ],
)
def test_errors_survive_the_way_back_from_a_worker_process(error):
    back = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes
    assert type(back) is type(error)
    assert str(back) == str(error)
    assert vars(back) == vars(error)
