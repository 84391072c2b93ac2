"""What engines mean by their words, each off-by-one held apart."""

from __future__ import annotations

import pytest

from rooflines.engines.catalogue import ENGINES, engine
from rooflines.engines.sglang import accept_rate_meaning
from rooflines.errors import InputError, UnknownNameError
from rooflines.speculation.definitions import DEFINITIONS
from rooflines.speculation.drafters.registry import KINDS


@pytest.mark.parametrize(
    ("name", "family", "draft_length", "setting"),
    [
        # vLLM: max_query_tokens = batch x (1 + num_speculative_tokens) (v1/spec_decode/dflash.py, 0.33.0).
        ("vllm", "eagle3", 3, 3),
        ("vllm", "dflash", 15, 15),
        ("vllm", "dspark", 7, 7),
        # SGLang: num_draft_tokens = num_steps + 1 for a chain (arg_groups/speculative_hook.py, 0.5.23).
        ("sglang", "eagle3", 3, 4),
        ("sglang", "independent", 5, 6),
        ("sglang", "mtp", 1, 2),
        # DFlash block 16 = the anchor and 15 drafted; DSpark's gamma is the block itself.
        ("sglang", "dflash", 15, 16),
        ("sglang", "dspark", 7, 7),
        # TensorRT-LLM: max_draft_len drafted tokens, tokens per step one more (PR 12262).
        ("trtllm", "eagle3", 3, 3),
        # llama.cpp: n_max drafted tokens, the target evaluates [id_last, draft...].
        ("llamacpp", "independent", 8, 8),
        ("llamacpp", "dflash", 15, 15),
        ("transformers", "independent", 5, 5),
    ],
)
def test_settings_count_drafts_or_drafts_and_the_anchor(name, family, draft_length, setting):
    method = engine(name).method(family)
    assert method.setting_value(draft_length) == setting
    assert method.draft_length(setting) == draft_length


def test_a_setting_that_drafts_nothing_is_refused():
    with pytest.raises(InputError, match="give 2 or more"):
        engine("sglang").method("eagle3").draft_length(1)
    with pytest.raises(InputError, match="give 1 or more"):
        engine("vllm").method("eagle3").draft_length(0)


def test_words_name_definitions_that_exist_and_their_sources():
    known = {definition.name for definition in DEFINITIONS}
    words = [word for one in ENGINES.values() for word in one.words]
    assert len(words) >= 20
    assert {word.definition for word in words} - {""} <= known
    assert all(word.source and word.meaning for word in words)


def test_families_are_those_that_can_be_planned():
    assert {family for one in ENGINES.values() for family in one.methods} <= set(KINDS)


def test_unknown_engines_and_families_are_refused_with_what_is_known():
    with pytest.raises(UnknownNameError, match="vllm"):
        engine("vlm")
    with pytest.raises(InputError, match="no setting for drafters of kind 'medusa'"):
        engine("vllm").method("medusa")


@pytest.mark.parametrize("width", range(2, 17))
@pytest.mark.parametrize("accepted_share", [0.13, 0.37, 0.5, 0.81])
def test_either_meaning_of_accept_rate_is_told_from_the_printed_numbers(width, accepted_share):
    tau = 1 + accepted_share * (width - 1)
    newer, older = (tau - 1) / (width - 1), tau / width
    assert accept_rate_meaning(round(tau, 2), round(newer, 2), width) == "accepted-per-drafted"
    if abs(older - newer) > 0.03:
        assert accept_rate_meaning(round(tau, 2), round(older, 2), width) == "tau-per-width"


def test_numbers_that_fit_neither_meaning_are_refused_with_both():
    with pytest.raises(InputError, match=r"newer SGLang would print 0\.50, older 0\.62"):
        accept_rate_meaning(2.5, 0.9, 4)
    with pytest.raises(InputError, match="2 or more"):
        accept_rate_meaning(1.0, 0.0, 1)
