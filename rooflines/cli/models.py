"""``rooflines models``: list the presets, show what a config or checkpoint holds."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final, cast

import click

from rooflines.cli.options import emit, format_option, output_option
from rooflines.errors import FileFormatError
from rooflines.models.catalogue import list_presets
from rooflines.models.describe import (
    describe_feed_forward,
    describe_formats,
    describe_mixer,
    ranges,
)
from rooflines.models.drafter_catalogue import drafter_preset, list_drafter_presets
from rooflines.models.drafter_readers import READERS, is_drafter, read_drafter
from rooflines.models.drafters import DrafterSpec, Method
from rooflines.models.layer import Layer
from rooflines.models.readers import open_config, read_model
from rooflines.models.spec import ModelSpec
from rooflines.output.tables import document_text, render
from rooflines.units import format_quantity

SCHEMA_VERSION: Final = 1
_FOR_PEOPLE: Final = ("text", "markdown")
_LABELS: Final = {
    "parameters_total": "parameters",
    "parameters_active": "active per token",
    "parameters_active_without_embedding": "active, without input embedding",
    "parameters_mtp": "multi-token prediction, apart",
    "weight_bytes": "weights",
    "stored_bytes": "tensors in the files",
    "kv_bytes": "cache per sequence",
    "kv_bytes_per_token": "cache per token",
    "kv_dtype": "cache dtype",
    "state_bytes": "constant state per sequence",
    "not_counted": "not counted",
}


@click.group()
def models() -> None:
    """List and show models."""


@models.command("list")
@click.option("--drafters", is_flag=True, help="List the heads of drafters instead.")
@format_option
@output_option
def list_command(drafters: bool, fmt: str, output: Path | None) -> None:
    """List the presets: parameters, weights and cache in the formats of their checkpoints."""
    emit(render((_drafter_list if drafters else _model_list)(fmt), fmt), output)


def _drafter_list(fmt: str) -> dict[str, list[object]]:
    heads = [drafter_preset(name) for name in list_drafter_presets()]
    specs = [spec for spec, _ in heads]
    people = fmt in _FOR_PEOPLE
    return {
        "drafter": [f"{spec.method}:{spec.name}" for spec in specs],
        "layers": [len(spec.layers) for spec in specs],
        "hidden": [spec.hidden for spec in specs],
        _unit("parameters", people): [_count(spec.parameters, people) for spec in specs],
        _unit("weights", people, "bytes"): [_bytes(spec.weight_bytes, people) for spec in specs],
        "source": [_repository(source) if people else source for _, source in heads],
    }


def _repository(source: str) -> str:
    """Owner and name of the repository that an address of GitHub leads to."""
    return "/".join(source.removeprefix("https://github.com/").split("/")[:2])


def _model_list(fmt: str) -> dict[str, list[object]]:
    specs = [read_model(name) for name in list_presets()]
    people = fmt in _FOR_PEOPLE
    return {
        "name": [spec.name for spec in specs],
        "family": [spec.family for spec in specs],
        "layers": [len(spec.layers) + len(spec.encoder) for spec in specs],
        "hidden": [spec.hidden for spec in specs],
        _unit("parameters", people): [_count(spec.parameters_total, people) for spec in specs],
        _unit("active parameters", people): [_count(spec.parameters_active, people) for spec in specs],
        _unit("weights", people, "bytes"): [_bytes(spec.weight_bytes, people) for spec in specs],
        _unit("kv per token", people, "bytes"): [_bytes(spec.kv_bytes_per_token(), people) for spec in specs],
    }


@models.command("show")
@click.argument("source", metavar="NAME|PATH")
@click.option(
    "--context", type=click.IntRange(min=1), help="Positions per sequence, for the size of the cache."
)
@click.option("--kv-dtype", help="Number format of the cache (default: the checkpoint's).")
@click.option(
    "--drafter",
    "method",
    type=click.Choice(list(READERS)),
    help="Read it as a drafter head that drafts in this way, where the config itself does not say so.",
)
@format_option
@output_option
def show_command(
    source: str,
    context: int | None,
    kv_dtype: str | None,
    method: str | None,
    fmt: str,
    output: Path | None,
) -> None:
    """Show parameters, bytes and layers of a model or drafter.

    NAME|PATH is a preset, a config.json, a GGUF file, or a folder with a config.json.
    """
    if method or _describes_drafter(source):
        drafter = read_drafter(source, cast("Method | None", method))
        facts, layers = _drafter_facts(drafter, context, kv_dtype), drafter.layers
        encoder: tuple[Layer, ...] = ()
        hidden, dtype = drafter.hidden, drafter.dtype
    else:
        spec = read_model(source)
        facts, layers = _model_facts(spec, source, context, kv_dtype), spec.layers
        encoder = spec.encoder
        hidden, dtype = spec.hidden, spec.dtype
    if fmt == "json":
        entries = {"layers": _entries(layers, hidden, dtype), "encoder": _entries(encoder, hidden, dtype)}
        numbers = {key: _whole(value) for key, value in facts.items()}
        emit(document_text({"schema_version": SCHEMA_VERSION, **numbers, **entries}), output)
        return
    people = fmt in _FOR_PEOPLE
    shown = {key: value for key, value in facts.items() if not (people and value in (None, [], 0))}
    values = [_readable(key, value) if people else _flat(value) for key, value in shown.items()]
    names = [_LABELS.get(key, key.replace("_", " ")) if people else key for key in shown]
    tables = [render({"field": names, "value": values}, fmt)]
    tables += [
        render(_layer_table(part, hidden, dtype), fmt, title)
        for title, part in ((None, layers), ("Encoder", encoder))
        if people and part
    ]
    emit("\n\n".join(tables), output)


def _describes_drafter(source: str) -> bool:
    """Whether the config itself says that it is a drafter's; names and paths are never looked at."""
    path = Path(source)
    if not path.exists() or path.suffix == ".gguf":
        return False
    try:
        config, _ = open_config(path)
    except FileFormatError:
        return False
    return is_drafter(config)


def _model_facts(spec: ModelSpec, source: str, context: int | None, kv_dtype: str | None) -> dict[str, Any]:
    return {
        "name": spec.name,
        "family": spec.family,
        "parameters_total": spec.parameters_total,
        "parameters_active": spec.parameters_active,
        "parameters_active_without_embedding": spec.parameters_active_without_embedding,
        "parameters_mtp": spec.parameters_mtp,
        "weight_bytes": spec.weight_bytes,
        "stored_bytes": _stored_bytes(source),
        "dtype": spec.dtype,
        "kv_dtype": kv_dtype or spec.kv_dtype or spec.dtype,
        "kv_bytes_per_token": spec.kv_bytes_per_token(context, kv_dtype),
        "context": context,
        "kv_bytes": None if context is None else spec.kv_bytes(context, kv_dtype),
        "state_bytes": spec.state_bytes,
        "hidden": spec.hidden,
        "vocabulary": spec.vocabulary,
        "tied_embeddings": spec.tied_embeddings,
        "max_positions": spec.max_positions,
        "ignored_keys": list(spec.ignored_keys),
        "not_counted": list(spec.not_counted),
        "assumed": list(spec.assumed),
    }


def _drafter_facts(spec: DrafterSpec, context: int | None, kv_dtype: str | None) -> dict[str, Any]:
    return {
        "name": spec.name,
        "drafter": spec.method,
        "parameters_total": spec.parameters,
        "parameters_active": spec.parameters_active,
        "parameters_active_without_embedding": spec.parameters_active,
        "weight_bytes": spec.weight_bytes,
        "dtype": spec.dtype,
        "kv_bytes_per_token": spec.kv_bytes_per_token(kv_dtype),
        "context": context,
        "kv_bytes": None if context is None else spec.kv_bytes(context, kv_dtype),
        "shares": list(spec.shares),
        "hidden": spec.hidden,
        "vocabulary": spec.vocabulary,
        "draft_vocabulary": spec.draft_vocabulary,
        "block_size": spec.block_size,
        "draft_length": spec.draft_length,
        "verify_width": spec.verify_width,
        "ignored_keys": list(spec.ignored_keys),
        "assumed": list(spec.assumed),
    }


def _stored_bytes(source: str) -> int | None:
    """Bytes of all tensors of the checkpoint that a path leads to; None where there is none."""
    path = Path(source)
    if not path.exists():
        return None
    from rooflines.models.checkpoint import read_stored

    stored = read_stored(path)
    return None if stored is None else stored.size_bytes


def _entries(layers: tuple[Layer, ...], hidden: int, dtype: str) -> list[dict[str, Any]]:
    """One object a layer, in order."""
    return [
        {
            "index": index,
            "mixer": describe_mixer(layer.mixer),
            "feed_forward": describe_feed_forward(layer),
            "parameters": layer.parameters(hidden),
            "parameters_active": layer.parameters_active(hidden),
            "weight_bytes": layer.weight_bytes(hidden, dtype),
            "kv_elements_per_position": layer.kv_elements_per_position,
            "formats": describe_formats(layer, dtype),
        }
        for index, layer in enumerate(layers)
    ]


def _whole(value: object) -> object:
    """A number without a fraction as JSON writes integers."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _layer_table(layers: tuple[Layer, ...], hidden: int, dtype: str) -> dict[str, list[object]]:
    """One row for each distinct layer."""
    places: dict[Layer, list[int]] = {}
    for index, layer in enumerate(layers):
        places.setdefault(layer, []).append(index)
    return {
        "layers": [ranges(indices) for indices in places.values()],
        "count": [len(indices) for indices in places.values()],
        "mixer": [describe_mixer(layer.mixer) for layer in places],
        "feed-forward": [describe_feed_forward(layer) for layer in places],
        "parameters": [_count(layer.parameters(hidden), people=True) for layer in places],
        "weights": [_bytes(layer.weight_bytes(hidden, dtype), people=True) for layer in places],
        "formats": [describe_formats(layer, dtype) for layer in places],
    }


def _readable(key: str, value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(str, value))
    if isinstance(value, int | float) and "bytes" in key:
        return f"{format_quantity(value, 'byte')} ({value:,.0f} bytes)"
    if isinstance(value, int):
        return f"{_count(value, people=True)} ({value:,})" if key.startswith("parameters") else f"{value:,}"
    return str(value)


def _flat(value: object) -> object:
    return " ".join(map(str, value)) if isinstance(value, list) else value


def _count(value: int, people: bool) -> object:
    if not people:
        return value
    for scale, letter in ((10**12, "T"), (10**9, "B"), (10**6, "M")):
        if value >= scale:
            return f"{value / scale:.2f}{letter}"
    return f"{value:,}"


def _bytes(value: float, people: bool) -> object:
    return format_quantity(value, "byte") if people else value


def _unit(name: str, people: bool, unit: str = "") -> str:
    if people:
        return name
    return name.replace(" ", "_") + (f"_{unit}" if unit else "")
