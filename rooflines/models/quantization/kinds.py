"""Checkpoint kinds whose block is a few numbers and one exclusion list: one small function each."""

from __future__ import annotations

from rooflines.errors import ConfigError
from rooflines.models.quantization.block import Block
from rooflines.models.quantization.compressed import tile
from rooflines.models.quantization.core import Quantization, Rule
from rooflines.models.quantization.patterns import Patterns, PlainNames

_LARGEST_GROUP = 2**20


def read_fp8(block: Block) -> Quantization:
    """DeepSeek's and transformers' fine-grained FP8, or one scale a matrix without `weight_block_size`.

    Scales are fp32, one a tile: DeepSeek-V3's and Qwen3-8B-FP8's published element counts come out exactly.

    Raises:
        ConfigError: a field is mistyped or names another float format.
    """
    fmt = block.text("fmt", "e4m3").lower()
    if fmt not in {"e4m3", "e5m2", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz"}:
        raise block.wrong("fmt", "an 8-bit float format (e4m3 or e5m2)")
    if block.text("activation_scheme", "dynamic") not in {"dynamic", "static"}:
        raise block.wrong("activation_scheme", "dynamic or static")
    size = "fp8"
    if block.has("weight_block_size"):
        sides = tile(block.data["weight_block_size"])
        if sides is None:
            raise block.wrong("weight_block_size", "two whole numbers, e.g. [128, 128], or null")
        size = "fp8-block" if sides == "128x128" else f"fp8-block-{sides}"
    return Quantization("fp8", (_excluded(block),), default=size)


def read_fbgemm_fp8(block: Block) -> Quantization:
    """FBGEMM FP8 (Llama-3.1-405B-FP8): one fp32 scale an output row.

    Raises:
        ConfigError: a field is mistyped.
    """
    return Quantization("fbgemm_fp8", (_excluded(block),), default="fp8-channel")


def read_gptq(block: Block) -> Quantization:
    """GPTQ as AutoGPTQ and GPTQModel store it: with zero points even where symmetric.

    Group indices are in every file, but only act-order (`desc_act`) makes them be read.

    Raises:
        ConfigError: a field is missing or mistyped.
    """
    act = "-act" if block.flag("desc_act", otherwise=False) else ""
    marlin = block.text("checkpoint_format", "gptq") == "marlin" or block.flag(
        "is_marlin_format", otherwise=False
    )
    zero = "-sym" if marlin else ""
    storage = f"{_integer(block, 'bits', 'group_size')}{zero}{act}"
    rules = [_excluded(block), *_dynamic(block, zero, act)]
    head = Rule(Patterns.read(["lm_head"], block.where), storage)
    if block.flag("lm_head", otherwise=False):
        rules.append(head)
    if not block.has("modules_in_block_to_quantize"):
        return Quantization("gptq", tuple(rules), default=storage)
    value = block.data["modules_in_block_to_quantize"]
    flat = [
        name
        for entry in (value if isinstance(value, list) else [None])
        for name in (entry if isinstance(entry, list) else [entry])
    ]
    listed = [name for name in flat if isinstance(name, str)]
    if len(listed) < len(flat):
        raise block.wrong("modules_in_block_to_quantize", "a list of module names")
    where = f"{block.where}.modules_in_block_to_quantize"
    return Quantization("gptq", (*rules, Rule(Patterns.read(listed, where), storage)))


def read_awq(block: Block) -> Quantization:
    """AWQ as AutoAWQ stores it; names in its exclusion list match anywhere in a path.

    Raises:
        ConfigError: a field is missing or mistyped.
    """
    bits = "bits" if block.has("bits") else "w_bit"
    group = "group_size" if block.has("group_size") else "q_group_size"
    zero = "" if block.flag("zero_point", otherwise=True) else "-sym"
    return Quantization(
        "awq", (_excluded(block, "substrings"),), default=f"{_integer(block, bits, group)}{zero}"
    )


def read_auto_round(block: Block) -> Quantization:
    """Intel AutoRound in GPTQ or AWQ packing, with exceptions per module in `extra_config`.

    Raises:
        ConfigError: a field is missing or mistyped.
    """
    if block.text("data_type", "int") != "int":
        raise block.wrong("data_type", "int")
    packing = block.text("packing_format", "auto_round:auto_gptq")
    if packing.rpartition(":")[2] not in {"auto_gptq", "auto_awq"}:
        raise block.wrong("packing_format", "auto_round:auto_gptq or auto_round:auto_awq")
    rules = [_excluded(block)]
    if block.has("extra_config"):
        extra = block.child("extra_config")
        for name in extra.data:
            own = extra.child(name)
            bits = own.integer("bits", 2, 32, otherwise=block.integer("bits", 2, 8))
            merged = Block({**block.data, **own.data}, own.where)
            storage = None if bits > 8 else _integer(merged, "bits", "group_size")  # noqa: PLR2004 - bits
            rules.append(Rule(Patterns.read([name], extra.where), storage))
    return Quantization("auto-round", tuple(rules), default=_integer(block, "bits", "group_size"))


def read_mxfp4(block: Block) -> Quantization:
    """MXFP4 as transformers stores it: the routed experts alone (gpt-oss).

    Raises:
        ConfigError: a field is mistyped.
    """
    return Quantization("mxfp4", (_excluded(block), experts_rule("mxfp4", block.where)))


def read_exl3(block: Block) -> Quantization:
    """ExLlamaV3: fractional bits on average over the linear layers, other bits for the head.

    Raises:
        ConfigError: a field is missing or mistyped.
    """
    rules = [_excluded(block)]
    if block.has("head_bits"):
        head = f"exl3-{block.number('head_bits', 1, 8):g}"
        rules.append(Rule(Patterns.read(["lm_head"], block.where), head))
    return Quantization("exl3", tuple(rules), default=f"exl3-{block.number('bits', 1, 8):g}")


def read_bitsandbytes(block: Block) -> Quantization:
    """The bitsandbytes formats: 4 bits in blocks of 64 (NF4 and FP4 alike), or LLM.int8.

    Raises:
        ConfigError: a field is mistyped, or neither width is asked for.
    """
    rules = (_excluded(block, names=("llm_int8_skip_modules",)),)
    if block.flag("load_in_4bit", otherwise=False):
        double = block.flag("bnb_4bit_use_double_quant", otherwise=False)
        return Quantization("bitsandbytes", rules, default="nf4-double" if double else "nf4")
    if block.flag("load_in_8bit", otherwise=False):
        return Quantization("bitsandbytes", rules, default="int8")
    raise ConfigError(f"{block.where} has neither load_in_4bit nor load_in_8bit set to true")


def experts_rule(storage: str | None, where: str) -> Rule:
    """A rule for the routed experts of every layer."""
    return Rule(Patterns.read(["experts"], where), storage)


def _excluded(
    block: Block,
    plain: PlainNames = "components",
    names: tuple[str, ...] = ("modules_to_not_convert", "ignored_layers"),
) -> Rule:
    listed = block.names(*names)
    return Rule(Patterns.read(listed, f"{block.where}.{names[0]}", plain), None)


def _integer(block: Block, bits: str, group: str) -> str:
    width = block.integer(bits, 2, 8)
    if block.data.get(group) == -1:
        return f"int{width}-channel"
    return f"int{width}-g{block.integer(group, 1, _LARGEST_GROUP)}"


def _dynamic(block: Block, zero: str, act: str) -> list[Rule]:
    """GPTQModel's exceptions: ``-:regex`` leaves modules out, ``+:regex`` gives them their own numbers."""
    if not block.has("dynamic"):
        return []
    dynamic = block.child("dynamic")
    rules = []
    for entry in dynamic.data:
        sign, colon, regex = entry.partition(":")
        if not colon or sign not in {"-", "+"}:
            sign, regex = "+", entry
        patterns = Patterns.read([f"re:{regex}"], dynamic.where)
        if sign == "-":
            rules.append(Rule(patterns, None))
            continue
        own = Block({**block.data, **dynamic.child(entry).data}, f"{dynamic.where}.{entry}")
        rules.append(Rule(patterns, f"{_integer(own, 'bits', 'group_size')}{zero}{act}"))
    return rules
