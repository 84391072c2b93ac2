"""From a GGUF header to a config in Hugging Face keys, and to the format of every matrix.

Metadata keys and tensor names: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md and
``gguf/constants.py`` of gguf 0.19.0. What the metadata leaves unsaid is what llama.cpp's
``src/llama-model.cpp`` builds in. The parameters of the model that results are counted against the tensors of
the file, so that a misread architecture is refused rather than priced.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from rooflines.errors import ConfigError, UnsupportedArchitectureError, near_matches
from rooflines.models.formats import with_formats
from rooflines.models.gguf import GgufFile, Strings
from rooflines.models.layer import Layer
from rooflines.models.matrix import Matrix
from rooflines.models.spec import ModelSpec
from rooflines.models.stored import StoredTensor

# llama.cpp keeps keys, values and activations in 16-bit floats unless told otherwise (common/arg.cpp,
# --cache-type-k).
_DTYPE: Final = "float16"
_EMBEDDING: Final = "token_embd.weight"
_HEAD: Final = "output.weight"
# Tensors that are no parameters: rotary frequencies, and the correction bias of DeepSeek's routers.
_NO_PARAMETERS: Final = re.compile(
    r"(?:.*\.)?rope_(?:freqs|factors_long|factors_short)\.weight|.*\.exp_probs_b\.bias"
)
_BLOCK: Final = re.compile(r"blk\.(?P<number>\d+)\.")

# Tensors of a layer by matrix, alternatives in order; a + joins parts of one matrix. Phi-3 stores gate and up
# together as ffn_up; files from before 2024 have one tensor an expert (ffn_gate.0).
_TENSORS: Final[dict[str, tuple[str, ...]]] = {
    "query": ("attn_q", "attn_qkv"),
    "key": ("attn_k", "attn_qkv"),
    "value": ("attn_v", "attn_qkv"),
    "output": ("attn_output",),
    "query_down": ("attn_q_a",),
    "query_up": ("attn_q_b",),
    "latent_down": ("attn_kv_a_mqa",),
    "latent_up": ("attn_kv_b", "attn_k_b+attn_v_b"),
    "gate": ("ffn_gate", "ffn_up"),
    "up": ("ffn_up",),
    "down": ("ffn_down",),
    "router": ("ffn_gate_inp",),
    "expert_gate": ("ffn_gate_exps", "ffn_gate_up_exps", "ffn_gate.*"),
    "expert_up": ("ffn_up_exps", "ffn_gate_up_exps", "ffn_up.*"),
    "expert_down": ("ffn_down_exps", "ffn_down.*"),
    "shared_gate": ("ffn_gate_shexp",),
    "shared_up": ("ffn_up_shexp",),
    "shared_down": ("ffn_down_shexp",),
    "shared_expert_gate": ("ffn_gate_inp_shexp",),
}
_FORMATS: Final = {"F64": "fp64", "F32": "fp32", "F16": "fp16", "NVFP4": "nvfp4@bf16"}
_NO_WEIGHTS: Final = ("I8", "I16", "I32", "I64")

Tensors = Mapping[str, StoredTensor]


@dataclass(frozen=True, slots=True)
class _Header:
    """Typed look-ups in the metadata of one architecture."""

    file: GgufFile
    name: str
    architecture: str
    tensors: Tensors
    seen: set[str] = field(default_factory=set)

    def value(self, key: str) -> Any:  # noqa: ANN401 - whatever the header holds
        """The value of a key of the architecture, or None; arrays become lists."""
        self.seen.add(f"{self.architecture}.{key}")
        found = self.file.metadata.get(f"{self.architecture}.{key}")
        if isinstance(found, Strings):
            raise ConfigError(f"{self.name}: {self.architecture}.{key} is a list of strings, not of numbers")
        return list(found) if isinstance(found, tuple) else found

    def count(self, key: str) -> int:
        """A whole number; 0 where the header does not have the key.

        Raises:
            ConfigError: no whole number.
        """
        value = self.value(key)
        if value is None:
            return 0
        if isinstance(value, bool) or not isinstance(value, int):
            raise ConfigError(f"{self.name}: {self.architecture}.{key} is {value!r:.60}, not a whole number")
        return value

    def bias(self, tensor: str) -> bool:
        """Whether the first block has a bias of that name."""
        return f"blk.0.{tensor}.bias" in self.tensors


Part = Callable[[_Header], dict[str, Any]]


def config_of(file: GgufFile, name: str) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The config that a GGUF header stands for, in Hugging Face keys, and the metadata that says no more.

    Args:
        file: the header.
        name: of the model, for messages.

    Returns:
        The config, and keys of the architecture that were not read.

    Raises:
        UnsupportedArchitectureError: an architecture that is not modelled.
        ConfigError: no architecture or no embedding table, or a key of the wrong type.
    """
    architecture = file.metadata.get("general.architecture")
    if not isinstance(architecture, str):
        raise ConfigError(f"{name}: the header has no general.architecture")
    if architecture not in ARCHITECTURES:
        near = near_matches(architecture, ARCHITECTURES)
        hint = f"; near: {', '.join(near)}" if near else ""
        raise UnsupportedArchitectureError(
            f"{name}: GGUF architecture {architecture!r} is not modelled{hint} "
            f"(known: {', '.join(ARCHITECTURES)})"
        )
    header = _Header(file, name, architecture, {tensor.name: tensor for tensor in file.stored.tensors})
    config: dict[str, Any] = {}
    for part in (_common, *ARCHITECTURES[architecture]):
        config.update(part(header))
    own = f"{architecture}."
    ignored = tuple(key for key in file.metadata if key.startswith(own) and key not in header.seen)
    return {key: value for key, value in config.items() if value is not None}, ignored


def with_stored_formats(spec: ModelSpec, file: GgufFile) -> ModelSpec:
    """The model with the format of every tensor of the file.

    Raises:
        ConfigError: the file holds more or fewer parameters than the model, or parts of one matrix in
            different formats.
    """
    tensors = _parameters(file, len(spec.layers))
    held = sum(tensor.elements for tensor in tensors.values())
    if held != spec.parameters_total:
        raise ConfigError(
            f"{spec.name}: the file holds {held:,} parameters, but a {spec.family} model of these sizes has "
            f"{spec.parameters_total:,}: this variant is not modelled"
        )
    places = {
        (index, matrix.name): _tensors_of(index, matrix.name, tensors)
        for index, layer in enumerate(spec.layers)
        for matrix in layer.matrices(spec.hidden)
    }

    def layer_format(index: int, layer: Layer, matrix: Matrix) -> str:
        del layer
        names = places[index, matrix.name]
        return _format({tensors[name] for name in names}, f"{spec.name}: {matrix.name} of block {index}")

    embedding = _format({tensors[_EMBEDDING]}, f"{spec.name}: the embedding")
    head = _format({tensors[_HEAD]}, f"{spec.name}: the head") if _HEAD in tensors else embedding
    used = {_EMBEDDING, _HEAD}.union(*places.values())
    vectors = {tensor for name, tensor in tensors.items() if name not in used}
    return with_formats(
        spec,
        layer_format,
        {"embedding": embedding, "head": head},
        vectors=_format(vectors, f"{spec.name}: norms and biases"),
    )


def _parameters(file: GgufFile, layers: int) -> dict[str, StoredTensor]:
    """Tensors of the model itself: of its own blocks (those after them draft tokens), and no constants."""
    found = {}
    for tensor in file.stored.tensors:
        block = _BLOCK.match(tensor.name)
        if not _NO_PARAMETERS.fullmatch(tensor.name) and (block is None or int(block["number"]) < layers):
            found[tensor.name] = tensor
    return found


def _tensors_of(index: int, matrix: str, tensors: Tensors) -> list[str]:
    """Names of the tensors of block `index` that hold one matrix; empty where none does."""
    for alternative in _TENSORS.get(matrix, ()):
        names: list[str] = []
        for part in alternative.split("+"):
            names += _numbered(index, part, tensors) if part.endswith("*") else [f"blk.{index}.{part}.weight"]
        if names and all(name in tensors for name in names):
            return names
    return []


def _numbered(index: int, part: str, tensors: Tensors) -> list[str]:
    names: list[str] = []
    while (name := f"blk.{index}.{part[:-1]}{len(names)}.weight") in tensors:
        names.append(name)
    return names


def _format(tensors: set[StoredTensor], what: str) -> str:
    kinds = sorted({tensor.kind for tensor in tensors})
    if len(kinds) > 1:
        raise ConfigError(f"{what}: stored as {' and '.join(kinds)}, which is not modelled: use one type")
    if not kinds or kinds[0] in _NO_WEIGHTS:
        raise ConfigError(
            f"{what}: stored as {kinds[0] if kinds else 'nothing'}, which is no type of weights"
        )
    return _FORMATS.get(kinds[0], kinds[0].lower())


# Parts of a config


def _common(header: _Header) -> dict[str, Any]:
    """What every architecture has: sizes, heads, vocabulary, tying."""
    embedding = header.tensors.get(_EMBEDDING)
    if embedding is None or len(embedding.shape) != 2:  # noqa: PLR2004 - rows and columns
        raise ConfigError(f"{header.name}: the file has no table {_EMBEDDING}: it holds no language model")
    _refuse_blocks_beyond(header)
    key, value = header.value("attention.key_length"), header.value("attention.value_length")
    if header.value("attention.kv_lora_rank") is None and key != value:
        raise ConfigError(
            f"{header.name}: keys of width {key} and values of width {value} are not modelled for "
            f"{header.architecture}"
        )
    return {
        "hidden_size": header.value("embedding_length"),
        "num_hidden_layers": header.count("block_count") - header.count("nextn_predict_layers"),
        "num_attention_heads": _positive(header.value("attention.head_count")),
        "num_key_value_heads": header.value("attention.head_count_kv"),
        "head_dim": key,
        "intermediate_size": header.value("feed_forward_length"),
        "max_position_embeddings": header.value("context_length"),
        "vocab_size": embedding.shape[0],
        "tie_word_embeddings": _HEAD not in header.tensors,
        "torch_dtype": _DTYPE,
    }


def _refuse_blocks_beyond(header: _Header) -> None:
    blocks = header.count("block_count")
    for name in header.tensors:
        block = _BLOCK.match(name)
        if block is not None and int(block["number"]) >= blocks:
            raise ConfigError(
                f"{header.name}: block_count is {blocks}, but the file holds {name}: one of them is wrong"
            )


def _positive(heads: Any) -> Any:  # noqa: ANN401 - a number or a list
    """Heads by layer; a layer without attention says 0 here and for its keys: any number stands for it."""
    if not isinstance(heads, list) or not all(isinstance(count, int) for count in heads):
        return heads
    return [count or max(heads) for count in heads]


def _is(model_type: str) -> Part:
    return lambda header: {"model_type": model_type}  # noqa: ARG005 - same interface as the other parts


def _biases(header: _Header) -> dict[str, Any]:
    return {
        "attention_bias": header.bias("attn_q") or header.bias("attn_qkv"),
        "mlp_bias": header.bias("ffn_down"),
    }


def _use_bias(header: _Header) -> dict[str, Any]:
    return {"use_bias": header.bias("attn_q")}


def _window(period: int | None) -> Part:
    """A sliding window in all layers, in all but every `period`-th, or where a list in the header says."""

    def part(header: _Header) -> dict[str, Any]:
        window = header.value("attention.sliding_window")
        pattern = header.value("attention.sliding_window_pattern")
        every = pattern if isinstance(pattern, int) and not isinstance(pattern, bool) else period
        length = header.count("block_count")
        if not window:
            return {}
        if isinstance(pattern, list):
            local = [bool(entry) for entry in pattern]
        elif every:
            local = [(index + 1) % every != 0 for index in range(length)]
        else:
            return {"sliding_window": window}
        kinds = ["sliding_attention" if entry else "full_attention" for entry in local]
        return {"sliding_window": window, "layer_types": kinds}

    return part


def _experts(**widths: str) -> Part:
    """Expert counts, and further keys by their name in the header."""

    def part(header: _Header) -> dict[str, Any]:
        return {
            "num_experts": header.value("expert_count"),
            "num_experts_per_tok": header.value("expert_used_count"),
            **{ours: header.value(theirs) for ours, theirs in widths.items()},
        }

    return part


def _llama(header: _Header) -> dict[str, Any]:
    """Llama and Mistral, or Mixtral where there are experts."""
    if header.count("expert_count") == 0:
        return {"model_type": "llama", **_biases(header)}
    return {
        "model_type": "mixtral",
        "num_local_experts": header.value("expert_count"),
        "num_experts_per_tok": header.value("expert_used_count"),
    }


def _deepseek(header: _Header) -> dict[str, Any]:
    """DeepSeek V2 and V3, Kimi-K2: latent attention, dense layers first."""
    corrected = any(name.endswith("exp_probs_b.bias") for name in header.tensors)
    rope = header.count("rope.dimension_count")
    key = header.count("attention.key_length_mla") or header.count("attention.key_length")
    value = header.count("attention.value_length_mla") or header.count("attention.value_length")
    return {
        "model_type": "deepseek_v3" if corrected else "deepseek_v2",
        "num_key_value_heads": None,
        "head_dim": None,
        "q_lora_rank": header.value("attention.q_lora_rank"),
        "kv_lora_rank": header.value("attention.kv_lora_rank"),
        "qk_rope_head_dim": rope,
        "qk_nope_head_dim": key - rope,
        "v_head_dim": value,
        "n_routed_experts": header.value("expert_count"),
        "num_experts_per_tok": header.value("expert_used_count"),
        "moe_intermediate_size": header.value("expert_feed_forward_length"),
        "n_shared_experts": header.value("expert_shared_count"),
        "first_k_dense_replace": header.count("leading_dense_block_count"),
        "attention_bias": header.bias("attn_q_a"),
    }


def _glm4_moe(header: _Header) -> dict[str, Any]:
    return {
        "model_type": "glm4_moe",
        "use_qk_norm": "blk.0.attn_q_norm.weight" in header.tensors,
        "attention_bias": header.bias("attn_q"),
        "n_routed_experts": header.value("expert_count"),
        "num_experts_per_tok": header.value("expert_used_count"),
        "moe_intermediate_size": header.value("expert_feed_forward_length"),
        "n_shared_experts": header.value("expert_shared_count"),
        "first_k_dense_replace": header.count("leading_dense_block_count"),
    }


def _gpt_oss(header: _Header) -> dict[str, Any]:
    return {
        "model_type": "gpt_oss",
        "attention_bias": header.bias("attn_q"),
        "intermediate_size": header.value("expert_feed_forward_length"),
        "num_local_experts": header.value("expert_count"),
        "num_experts_per_tok": header.value("expert_used_count"),
    }


def _qk_norm(header: _Header) -> dict[str, Any]:
    return {"use_qk_norm": "blk.0.attn_q_norm.weight" in header.tensors}


# Periods of windows are llama.cpp's (set_swa_pattern in src/llama-model.cpp).
ARCHITECTURES: Final[dict[str, tuple[Part, ...]]] = {
    "llama": (_llama,),
    "deci": (_llama,),
    "mistral3": (_is("ministral3"), _window(None)),
    "qwen2": (_is("qwen2"),),
    "qwen3": (_is("qwen3"), _biases),
    "qwen2moe": (
        _is("qwen2_moe"),
        _experts(
            moe_intermediate_size="expert_feed_forward_length",
            shared_expert_intermediate_size="expert_shared_feed_forward_length",
        ),
    ),
    "qwen3moe": (_is("qwen3_moe"), _experts(moe_intermediate_size="expert_feed_forward_length")),
    "gemma": (_is("gemma"),),
    "gemma2": (_is("gemma2"), _window(2)),
    "gemma3": (_is("gemma3_text"), _window(6)),
    "phi2": (_is("phi"),),
    "phi3": (_is("phi3"), _window(None)),
    "starcoder2": (_is("starcoder2"), _use_bias),
    "command-r": (_is("cohere"), _qk_norm),
    "cohere2": (_is("cohere2"), _window(4)),
    "olmo2": (_is("olmo2"), _window(4)),
    "granite": (_is("granite"), _biases),
    "nemotron": (_is("nemotron"), _biases),
    "glm4": (_is("glm4"), _biases),
    "glm4moe": (_glm4_moe,),
    "smollm3": (_is("smollm3"), _biases),
    "exaone4": (_is("exaone4"), _window(4)),
    "gpt-oss": (_gpt_oss, _window(2)),
    "deepseek2": (_deepseek,),
    "minimax-m2": (_is("minimax_m2"), _qk_norm, _experts()),
}
