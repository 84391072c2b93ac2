"""A lean forward pass over the weights of a Llama-like model, with a static cache.

It does what transformers' model does, with few kernels: q, k and v in one product, gate and up in one, the
query heads of a key-value head as rows of one attention. A test holds its logits against transformers'.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final, Self

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - torch's own convention

from rooflines.errors import InputError
from rooflines.measurement.matrices import DenseMatrix, Matrix, quantised
from rooflines.measurement.runner import LogitsOf

# Families that differ from Llama in biases of q, k, v and in norms of q and k only.
_FAMILIES: Final = ("llama", "mistral", "qwen2", "qwen3")
# Rotary embeddings that do not change with the length of the sequence.
_STATIC_ROPE: Final = ("default", "linear", "llama3", "yarn")


@dataclass(slots=True)
class StaticCache:
    """Keys and values of every position there is room for.

    Attributes:
        keys: shape [L, B, K, positions, d].
        values: the same.
        cosines: of the rotary embedding, shape [positions, 1, d].
        sines: the same.
        length: positions that are valid.
    """

    keys: Tensor
    values: Tensor
    cosines: Tensor
    sines: Tensor
    length: int = 0

    @property
    def positions(self) -> int:
        """How many there is room for."""
        return int(self.keys.shape[3])

    def roll_back(self, length: int) -> None:
        """Forget every position from `length` on; a shorter cache stays as it is."""
        self.length = min(self.length, length)


@dataclass(frozen=True, slots=True)
class Layer:
    """The weights of one layer; `query_norm` and `key_norm` in models that have them."""

    attention_norm: Tensor
    qkv: Matrix
    query_norm: Tensor | None
    key_norm: Tensor | None
    output: Matrix
    feed_forward_norm: Tensor
    gate_up: Matrix
    down: Matrix


@dataclass(frozen=True, slots=True)
class _Place:
    """Where new positions stand: cosines and sines of their angles, which keys each row of queries may see.

    The mask has shape [H/K * n, S + n]; a single new position sees everything and needs none.
    """

    start: int
    end: int
    cosines: Tensor
    sines: Tensor
    mask: Tensor | None


@dataclass(frozen=True, slots=True)
class LlamaRunner:
    """The model.

    Attributes:
        embedding: shape [V, h].
        layers: in order.
        norm: before the head.
        head: to logits.
        heads: query heads H.
        kv_heads: K.
        head_size: d.
        epsilon: of all norms.
        rotary: positions, shape [1, S] -> cosines and sines, each of shape [1, S, d].
    """

    embedding: Tensor
    layers: tuple[Layer, ...]
    norm: Tensor
    head: Matrix
    heads: int
    kv_heads: int
    head_size: int
    epsilon: float
    rotary: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]
    name: str = "static-llama"

    @property
    def depth(self) -> int:
        """Layers."""
        return len(self.layers)

    @property
    def vocabulary(self) -> int:
        """Tokens that logits are given for."""
        return int(self.embedding.shape[0])

    @property
    def device(self) -> str:
        """Where it runs."""
        return str(self.embedding.device)

    def new_cache(self, batch: int, positions: int) -> StaticCache:
        """An empty cache with room for `positions` of each of `batch` sequences."""
        shape = (self.depth, batch, self.kv_heads, positions, self.head_size)
        like = {"dtype": self.embedding.dtype, "device": self.embedding.device}
        with torch.inference_mode():
            at = torch.arange(positions, device=self.embedding.device)[None]
            cosines, sines = self.rotary(torch.empty(0, **like), at)
            return StaticCache(
                torch.zeros(shape, **like),
                torch.zeros(shape, **like),
                cosines[0, :, None, :].contiguous(),
                sines[0, :, None, :].contiguous(),
            )

    def fill(self, cache: StaticCache, length: int) -> None:
        """Fill up to `length` positions with random keys and values; their content costs nothing."""
        _make_room(cache, length - cache.length)
        with torch.inference_mode():
            for one in (cache.keys, cache.values):
                one[:, :, :, cache.length : length].normal_()
        cache.length = max(cache.length, length)

    def forward(
        self, tokens: Tensor, cache: StaticCache, *, depth: int | None = None, logits: LogitsOf = "all"
    ) -> Tensor:
        """Append tokens, shape [B, n], and answer for each of them, or for the last one (see `Runner`)."""
        layers = self.layers[: self._checked_depth(depth)]
        batch, new = tokens.shape
        _make_room(cache, new)
        with torch.inference_mode():
            place = self._place(cache, new)
            x = F.embedding(tokens, self.embedding)
            for index, layer in enumerate(layers):
                attended = self._attention(layer, index, x, cache, place)
                x = x + layer.output(attended.reshape(batch, new, -1))
                gate, up = layer.gate_up(self._normed(x, layer.feed_forward_norm)).chunk(2, dim=-1)
                x = x + layer.down(F.silu(gate) * up)
            cache.length = place.end
            return self.project(x if logits == "all" else x[:, -1:])

    def project(self, hidden: Tensor) -> Tensor:
        """The last norm and the head: hidden states, shape [B, n, h], to logits, shape [B, n, V]."""
        with torch.inference_mode():
            logits: Tensor = self.head(self._normed(hidden, self.norm))
            return logits

    def int4_copy(self, group_size: int) -> Self:
        """The same model with linear layers and head in 4-bit integers; it can share the cache.

        Raises:
            InputError: torch's kernels do not take the group size or a shape.
        """

        def rounded(matrix: Matrix) -> Matrix:
            if not isinstance(matrix, DenseMatrix):
                raise InputError("a copy in 4 bits is made from the model itself, not from another copy")
            return quantised(matrix, group_size)

        with torch.inference_mode():
            layers = tuple(
                replace(
                    layer,
                    qkv=rounded(layer.qkv),
                    output=rounded(layer.output),
                    gate_up=rounded(layer.gate_up),
                    down=rounded(layer.down),
                )
                for layer in self.layers
            )
            return replace(self, layers=layers, head=rounded(self.head))

    def _attention(self, layer: Layer, index: int, x: Tensor, cache: StaticCache, place: _Place) -> Tensor:
        """Append keys and values and attend; shape [B, n, H, d]."""
        batch, new, _ = x.shape
        qkv = layer.qkv(self._normed(x, layer.attention_norm)).view(batch, new, -1, self.head_size)
        if layer.query_norm is not None and layer.key_norm is not None:
            query = self._normed(qkv[:, :, : self.heads], layer.query_norm)
            key = self._normed(qkv[:, :, self.heads : -self.kv_heads], layer.key_norm)
            rotated = _rotated(torch.cat([query, key], dim=2), place)
        else:
            rotated = _rotated(qkv[:, :, : -self.kv_heads], place)
        cache.keys[index, :, :, place.start : place.end] = rotated[:, :, self.heads :].transpose(1, 2)
        cache.values[index, :, :, place.start : place.end] = qkv[:, :, -self.kv_heads :].transpose(1, 2)
        # The H/K query heads of a key-value head become rows of one matrix, so that nothing is repeated.
        group = self.heads // self.kv_heads
        query = rotated[:, :, : self.heads].view(batch, new, self.kv_heads, group, self.head_size)
        query = query.permute(0, 2, 3, 1, 4).reshape(batch, self.kv_heads, group * new, self.head_size)
        attended = F.scaled_dot_product_attention(
            query,
            cache.keys[index, :, :, : place.end],
            cache.values[index, :, :, : place.end],
            attn_mask=place.mask,
        )
        attended = attended.view(batch, self.kv_heads, group, new, self.head_size)
        merged: Tensor = attended.permute(0, 3, 1, 2, 4)
        return merged

    def _place(self, cache: StaticCache, new: int) -> _Place:
        start, end = cache.length, cache.length + new
        cosines, sines = cache.cosines[start:end], cache.sines[start:end]
        if new == 1:
            return _Place(start, end, cosines, sines, None)
        seen = torch.ones(new, end, dtype=torch.bool, device=self.embedding.device).tril(start)
        return _Place(start, end, cosines, sines, seen.repeat(self.heads // self.kv_heads, 1))

    def _normed(self, x: Tensor, weight: Tensor) -> Tensor:
        return F.rms_norm(x, (x.shape[-1],), weight, self.epsilon)

    def _checked_depth(self, depth: int | None) -> int:
        if depth is not None and not 0 <= depth <= self.depth:
            raise InputError(f"depth {depth}: the model has {self.depth} layers")
        return self.depth if depth is None else depth


def miniature(runner: LlamaRunner) -> LlamaRunner:
    """A model that launches the same kernels over next to no arithmetic: a pass is the host's work alone.

    Layers are as many as the runner's, 32 wide, with one head of the same size, and share their weights.
    """
    width, size = 32, runner.head_size
    like = {"dtype": runner.embedding.dtype, "device": runner.embedding.device}

    def matrix(outputs: int, inputs: int) -> DenseMatrix:
        return DenseMatrix(torch.full((outputs, inputs), 1 / inputs, **like))

    first = runner.layers[0]
    layer = Layer(
        attention_norm=torch.ones(width, **like),
        qkv=matrix(3 * size, width),
        query_norm=None if first.query_norm is None else torch.ones(size, **like),
        key_norm=None if first.key_norm is None else torch.ones(size, **like),
        output=matrix(width, size),
        feed_forward_norm=torch.ones(width, **like),
        gate_up=matrix(2 * width, width),
        down=matrix(width, width),
    )
    return replace(
        runner,
        embedding=torch.ones(width, width, **like),
        layers=(layer,) * runner.depth,
        norm=torch.ones(width, **like),
        head=matrix(width, width),
        heads=1,
        kv_heads=1,
    )


def is_llama_like(config: Any) -> bool:  # noqa: ANN401 - any config of transformers
    """Whether `LlamaRunner` computes what transformers computes for this config."""
    rope = getattr(config, "rope_parameters", None) or {}
    windowed = getattr(config, "use_sliding_window", config.model_type == "mistral")
    return (
        config.model_type in _FAMILIES
        and getattr(config, "hidden_act", None) == "silu"
        and rope.get("rope_type", "default") in _STATIC_ROPE
        and rope.get("partial_rotary_factor", 1.0) == 1.0
        and not (windowed and getattr(config, "sliding_window", None))
    )


def llama_runner(model: Any) -> LlamaRunner:  # noqa: ANN401 - a model of transformers
    """Take over the weights of a transformers model for which `is_llama_like` holds.

    Fused matrices are copies and replace transformers' own, layer by layer, so that memory holds both kinds
    of one layer at most; the model given cannot run afterwards.
    """
    config, inner = model.config, model.model
    layers = []
    for index, block in enumerate(inner.layers):
        layers.append(_layer(block))
        inner.layers[index] = torch.nn.Identity()
    heads = int(config.num_attention_heads)
    return LlamaRunner(
        embedding=inner.embed_tokens.weight.detach(),
        layers=tuple(layers),
        norm=inner.norm.weight.detach(),
        head=DenseMatrix(model.lm_head.weight.detach()),
        heads=heads,
        kv_heads=int(config.num_key_value_heads),
        head_size=int(getattr(config, "head_dim", None) or config.hidden_size // heads),
        epsilon=float(config.rms_norm_eps),
        rotary=inner.rotary_emb,
    )


def _layer(block: Any) -> Layer:  # noqa: ANN401 - a decoder layer of transformers
    attention, feed_forward = block.self_attn, block.mlp
    query_norm, key_norm = getattr(attention, "q_norm", None), getattr(attention, "k_norm", None)
    return Layer(
        attention_norm=block.input_layernorm.weight.detach(),
        qkv=_fused(attention.q_proj, attention.k_proj, attention.v_proj),
        query_norm=None if query_norm is None else query_norm.weight.detach(),
        key_norm=None if key_norm is None else key_norm.weight.detach(),
        output=_fused(attention.o_proj),
        feed_forward_norm=block.post_attention_layernorm.weight.detach(),
        gate_up=_fused(feed_forward.gate_proj, feed_forward.up_proj),
        down=_fused(feed_forward.down_proj),
    )


def _fused(*linears: Any) -> DenseMatrix:  # noqa: ANN401 - linear layers of transformers
    """One matrix that does the work of several over the same input."""
    weights = [linear.weight.detach() for linear in linears]
    biases = [linear.bias.detach() for linear in linears if linear.bias is not None]
    return DenseMatrix(torch.cat(weights), torch.cat(biases) if biases else None)


def _rotated(x: Tensor, place: _Place) -> Tensor:
    """Rotary embedding of x, shape [B, n, heads, d], halves as pairs (Su 2021, as transformers stores it)."""
    first, second = x.chunk(2, dim=-1)
    return x * place.cosines + torch.cat([-second, first], dim=-1) * place.sines


def _make_room(cache: StaticCache, new: int) -> None:
    if cache.length + new > cache.positions:
        raise InputError(
            f"the cache has room for {cache.positions} positions, {cache.length} are taken, {new} more do "
            "not fit: make a longer one"
        )
