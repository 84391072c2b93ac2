"""Configs of the random-weight models that gpu.sh times: whole layers of known models, fewer of them."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from rooflines.models.catalogue import load_preset

# Layers are equal, so a few tell what all cost; the 8B model is whole, since speculation is timed on it.
ATTENTION_LAYERS = 8
MOE_LAYERS = 2


def attention(kv_heads: int) -> dict[str, Any]:
    """Llama-3.1-8B's attention with another number of key-value heads, and next to no feed-forward part."""
    config = load_preset("llama-3.1-8b")
    return {
        **config,
        "num_key_value_heads": kv_heads,
        "num_hidden_layers": ATTENTION_LAYERS,
        "intermediate_size": 256,
    }


def configs() -> dict[str, dict[str, Any]]:
    """What a GPU is measured with, by file name."""
    return {
        "dense": load_preset("llama-3.1-8b"),
        "moe": {**load_preset("mixtral-8x7b-v0.1"), "num_hidden_layers": MOE_LAYERS},
        "drafter": load_preset("smollm2-135m"),
        **{f"attention-g{32 // kv_heads}": attention(kv_heads) for kv_heads in (32, 8, 4)},
    }


def small(config: dict[str, Any]) -> dict[str, Any]:
    """The same kind of model in a size that a CPU core times in seconds."""
    heads = 8
    group = config["num_attention_heads"] // config["num_key_value_heads"]
    return {
        **config,
        "hidden_size": 256,
        "head_dim": 32,
        "intermediate_size": 256,
        "num_hidden_layers": 2,
        "num_attention_heads": heads,
        "num_key_value_heads": max(heads // group, 1),
        "vocab_size": 1024,
    }


def main() -> None:
    """Write the configs into a folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--small", action="store_true", help="sizes for a CPU")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    for name, config in configs().items():
        text = json.dumps(small(config) if given.small else config, indent=2)
        (given.folder / f"{name}.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
