from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

marimo = pytest.importorskip("marimo", reason="needs the extra [explore]")

from rooflines.costs.routing import DEFAULT_ROUTING  # noqa: E402 - after the skip
from rooflines.errors import InputError, RooflinesError  # noqa: E402 - likewise
from rooflines.explorer.choices import Choices, from_address, to_address  # noqa: E402 - likewise
from rooflines.explorer.controls import (  # noqa: E402 - likewise
    AS_TYPED,
    CONSTANT,
    KEPT,
    acceptance_text,
    drafted,
    drafter_options,
    drafting_controls,
    expert_options,
    keep_address,
    read_address,
    served,
    serving_controls,
    split_acceptance,
)
from rooflines.models.catalogue import load_preset  # noqa: E402 - likewise

CONFIG = json.dumps(load_preset("llama-3.1-8b"))
ODD = Choices(
    hardware=("h200-sxm-141gb", "a100-sxm4-80gb"),
    target="qwen3-8b",
    drafters=("ngram", "eagle3:depth=6,topk=10,nodes=59"),
    acceptance=("ngram=0.3", "eagle3=0.7"),
    draft_length=20,
    verify_length=18,
    batch=3,
    context=3000,
    tensor_parallel=3,
    weight_dtype="fp8",
    kv_dtype="int8",
    calibration="textbook",
    cycle_overhead="100 us",
)


class Parameters(dict):
    """The parameters of an address, as marimo gives them."""

    def to_dict(self):
        return dict(self)

    def set(self, key, value):
        self[key] = value

    def remove(self, key):
        del self[key]


EXPERTS = Choices(
    target="gpt-oss-20b",
    drafters=("ngram",),
    acceptance=("0.4",),
    tensor_parallel=2,
    expert_parallel=8,
    routing="powerlaw:1.2",
)


@pytest.mark.parametrize("first", [Choices(), ODD, EXPERTS])
def test_controls_start_as_the_address_says(first):
    serving = serving_controls(first)
    drafting = drafting_controls(drafter_options(first), first, expert_options(first))
    assert drafted(served(first, serving.value), drafting.value) == first


def test_drafters_are_those_that_the_target_can_have():
    assert "eagle3:eagle3-llama3.1-8b" in drafter_options(
        replace(Choices(), target="llama-3.1-8b", tensor_parallel=1)
    )
    assert drafter_options(Choices(tensor_parallel=7)) == ()


def test_experts_are_asked_about_where_there_are_any():
    assert expert_options(Choices()) == ()
    assert expert_options(Choices(target="unheard-of")) == ()
    assert expert_options(EXPERTS) == (1, 2, 4, 8, 16, 32)  # 32 experts
    assert expert_options(replace(EXPERTS, tensor_parallel=3)) == (1,)
    dense = drafting_controls((), Choices())
    assert "expert_parallel" not in dense.value
    assert drafted(EXPERTS, dense.value).expert_parallel == 1
    assert drafted(EXPERTS, dense.value).routing == DEFAULT_ROUTING


def test_drafters_stay_where_experts_cannot_be_spread():
    assert drafter_options(replace(EXPERTS, expert_parallel=3)) == drafter_options(EXPERTS) != ()


def values(**changes):
    return {**serving_controls(Choices()).value, **changes}


def test_an_upload_takes_the_place_of_the_preset():
    file = SimpleNamespace(name="folder/my model.json", contents=CONFIG.encode("utf-8-sig"))
    found = served(Choices(), values(upload=[file]))
    assert (found.target, json.loads(found.config)) == ("my model", json.loads(CONFIG))


def test_a_model_out_of_the_address_goes_when_a_preset_is_chosen():
    first = Choices(target="mine", config=CONFIG)
    assert serving_controls(first).value["target"] == "mine"
    assert served(first, values(target="mine")).config == CONFIG
    assert served(first, values(target="qwen3-8b")).config == ""


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"{}", b'{"model_type": "resnet"}'])
def test_a_file_that_is_not_what_it_claims_is_refused(content):
    with pytest.raises(RooflinesError):
        served(Choices(), values(upload=[SimpleNamespace(name="config.json", contents=content)]))


def test_without_a_device_there_is_nothing_to_answer():
    with pytest.raises(InputError, match="device"):
        served(Choices(), values(hardware=[]))


def test_formats_are_kept_unless_chosen():
    assert served(Choices(weight_dtype="fp8"), values(weight_dtype=KEPT)).weight_dtype == ""


@pytest.mark.parametrize(
    ("definition", "alpha", "pasted", "texts"),
    [
        (CONSTANT, 0.75, "ignored", ("0.75",)),
        ("conditional", 0.5, "0.8, 0.75,0.7", ("conditional:0.8,0.75,0.7",)),
        ("conditional", 0.5, "0.8 0.75\n0.7", ("conditional:0.8,0.75,0.7",)),
        ("accepted-length", 0.5, "3.1@5", ("accepted-length:3.1@5",)),
        (AS_TYPED, 0.5, "ngram=0.3\n\n eagle3=0.7 ", ("ngram=0.3", "eagle3=0.7")),
    ],
)
def test_acceptance_is_written_as_on_the_command_line(definition, alpha, pasted, texts):
    assert acceptance_text(definition, alpha, pasted) == texts


@given(
    st.lists(
        st.sampled_from(["0.5", "1", "conditional:0.8,0.7", "ngram=0.3", "preset:x", "2"]),
        min_size=1,
        max_size=3,
    )
)
def test_what_was_written_is_split_and_written_again(texts):
    assert acceptance_text(*split_acceptance(texts)) == tuple(texts)


def test_the_address_follows_the_choices():
    address = Parameters(batch="8", context="4096", kv_dtype=["int8", "fp8"])
    assert read_address(address)["kv_dtype"] == "fp8"
    keep_address(address, Choices(batch=16))
    assert address == {"batch": "16"}
    keep_address(address, ODD)
    assert from_address(read_address(address)) == (ODD, [])
    assert address == to_address(ODD)
