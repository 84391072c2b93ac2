"""Fits the time form to measured passes of a model, where one fits, and says where none does.

A pass is the sum of its operators and of the host's time: T = host + sum of ((bytes / e_b BW)^p + (flops /
e_f F)^p)^(1/p) + t0 a kernel. With p = 1 this is linear in its coefficients, T = o + bytes / BW + flops / F,
which is what two-core CPUs do (memory and arithmetic times add); p is fitted too. Coefficients are found by
non-negative least squares on relative errors, then polished with a soft loss for every p.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from rooflines.measurement.schema import Sample
from rooflines.validation.decode_costs import Floats, Passes

SHARPNESS: Final = (1.0, 1.1, 1.25, 1.5, 2.0, 2.5, 3.0, 4.0, 8.0)
# A form that misses its own points by more than this (rms of the relative error) does not describe the
# kernels: bf16 on two cores is met to 2.4 %, fp32, whose T(n) does not even rise with n, to 11.5 %.
WORST_RMS: Final = 0.06
# The noise assumed where points happen to be met better than any clock can measure them.
_LEAST_NOISE: Final = 0.01
# Beyond this relative standard error, bandwidth and overhead cannot be told apart.
_VAGUE: Final = 0.25
_OVERHEADS: Final = ("overhead of a kernel", "host time of a pass")
_SOFT_ERROR: Final = 0.1  # errors beyond it count linearly
# Region of passes through all layers: what decoding, verifying and drafting are.
WHOLE_PASSES: Final = "all layers"
_FARTHEST: Final = 7.0  # a coefficient moves by a factor of e^7 at most from where p = 1 puts it
_TRACE: Final = 1e-3  # of the time of the pass that has most of it
_WORTH: Final = 0.95  # a p other than 1 must shrink the error to this share
_FOLDS: Final = 5
_LINE: Final = 3  # points that show a line and what departs from it
# A layer's kernels and its bytes grow together with the depth; the head has bytes and hardly any kernels.
_HEAD: Final = "the head alone, which rooflines measure decode times with its own runner"


@dataclass(frozen=True, slots=True)
class DecodeFit:
    """Coefficients of the form; those of groups in the order of `Passes.groups`.

    Attributes:
        seconds_per_byte: 1 / (e_b BW) of each group; 0 where bytes cost nothing that could be seen.
        seconds_per_flop: 1 / (e_f F) of each group; 0 likewise.
        kernel_s: floor of each kernel (s).
        host_s: host time per pass (s).
        sharpness: p.
        rms: root of the mean squared relative error of the points fitted to.
        held_out: ln(measured / predicted) of every point, predicted from a fit without it, shape [N].
        vague: coefficients that the points leave open, by name.
    """

    seconds_per_byte: Floats
    seconds_per_flop: Floats
    kernel_s: float
    host_s: float
    sharpness: float
    rms: float
    held_out: Floats
    vague: tuple[str, ...]

    @property
    def fits(self) -> bool:
        """Whether the form describes these kernels."""
        return self.rms <= WORST_RMS

    @property
    def separates(self) -> bool:
        """Whether the points tell the bandwidth of linear layers from overhead."""
        return not self.vague


def fit_decode(passes: Passes) -> DecodeFit:
    """Fit the form to measured passes.

    Args:
        passes: of one machine, stack and model.
    """
    best, sharpness, rms = _fit_every(passes)
    held_out = np.zeros(len(passes.seconds))
    fold = np.arange(len(passes.seconds)) % _FOLDS
    for out in range(_FOLDS):
        away = fold == out
        if away.any() and not away.all():
            others = _polish(passes.only(~away), _linear(passes.only(~away)), sharpness)[0]
            held_out[away] = np.log(passes.seconds[away] / _predict(passes.only(away), others, sharpness))
    bytes_s, flops_s, kernel_s, host_s = _parts(passes, best)
    return DecodeFit(bytes_s, flops_s, kernel_s, host_s, sharpness, rms, held_out, _vague(passes, best, rms))


def _fit_every(passes: Passes) -> tuple[Floats, float, float]:
    start = _linear(passes)
    found = [(*_polish(passes, start, sharpness), sharpness) for sharpness in SHARPNESS]
    added = found[0]
    coefficients, rms, sharpness = min(found, key=lambda one: one[1])
    if rms > _WORTH * added[1]:
        coefficients, rms, sharpness = added
    return coefficients, sharpness, rms


def _columns(passes: Passes) -> tuple[Floats, tuple[str, ...]]:
    """The design of p = 1, shape [N, 2 G + 2], and what its columns are."""
    columns, names = [], []
    for values, what in ((passes.moved_bytes, "bandwidth"), (passes.flops, "arithmetic")):
        for index, group in enumerate(passes.groups):
            columns.append(passes.summed(values, index))
            names.append(f"{what} of {group.name} {group.storage}")
    columns += [passes.summed(passes.kernels), passes.whole]
    return np.stack(columns, axis=1), (*names, *_OVERHEADS)


def _linear(passes: Passes) -> Floats:
    """Coefficients for p = 1: non-negative least squares on relative errors."""
    from scipy.optimize import nnls

    relative = _columns(passes)[0] / passes.seconds[:, None]
    scale = np.maximum(relative.max(axis=0), np.finfo(float).tiny)
    found: Floats = nnls(relative / scale, np.ones(len(passes.seconds)))[0] / scale
    return found


def _polish(passes: Passes, start: Floats, sharpness: float) -> tuple[Floats, float]:
    """The coefficients that are not 0, improved for one p; and the rms of the relative error."""
    from scipy.optimize import least_squares

    if sharpness > 1.0:
        # What adding times has no use for, a maximum may have: it starts as a trace.
        design = _columns(passes)[0] / passes.seconds[:, None]
        start = np.maximum(start, _TRACE / np.maximum(design.max(axis=0), np.finfo(float).tiny))
    used = start > 0

    def whole(logs: Floats) -> Floats:
        coefficients = np.zeros(len(start))
        coefficients[used] = np.exp(logs)
        return coefficients

    def errors(logs: Floats) -> Floats:
        return _predict(passes, whole(logs), sharpness) / passes.seconds - 1.0

    begin = np.log(start[used])
    bounds = (begin - _FARTHEST, begin + _FARTHEST)
    found = least_squares(errors, begin, bounds=bounds, loss="soft_l1", f_scale=_SOFT_ERROR)
    return whole(found.x), float(np.sqrt(np.mean(errors(found.x) ** 2)))


def _parts(passes: Passes, coefficients: Floats) -> tuple[Floats, Floats, float, float]:
    groups = len(passes.groups)
    *_, kernel_s, host_s = coefficients
    return coefficients[:groups], coefficients[groups : 2 * groups], float(kernel_s), float(host_s)


def _predict(passes: Passes, coefficients: Floats, sharpness: float) -> Floats:
    return passes.times(*_parts(passes, coefficients), sharpness)


def _vague(passes: Passes, coefficients: Floats, rms: float) -> tuple[str, ...]:
    """The bandwidth of the weights that most bytes are read of, where its standard error is too large.

    Overheads stay among the other columns even where they came out as nothing: that they may be something is
    the question. A copy in another format is only asked for passes like those it was timed in.
    """
    design, names = _columns(passes)
    relative = design / passes.seconds[:, None]
    moved = np.bincount(passes.group, passes.moved_bytes, minlength=len(passes.groups))
    place = int(np.argmax(moved))
    kept = (coefficients > 0) | np.isin(names, _OVERHEADS)
    others = kept & (np.arange(len(names)) != place)
    scaled = relative[:, others] / np.maximum(relative[:, others].max(axis=0), np.finfo(float).tiny)
    left = relative[:, place] - scaled @ np.linalg.lstsq(scaled, relative[:, place], rcond=None)[0]
    known = coefficients[place] * float(np.linalg.norm(left))
    return (names[place],) if known * _VAGUE <= max(rms, _LEAST_NOISE) else ()


def missing_axes(samples: Sequence[Sample]) -> tuple[str, ...]:
    """What should vary besides the width, so that bandwidth and overhead come apart; in words."""
    steps = [sample for sample in samples if sample.case == "step"]
    heads = () if any(sample.case == "head" for sample in samples) else (_HEAD,)
    wanted = (
        ("depth", "layers that run (--depth), such as 1, a third and all"),
        ("context", "cached positions (--context), such as 16, 128 and 1024"),
        ("batch", "sequences (--batch), such as 1, 4 and 16"),
    )
    few = [words for axis, words in wanted if len({getattr(one, axis) for one in steps}) < _LINE]
    return (*few, *heads)


def regions(samples: Sequence[Sample]) -> dict[str, NDArray[np.bool_]]:
    """Parts of the range that residuals are told for, with the samples of each, shape [N]."""
    case = np.array([sample.case for sample in samples])
    width = np.array([sample.batch * sample.new_positions for sample in samples])
    depth = np.array([sample.depth for sample in samples])
    whole = depth == depth.max()
    step = whole & (case == "step")
    found = {
        "all": np.ones(len(case), dtype=bool),
        WHOLE_PASSES: step | (whole & (case == "draft")),
        "decode": step & (width == 1),
        "2-8 positions": step & (width > 1) & (width <= 8),  # noqa: PLR2004 - usual draft lengths
        "9 positions and more": step & (width > 8),  # noqa: PLR2004 - likewise
        "prefill": case == "prefill",
        "draft": whole & (case == "draft"),
        "parts": ~whole,
    }
    return {name: chosen for name, chosen in found.items() if chosen.any()}
