"""What a pass does outside its layers: embedding, head, sampling, and further tables and matrices."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from rooflines.costs.cost import Cost, Operator
from rooflines.costs.linear import all_reduce, linear, small
from rooflines.costs.setting import Setting
from rooflines.dtypes import NumberFormat, number_format
from rooflines.models.layer import VECTORS
from rooflines.models.spec import Matrix, ModelSpec

_LOGIT_BYTES: Final = 4  # engines sample from fp32 logits


def format_outside(model: ModelSpec, name: str) -> NumberFormat:
    """Storage format of a matrix outside the layers; a tied head is stored as the embedding is."""
    if name == "head" and model.tied_embeddings:
        name = "embedding"
    return number_format(dict(model.formats).get(name, model.dtype))


def head_on_device(model: ModelSpec, ranks: int) -> Matrix:
    """The rows of the head that one device holds; engines pad the vocabulary to a multiple of the degree."""
    return Matrix("head", model.head.inputs, -(-model.vocabulary // ranks), model.head_bias)


def embedding_operators(setting: Setting) -> list[Operator | None]:
    """Gathered rows of all tables, and what brings them to the width of the layers."""
    model, tokens = setting.model, setting.shape.tokens
    width = model.embedding_width or model.hidden
    rows = width * format_outside(model, "embedding").bytes_per_element
    if model.position_rows:
        rows += model.hidden * format_outside(model, VECTORS).bytes_per_element
    rows += sum(
        table.inputs * format_outside(model, table.name).bytes_per_element for table in model.gathered
    )
    written = width + sum(table.inputs for table in model.gathered)
    moved = tokens * (rows + written * setting.activation_bytes)
    norm = None
    if model.embedding_norm:
        norm = _norm("embedding norm", setting)
    entry = [matrix for matrix in model.embedding_projections if matrix.name == "embedding_in"]
    return [
        Operator("embedding gather", "small", Cost(activation_bytes=moved, kernels=1.0)),
        all_reduce("embedding all-reduce", tokens * width, setting),
        norm,
        *_projections((*entry, *model.extras), setting),
    ]


def _projections(matrices: Iterable[Matrix], setting: Setting) -> list[Operator]:
    model = setting.model
    return [
        linear(
            matrix.name.replace("_", " "),
            [matrix],
            [format_outside(model, matrix.name)],
            setting.shape.tokens,
            setting,
        )
        for matrix in matrices
    ]


def _norm(name: str, setting: Setting) -> Operator:
    model = setting.model
    elements = model.hidden * (2 if model.norm_bias else 1)
    tokens = setting.shape.tokens if name != "final norm" else setting.shape.head_tokens
    return small(
        name,
        2 * tokens * model.hidden,
        setting,
        flops=(7 if model.norm_bias else 4) * tokens * model.hidden,
        weights=elements * format_outside(model, VECTORS).bytes_per_element,
    )


def head_operators(setting: Setting) -> list[Operator | None]:
    """Final norm, head and sampling on the positions whose logits are needed."""
    model, tokens, ranks = setting.model, setting.shape.head_tokens, setting.parallelism.tensor
    leaving = [matrix for matrix in model.embedding_projections if matrix.name == "embedding_out"]
    gathered = tokens * model.vocabulary * setting.activation_bytes * (ranks - 1) / ranks
    sampling = Cost(
        vector_flops=5.0 * tokens * model.vocabulary,
        activation_bytes=tokens * model.vocabulary * _LOGIT_BYTES,
        kernels=1.0,
    )
    return [
        _norm("final norm", setting) if model.final_norm else None,
        *(
            linear("embedding out", [matrix], [format_outside(model, matrix.name)], tokens, setting)
            for matrix in leaving
        ),
        linear(
            "head",
            [head_on_device(model, ranks)],
            [format_outside(model, "head")],
            tokens,
            setting,
            vectors=format_outside(model, VECTORS),
        ),
        Operator("logits all-gather", "collective", Cost(network_bytes=gathered, kernels=1.0), ranks=ranks)
        if ranks > 1
        else None,
        Operator("sampling", "small", sampling),
    ]
