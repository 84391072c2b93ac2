"""Dense feed-forward blocks, gated (three matrices) and ungated (two)."""

from __future__ import annotations

from rooflines.costs.cost import Operator
from rooflines.costs.linear import all_reduce, cut, formats_of, linear, small
from rooflines.costs.setting import Setting
from rooflines.models.spec import FeedForward, Layer


def feed_forward_operators(layer: Layer, block: FeedForward, setting: Setting) -> list[Operator | None]:
    """The kernels of one dense feed-forward block on one device."""
    tokens, hidden = setting.shape.tokens, setting.model.hidden
    matrices = [cut(matrix, setting) for matrix in block.matrices(hidden)]
    first = [matrix for matrix in matrices if matrix.name != "down"]
    last = [matrix for matrix in matrices if matrix.name == "down"]
    width = first[0].outputs
    return [
        linear(
            "gate and up projection" if block.gated else "up projection",
            first,
            formats_of(setting, layer, first),
            tokens,
            setting,
        ),
        small("activation", tokens * width * (len(first) + 1), setting, flops=5 * tokens * width),
        linear("down projection", last, formats_of(setting, layer, last), tokens, setting),
        all_reduce("feed-forward all-reduce", tokens * hidden, setting),
    ]
