"""Rules that most wrong tables of hardware break: sparse peaks, other chips' figures, GB taken for GiB.

A rule looks at what a profile states and is silent about what it does not. Where a device differs for a
known reason, its profile lists an exception with the reason; an exception that is not needed fails too.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from rooflines.errors import bare
from rooflines.hardware.profile import UNVERIFIED, HardwareProfile

Outcome = tuple[str, str | None]
Rule = Callable[[HardwareProfile], Iterator[Outcome]]

# FLOP per clock and compute unit: dense 16-bit with FP32 accumulate, and the FP32 vector units. The longest
# name that fits counts.
# Volta, GA100 and Hopper: https://forums.developer.nvidia.com/t/244727, which quotes the white papers.
# The others are derived: the power of two nearest to the vendor's dense peak / (units x clock).
_DENSE_RATE: Final = {
    "Volta": (1024, 128),
    "Turing": (1024, 128),
    "Ampere GA100": (2048, 128),
    "Ampere GA102": (1024, 256),
    "Ampere GA10B": (2048, 256),
    "Ada": (1024, 256),
    "Hopper": (4096, 256),
    "Blackwell": (8192, 256),
    "Blackwell GB20": (1024, 256),
    "CDNA2": (1024, 128),
    "CDNA3": (2048, 256),
    "CDNA4": (4096, 256),
    "RDNA3": (512, 256),
    "Xe-HPC": (4096, 256),
    "Xe2-HPG": (2048, 256),
    "Apple GPU": (256, 256),
}
_FP8_IS_TWICE_BF16: Final = ("Ada", "Hopper", "Blackwell")
# How many times the 16-bit rate a matrix unit of the same width can reach.
_NARROWER: Final = {
    "tf32": 0.5,
    "fp8": 2,
    "fp8_acc16": 2,
    "fp8_mx": 2,
    "int8": 2,
    "fp6": 4,
    "int4": 4,
    "fp4": 4,
}
_VECTOR: Final = ("fp32", "fp64", "fp64_tensor")
_TOLERANCE: Final = 0.10
_FP8_TOLERANCE: Final = 0.05
_RIDGE_RANGE: Final = (20.0, 1000.0)
_URL: Final = re.compile(r"https?://[^\s/]+\.[^\s/]+(/\S*)?")


@dataclass(frozen=True, slots=True)
class Finding:
    """What one rule says about one field.

    Attributes:
        rule: its name.
        field: where in the profile.
        verdict: ``holds``, ``fails`` or ``excepted``.
        detail: what is wrong, or the reason of the exception; empty where the rule holds.
    """

    rule: str
    field: str
    verdict: Literal["holds", "fails", "excepted"]
    detail: str = ""


def lint_profile(profile: HardwareProfile) -> tuple[Finding, ...]:
    """Apply every rule to a profile; what a rule cannot check, for lack of facts, gives no finding."""
    reasons = {(one.rule, field): one.reason for one in profile.exceptions for field in one.fields}
    findings = []
    used = set()
    for rule, check in RULES.items():
        for field, problem in check(profile):
            if problem is not None and (rule, field) in reasons:
                used.add((rule, field))
                findings.append(Finding(rule, field, "excepted", reasons[rule, field]))
            else:
                findings.append(_finding(rule, field, problem))
    findings += [
        Finding(rule, field, "fails", "this exception is not needed: remove it")
        for rule, field in reasons
        if (rule, field) not in used
    ]
    return tuple(findings)


def lint_names(profiles: Sequence[tuple[str, HardwareProfile]]) -> list[tuple[str, Finding]]:
    """Rules about several profiles: a file is named after its id, and a name belongs to one device.

    Args:
        profiles: name of the file without ``.toml``, and what is in it.

    Returns:
        Profile id and finding.
    """
    findings = []
    owners: dict[str, str] = {}
    for stem, profile in profiles:
        problem = f"the file is called {stem}.toml: rename it to {profile.id}.toml, so that the id finds it"
        findings.append((profile.id, _finding("file-name", "id", None if stem == profile.id else problem)))
        for name in (profile.id, profile.name, *profile.aliases):
            owner = owners.setdefault(bare(name), profile.id)
            problem = f"{name!r} is also a name of {owner}"
            findings.append(
                (profile.id, _finding("one-owner", "aliases", None if owner == profile.id else problem))
            )
    return findings


def _finding(rule: str, field: str, problem: str | None) -> Finding:
    return Finding(rule, field, "holds") if problem is None else Finding(rule, field, "fails", problem)


def _power_of_two(profile: HardwareProfile) -> Iterator[Outcome]:
    for dtype, rate in _flop_per_clock(profile):
        nearest = 2 ** round(math.log2(rate))
        off = rate / nearest - 1
        problem = f"{rate:.0f} FLOP per clock and unit is {off:+.0%} from {nearest}, the nearest power of two"
        yield f"peaks.{dtype}", problem if abs(off) > _TOLERANCE else None


def _dense_rate(profile: HardwareProfile) -> Iterator[Outcome]:
    names = [name for name in _DENSE_RATE if profile.architecture.startswith(name)]
    if not names:
        return
    dense, vector = _DENSE_RATE[max(names, key=len)]
    # GeForce cards halve the rate of FP32 accumulation:
    # https://images.nvidia.com/aem-dam/Solutions/geforce/ada/nvidia-ada-gpu-architecture.pdf, appendix A.
    most = dense // 2 if "GeForce" in profile.name else dense
    rates = dict(_flop_per_clock(profile))
    if not rates and "fp32" in profile.peaks:
        # Without a clock the vector units tell how many unit clocks there are in a second.
        rates = {
            key: vector * peak.value.si / profile.peaks["fp32"].value.si
            for key, peak in profile.peaks.items()
        }
    for dtype in rates.keys() & {"bf16", "fp16"}:
        problem = (
            f"{rates[dtype]:.0f} FLOP per clock and unit; this architecture does {most} dense: a sparse peak?"
        )
        yield f"peaks.{dtype}", problem if rates[dtype] > most * (1 + _TOLERANCE) else None


def _flop_per_clock(profile: HardwareProfile) -> Iterator[tuple[str, float]]:
    """Dtype and FLOP per clock and compute unit, where the clock of that peak and the units are stated."""
    # A CPU's peak is quoted at its base clock, a GPU's vector peak at the boost clock.
    boost = profile.base_clock if profile.kind == "cpu" else profile.boost_clock
    for dtype, peak in profile.peaks.items():
        clock = boost if dtype in _VECTOR else profile.tensor_clock or boost
        if clock is not None and profile.compute_units is not None:
            yield dtype, peak.value.si / (clock.value.si * profile.compute_units.value.si)


def _fp8_twice_bf16(profile: HardwareProfile) -> Iterator[Outcome]:
    if profile.vendor == "NVIDIA" and profile.architecture.startswith(_FP8_IS_TWICE_BF16):
        fp8, bf16 = profile.peaks.get("fp8"), profile.peaks.get("bf16")
        if fp8 is not None and bf16 is not None:
            ratio = fp8.value.si / bf16.value.si
            problem = (
                f"fp8 is {ratio:.2f} x bf16; it is 2 x on {profile.architecture}: is one of them sparse?"
            )
            yield "peaks.fp8", problem if abs(ratio / 2 - 1) > _FP8_TOLERANCE else None


def _one_16_bit_rate(profile: HardwareProfile) -> Iterator[Outcome]:
    bf16, fp16 = profile.peaks.get("bf16"), profile.peaks.get("fp16")
    if bf16 is not None and fp16 is not None:
        off = fp16.value.si / bf16.value.si - 1
        problem = f"fp16 is {off:+.0%} from bf16; matrix units run both at one rate"
        yield "peaks.fp16", problem if abs(off) > _TOLERANCE else None


def _narrow_rates(profile: HardwareProfile) -> Iterator[Outcome]:
    wide = [profile.peaks[key].value.si for key in ("bf16", "fp16", "fp16_acc16") if key in profile.peaks]
    if not wide:
        return
    for dtype, most in _NARROWER.items():
        if dtype in profile.peaks:
            ratio = profile.peaks[dtype].value.si / max(wide)
            problem = f"{dtype} is {ratio:.2f} x the 16-bit rate; its width allows {most:g} x: a sparse peak?"
            yield f"peaks.{dtype}", problem if ratio > most * (1 + _TOLERANCE) else None


def _capacity(profile: HardwareProfile) -> Iterator[Outcome]:
    actual, nominal = profile.memory_capacity, profile.memory_capacity_nominal
    if actual is not None and nominal is not None:
        off = actual.value.si / nominal.value.si - 1
        problem = f"{actual.value.text} is {off:+.1%} from the nominal {nominal.value.text}"
        yield "memory_capacity", problem if abs(off) > _TOLERANCE else None


def _ridge(profile: HardwareProfile) -> Iterator[Outcome]:
    dtype = next((key for key in ("bf16", "fp16") if key in profile.peaks), None)
    if dtype is not None and profile.memory_bandwidth is not None:
        ridge = profile.ridge_point(dtype)
        low, high = _RIDGE_RANGE
        problem = f"the {dtype} ridge is {ridge:.0f} FLOP/B; expected within {low:g} to {high:g}"
        yield f"peaks.{dtype}", None if low <= ridge <= high else problem


def _sourced(profile: HardwareProfile) -> Iterator[Outcome]:
    for field, entry in profile.entries():
        statements = [(field, entry), *((f"{field}.alternatives", other) for other in entry.alternatives)]
        for where, statement in statements:
            words = profile.source_of(statement)
            problem = None
            if words is None:
                problem = "no source"
            elif (words == UNVERIFIED) != (statement.basis == "assumed"):
                problem = (
                    f"basis {statement.basis!r} with source {words!r}: {UNVERIFIED!r} goes with 'assumed'"
                )
            elif words != UNVERIFIED and statement.basis != "measured" and not _URL.fullmatch(words):
                problem = f"source {words!r} is neither a URL nor {UNVERIFIED!r}"
            yield where, problem


def _sources_used(profile: HardwareProfile) -> Iterator[Outcome]:
    statements = [one for _, entry in profile.entries() for one in (entry, *entry.alternatives)]
    used = {profile.identity_source, *(statement.source for statement in statements)}
    for key in profile.sources:
        yield f"sources.{key}", None if key in used else "no number cites this source"


RULES: Final[dict[str, Rule]] = {
    "power-of-two": _power_of_two,
    "dense-rate": _dense_rate,
    "fp8-twice-bf16": _fp8_twice_bf16,
    "one-16-bit-rate": _one_16_bit_rate,
    "narrow-rates": _narrow_rates,
    "capacity": _capacity,
    "ridge": _ridge,
    "sourced": _sourced,
    "sources-used": _sources_used,
}
