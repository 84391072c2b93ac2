"""Matrices of linear layers as torch multiplies with them: in the model's dtype, or in 4-bit integers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from rooflines.errors import InputError

# What torch's 4-bit kernels accept (aten/src/ATen/native/LinearAlgebra.cpp, _weight_int4pack_mm_cpu).
GROUP_SIZES = (32, 64, 128, 256)
_LEVELS = 15  # 4 bits: 0 .. 15, with 8 as the kernels' zero
_ZERO = 8
# Tiles of 16 inputs that torch's CUDA kernel packs together; the CPU kernel ignores them.
_INNER_TILES = (8, 4, 2)
_TILE_INPUTS = 16


class Matrix(Protocol):
    """What a linear layer does."""

    def __call__(self, x: Tensor) -> Tensor:
        """Multiply activations, shape [..., inputs], to [..., outputs]."""


@dataclass(frozen=True, slots=True)
class DenseMatrix:
    """A matrix in the dtype of the arithmetic.

    Attributes:
        weight: shape [outputs, inputs].
        bias: shape [outputs], or none.
    """

    weight: Tensor
    bias: Tensor | None = None

    def __call__(self, x: Tensor) -> Tensor:
        """Multiply."""
        return torch.nn.functional.linear(x, self.weight, self.bias)


@dataclass(frozen=True, slots=True)
class Int4Matrix:
    """A matrix of unsigned 4-bit integers, with a scale and a zero point for each group of inputs.

    Attributes:
        packed: as torch's kernel of the device wants it.
        scales_and_zeros: shape [inputs / group, outputs, 2].
        group_size: inputs that share a scale.
        bias: shape [outputs], or none.
    """

    packed: Tensor
    scales_and_zeros: Tensor
    group_size: int
    bias: Tensor | None = None

    def __call__(self, x: Tensor) -> Tensor:
        """Multiply."""
        rows = x.reshape(-1, x.shape[-1])
        if x.is_cuda:
            product = torch.ops.aten._weight_int4pack_mm(  # noqa: SLF001 - torch has no public name for it
                rows, self.packed, self.group_size, self.scales_and_zeros
            )
        else:
            product = torch.ops.aten._weight_int4pack_mm_for_cpu(  # noqa: SLF001 - likewise
                rows, self.packed, self.group_size, self.scales_and_zeros
            )
        product = product.view(*x.shape[:-1], -1)
        return product if self.bias is None else product + self.bias


def quantised(matrix: DenseMatrix, group_size: int) -> Int4Matrix:
    """Round a matrix to 4 bits, asymmetric, group by group of inputs.

    The kernels read level q of a group as ``(q - 8) * scale + zero``; here zero is the middle of the group's
    range, so that the range is used in full.

    Raises:
        InputError: a group size that torch's kernels lack, or that does not divide the inputs; on a GPU,
            another dtype than bf16.
    """
    levels, scales, zeros = group_levels(matrix.weight, group_size)
    pairs = torch.stack([scales, zeros], dim=-1).transpose(0, 1).contiguous().to(matrix.weight.dtype)
    if matrix.weight.is_cuda:
        if matrix.weight.dtype != torch.bfloat16:
            raise InputError(
                "torch's 4-bit kernel for GPUs multiplies bf16 only: use bf16, or time no int4 copy"
            )
        halves = (levels[:, ::2] << 4 | levels[:, 1::2]).to(torch.uint8)
        packed = torch.ops.aten._convert_weight_to_int4pack(halves, _inner_tiles(halves.shape[1] * 2))  # noqa: SLF001 - no public name
    else:
        packed = torch.ops.aten._convert_weight_to_int4pack_for_cpu(levels, _INNER_TILES[0])  # noqa: SLF001 - likewise
    return Int4Matrix(packed, pairs, group_size, matrix.bias)


def _inner_tiles(inputs: int) -> int:
    """The most tiles that divide the inputs; two always do, since groups are of 32 or more."""
    return next(tiles for tiles in _INNER_TILES if inputs % (tiles * _TILE_INPUTS) == 0)


def group_levels(weight: Tensor, group_size: int) -> tuple[Tensor, Tensor, Tensor]:
    """The integers nearest to a matrix and what turns them back.

    Args:
        weight: shape [outputs, inputs].
        group_size: inputs that share a scale.

    Returns:
        Levels 0 .. 15, shape [outputs, inputs]; scales and zeros, each of shape [outputs, inputs / group].

    Raises:
        InputError: as of `quantised`.
    """
    outputs, inputs = weight.shape
    if group_size not in GROUP_SIZES or inputs % group_size:
        fitting = [str(size) for size in GROUP_SIZES if inputs % size == 0]
        raise InputError(
            f"groups of {group_size} do not fit a matrix of {inputs} inputs: "
            + (f"use {' or '.join(fitting)}" if fitting else "torch's 4-bit kernels cannot take it")
        )
    groups = weight.float().view(outputs, inputs // group_size, group_size)
    low, high = groups.amin(-1), groups.amax(-1)
    scales = ((high - low) / _LEVELS).clamp_min(1e-8)
    levels = ((groups - low[..., None]) / scales[..., None]).round().clamp(0, _LEVELS)
    return levels.view(outputs, inputs).to(torch.int32), scales, low + _ZERO * scales
