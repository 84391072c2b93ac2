"""What measured passes did: FLOPs, bytes and kernels of each, operator by operator, ready to be fitted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from rooflines.costs.cost import Operator
from rooflines.costs.ends import head_operators
from rooflines.costs.passes import forward_pass
from rooflines.costs.setting import Parallelism, Phase, Precision, Setting, Shape
from rooflines.dtypes import number_format
from rooflines.measurement.schema import Sample
from rooflines.models.spec import ModelSpec
from rooflines.timing.forms import smooth_maximum
from rooflines.validation.measured_model import first_layers, quantised_copy

Floats = NDArray[np.float64]
Places = NDArray[np.int64]
# Cases whose arithmetic is that of a pass of the model; what a drafter of its own does is not known here.
# Nor is ``empty`` among them: a kernel on next to nothing costs the host 19-30 us where one of a real pass
# costs 29-52 us beyond its bytes (SmolLM2-135M in bf16, five files of one processor), so that pinning
# overheads to it took the median held-out error from 1.5-3.4 % to 1.8-7.3 %.
FITTED_CASES: Final = ("step", "prefill", "head", "draft")
ATTENTION: Final = "attention"
# The runner that is timed ends with logits: choosing tokens is the loop's.
_NOT_RUN: Final = "sampling"


@dataclass(frozen=True, slots=True)
class Group:
    """Operators that share constants: linear layers of one arithmetic and storage, or all attention.

    Attributes:
        name: ``attention``, or the kind of operator with its storage.
        arithmetic: dtype of the products.
        storage: format of the weights or of the cache.
    """

    name: str
    arithmetic: str
    storage: str


@dataclass(frozen=True, slots=True)
class Passes:
    """N measured passes and the M operators that they ran, all flat.

    Attributes:
        seconds: of each pass, shape [N] (s).
        whole: 1 for a pass that pays the host's time per pass, 0 for a part of one, shape [N].
        owner: pass of each operator, shape [M].
        group: place in `groups` of each operator, shape [M].
        moved_bytes: of all instances of an operator, shape [M].
        flops: likewise.
        kernels: likewise.
        groups: that occur.
    """

    seconds: Floats
    whole: Floats
    owner: Places
    group: Places
    moved_bytes: Floats
    flops: Floats
    kernels: Floats
    groups: tuple[Group, ...]

    def summed(self, values: Floats, group: int | None = None) -> Floats:
        """Sums over the operators of each pass, shape [N]; of one group only where it is given."""
        chosen = np.ones(len(values), dtype=bool) if group is None else self.group == group
        sums = np.bincount(self.owner[chosen], values[chosen], minlength=len(self.seconds))
        return sums.astype(float)

    def times(
        self,
        seconds_per_byte: Floats,
        seconds_per_flop: Floats,
        kernel_s: float,
        host_s: float,
        sharpness: float,
    ) -> Floats:
        """What the form makes of the passes, shape [N] (s).

        Args:
            seconds_per_byte: by group.
            seconds_per_flop: by group.
            kernel_s: floor of a kernel (s).
            host_s: host time per pass (s).
            sharpness: p.
        """
        memory = self.moved_bytes * seconds_per_byte[self.group]
        compute = self.flops * seconds_per_flop[self.group]
        busy = smooth_maximum(memory, compute, sharpness) + kernel_s * self.kernels
        return self.summed(np.asarray(busy)) + host_s * self.whole

    def only(self, chosen: NDArray[np.bool_]) -> Passes:
        """The passes where `chosen`, shape [N], is true."""
        kept = chosen[self.owner]
        places = np.cumsum(chosen) - 1
        return Passes(
            self.seconds[chosen],
            self.whole[chosen],
            places[self.owner[kept]],
            self.group[kept],
            self.moved_bytes[kept],
            self.flops[kept],
            self.kernels[kept],
            self.groups,
        )


def measured_passes(model: ModelSpec, samples: Sequence[Sample], int4: str | None) -> Passes:
    """Costs and median times of samples.

    Args:
        model: the one that was measured.
        samples: of `FITTED_CASES`.
        int4: number format of the int4 copy; needed where its steps are among them.
    """
    copies = {"draft": model if int4 is None else quantised_copy(model, int4)}
    rows: list[tuple[int, Operator]] = []
    for index, sample in enumerate(samples):
        operators = _operators(copies.get(sample.case, model), sample)
        rows += [(index, operator) for operator in operators if operator.name != _NOT_RUN]
    found = [_group(operator, model.dtype) for _, operator in rows]
    groups = tuple(dict.fromkeys(found))
    counted = np.array([operator.count for _, operator in rows], dtype=float)

    def column(name: str) -> Floats:
        each = np.array([float(getattr(operator.cost, name)) for _, operator in rows])
        return np.asarray(each * counted)

    return Passes(
        seconds=np.array([np.median(sample.seconds) for sample in samples]),
        whole=np.array([float(sample.case != "head") for sample in samples]),
        owner=np.array([index for index, _ in rows]),
        group=np.array([groups.index(group) for group in found]),
        moved_bytes=column("bytes_moved"),
        flops=column("matmul_flops"),
        kernels=column("kernels"),
        groups=groups,
    )


def _operators(model: ModelSpec, sample: Sample) -> Sequence[Operator]:
    batch, new, context = (float(n) for n in (sample.batch, sample.new_positions, sample.context))
    if sample.case == "head":
        setting = Setting(model, Shape(batch, new, 0.0, new), Precision(), Parallelism(), "verify")
        return [operator for operator in head_operators(setting) if operator is not None]
    phase: Phase = "prefill" if sample.case == "prefill" else "verify"
    heads = 1.0 if phase == "prefill" else new
    return forward_pass(first_layers(model, sample.depth), Shape(batch, new, context, heads), phase).operators


def _group(operator: Operator, dtype: str) -> Group:
    if operator.kind in ("decode_attention", "prefill_attention"):
        return Group(ATTENTION, operator.arithmetic, operator.storage)
    if operator.kind in ("linear", "moe"):
        return Group(operator.kind, operator.arithmetic, operator.storage)
    # What is small moves activations in the model's dtype, as its linear layers do.
    return Group("linear", operator.arithmetic, number_format(dtype).name)
