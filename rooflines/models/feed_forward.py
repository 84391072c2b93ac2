"""What transforms each position by itself: a dense feed-forward or a mixture of experts."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import NonNegativeInt, PositiveInt, model_validator

from rooflines.facts import Fact
from rooflines.models.matrix import Matrix


class FeedForward(Fact):
    """Two matrices around an activation, or three when `gated` (SwiGLU, GeGLU).

    Attributes:
        width: f.
        gated: three matrices instead of two.
        bias: biases on all of them.
    """

    kind: Literal["dense"] = "dense"
    width: PositiveInt
    gated: bool
    bias: bool = False

    def matrices(self, hidden: int) -> tuple[Matrix, ...]:
        """Gate (when gated), up and down projections."""
        gate = (Matrix("gate", hidden, self.width, self.bias),) if self.gated else ()
        return (
            *gate,
            Matrix("up", hidden, self.width, self.bias),
            Matrix("down", self.width, hidden, self.bias),
        )

    def vector_parameters(self, hidden: int) -> int:  # noqa: ARG002  # same interface as experts
        """None."""
        return 0

    @property
    def buffers(self) -> int:
        """Numbers in a checkpoint that are no parameters: none."""
        return 0


class MixtureOfExperts(Fact):
    """E experts of which each token uses k, and shared experts that all use.

    Attributes:
        experts: E.
        experts_per_token: k.
        width: f_e of one expert.
        gated: three matrices an expert instead of two.
        bias: biases on the experts' matrices (gpt-oss).
        shared_width: f_s of all shared experts together; 0 for none.
        shared_gate: a sigmoid gate of one number on the shared experts (Qwen).
        router_bias: bias of the router, a parameter (gpt-oss).
        correction_bias: E numbers that only steer the choice of experts: a buffer, no parameter
            (DeepSeek-V3).
        latent: width that routed experts work in, reached by two projections (Nemotron-3); None for h.
        latent_norm: norm of that latent.
        router_scales: learned scales: one per hidden channel and one per expert (Gemma-4).
    """

    kind: Literal["moe"] = "moe"
    experts: PositiveInt
    experts_per_token: PositiveInt
    width: PositiveInt
    gated: bool
    bias: bool = False
    shared_width: NonNegativeInt = 0
    shared_gate: bool = False
    router_bias: bool = False
    correction_bias: bool = False
    latent: PositiveInt | None = None
    latent_norm: bool = False
    router_scales: bool = False

    @model_validator(mode="after")
    def _enough_experts(self) -> Self:
        if self.experts_per_token > self.experts:
            raise ValueError(f"{self.experts_per_token} experts a token, but only {self.experts} experts")
        return self

    def matrices(self, hidden: int) -> tuple[Matrix, ...]:
        """Router, experts (each matrix E times), shared experts, latent projections."""
        inner = self.latent or hidden
        found = [Matrix("router", hidden, self.experts, self.router_bias)]
        if self.latent:
            found += [Matrix("latent_in", hidden, self.latent), Matrix("latent_out", self.latent, hidden)]
        names = ("gate", "up") if self.gated else ("up",)
        e, k = self.experts, self.experts_per_token
        found += [Matrix(f"expert_{name}", inner, self.width, self.bias, e, k) for name in names]
        found.append(Matrix("expert_down", self.width, inner, self.bias, e, k))
        if self.shared_width:
            found += [Matrix(f"shared_{name}", hidden, self.shared_width) for name in names]
            found.append(Matrix("shared_down", self.shared_width, hidden))
            if self.shared_gate:
                found.append(Matrix("shared_expert_gate", hidden, 1))
        return tuple(found)

    def vector_parameters(self, hidden: int) -> int:
        """Scales of the router and norm of the latent."""
        scales = hidden + self.experts if self.router_scales else 0
        return scales + (self.latent or 0 if self.latent_norm else 0)

    @property
    def buffers(self) -> int:
        """Numbers in a checkpoint that are no parameters: the correction bias."""
        return self.experts if self.correction_bias else 0
