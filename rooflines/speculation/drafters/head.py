"""A drafter head beside its target: its passes, priced like any model's, and what it keeps in memory.

A head is priced as the small model that it is: the target's embedding, its own layers, and a head over the
vocabulary, its own or the target's. Each pass is one launch of the host. Heads keep the format of their
checkpoint whatever was chosen for the target's linear layers, and share the format of its KV cache.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from rooflines.costs.cost import Cost, Number, Operator, Pass
from rooflines.costs.ends import format_outside
from rooflines.costs.linear import linear
from rooflines.costs.passes import forward_pass
from rooflines.costs.setting import Precision, Setting, Shape
from rooflines.costs.sharding import on_device
from rooflines.costs.storage import kv_cache_bytes, layer_bytes
from rooflines.dtypes import number_format
from rooflines.errors import InputError
from rooflines.models.drafter_catalogue import find_drafter
from rooflines.models.drafters import DrafterSpec, Method
from rooflines.models.layer import Layer, matrix_bytes, plain_bytes
from rooflines.models.matrix import Matrix
from rooflines.models.spec import FeedForward, ModelSpec
from rooflines.speculation.drafters.base import Draft, possible_lengths, require_same_tokenizer
from rooflines.speculation.tree_growth import TreeGrowth
from rooflines.timing.deployment import Deployment
from rooflines.timing.roofline import PassTime, pass_time

_LOGIT_BYTES = 4  # engines sample from fp32 logits


@dataclass(frozen=True, slots=True)
class Head:
    """A head as it is served.

    Attributes:
        spec: its own weights, and what it shares.
        target: the model it drafts for, as it is served; the head runs on the same devices.
        model: the head as a small model, without what turns the target's features into its input.
    """

    spec: DrafterSpec
    target: Deployment
    model: ModelSpec

    @property
    def precision(self) -> Precision:
        """The checkpoint's formats, and the target's for cached keys and values."""
        return Precision(None, self.target.precision.kv, self.target.precision.activations)

    def setting(self, shape: Shape) -> Setting:
        """The setting of a pass of the head."""
        served = self.target
        return Setting(self.model, shape, self.precision, served.parallelism, "draft", served.routing)

    def forward(self, shape: Shape, before: Sequence[Operator] = (), after: Sequence[Operator] = ()) -> Pass:
        """One pass: embedding, layers, head and sampling, with further operators around."""
        own = forward_pass(
            self.model,
            shape,
            "draft",
            precision=self.precision,
            parallelism=self.target.parallelism,
            routing=self.target.routing,
        )
        return Pass("draft", (*before, *own.operators, *after))

    def timed(
        self, shape: Shape, before: Sequence[Operator] = (), after: Sequence[Operator] = ()
    ) -> PassTime:
        """Time of one pass, launched by the host."""
        return pass_time(self.forward(shape, before, after), self.target.machine)

    def inside(self, operators: Sequence[Operator]) -> PassTime:
        """Time of operators that run inside another pass: no launch of their own by the host."""
        return pass_time(Pass("draft", tuple(operators)), replace(self.target.machine, overhead_s=0.0))

    def entry(self, shape: Shape) -> list[Operator]:
        """What turns features of the target and embeddings into the head's input, whole on each device."""
        return [self.linear(matrix.name, matrix, shape.tokens, shape) for matrix in self.spec.entry]

    def linear(self, name: str, matrix: Matrix, tokens: Number, shape: Shape) -> Operator:
        """A matrix of the head's; one over the vocabulary is divided over the devices."""
        own = number_format(self.spec.dtype)
        return linear(name.replace("_", " "), [self._on_device(matrix)], [own], tokens, self.setting(shape))

    def choice(self, tokens: Number, shape: Shape) -> list[Operator]:
        """Choosing among the logits of `tokens` positions, gathered from all devices."""
        logits, ranks = tokens * self.spec.draft_vocabulary, self.target.parallelism.tensor
        cost = Cost(vector_flops=5.0 * logits, activation_bytes=logits * _LOGIT_BYTES, kernels=1.0)
        sampling = Operator("sampling", "small", cost)
        if ranks == 1:
            return [sampling]
        sent = logits * self.setting(shape).activation_bytes * (ranks - 1) / ranks
        gathered = Cost(network_bytes=sent, kernels=1.0)
        return [Operator("logits all-gather", "collective", gathered, ranks=ranks), sampling]

    def _on_device(self, matrix: Matrix) -> Matrix:
        ranks = self.target.parallelism.tensor
        if matrix.outputs != self.spec.draft_vocabulary:
            return matrix
        return Matrix(matrix.name, matrix.inputs, -(-matrix.outputs // ranks), matrix.bias, matrix.copies)

    def weight_bytes(self) -> float:
        """Its own weights on each device; nothing of what it shares (bytes)."""
        parallelism, hidden = self.target.parallelism, self.spec.hidden
        layers = sum(
            count * layer_bytes(on_device(layer, hidden, Precision(), parallelism), self.model, parallelism)
            for layer, count in self.spec.layer_groups
        )
        dtype = self.spec.dtype
        outside = sum(
            matrix_bytes(self._on_device(matrix), dtype, dtype)
            for matrix in (*self.spec.entry, *self.spec.heads, *self.spec.gathered)
        )
        vectors = self.spec.norms * hidden + self.spec.extra_vector_parameters
        return layers + outside + plain_bytes(vectors, dtype)

    def kv_cache_bytes(self, batch: Number, context: Number) -> Number:
        """Its own KV cache on each device (bytes)."""
        return kv_cache_bytes(self.model, batch, context, self.precision, self.target.parallelism)


def make_head(source: str | None, method: Method, target: Deployment) -> Head:
    """A head for a target: from a preset or file, or of the family's usual shape.

    Raises:
        InputError: it was made for another width or tokenizer.
        ConfigError: see `find_drafter`.
    """
    spec = find_drafter(source, method, target.model)
    if spec.target_hidden != target.model.hidden:
        raise InputError(
            f"{spec.name} reads hidden states of width {spec.target_hidden:,} and {target.model.name} has "
            f"{target.model.hidden:,}: it was made for another target"
        )
    require_same_tokenizer(spec.name, spec.vocabulary, target.model)
    return Head(spec, target, head_model(spec, target.model))


def head_model(spec: DrafterSpec, target: ModelSpec) -> ModelSpec:
    """The head as a model between the target's embedding and a head over its draft vocabulary.

    Medusa's heads have no layer; they are never run as a model, and get an empty one.
    """
    shared = "head" in spec.shares
    formats = [("embedding", format_outside(target, "embedding").name)]
    if shared:
        formats.append(("head", format_outside(target, "head").name))
    empty = Layer(mixer=None, feed_forwards=(FeedForward(width=1, gated=False),), norms=0)
    return ModelSpec(
        name=spec.name,
        family=spec.method,
        hidden=spec.hidden,
        layers=spec.layers or (empty,),
        vocabulary=spec.draft_vocabulary,
        tied_embeddings=False,
        dtype=spec.dtype,
        head_bias=target.head_bias and shared,
        formats=tuple(formats),
        kv_dtype=target.kv_dtype,
    )


@dataclass(frozen=True, slots=True)
class HeadDrafter(ABC):
    """What drafters with a head of their own have in common; a family says how it drafts.

    Attributes:
        name: what the plan calls it.
        head: its weights beside the target.
        longest: most tokens (levels of a tree) that it can draft; None for any number.
        only: the one draft length that was asked of it by name; None for those of the plan.
        tree: how its tree is grown; None drafts a chain.
    """

    name: str
    head: Head
    longest: int | None = None
    only: int | None = None
    tree: TreeGrowth | None = None

    def __post_init__(self) -> None:
        if self.only is not None and self.longest is not None and self.only > self.longest:
            raise InputError(f"{self.name} drafts {self.longest} tokens at most, not {self.only}")

    @abstractmethod
    def draft(self, batch: Number, context: Number, draft_length: Number) -> Draft:
        """Price one draft."""

    def prefill(self, new_tokens: Number, context: Number) -> Number:
        """A pass over the prompt on features that the target just computed; logits of its end alone.

        None where no layer caches anything (a last layer without attention, reused as a module).
        """
        if not np.any(self.head.kv_cache_bytes(1.0, 1.0)):
            return 0.0 * np.asarray(new_tokens) * context
        shape = Shape(1.0, new_tokens, context, 1.0)
        return self.head.timed(shape, before=self.head.entry(shape)).seconds

    def draft_lengths(self, asked: Sequence[int]) -> tuple[int, ...]:
        """Those it can draft, or the one that was fixed (plain decoding, 0, stays where it was asked for)."""
        return possible_lengths(asked, self.only, self.longest)

    def weight_bytes(self) -> float:
        """Its own weights on each device (bytes)."""
        return self.head.weight_bytes()

    def kv_cache_bytes(self, batch: Number, context: Number) -> Number:
        """Its own KV cache on each device (bytes)."""
        return self.head.kv_cache_bytes(batch, context)

    def warnings(self) -> tuple[str, ...]:
        """What was assumed of its shape."""
        return tuple(f"{self.name}: {note}" for note in self.head.spec.assumed)
