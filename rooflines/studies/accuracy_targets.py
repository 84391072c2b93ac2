"""What was asked of the accuracy of predictions, and what was reached."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from rooflines.studies.accuracy import Accuracy, kernel_verdicts
from rooflines.validation.judge import EVERYWHERE, Verdict, verdicts

_REGIONS: Final = ("m <= 64", "m 65-512", "m > 512")
_PROMPTS: Final = ("prompt <= 512", "prompt 513-2048", "prompt > 2048")
_PREMIUMS: Final = ("n 2-16", "n 17-64", "n 65-128", "n 129-512")
_LARGE: Final = 100
LEAST_COVERAGE, MOST_COVERAGE = 0.85, 0.95


@dataclass(frozen=True, slots=True)
class Target:
    """One thing that was asked.

    Attributes:
        what: in words.
        asked: largest error allowed (a fraction); for coverage the least share of groups.
        reached: what it is; None where no rows tell.
        plain: the same of the plain roofline; None where it has no meaning.
        worst: the largest of the groups.
        groups: how many groups it is over.
        over: mean, median or largest of the groups.
        standing: out of sample or in sample.
    """

    what: str
    asked: float
    reached: float | None
    plain: float | None
    worst: float | None
    groups: int
    over: str
    standing: str

    @property
    def met(self) -> bool | None:
        """Whether it was reached; None where no rows tell."""
        if self.reached is None:
            return None
        return self.reached >= self.asked if "coverage" in self.what else self.reached <= self.asked


def targets(found: Accuracy) -> list[Target]:
    """All targets, with what was reached."""
    kernels, layers = kernel_verdicts(found), verdicts(found.layers)
    ours = [one for one in layers if one.group.engine != "vidur"]
    theirs = [one for one in layers if one.group.engine == "vidur"]
    return [
        *_by_region("16-bit products", kernels, _of("linear", "bf16"), _REGIONS, (0.05, 0.07, 0.065)),
        _worst_group(kernels),
        *_mean_of_regions(kernels),
        *_by_region("16-bit layers", ours, _of("layer", "bf16"), _REGIONS, (0.04, 0.05, 0.05)),
        *_by_region(
            "16-bit verify premium",
            ours,
            _of("layer", "bf16", "verify premium"),
            _PREMIUMS,
            (0.02, 0.03, 0.04, 0.06),
        ),
        _target("layers of another stack (Vidur)", theirs, _of("layer", "bf16"), EVERYWHERE, 0.12),
        _target("decode attention", kernels, _of("decode_attention"), EVERYWHERE, 0.045, over=np.median),
        *_by_region("prefill attention", kernels, _of("prefill_attention"), _PROMPTS, (0.11, 0.09, 0.06)),
        _target("experts, balanced", kernels, _of("moe", variant="balanced"), EVERYWHERE, 0.10),
        _target("experts, power law", kernels, _of("moe", variant="power_law"), EVERYWHERE, 0.14),
        _target("all-reduces", kernels, _of("collective"), EVERYWHERE, 0.065, over=np.median),
        _target(
            "16-bit products of a device without a measurement",
            verdicts(found.transferred),
            _of("linear"),
            EVERYWHERE,
            0.08,
        ),
        _coverage(kernels),
    ]


Filter = Callable[[Verdict], bool]


def _of(operator: str, dtype: str = "", quantity: str = "time", variant: str = "") -> Filter:
    return lambda one: (
        one.group.operator == operator
        and one.quantity == quantity
        and (not dtype or one.group.dtype == dtype)
        and one.group.variant.startswith(variant)
    )


def _target(
    what: str,
    found: Sequence[Verdict],
    wanted: Filter,
    region: str,
    asked: float,
    *,
    over: Callable[[Sequence[float]], object] = np.mean,
) -> Target:
    """Mean (or median) over groups of the median error in one region."""
    chosen = [one for one in found if wanted(one) and one.region == region]
    if not chosen:
        return Target(what, asked, None, None, None, 0, "mean" if over is np.mean else "median", "")
    errors = [one.median_abs_error for one in chosen]
    standings = {one.standing for one in chosen}
    return Target(
        what,
        asked,
        float(str(over(errors))),
        float(str(over([one.plain_median_abs_error for one in chosen]))),
        max(errors),
        len(chosen),
        "mean" if over is np.mean else "median",
        standings.pop() if len(standings) == 1 else "mixed",
    )


def _by_region(
    what: str, found: Sequence[Verdict], wanted: Filter, regions: Sequence[str], asked: Sequence[float]
) -> list[Target]:
    return [
        _target(f"{what}, {region}", found, wanted, region, limit)
        for region, limit in zip(regions, asked, strict=True)
    ]


def _worst_group(found: Sequence[Verdict]) -> Target:
    means = list(_region_means(found, "bf16").values())
    reached = max((mean for mean, _ in means), default=None)
    plain = max((mean for _, mean in means), default=None)
    return Target(
        "16-bit products, mean of regions", 0.12, reached, plain, reached, len(means), "largest", _OUT
    )


_OUT: Final = "out of sample"


def _mean_of_regions(found: Sequence[Verdict]) -> list[Target]:
    made = []
    for dtype in ("fp8", "fp8-block", "nvfp4"):
        means = list(_region_means(found, dtype).values())
        if not means:
            continue
        ours = [mean for mean, _ in means]
        made.append(
            Target(
                f"{dtype} products, mean of regions",
                0.10,
                float(np.mean(ours)),
                float(np.mean([plain for _, plain in means])),
                max(ours),
                len(means),
                "mean",
                _OUT,
            )
        )
    return made


def _region_means(found: Sequence[Verdict], dtype: str) -> dict[str, tuple[float, float]]:
    """Mean over the three regions of a group's median errors, of ours and of the plain roofline."""
    by_group: dict[str, list[Verdict]] = {}
    for one in found:
        if one.group.operator == "linear" and one.group.dtype == dtype and one.region in _REGIONS:
            by_group.setdefault(str(one.group), []).append(one)
    return {
        group: (
            float(np.mean([one.median_abs_error for one in parts])),
            float(np.mean([one.plain_median_abs_error for one in parts])),
        )
        for group, parts in by_group.items()
    }


def _coverage(found: Sequence[Verdict]) -> Target:
    """Share of the large groups whose coverage lies between 85 and 95 %, to the percent."""
    covered = [
        round(one.coverage, 2)
        for one in found
        if one.region == EVERYWHERE and one.rows >= _LARGE and one.coverage is not None
    ]
    inside = [LEAST_COVERAGE <= share <= MOST_COVERAGE for share in covered]
    reached = float(np.mean(inside)) if inside else None
    worst = min(covered, default=None)
    return Target(
        "groups of 100 rows or more with coverage of 85-95 %",
        1.0,
        reached,
        None,
        worst,
        len(inside),
        "share",
        _OUT,
    )
