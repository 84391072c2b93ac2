"""The answer of a quantised checkpoint: a format for each module, and one for cached keys and values."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Final

from rooflines.errors import ConfigError
from rooflines.models.quantization.patterns import Patterns

# Modules that "all linear layers" does not mean, by their last name: routers and gates of one output are no
# quantised linear layers in any recipe; DeepSeek-V3.2 and GLM-5 keep `weights_proj`, DeepSeek-V3 `eh_proj`
# (their published element counts come out exactly only so).
_KEPT: Final = frozenset(
    {"gate", "router", "wg", "shared_expert_gate", "weights_proj", "eh_proj", "embed_tokens", "wte", "conv1d"}
)
_HEADS: Final = frozenset({"lm_head", "embed_out", "output_layer"})


@dataclass(frozen=True, slots=True)
class Rule:
    """The modules that `patterns` cover are stored as `storage`; None: in the model's own dtype."""

    patterns: Patterns
    storage: str | None


@dataclass(frozen=True, slots=True)
class Quantization:
    """How a checkpoint stores its weights.

    Attributes:
        method: kind of checkpoint (``fp8``, ``gptq``, ``compressed-tensors``, ...).
        rules: the first whose patterns cover a module decides.
        default: format of the linear layers that no rule names; None leaves them in the model's dtype.
        default_reaches_head: whether `default` holds for the head too.
        kv: format of cached keys and values where the checkpoint states one.
        assumed: what the config leaves open, and how it was taken.
    """

    method: str
    rules: tuple[Rule, ...] = ()
    default: str | None = None
    default_reaches_head: bool = False
    kv: str | None = None
    assumed: tuple[str, ...] = ()

    def layer_signature(self, index: int) -> Hashable:
        """What the lists say of one layer: equal layers with equal signatures have equal formats."""
        return tuple(rule.patterns.of_layer(index) for rule in self.rules)

    def format_of(self, *paths: str, copies: int = 1) -> str | None:
        """Format of the weight of one module, or None where it has the model's own dtype.

        Args:
            paths: names under which checkpoints list the module, its own first, e.g.
                ``model.layers.3.self_attn.q_proj`` and the fused ``model.layers.3.self_attn.qkv_proj``; of
                experts the first one's (``model.layers.3.mlp.experts.0.down_proj``).
            copies: how many experts the module stands for.

        Raises:
            ConfigError: the experts that the module stands for have several formats.
        """
        first = self._format_of_one(paths)
        if copies > 1 and any(rule.patterns.single_experts for rule in self.rules):
            for index in range(1, copies):
                other = tuple(path.replace(".experts.0.", f".experts.{index}.") for path in paths)
                if self._format_of_one(other) != first:
                    raise ConfigError(
                        f"quantization_config: the experts of {paths[0]!r} are stored in different formats, "
                        "which is not modelled; give one format for all experts of a layer"
                    )
        return first

    def _format_of_one(self, paths: tuple[str, ...]) -> str | None:
        for rule in self.rules:
            if any(rule.patterns.match(path) for path in paths):
                return rule.storage
        last = paths[0].rpartition(".")[2]
        if last in _KEPT or (last in _HEADS and not self.default_reaches_head):
            return None
        return self.default
