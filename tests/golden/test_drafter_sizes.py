"""Parameters of drafter heads: published counts, and usual shapes against heads that exist."""

from __future__ import annotations

import pytest

from rooflines.models.drafter_catalogue import find_drafter, list_drafter_presets
from rooflines.models.readers import read_model
from rooflines.models.standard_drafters import standard_drafter

# https://github.com/SafeAILab/EAGLE README ("EAGLE weights"), billions of parameters.
EAGLE_README = {
    ("eagle-vicuna-7b-v1.3", "vicuna-7b-v1.3"): 0.24,
    ("eagle-vicuna-13b-v1.3", "vicuna-13b-v1.3"): 0.37,
    ("eagle-llama2-7b", "llama-2-7b"): 0.24,
    ("eagle-llama2-70b", "llama-2-70b"): 0.99,
    ("eagle-mixtral-8x7b", "mixtral-8x7b-v0.1"): 0.28,
}
# Own weights, counted from the reference implementations (EAGLE cnets.py, Medusa medusa_model.py, SpecForge
# modeling/draft) at the shapes of these configs.
EXACT = {
    ("eagle3-llama3.1-8b", "eagle3", "llama-3.1-8b"): 424_689_664,
    ("eagle-vicuna-7b-v1.3", "eagle", "vicuna-7b-v1.3"): 235_937_792,
    ("medusa-vicuna-7b-v1.3", "medusa", "vicuna-7b-v1.3"): 5 * 147_853_312,
    ("qwen3-8b-dflash", "dflash", "qwen3-8b"): 1_048_626_432,
    ("qwen3-8b-dspark", "dspark", "qwen3-8b"): 1_126_422_017,
    ("qwen3-8b-eagle3", "eagle3", "qwen3-8b"): 399_523_840,
    ("qwen3-30b-a3b-eagle3", "eagle3", "qwen3-30b-a3b"): 145_235_968,
    ("ling-flash-2.0-eagle3", "eagle3", "ling-flash-2.0"): 424_689_664,  # the shape of Llama-3.1-8B's
    ("kimi-k2-eagle3", "eagle3", "kimi-k2"): 1_190_948_864,
}


@pytest.mark.parametrize(("preset", "target"), EAGLE_README)
def test_eagle_heads_have_the_sizes_of_the_readme(preset, target):
    head = find_drafter(preset, "eagle", read_model(target))
    assert round(head.parameters / 1e9, 2) == EAGLE_README[preset, target]


@pytest.mark.parametrize(("preset", "method", "target"), EXACT)
def test_heads_have_the_sizes_of_their_weights(preset, method, target):
    assert find_drafter(preset, method, read_model(target)).parameters == EXACT[preset, method, target]


@pytest.mark.parametrize(
    ("preset", "method", "target"),
    [
        ("eagle3-llama3.1-8b", "eagle3", "llama-3.1-8b"),
        ("llama3-70b-eagle3", "eagle3", "llama-3.1-70b"),
        ("qwen3-8b-eagle3", "eagle3", "qwen3-8b"),
        ("qwen3-8b-dflash", "dflash", "qwen3-8b"),
        ("qwen3-4b-dflash", "dflash", "qwen3-4b"),
        ("qwen3.5-27b-dflash", "dflash", "qwen3.5-27b"),
        ("qwen3-8b-dspark", "dspark", "qwen3-8b"),
        ("eagle-vicuna-13b-v1.3", "eagle", "vicuna-13b-v1.3"),
        ("medusa-vicuna-7b-v1.3", "medusa", "vicuna-7b-v1.3"),
    ],
)
def test_the_usual_shape_of_a_dense_target_is_that_of_its_published_head(preset, method, target):
    model = read_model(target)
    published, usual = find_drafter(preset, method, model), standard_drafter(method, model)
    assert usual.parameters == published.parameters
    assert usual.kv_bytes(1000) == published.kv_bytes(1000)
    assert (usual.draft_length, usual.block_size) == (published.draft_length, published.block_size)


@pytest.mark.parametrize(
    ("preset", "target"),
    [
        ("gpt-oss-20b-eagle3", "gpt-oss-20b"),
        ("deepseek-v3-671b-eagle3", "deepseek-v3"),
    ],
)
def test_the_usual_shape_beside_experts_is_near_the_published_head(preset, target):
    model = read_model(target)
    published, usual = find_drafter(preset, "eagle3", model), standard_drafter("eagle3", model)
    assert usual.parameters == pytest.approx(published.parameters, rel=0.05)


def test_deepseeks_module_is_what_the_usual_shape_would_be():
    """The config states one module; without it, the last layer and a projection give the same count."""
    model = read_model("deepseek-v3")
    own = standard_drafter("mtp", model)
    assert own.parameters == 11_610_067_968
    assert not own.assumed
    without = standard_drafter("mtp", model.model_copy(update={"mtp": ()}))
    assert without.parameters == own.parameters
    assert without.assumed


def test_a_block_of_16_drafts_15_and_dsparks_block_of_7_drafts_7():
    """DFlash's first position is the known token (z-lab model.py); DSpark's predicts (DeepSpec draft_ops.py)."""
    model = read_model("qwen3-8b")
    dflash, dspark = (find_drafter(f"qwen3-8b-{kind}", kind, model) for kind in ("dflash", "dspark"))
    assert (dflash.block_size, dflash.draft_length, dflash.verify_width) == (16, 15, 16)
    assert (dspark.block_size, dspark.draft_length, dspark.verify_width) == (7, 7, 8)


def test_every_preset_has_a_source_and_is_read(root):
    for name in list_drafter_presets():
        text = (root / "rooflines/models/presets/drafters" / f"{name}.json").read_text(encoding="utf-8")
        assert '"_source": "https://' in text
