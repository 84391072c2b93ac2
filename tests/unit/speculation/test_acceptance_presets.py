from __future__ import annotations

import pytest

from rooflines.errors import FileFormatError, InputError, UnknownNameError
from rooflines.speculation.acceptance_presets import (
    AcceptancePreset,
    acceptance_preset,
    list_acceptance_presets,
)

PRESETS = list_acceptance_presets()
MINIMAL = {
    "name": "one",
    "target": "T",
    "drafter": "D",
    "drafter_kind": "mtp",
    "task": "chat",
    "definition": "conditional",
    "values": [[0.8]],
    "source": "https://example.org",
    "where": "Table 1",
}


def test_there_are_presets_of_every_family_that_publishes():
    assert len(PRESETS) >= 50
    kinds = {preset.drafter_kind for preset in PRESETS}
    assert kinds >= {"independent", "medusa", "eagle", "eagle3", "dflash", "dspark", "mtp", "p-eagle"}
    assert [preset.name for preset in PRESETS] == sorted(preset.name for preset in PRESETS)


@pytest.mark.parametrize("preset", PRESETS, ids=lambda preset: preset.name)
def test_each_preset_reads_and_gives_the_length_its_source_prints(preset):
    acceptance = preset.acceptance()
    length = preset.draft_length or max(preset.draft_lengths, default=1)
    tokens = acceptance.tokens_per_cycle(length)
    assert 1.0 < tokens <= length + 1
    assert not acceptance.is_extrapolated(length)
    assert preset.where
    if preset.published_tokens_per_cycle is not None:
        # Half a unit of the printed length and of each printed position.
        rounding = 0.005 + 0.0005 * length
        assert tokens == pytest.approx(preset.published_tokens_per_cycle, abs=rounding)


def test_published_lengths_are_checked_for_many():
    assert sum(preset.published_tokens_per_cycle is not None for preset in PRESETS) >= 20


def test_medusa_presets_have_branches_and_others_say_that_they_have_none():
    assert len(acceptance_preset("medusa-vicuna-13b").branches().rates) == 5
    for name in ("mtp-deepseek-v3-low", "eagle-vicuna-13b-mt-bench-t0"):
        with pytest.raises(InputError, match="guesses"):
            acceptance_preset(name).branches()


def test_unknown_names_come_with_near_matches():
    with pytest.raises(UnknownNameError, match="did you mean 'medusa-vicuna-7b'"):
        acceptance_preset("medusa-vicuna-7")


@pytest.mark.parametrize(
    "change",
    [
        {"source": "a talk"},
        {"name": "Upper Case"},
        {"values": [["high"]]},
        {"unknown": 1},
        {"basis": "remembered"},
    ],
)
def test_a_preset_without_a_source_or_with_wrong_fields_is_refused(change):
    assert AcceptancePreset.read(MINIMAL, where="here").acceptance().tokens_per_cycle(1) == pytest.approx(1.8)
    with pytest.raises(FileFormatError, match="here"):
        AcceptancePreset.read({**MINIMAL, **change}, where="here")
