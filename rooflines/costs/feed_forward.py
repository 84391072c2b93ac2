"""Dense feed-forward blocks, gated (three matrices) and ungated (two)."""

from __future__ import annotations

from collections.abc import Sequence

from rooflines.costs.cost import Operator
from rooflines.costs.linear import all_reduce, layer_linear, small
from rooflines.costs.setting import Setting
from rooflines.models.spec import FeedForward, Layer, Matrix


def feed_forward_operators(layer: Layer, block: FeedForward, setting: Setting) -> list[Operator | None]:
    """The kernels of one dense feed-forward block on one device."""
    return [
        *up_and_down("", layer, block.matrices(setting.model.hidden), setting),
        all_reduce("feed-forward all-reduce", setting.shape.tokens * setting.model.hidden, setting),
    ]


def up_and_down(prefix: str, layer: Layer, matrices: Sequence[Matrix], setting: Setting) -> list[Operator]:
    """Gate and up fused, the activation, and down; `matrices` in this order."""
    *first, last = matrices
    tokens, width = setting.shape.tokens, last.inputs
    name = "gate and up projection" if len(first) > 1 else "up projection"
    return [
        layer_linear(prefix + name, layer, first, tokens, setting),
        small(prefix + "activation", tokens * width * (len(first) + 1), setting, flops=5 * tokens * width),
        layer_linear(prefix + "down projection", layer, [last], tokens, setting),
    ]
