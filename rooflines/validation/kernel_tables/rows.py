"""What a table of measured kernels becomes: groups of rows, each with the operators that it timed."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from rooflines.costs.cost import Cost, Operator

Floats = NDArray[np.float64]
Texts = NDArray[np.str_]
Chosen = NDArray[np.bool_]
# Implementations that an engine has beside the one it takes by itself: on Blackwell, SGLang's attention is
# trtllm_mha unless --attention-backend says flashinfer (https://docs.sglang.ai/advanced_features/attention_backend.html).
CHOSEN_KERNELS: Final = frozenset({("sglang", "flashinfer")})


@dataclass(frozen=True, slots=True, order=True)
class Group:
    """Rows that one set of constants answers for.

    Attributes:
        device: id of the hardware profile.
        engine: what ran the kernels, e.g. ``vllm``.
        version: of the engine, as the table writes it.
        kernel: the table's name for the implementation; empty where it gives none.
        operator: ``linear``, ``layer`` (the four products of a dense layer), ``decode_attention``,
            ``prefill_attention``, ``moe``, ``collective`` or ``small``.
        dtype: format of the weights, or of the cached keys and values.
        variant: what else tells groups apart (how experts were chosen, how many devices took part).
    """

    device: str
    engine: str
    version: str
    kernel: str
    operator: str
    dtype: str
    variant: str = ""

    @property
    def stack(self) -> str:
        """Engine and version, as calibrations name the software, and the kernel where a user chose it."""
        return " ".join(part for part in (self.engine, self.version, self._chosen) if part)

    @property
    def _chosen(self) -> str:
        return self.kernel if (self.engine, self.kernel) in CHOSEN_KERNELS else ""

    def __str__(self) -> str:
        kernel = "" if self._chosen else self.kernel
        parts = (self.device, self.stack, kernel, self.operator, self.dtype, self.variant)
        return " ".join(part for part in parts if part)


@dataclass(frozen=True, slots=True)
class KernelRows:
    """Used rows of one group; arrays have one value a row (N).

    Attributes:
        group: where they belong.
        operators: what one row timed, one after another; the fields are arrays (N) or shared numbers.
        measured_s: what it took (s).
        shape: which weight or head shape a row belongs to; rows of one shape are held out together.
        region: in which part of the range a row lies; errors are told apart by it.
        size: what the region was read from (positions m, KV bytes, query tokens, message bytes).
        line: line of the row in its file, the header being line 1.
    """

    group: Group
    operators: tuple[Operator, ...]
    measured_s: Floats
    shape: Texts
    region: Texts
    size: Floats
    line: NDArray[np.int64]

    def rows(self, chosen: Chosen) -> KernelRows:
        """The rows where `chosen` (N) is true."""
        return replace(
            self,
            operators=tuple(take(operator, chosen) for operator in self.operators),
            measured_s=self.measured_s[chosen],
            shape=self.shape[chosen],
            region=self.region[chosen],
            size=self.size[chosen],
            line=self.line[chosen],
        )


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Rows of one group that are not used.

    Attributes:
        group: where they belong, as far as it is known.
        reason: why they cannot be judged.
        lines: of the rows in their file, the header being line 1.
    """

    group: Group
    reason: str
    lines: tuple[int, ...]

    @property
    def rows(self) -> int:
        """How many."""
        return len(self.lines)


@dataclass(frozen=True, slots=True)
class KernelTable:
    """One file.

    Attributes:
        file: its name, without folders.
        kind: what it lists, e.g. ``linear kernels``.
        groups: the used rows by group.
        left_out: the others, with reasons.
    """

    file: str
    kind: str
    groups: tuple[KernelRows, ...]
    left_out: tuple[LeftOut, ...]


def take(operator: Operator, chosen: Chosen) -> Operator:
    """The operator of the rows where `chosen` (N) is true; numbers that all rows share stay as they are."""
    cost = {field.name: _rows(getattr(operator.cost, field.name), chosen) for field in fields(Cost)}
    return replace(
        operator,
        cost=Cost(**cost),
        rows=_rows(operator.rows, chosen),
        outputs=_rows(operator.outputs, chosen),
        query_rows=_rows(operator.query_rows, chosen),
        query_tokens=_rows(operator.query_tokens, chosen),
        tokens_per_expert=_rows(operator.tokens_per_expert, chosen),
    )


def _rows(value: float | Floats, chosen: Chosen) -> float | Floats:
    return value[chosen] if isinstance(value, np.ndarray) and value.ndim else value
