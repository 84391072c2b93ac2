from __future__ import annotations

from dataclasses import replace

import pytest

from rooflines.errors import DoesNotFitError
from rooflines.studies.capacity import CapacityQuestion, ServedOption, make_capacity

H100 = ServedOption("h100-sxm5-80gb")
ASKED = CapacityQuestion(
    options=(H100,), target="llama-3.1-8b", prompt_tokens="1024", output_tokens="256", calibration="textbook"
)


def test_what_stands_in_memory_adds_up():
    drafting = replace(H100, drafters=("independent:llama-3.2-1b",))
    asked = replace(ASKED, options=(drafting,), acceptance=("0.8",), draft_length="4", max_sequences=10_000)
    plain, drafted = make_capacity(asked).memory
    # 8.03e9 weights of 2 bytes; 32 layers of 8 heads of 128, keys and values of 2 bytes, for 1,152 positions.
    assert plain["weights_bytes"] == pytest.approx(16.06e9, rel=1e-3)
    assert plain["mean_context"] == 1024 + 254 / 2
    caches = (plain["mean_context"] + 1) * 2 * 32 * 8 * 128 * 2
    assert plain["sequence_bytes"] == pytest.approx(caches + 128_256 * 4)
    for row in (plain, drafted):
        fixed = row["weights_bytes"] + row["drafter_weights_bytes"] + row["reserve_bytes"]
        left = row["capacity_bytes"] - fixed
        assert row["sequences_that_fit"] == int(left // row["sequence_bytes"]) == row["sequences_at_once"]
    assert plain["drafter_weights_bytes"] == 0
    assert drafted["drafter_weights_bytes"] == pytest.approx(2.47e9, rel=1e-2)
    assert drafted["sequence_bytes"] > plain["sequence_bytes"]


def test_engines_run_no_more_than_they_may():
    (row,) = make_capacity(replace(ASKED, max_sequences=32)).memory
    assert row["sequences_at_once"] == 32 < row["sequences_that_fit"]


def test_an_option_that_does_not_fit_leaves_the_others_their_answer():
    options = (H100, replace(H100, tensor_parallel=2))
    answer = make_capacity(replace(ASKED, target="llama-3.1-70b", options=options))
    assert [row["option"] for row in answer.rows] == ["2 x h100-sxm5-80gb"]
    assert len(answer.basis) == 1
    (note,) = answer.warnings
    assert note.startswith("1 x h100-sxm5-80gb with plain decoding does not fit: a card would hold 141 GB")
    assert "tensor parallelism 2 holds it" in note


def test_a_drafter_that_does_not_fit_leaves_plain_decoding_its_answer():
    crowded = replace(H100, drafters=("independent:llama-3.1-70b",))
    answer = make_capacity(replace(ASKED, options=(crowded,), acceptance=("0.8",)))
    assert [row["drafter"] for row in answer.rows] == ["none"]
    assert any("with independent:llama-3.1-70b does not fit" in note for note in answer.warnings)


def test_where_nothing_fits_there_is_no_answer():
    with pytest.raises(DoesNotFitError, match="tensor parallelism 16 holds it"):
        make_capacity(replace(ASKED, target="llama-3.1-405b"))


def test_a_cure_must_divide_the_heads():
    """Qwen3-14B has 40 query heads: 16 cards cannot share them."""
    with pytest.raises(DoesNotFitError) as refused:
        make_capacity(replace(ASKED, target="qwen3-14b", prompt_tokens="20000000"))
    assert "use more devices" in str(refused.value)


def test_memory_that_the_host_shares_is_marked():
    answer = make_capacity(replace(ASKED, options=(ServedOption("dgx-spark"),)))
    assert any("shares its memory with the host" in note for note in answer.warnings)
    assert not make_capacity(ASKED).warnings


def test_drafts_that_fill_a_step_limit_the_sequences():
    """A step of 256 positions holds 51 verify passes of 5 and one position of a prompt."""
    drafting = replace(H100, drafters=("independent:llama-3.2-1b",))
    asked = replace(
        ASKED,
        options=(drafting,),
        acceptance=("0.8",),
        draft_length="4",
        batched_tokens=256,
        max_sequences=100,
    )
    answer = make_capacity(asked)
    assert [row["sequences_at_once"] for row in answer.memory] == [100, 51]
    assert any("51 run at once" in note for note in answer.warnings)
    assert not make_capacity(replace(asked, batched_tokens=501)).warnings
