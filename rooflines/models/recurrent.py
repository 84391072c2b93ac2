"""Blocks that keep a constant state instead of a growing cache.

A convolution over c positions needs the last c - 1 inputs (transformers allocates c columns).
"""

from __future__ import annotations

from typing import Literal, Self

from pydantic import PositiveInt, model_validator

from rooflines.facts import Fact
from rooflines.models.matrix import Matrix, State


class Recurrent(Fact):
    """What all such blocks share: nothing is cached per position."""

    @property
    def kv_elements_per_position(self) -> int:
        """Nothing grows with the context."""
        return 0

    def cached_positions(self, context: int) -> int:  # noqa: ARG002  # same interface as attention
        """No position is kept."""
        return 0

    def kv_elements(self, context: int) -> int:  # noqa: ARG002  # same interface as attention
        """Nothing is cached."""
        return 0


class GatedDeltaNet(Recurrent):
    """Gated delta rule (arXiv 2412.06464) as in Qwen3-Next and Qwen3.5.

    Attributes:
        key_heads: H_k, of queries and keys.
        value_heads: H_v; a multiple of H_k.
        key_head_size: d_k.
        value_head_size: d_v.
        convolution: c, taps of the causal convolution over q, k and v.
        state_dtype: format of the recurrent state.
    """

    kind: Literal["gated_delta_net"] = "gated_delta_net"
    key_heads: PositiveInt
    value_heads: PositiveInt
    key_head_size: PositiveInt
    value_head_size: PositiveInt
    convolution: PositiveInt
    state_dtype: str = "fp32"

    @model_validator(mode="after")
    def _heads_divide(self) -> Self:
        if self.value_heads % self.key_heads:
            raise ValueError(f"{self.key_heads} key heads do not divide {self.value_heads} value heads")
        return self

    @property
    def channels(self) -> int:
        """Width of q, k and v together: 2 H_k d_k + H_v d_v."""
        return 2 * self.key_heads * self.key_head_size + self.value_width

    @property
    def value_width(self) -> int:
        """H_v d_v."""
        return self.value_heads * self.value_head_size

    def matrices(self, hidden: int) -> tuple[Matrix, ...]:
        """Projections to q, k, v, to the output gate z, to beta and to the decay, and back to h."""
        return (
            Matrix("delta_qkv", hidden, self.channels),
            Matrix("delta_gate", hidden, self.value_width),
            Matrix("delta_beta", hidden, self.value_heads),
            Matrix("delta_decay", hidden, self.value_heads),
            Matrix("output", self.value_width, hidden),
        )

    @property
    def vector_parameters(self) -> int:
        """Convolution taps, A and dt bias a head, output norm."""
        return self.channels * self.convolution + 2 * self.value_heads + self.value_head_size

    @property
    def states(self) -> tuple[State, ...]:
        """H_v d_k d_v, and the last c - 1 inputs of the convolution."""
        return (
            State("recurrent", self.value_width * self.key_head_size, self.state_dtype),
            State("convolution", self.channels * (self.convolution - 1)),
        )


class KimiDeltaAttention(Recurrent):
    """Kimi delta attention (Kimi Linear, arXiv 2510.26692): a decay for every channel, low-rank gates.

    Attributes:
        heads: H, of queries, keys and values.
        head_size: d.
        convolution: c, taps of the three causal convolutions.
        full_rank_gate: the output gate is one h x H d matrix rather than two of rank d.
        state_dtype: format of the recurrent state.
    """

    kind: Literal["kimi_delta"] = "kimi_delta"
    heads: PositiveInt
    head_size: PositiveInt
    convolution: PositiveInt
    full_rank_gate: bool = False
    state_dtype: str = "fp32"

    @property
    def width(self) -> int:
        """H d."""
        return self.heads * self.head_size

    def matrices(self, hidden: int) -> tuple[Matrix, ...]:
        """Projections to q, k, v, decay, beta and gate, and back to h."""
        gate = (
            (Matrix("delta_gate", hidden, self.width),)
            if self.full_rank_gate
            else (
                Matrix("delta_gate_down", hidden, self.head_size),
                Matrix("delta_gate_up", self.head_size, self.width),
            )
        )
        return (
            Matrix("delta_query", hidden, self.width),
            Matrix("delta_key", hidden, self.width),
            Matrix("delta_value", hidden, self.width),
            Matrix("delta_decay_down", hidden, self.head_size),
            Matrix("delta_decay_up", self.head_size, self.width),
            Matrix("delta_beta", hidden, self.heads),
            *gate,
            Matrix("output", self.width, hidden),
        )

    @property
    def vector_parameters(self) -> int:
        """Convolution taps, A a head, dt bias a channel, output norm."""
        return 3 * self.width * self.convolution + self.heads + self.width + self.head_size

    @property
    def states(self) -> tuple[State, ...]:
        """H d d, and the last c - 1 inputs of the convolutions."""
        return (
            State("recurrent", self.width * self.head_size, self.state_dtype),
            State("convolution", 3 * self.width * (self.convolution - 1)),
        )


class Mamba(Recurrent):
    """Selective state space (Mamba, arXiv 2312.00752).

    Attributes:
        inner: d_i, expanded width.
        state_size: N.
        time_rank: rank of the step-size projection.
        convolution: c, taps of the causal convolution.
        convolution_bias: bias of the convolution.
        bias: biases on the projections in and out.
        inner_norms: norms of step size, B and C (Jamba).
        state_dtype: format of the recurrent state; None for that of the activations.
    """

    kind: Literal["mamba"] = "mamba"
    inner: PositiveInt
    state_size: PositiveInt
    time_rank: PositiveInt
    convolution: PositiveInt
    convolution_bias: bool
    bias: bool
    inner_norms: bool = False
    state_dtype: str | None = None

    def matrices(self, hidden: int) -> tuple[Matrix, ...]:
        """In (x and z), x to (step, B, C), step size up, out."""
        return (
            Matrix("mamba_in", hidden, 2 * self.inner, self.bias),
            Matrix("mamba_x", self.inner, self.time_rank + 2 * self.state_size),
            Matrix("mamba_step", self.time_rank, self.inner, bias=True),
            Matrix("mamba_out", self.inner, hidden, self.bias),
        )

    @property
    def vector_parameters(self) -> int:
        """A, D, convolution taps and bias, and Jamba's inner norms."""
        norms = self.time_rank + 2 * self.state_size if self.inner_norms else 0
        taps = self.inner * (self.convolution + self.convolution_bias)
        return self.inner * self.state_size + self.inner + taps + norms

    @property
    def states(self) -> tuple[State, ...]:
        """d_i N, and the last c - 1 inputs of the convolution."""
        return (
            State("recurrent", self.inner * self.state_size, self.state_dtype),
            State("convolution", self.inner * (self.convolution - 1)),
        )


class Mamba2(Recurrent):
    """State space duality (Mamba-2, arXiv 2405.21060), as in Nemotron-H.

    Attributes:
        heads: n_h.
        head_size: d_h; the expanded width is d_i = n_h d_h.
        groups: G, of B and C.
        state_size: N.
        convolution: c, taps of the causal convolution over x, B and C.
        convolution_bias: bias of the convolution.
        bias: biases on the projections in and out.
        state_dtype: format of the recurrent state; None for that of the activations.
    """

    kind: Literal["mamba2"] = "mamba2"
    heads: PositiveInt
    head_size: PositiveInt
    groups: PositiveInt
    state_size: PositiveInt
    convolution: PositiveInt
    convolution_bias: bool
    bias: bool
    state_dtype: str | None = None

    @property
    def inner(self) -> int:
        """d_i = n_h d_h."""
        return self.heads * self.head_size

    @property
    def channels(self) -> int:
        """Width of x, B and C together: d_i + 2 G N."""
        return self.inner + 2 * self.groups * self.state_size

    def matrices(self, hidden: int) -> tuple[Matrix, ...]:
        """In (z, x, B, C, step) and out."""
        return (
            Matrix("mamba_in", hidden, self.inner + self.channels + self.heads, self.bias),
            Matrix("mamba_out", self.inner, hidden, self.bias),
        )

    @property
    def vector_parameters(self) -> int:
        """Convolution taps and bias; A, D and dt bias a head; gated norm."""
        return self.channels * (self.convolution + self.convolution_bias) + 3 * self.heads + self.inner

    @property
    def states(self) -> tuple[State, ...]:
        """n_h d_h N, and the last c - 1 inputs of the convolution."""
        return (
            State("recurrent", self.inner * self.state_size, self.state_dtype),
            State("convolution", self.channels * (self.convolution - 1)),
        )
