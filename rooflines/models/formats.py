"""Number formats of every matrix of a model, out of what its checkpoint says."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import TypeVar

from rooflines.facts import Fact
from rooflines.models.layer import VECTORS, Layer
from rooflines.models.matrix import Matrix
from rooflines.models.module_names import module_names, outer_module_name
from rooflines.models.quantization import Quantization
from rooflines.models.spec import ModelSpec

_Fact = TypeVar("_Fact", bound=Fact)
# The format of one matrix of a layer, given the layer's number; None for the model's own dtype.
LayerFormat = Callable[[int, Layer, Matrix], str | None]


def quantised(spec: ModelSpec, quantization: Quantization) -> ModelSpec:
    """The model with the formats of a quantised Hugging Face checkpoint.

    The embedding keeps the model's dtype, and with it a head that is tied to it.

    Raises:
        ConfigError: experts of one layer in different formats.
        UnsupportedArchitectureError: a matrix whose module is not known.
    """
    known: dict[Hashable, str | None] = {}
    signatures = [quantization.layer_signature(index) for index in range(len(spec.layers))]

    def layer_format(index: int, layer: Layer, matrix: Matrix) -> str | None:
        key = (id(layer), signatures[index], matrix.name)
        if key not in known:
            paths = module_names(spec.family, index, layer, matrix.name)
            known[key] = quantization.format_of(*paths, copies=matrix.copies)
        return known[key]

    def draft_format(index: int, layer: Layer, matrix: Matrix) -> str | None:
        after = module_names(spec.family, len(spec.layers) + index, layer, matrix.name)
        tails = (path.partition(f".{len(spec.layers) + index}.")[2] for path in after)
        own = (f"mtp.layers.{index}.{tail}" for tail in tails)
        return quantization.format_of(*after, *own, copies=matrix.copies)

    def encoder_format(index: int, layer: Layer, matrix: Matrix) -> str | None:
        return quantization.format_of(*module_names(f"{spec.family}/encoder", index, layer, matrix.name))

    outside = [*spec.embedding_projections, *spec.extras, *([] if spec.tied_embeddings else [spec.head])]
    named = {m.name: quantization.format_of(outer_module_name(spec.family, m.name)) for m in outside}
    return with_formats(
        spec,
        layer_format,
        {name: storage for name, storage in named.items() if storage},
        draft_format=draft_format,
        encoder_format=encoder_format,
        kv_dtype=quantization.kv or spec.kv_dtype,
        assumed=(*spec.assumed, *quantization.assumed),
    )


def remade(fact: _Fact, **changes: object) -> _Fact:
    """The fact with other values; unlike `model_copy`, nothing that was computed from the old ones stays."""
    copy = fact.model_copy(update=changes)
    for name in set(vars(copy)) - set(type(fact).model_fields):  # what cached_property kept
        del vars(copy)[name]
    return copy


def with_formats(
    spec: ModelSpec,
    layer_format: LayerFormat,
    outer: Mapping[str, str],
    *,
    draft_format: LayerFormat | None = None,
    encoder_format: LayerFormat | None = None,
    vectors: str | None = None,
    **others: object,
) -> ModelSpec:
    """The model with a format for every matrix.

    Args:
        spec: the model.
        layer_format: of matrices in the layers.
        outer: of matrices outside them (``embedding``, ``head``, ...).
        draft_format: of matrices in multi-token-prediction layers, counted over all modules.
        encoder_format: of matrices in an encoder's layers.
        vectors: of norms and biases; None for the model's own dtype.
        others: further fields of the model to set.
    """
    common = {VECTORS: vectors} if vectors else {}
    layers = _with_formats(spec.layers, spec.hidden, layer_format, common)
    if encoder_format is not None:
        others["encoder"] = _with_formats(spec.encoder, spec.hidden, encoder_format, common)
    mtp, first = [], 0
    for module in spec.mtp:
        if draft_format is None:
            mtp.append(module)
            continue
        own = _with_formats(module.layers, spec.hidden, draft_format, common, first)
        mtp.append(remade(module, layers=own))
        first += len(module.layers)
    formats = tuple({**dict(spec.formats), **outer, **common}.items())
    return remade(spec, layers=layers, mtp=tuple(mtp), formats=formats, **others)


def _with_formats(
    layers: Iterable[Layer],
    hidden: int,
    layer_format: LayerFormat,
    common: Mapping[str, str],
    first: int = 0,
) -> tuple[Layer, ...]:
    """Layers with their formats; layers that were equal and have equal formats stay one object."""
    matrices: dict[int, tuple[Matrix, ...]] = {}
    kept: dict[tuple[int, tuple[tuple[str, str], ...]], Layer] = {}
    result = []
    for index, layer in enumerate(layers, first):
        if id(layer) not in matrices:
            matrices[id(layer)] = layer.matrices(hidden)
        named = ((matrix.name, layer_format(index, layer, matrix)) for matrix in matrices[id(layer)])
        own = [(name, storage) for name, storage in named if storage is not None]
        formats = (*own, *common.items())
        key = (id(layer), formats)
        if key not in kept:
            kept[key] = remade(layer, formats=formats) if formats else layer
        result.append(kept[key])
    return tuple(result)
