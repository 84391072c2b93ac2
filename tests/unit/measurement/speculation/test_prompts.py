from __future__ import annotations

import numpy as np
import pytest

from rooflines.errors import InputError, UnknownNameError
from rooflines.measurement.speculation.prompts import choose_prompts, shipped_prompts


def test_several_prompts_of_each_kind_are_shipped():
    kinds = [prompt.kind for prompt in shipped_prompts()]
    assert {kind: kinds.count(kind) >= 2 for kind in set(kinds)} == {
        "chat": True,
        "copying": True,
        "code": True,
    }


def test_a_kind_stands_for_its_prompts():
    chosen = choose_prompts(["copying", "chat-bread"])
    assert [prompt.kind for prompt in chosen] == ["copying"] * 3 + ["chat"]
    assert [prompt.name for prompt in choose_prompts(["chat", "code"], per_kind=1)] == [
        "chat-tides",
        "code-stack",
    ]


def test_a_prompt_named_twice_is_taken_once():
    assert len(choose_prompts(["chat-bread", "chat", "chat-bread"])) == 3


def test_random_tokens_need_no_words():
    (prompt,) = choose_prompts(["random:9"])
    tokens = prompt.random_tokens(100, seed=4)
    assert tokens.shape == (9,)
    assert (tokens < 100).all()
    assert (tokens[5:] == tokens[:4]).all()
    assert (tokens == prompt.random_tokens(100, seed=4)).all()
    assert not np.array_equal(tokens, prompt.random_tokens(100, seed=5))


def test_unknown_prompts_are_refused():
    with pytest.raises(UnknownNameError, match="did you mean 'copying'"):
        choose_prompts(["copyin"])
    with pytest.raises(InputError, match="2 tokens or more"):
        choose_prompts(["random:1"])
    with pytest.raises(InputError, match="no prompt is named"):
        choose_prompts([])
