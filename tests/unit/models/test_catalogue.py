"""Names of models: releases of one shape, formats in a name, and what an engine loads."""

from __future__ import annotations

import pytest

from rooflines.errors import UnknownNameError
from rooflines.models.catalogue import Checkpoint, checkpoint, list_presets, resolve_preset


@pytest.mark.parametrize(
    ("typed", "preset"),
    [
        ("deepseek-ai/DeepSeek-V3-0324", "deepseek-v3"),
        ("deepseek-ai/DeepSeek-R1-0528", "deepseek-r1"),
        ("Qwen/Qwen3-30B-A3B-Instruct-2507", "qwen3-30b-a3b"),
        ("moonshotai/Kimi-K2-Instruct-0905", "kimi-k2"),
    ],
)
def test_releases_share_a_shape(typed, preset):
    assert resolve_preset(typed) == preset


def test_a_version_that_is_no_release_is_refused():
    for typed in ("deepseek-v3-0101", "deepseek-v3-03240"):
        with pytest.raises(UnknownNameError, match="unknown model"):
            resolve_preset(typed)


@pytest.mark.parametrize(
    ("typed", "preset", "dtype"),
    [
        ("Qwen/Qwen3-30B-A3B-FP8", "qwen3-30b-a3b", "fp8"),
        ("nvidia/DeepSeek-R1-0528-FP4", "deepseek-r1", "nvfp4"),
        ("Qwen/Qwen3-8B-AWQ", "qwen3-8b", "int4-g128"),
    ],
)
def test_a_format_in_a_name_is_asked_for_apart(typed, preset, dtype):
    with pytest.raises(UnknownNameError) as refused:
        resolve_preset(typed)
    assert str(refused.value).endswith(
        f"(for its shape and format ask for {preset} and --weight-dtype {dtype})"
    )


def test_an_unknown_shape_in_a_format_gets_no_such_advice():
    with pytest.raises(UnknownNameError) as refused:
        resolve_preset("nobody/nothing-FP8")
    assert "--weight-dtype" not in str(refused.value)


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("llama-3.1-70b", Checkpoint("meta-llama/Llama-3.1-70B")),
        (
            "llama-3.1-70b-instruct",
            Checkpoint("meta-llama/Llama-3.1-70B-Instruct", "meta-llama/Llama-3.1-70B"),
        ),
        ("llama-3.3-70b-instruct", Checkpoint("meta-llama/Llama-3.3-70B-Instruct")),
        ("DeepSeek-V3-0324", Checkpoint("deepseek-ai/DeepSeek-V3-0324", "deepseek-ai/DeepSeek-V3")),
        (
            "qwen3-30b-a3b",
            Checkpoint("Qwen/Qwen3-30B-A3B-Instruct-2507", "Qwen/Qwen3-30B-A3B-Instruct-2507"),
        ),
        ("mine/Llama-3.1-8B-tuned", Checkpoint("mine/Llama-3.1-8B-tuned")),
        ("eagle3-llama3.1-8b", None),
    ],
)
def test_what_was_typed_is_loaded_or_what_stands_for_it_is_said(typed, found):
    assert checkpoint(typed) == found


def test_every_preset_has_a_repository_to_load():
    assert all("/" in checkpoint(name).name for name in list_presets())
