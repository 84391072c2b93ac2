"""The model behind a file of measurements, and the parts and copies of it that drafters run."""

from __future__ import annotations

import json
from typing import Final

from rooflines.dtypes import number_format
from rooflines.errors import FileFormatError
from rooflines.measurement.schema import Inputs
from rooflines.models.readers import read_model
from rooflines.models.spec import Layer, ModelSpec

# Inputs that share a scale in a copy whose file does not say.
_GROUP_OPTION: Final = "group_size"


def measured_model(inputs: Inputs) -> ModelSpec:
    """The model that was measured.

    Raises:
        FileFormatError: the file says of no model what it is.
        RooflinesError: its config is not understood.
    """
    if inputs.config is None:
        raise FileFormatError(
            "the file holds no config.json of the model that was measured: measure with rooflines measure"
        )
    config = json.loads(inputs.config)
    return read_model(config, inputs.model)


def first_layers(model: ModelSpec, depth: int) -> ModelSpec:
    """The model cut after so many layers, with its head."""
    return model if depth == len(model.layers) else model.rebuilt(layers=model.layers[:depth])


def quantised_copy(model: ModelSpec, storage: str) -> ModelSpec:
    """The model with the linear layers of its blocks and its head in another format, its vectors as before.

    Args:
        model: what is copied.
        storage: a number format, such as ``int4-g64``.
    """
    copies = {layer: _requantised(layer, model.hidden, storage) for layer, _ in model.layer_groups}
    layers = tuple(copies[layer] for layer in model.layers)
    formats = tuple({**dict(model.formats), "head": storage}.items())
    return model.rebuilt(layers=layers, formats=formats, tied_embeddings=False)


def int4_storage(inputs: Inputs) -> str:
    """Number format of the int4 copy that a file's options describe.

    Raises:
        FileFormatError: they do not say in which groups it was made.
    """
    group = inputs.options.get(_GROUP_OPTION)
    if not isinstance(group, int) or isinstance(group, bool):
        raise FileFormatError(
            f"the options of the file do not say how many inputs share a scale of the int4 copy "
            f"({_GROUP_OPTION} is {group!r}): measure with rooflines measure"
        )
    return number_format(f"int4-g{group}").name


def _requantised(layer: Layer, hidden: int, storage: str) -> Layer:
    formats = {**dict(layer.formats), **{matrix.name: storage for matrix in layer.matrices(hidden)}}
    return layer.model_copy(update={"formats": tuple(formats.items())})
