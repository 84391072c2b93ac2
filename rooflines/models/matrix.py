"""A weight matrix, and a constant state: what layers are made of."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Matrix:
    """A weight of shape [outputs, inputs], `copies` times (experts), with an optional bias.

    Attributes:
        name: role, e.g. ``query``, ``down``, ``router``; unique within a layer.
        inputs: columns (elements).
        outputs: rows (elements).
        bias: whether a bias of `outputs` elements is added.
        copies: how many such matrices exist (experts).
        copies_per_token: how many of them one token uses; None for all.
    """

    name: str
    inputs: int
    outputs: int
    bias: bool = False
    copies: int = 1
    copies_per_token: int | None = None

    @property
    def elements(self) -> int:
        """Weights without biases."""
        return self.copies * self.inputs * self.outputs

    @property
    def parameters(self) -> int:
        """Weights with biases."""
        return self.copies * self._one

    @property
    def parameters_active(self) -> int:
        """Weights with biases that one token uses."""
        return (self.copies if self.copies_per_token is None else self.copies_per_token) * self._one

    @property
    def _one(self) -> int:
        return self.inputs * self.outputs + (self.outputs if self.bias else 0)


@dataclass(frozen=True, slots=True)
class State:
    """What a recurrent block keeps per sequence, whatever the context.

    Attributes:
        name: ``recurrent`` or ``convolution``.
        elements: numbers kept per sequence.
        dtype: format they are kept in; None for that of the activations.
    """

    name: str
    elements: int
    dtype: str | None = None
