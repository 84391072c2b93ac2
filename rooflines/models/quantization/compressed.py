"""compressed-tensors (https://github.com/vllm-project/compressed-tensors): groups of modules with arguments.

Layouts follow its compressors (0.20.1): integers packed densely into 32-bit words, scales in the model's
16-bit dtype but for the microscaling formats, zero points packed like the weights where asymmetric.
"""

from __future__ import annotations

from typing import Final

from rooflines.dtypes import number_format
from rooflines.errors import ConfigError, UnknownNameError
from rooflines.models.quantization.block import Block
from rooflines.models.quantization.core import Quantization, Rule
from rooflines.models.quantization.patterns import Patterns

_FORMATS: Final = (
    "dense",
    "float-quantized",
    "int-quantized",
    "naive-quantized",
    "pack-quantized",
    "nvfp4-pack-quantized",
    "mxfp4-pack-quantized",
    "mxfp6-pack-quantized",
    "mxfp8-quantized",
    "mixed-precision",
)
_NVFP4_GROUP: Final = 16
_MICROSCALING_GROUP: Final = 32


def read_compressed_tensors(block: Block) -> Quantization:
    """Formats of a compressed-tensors checkpoint.

    Raises:
        ConfigError: a field is missing, mistyped or contradicts another.
        UnknownNameError: a storage format that is not known.
    """
    if block.has("sparsity_config") and block.data["sparsity_config"]:
        sparse = block.child("sparsity_config")
        if sparse.text("format", "dense") != "dense":
            raise ConfigError(f"{sparse.where}: sparse storage is not modelled; use the dense checkpoint")
    ignored = Rule(Patterns.read(block.names("ignore"), f"{block.where}.ignore"), None)
    groups = block.child("config_groups")
    named: list[Rule] = []
    default: str | None = None
    for key in groups.data:
        group = groups.child(key)
        targets = group.names("targets")
        if not targets:
            raise group.wrong("targets", "a list of classes such as 'Linear' or of module names")
        storage = _group_format(group, block)
        if storage is None:
            continue
        modules = [target for target in targets if not _is_class(target)]
        classes = [target for target in targets if _is_class(target)]
        if modules:
            named.append(Rule(Patterns.read(modules, f"{group.where}.targets"), storage))
        if classes:
            default = _class_default(group, classes, default, storage)
    return Quantization(
        method="compressed-tensors",
        rules=(ignored, *named),
        default=default,
        default_reaches_head=True,
        kv=kv_format(block, "kv_cache_scheme"),
    )


def kv_format(block: Block, key: str) -> str | None:
    """Format of cached keys and values out of a scheme (an object with bits and type) or a name.

    Raises:
        ConfigError: a scheme that is not known.
    """
    value = block.data.get(key)
    if value is None:
        return None
    if isinstance(value, str):
        known = {"FP8": "fp8", "INT8": "int8", "NVFP4": "nvfp4", "NONE": None}
        if value.upper() not in known:
            raise UnknownNameError("KV cache format", value, known, f"in {block.where}.{key}")
        return known[value.upper()]
    scheme = block.child(key)
    kind = (scheme.text("type", "float").lower(), scheme.integer("num_bits", 1, 16))
    known_schemes = {("float", 8): "fp8", ("int", 8): "int8", ("float", 4): "nvfp4"}
    if kind not in known_schemes:
        raise ConfigError(
            f"{scheme.where} asks for {kind[1]}-bit {kind[0]} keys and values: known are 8-bit float, "
            "8-bit int and 4-bit float"
        )
    return known_schemes[kind]


def arithmetic(activations: Block | None) -> str:
    """Dtype whose peak a product runs at: that of the quantised activations, 16 bits where there are none.

    Raises:
        ConfigError: activations of another kind.
    """
    if activations is None:
        return "bf16"
    bits, kind = activations.integer("num_bits", 1, 16), activations.text("type", "int").lower()
    known = {
        (8, "float"): "fp8",
        (8, "int"): "int8",
        (4, "float"): "fp4",
        (4, "int"): "int4",
        (6, "float"): "fp6",
        (16, "float"): "bf16",
    }
    if (bits, kind) not in known:
        raise ConfigError(f"{activations.where}: {bits}-bit {kind} activations are not modelled")
    return known[bits, kind]


def _is_class(target: str) -> bool:
    """Whether a target is a class of modules (``Linear``) and not a module's name."""
    return target.isidentifier() and target[0].isupper()


def _class_default(group: Block, classes: list[str], before: str | None, storage: str) -> str:
    unknown = [name for name in classes if name != "Linear"]
    if unknown:
        raise UnknownNameError(
            "target class", unknown[0], ["Linear"], f"in {group.where}.targets (known: Linear)"
        )
    if before is not None and before != storage:
        raise ConfigError(f"{group.where}: two groups target 'Linear' with different formats")
    return storage


def _group_format(group: Block, block: Block) -> str | None:
    """Storage and arithmetic of one group, or None where it leaves weights alone."""
    if not group.has("weights"):
        return None
    owner = group if group.has("format") else block
    layout = owner.text("format")
    if layout not in _FORMATS:
        raise UnknownNameError("compressed-tensors format", layout, _FORMATS, f"in {owner.where}.format")
    if layout == "mixed-precision":
        raise group.wrong("format", "given for each group of a mixed-precision checkpoint")
    if layout == "dense":
        return None
    weights = group.child("weights")
    computed = arithmetic(group.child("input_activations") if group.has("input_activations") else None)
    bits, kind = weights.integer("num_bits", 1, 8), weights.text("type", "int").lower()
    if kind not in {"int", "float"}:
        raise UnknownNameError("weight type", kind, ["int", "float"], f"in {weights.where}.type")
    storage = _float_storage(weights, bits) if kind == "float" else _int_storage(weights, bits, layout)
    return number_format(f"{storage}@{computed}").name


def _float_storage(weights: Block, bits: int) -> str:
    group = weights.integer("group_size", 1, 2**20, otherwise=0)
    if bits == 4 and group == _NVFP4_GROUP:  # noqa: PLR2004 - bits
        return "nvfp4"
    if bits in {4, 6, 8} and group == _MICROSCALING_GROUP:
        return f"mxfp{bits}"
    if bits != 8:  # noqa: PLR2004 - bits
        raise ConfigError(
            f"{weights.where}: {bits}-bit float weights in groups of {group or 'unstated size'} are not "
            f"modelled (known: 4 bits in groups of {_NVFP4_GROUP}; 4, 6 or 8 bits in groups of "
            f"{_MICROSCALING_GROUP})"
        )
    strategy = weights.text("strategy", "group" if group else "tensor")
    if strategy == "tensor":
        return "fp8-s16"
    if strategy == "channel":
        return "fp8-channel-s16"
    if strategy == "group" and group:
        return f"fp8-block-1x{group}-s16"
    if strategy == "block":
        return f"fp8-block-{_tile(weights, 'block_structure')}-s16"
    raise weights.wrong("strategy", "one of tensor, channel, group (with group_size) or block")


def _int_storage(weights: Block, bits: int, layout: str) -> str:
    # Only pack-quantized packs below a byte; the other layouts hold each integer in one byte.
    stored = bits if layout == "pack-quantized" else 8
    if stored == 1:
        raise weights.wrong("num_bits", "a whole number from 2 to 8")
    symmetric = "-sym" if weights.flag("symmetric", otherwise=True) else ""
    group = weights.data.get("group_size")
    strategy = weights.text("strategy", "group" if isinstance(group, int) and group > 0 else "tensor")
    if strategy in {"tensor", "channel"}:
        return f"int{stored}-{strategy}{symmetric}"
    if strategy == "group":
        size = weights.integer("group_size", 1, 2**20)
        order = weights.data.get("actorder")
        act = "-act" if order in {"group", "dynamic", True} else ""
        return f"int{stored}-g{size}{symmetric}{act}"
    raise weights.wrong("strategy", "one of tensor, channel or group")


def _tile(block: Block, key: str) -> str:
    value = block.data.get(key)
    if isinstance(value, str) and value.lower().count("x") == 1:
        value = [int(side) if side.isdigit() else None for side in value.lower().split("x")]
    return tile(value) or _raise(block.wrong(key, "two whole numbers, e.g. [128, 128]"))


def tile(value: object) -> str | None:
    """``128x128`` out of ``[128, 128]``; None where it is no pair of positive whole numbers."""
    if not isinstance(value, list | tuple) or len(value) != 2:  # noqa: PLR2004 - a pair
        return None
    if not all(isinstance(side, int) and not isinstance(side, bool) and 0 < side < 2**20 for side in value):
        return None
    return f"{value[0]}x{value[1]}"


def _raise(error: ConfigError) -> str:
    raise error
