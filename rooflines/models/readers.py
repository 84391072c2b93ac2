"""`read_model`: from a Hugging Face config.json (a dict, file or folder) or a preset to a `ModelSpec`.

The text model's level is found (`text_config` and its like), its family is named by `model_type`, and the
family's adapter reads it. Whatever an adapter did not read is reported in `ignored_keys`, unless it would
change a shape: then the config is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from rooflines.errors import (
    ConfigError,
    FileFormatError,
    UnknownNameError,
    UnsupportedArchitectureError,
    bare,
    near_matches,
)
from rooflines.facts import render_mistakes
from rooflines.models.adapters import FAMILIES, SIGNATURES
from rooflines.models.catalogue import load_preset, resolve_preset
from rooflines.models.config_file import load_json
from rooflines.models.config_view import ConfigView
from rooflines.models.formats import quantised
from rooflines.models.gguf import read_gguf
from rooflines.models.gguf_config import config_of, with_stored_formats
from rooflines.models.quantization import read_quantization
from rooflines.models.spec import ModelSpec

CONFIG_FILE: Final = "config.json"
GGUF_SUFFIX: Final = ".gguf"
QUANTIZATION_FILE: Final = "hf_quant_config.json"
# Where multimodal configs keep the language model, outermost first.
TEXT_LEVELS: Final = (
    "text_config",
    "llm_config",
    "language_config",
    "thinker_config",
    "language_model_config",
)
_CLASS_ENDINGS: Final = (
    "ForConditionalGeneration",
    "ForCausalLM",
    "LMHeadModel",
    "ForMultimodalLM",
    "Model",
)
# Keys that only configs of drafter heads have.
DRAFTER_KEYS: Final = ("dflash_config", "eagle_config", "draft_vocab_size", "medusa_num_heads")
# Keys that change which weights or caches exist. A config in which one of them says something that the
# family's adapter does not read describes another architecture than the adapter's.
SHAPE_KEYS: Final = frozenset(
    {
        "altup_num_inputs",
        "attention_chunk_size",
        "attention_k_eq_v",
        "attention_other_setting",
        "attn_config",
        "attn_layer_indices",
        "attn_layer_period",
        "attn_module_list_cfg",
        "attn_output_gate",
        "attn_type_list",
        "block_configs",
        "block_types",
        "compress_ratios",
        "conv_L_cache",
        "cross_attention_layers",
        "decoder_sparse_step",
        "enable_moe_block",
        "expert_layer_period",
        "ffn_config",
        "first_k_dense_replace",
        "full_attention_interval",
        "global_head_dim",
        "hc_mult",
        "head_dim",
        "hidden_size_per_layer_input",
        "hybrid_layer_ids",
        "hybrid_layer_pattern",
        "hybrid_override_pattern",
        "index_n_heads",
        "index_topk",
        "interleave_moe_layer_step",
        "kv_lora_rank",
        "laurel_rank",
        "layer_group_size",
        "layer_types",
        "layers_block_type",
        "linear_attn_config",
        "linear_num_key_heads",
        "linear_num_value_heads",
        "mamba_d_state",
        "mamba_n_heads",
        "mamba_num_heads",
        "mlp_layer_types",
        "moe_intermediate_size",
        "moe_k",
        "moe_latent_size",
        "moe_layer_freq",
        "moe_num_experts",
        "moe_num_shared_experts",
        "moe_top_k",
        "n_routed_experts",
        "n_shared_experts",
        "num_experts",
        "num_experts_per_tok",
        "num_experts_per_token",
        "num_global_key_value_heads",
        "num_key_value_heads",
        "num_kv_heads",
        "num_kv_shared_layers",
        "num_local_experts",
        "num_mem_blocks",
        "num_memory_blocks",
        "num_shared_experts",
        "o_lora_rank",
        "q_lora_rank",
        "qk_layernorm",
        "qk_nope_head_dim",
        "qk_rope_head_dim",
        "routed_expert_hidden_size",
        "shared_expert_intermediate_size",
        "shared_intermediate_size",
        "sliding_window",
        "sliding_window_pattern",
        "sparse_attention_config",
        "ssm_state_size",
        "swa_head_dim",
        "swa_num_key_value_heads",
        "top_k_experts",
        "use_qk_layernorm",
        "use_qk_norm",
        "v_head_dim",
        "zero_expert_num",
    }
)


def read_model(source: Mapping[str, Any] | str | Path, name: str | None = None) -> ModelSpec:
    """Read a model from a config, a file or folder that holds one, a GGUF file, or the name of a preset.

    Args:
        source: a parsed config.json, a path to one or to a folder with one, a path to a GGUF file, or a
            preset such as ``llama-2-7b``.
        name: what to call the model; by default the file's or preset's name.

    Returns:
        The model; `ignored_keys` lists what was not read.

    Raises:
        ConfigError: a needed field is missing or wrong.
        UnsupportedArchitectureError: a family or a feature that is not modelled.
        FileFormatError: a file that is no JSON object, or no intact GGUF file.
        UnknownNameError: neither a path nor a preset.
        AmbiguousNameError: the beginning of several presets.
    """
    if not isinstance(source, Mapping) and _is_gguf(Path(source)):
        return read_gguf_model(Path(source), name or Path(source).stem)
    if not isinstance(source, Mapping) and _config_file(Path(source)) is None:
        preset = _resolve(str(source))
        return read_config(load_preset(preset), name or preset)
    config, label = open_config(source, name)
    beside = None if isinstance(source, Mapping) else _quantization_file(Path(source))
    return read_config(config, label, beside)


def read_gguf_model(path: Path, name: str) -> ModelSpec:
    """Read a GGUF file, with the format of every tensor; `ignored_keys` are metadata keys.

    Raises:
        FileFormatError: truncated, corrupt, or no GGUF file.
        ConfigError: a needed key is missing, or the file holds other tensors than such a model has.
        UnsupportedArchitectureError: an architecture that is not modelled.
    """
    file = read_gguf(path)
    config, ignored = config_of(file, name)
    spec = read_config(config, name)
    return with_stored_formats(spec.model_copy(update={"ignored_keys": ignored}), file)


def _is_gguf(path: Path) -> bool:
    return path.suffix.lower() == GGUF_SUFFIX and _exists(path) and path.is_file()


def open_config(
    source: Mapping[str, Any] | str | Path, name: str | None = None
) -> tuple[Mapping[str, Any], str]:
    """The parsed config of a dict, file or folder, and what to call it.

    Raises:
        FileFormatError: no such file, or one that is no JSON object.
    """
    if isinstance(source, Mapping):
        return source, name or _own_name(source) or "config"
    path = Path(source)
    config = _config_file(path)
    if config is None:
        raise FileFormatError(f"{path}: no such file, and no folder with a {CONFIG_FILE}")
    return load_json(config), name or (path.resolve().name if path.is_dir() else path.stem)


def _resolve(source: str) -> str:
    """The preset that a name means; a folder without a config is told from a typo, and nothing from both."""
    if not source.strip():
        raise UnknownNameError("model", source, (), "(a preset, or a path to a config.json or its folder)")
    try:
        return resolve_preset(source)
    except UnknownNameError:
        if _exists(Path(source)):
            raise FileFormatError(f"{source}: a folder without a {CONFIG_FILE}") from None
        raise


def read_config(
    config: Mapping[str, Any], name: str, hf_quant_config: Mapping[str, Any] | None = None
) -> ModelSpec:
    """Read a parsed config.json, with the formats of its quantised matrices.

    Args:
        config: the parsed file.
        name: what to call the model.
        hf_quant_config: ModelOpt's file beside it, if there is one.

    Raises:
        ConfigError: a needed field is missing or wrong, or something is not modelled.
    """
    view = text_level(ConfigView(config, name))
    refuse_drafters(view)
    family = find_family(view)
    try:
        spec = FAMILIES[family](view)
    except ValidationError as mistakes:
        raise ConfigError(f"{name}: {render_mistakes(mistakes)}") from None
    quantization = read_quantization(config, hf_quant_config)
    for level in levels(view):
        level.disregard("quantization_config", "compression_config", "expert_dtype")
    refuse_unread_shapes(view, family)
    assumed = spec.assumed
    if len(spec.layers) == 1:
        assumed = (*assumed, "a model of one layer: the config of an EAGLE-1 or -2 head looks the same")
    spec = spec.model_copy(
        update={
            "family": family,
            "ignored_keys": ignored_keys(view),
            "not_counted": not_counted(view),
            "assumed": assumed,
        }
    )
    return quantised(spec, quantization) if quantization else spec


def levels(view: ConfigView) -> Iterator[ConfigView]:
    """The level itself and those around it, innermost first."""
    level: ConfigView | None = view
    while level is not None:
        yield level
        level = level.outer


def text_level(view: ConfigView) -> ConfigView:
    """The level that describes the language model, at the top or nested.

    Raises:
        ConfigError: several candidates, or one that is no object, or levels that contradict each other.
    """
    nested = [key for key in TEXT_LEVELS if view.value(key) is not None]
    if not nested:
        return view
    if len(nested) > 1:
        raise ConfigError(
            f"{view.name}: {' and '.join(map(view.where, nested))} both describe a model: keep one"
        )
    inner = text_level(view.level(nested[0]))
    for key in ("hidden_size", "num_hidden_layers", "num_attention_heads"):
        if view.has(key) and inner.has(key) and view.value(key) != inner.value(key):
            raise ConfigError(
                f"{view.name}: {view.where(key)} {view.value(key)!r} and {inner.where(key)} "
                f"{inner.value(key)!r} contradict each other: keep one"
            )
    return inner


def find_family(view: ConfigView) -> str:
    """The adapter's name: from `model_type` of the text level, of a level around it, or `architectures`.

    Raises:
        ConfigError: nothing says what the model is.
        UnsupportedArchitectureError: what it is is not modelled.
    """
    named: list[tuple[str, str]] = []
    for level in levels(view):
        if level.has("model_type"):
            named.append((level.where("model_type"), level.text("model_type")))
        named += [(level.where("architectures"), entry) for entry in _architectures(level)]
    if not named:
        signed = [family for family, keys in SIGNATURES.items() if keys <= view.data.keys()]
        if signed:
            view.assumed.append(f"family {signed[0]}: the config names none, but has its keys")
            return signed[0]
        raise ConfigError(
            f"{view.name}: neither model_type nor architectures says what the model is: add one"
        )
    types = [entry for entry in named if entry[0].endswith("model_type")]
    for where, given in types[:1] or named:
        family = _family_of(given)
        if family is not None:
            return family
        if where.endswith("model_type"):
            break
    where, given = (types or named)[0]
    near = near_matches(given, FAMILIES)
    hint = f"; near: {', '.join(near)}" if near else ""
    raise UnsupportedArchitectureError(f"{view.name}: {where} {given!r} is not modelled{hint}")


def _architectures(view: ConfigView) -> list[str]:
    value = view.value("architectures")
    if value is None:
        return []
    if not isinstance(value, list | tuple) or not all(isinstance(entry, str) for entry in value):
        raise view.wrong("architectures", "a list of class names")
    return list(value)


def _family_of(given: str) -> str | None:
    if given in FAMILIES:
        return given
    for ending in _CLASS_ENDINGS:
        given = given.removesuffix(ending)
    wanted = bare(given)
    return next((family for family in FAMILIES if bare(family) == wanted), None) if wanted else None


def refuse_drafters(view: ConfigView) -> None:
    """A drafter's config is not read as a model: it would gain an embedding and a head it does not have.

    Raises:
        UnsupportedArchitectureError: naming the field that tells.
    """
    for key in DRAFTER_KEYS:
        if view.data.get(key):
            raise view.unsupported(key, "this is the config of a drafter head: use read_drafter")


def refuse_unread_shapes(view: ConfigView, family: str) -> None:
    """Refuse a config that says something about shapes which its family's adapter did not read.

    Raises:
        UnsupportedArchitectureError: naming the field.
    """
    for key in view.unread():
        if key in SHAPE_KEYS and view.data[key]:
            raise view.unsupported(key, f"a {family} model is not known to have it")


def ignored_keys(view: ConfigView) -> tuple[str, ...]:
    """Keys that were not read, at the text level and around it, with their way."""
    return tuple(level.where(key) for level in reversed(list(levels(view))) for key in level.unread())


def not_counted(view: ConfigView) -> tuple[str, ...]:
    """Other models that the levels around the text model describe (vision, audio)."""
    return tuple(
        level.where(key)
        for level in levels(view)
        for key in level.unread()
        if key.endswith("_config")
        and any(part in key for part in ("vision", "audio", "talker", "video"))
        and isinstance(level.data[key], Mapping)
    )


def _own_name(config: Mapping[str, Any]) -> str | None:
    value = config.get("_name_or_path")
    return value if isinstance(value, str) and value else None


def _config_file(path: Path) -> Path | None:
    """The file to read for a path that is a file, or a folder with a config.json; else None."""
    if not _exists(path):
        return None
    if not path.is_dir():
        return path
    inner = path / CONFIG_FILE
    return inner if inner.is_file() else None


def _quantization_file(source: Path) -> Mapping[str, Any] | None:
    """ModelOpt's hf_quant_config.json beside a config, bare or with the config's own stem before it."""
    config = _config_file(source) or source
    beside = [config.with_name(f"{config.stem}.{QUANTIZATION_FILE}")]
    if config.name == CONFIG_FILE:
        beside.insert(0, config.with_name(QUANTIZATION_FILE))
    found = next((path for path in beside if path.is_file()), None)
    return load_json(found) if found else None


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):  # too long for a file system, or holds a null character
        return False
