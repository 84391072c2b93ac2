"""From a priced part to tidy rows: one point a row, units in the names, no speed for what does not fit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from rooflines.studies.sweep.boxes import box_shape
from rooflines.studies.sweep.columns import EXTRAPOLATED, OF_ENDS, VERIFY_BOUND, Outputs
from rooflines.studies.sweep.grid import SweepGrid
from rooflines.studies.sweep.parts import Part, axes_of, served
from rooflines.studies.sweep.price import price_grid
from rooflines.timing.roofline import BOUNDS

if TYPE_CHECKING:
    import pyarrow as pa

# What a row is about; the columns of a grid's file come after these.
_NAMES: Final = (
    "hardware",
    "target",
    "drafter",
    "tensor_parallel",
    "expert_parallel",
    "weight_dtype",
    "kv_dtype",
)
KEYS: Final = (*_NAMES, "batch", "context", "draft_length", "acceptance", "acceptance_given")
# Columns that hold even where the configuration does not fit.
_WITHOUT_TIME: Final = frozenset({"fits", "memory_bytes", "verify_width", "tokens_per_cycle", EXTRAPOLATED})


def part_table(part: Part, grid: SweepGrid) -> pa.Table:
    """Price a part.

    Columns of `KEYS` are dictionary-encoded or whole numbers; ``acceptance`` is the constant rate (null where
    another model was given), ``acceptance_given`` what the grid says. Times of what does not fit are null,
    and so are ends of intervals where constants state no errors.
    """
    import pyarrow as pa

    axes = axes_of(part.case, grid, part.draft_lengths).cut(part.box)
    priced = price_grid(served(part.case, grid), axes, tuple(dict.fromkeys(("fits", *grid.columns))))
    names, columns = [], []
    for name, column in (*_keys(part, grid), *_outputs(priced, grid)):
        names.append(name)
        columns.append(column)
    return pa.table(columns, names=names)


def _keys(part: Part, grid: SweepGrid) -> list[tuple[str, pa.Array]]:
    """What each row is about."""
    import pyarrow as pa

    case, shape, rows = part.case, box_shape(part.box), part.rows
    same = pa.array(np.zeros(rows, dtype=np.int8))
    columns = []
    for name in _NAMES:
        value = getattr(case, name)
        if isinstance(value, str):
            columns.append((name, pa.DictionaryArray.from_arrays(same, pa.array([value]))))
        else:
            columns.append((name, pa.array(np.full(rows, value, dtype=np.int32))))
    batch, context, length, rate = part.box
    columns += [
        ("batch", pa.array(_along(np.array(grid.batch[batch], dtype=np.int32), 0, shape))),
        ("context", pa.array(_along(np.array(grid.context[context], dtype=np.int32), 1, shape))),
        ("draft_length", pa.array(_along(np.array(part.draft_lengths[length], dtype=np.int32), 2, shape))),
    ]
    given = case.acceptance[rate]
    constant = [value if isinstance(value, float) else np.nan for value in given]
    at = _along(np.arange(len(given), dtype=np.int32), 3, shape)
    numbers = pa.array(_along(np.array(constant), 3, shape), from_pandas=True)
    texts = pa.DictionaryArray.from_arrays(pa.array(at), pa.array([f"{value}" for value in given]))
    return [*columns, ("acceptance", numbers), ("acceptance_given", texts)]


def _along(values: NDArray[Any], axis: int, shape: tuple[int, ...]) -> NDArray[Any]:
    """The values of one axis at each point of a grid, flat."""
    stretched = values.reshape([-1 if at == axis else 1 for at in range(len(shape))])
    return np.broadcast_to(stretched, shape).reshape(-1)


def _outputs(priced: Outputs, grid: SweepGrid) -> list[tuple[str, pa.Array]]:
    """What was computed, without copying what varies with all axes."""
    fits = np.asarray(priced["fits"], dtype=bool).reshape(-1)
    columns = []
    for name in grid.columns:
        flat = np.ascontiguousarray(priced[name].reshape(-1))
        shown = np.ones_like(fits) if name in _WITHOUT_TIME else fits
        columns.append((name, _column(name, flat, shown & ~np.isnan(flat) if name in OF_ENDS else shown)))
    return columns


def _column(name: str, flat: NDArray[Any], shown: NDArray[np.bool_]) -> pa.Array:
    """A column that is null where nothing is to be shown."""
    import pyarrow as pa

    valid = None if shown.all() else pa.py_buffer(np.packbits(shown, bitorder="little"))
    if name == VERIFY_BOUND:
        codes = pa.Array.from_buffers(pa.int8(), len(flat), [valid, pa.py_buffer(flat)])
        return pa.DictionaryArray.from_arrays(codes, pa.array(BOUNDS))
    if valid is None:
        return pa.array(flat)
    return pa.Array.from_buffers(pa.float64(), len(flat), [valid, pa.py_buffer(flat)])
