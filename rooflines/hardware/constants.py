"""Constants of the time form, and the transferable defaults for devices that nobody has measured.

The form (rooflines.timing.forms): t = ((flops / (e_f F))^p + (bytes / (e_b BW))^p)^(1/p) + t0.
"""

from __future__ import annotations

import math
import tomllib
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, Literal

from rooflines.facts import Fact
from rooflines.hardware.catalogue import data_folder


@dataclass(frozen=True, slots=True)
class Constants:
    """What one operator class attains on one device; the defaults are the textbook roofline.

    Attributes:
        bandwidth_efficiency: e_b, attained share of the memory (or link) bandwidth.
        compute_efficiency: e_f, attained share of the dense peak.
        overhead_s: t0, time of a kernel that moves and computes nothing (s).
        sharpness: p of the smooth maximum; infinite is the hard maximum, 1 adds the two times.
        saturation_tokens: s0; the attained peak is e_f / (1 + s0 / n) for n new positions of prefill, or n
            positions per expert hit.
        token_overhead_s: time that each new position of a sequence adds to the floor, however many heads
            and sequences run beside it: the length of the loop that attention cannot divide (s).
        rank_overhead_s: time that each device beyond two adds to the floor of a collective (s).
        rank_contention: c; a link shared by N devices attains e_b (2 / N)^c (0 where every pair has its own).
        wide_factor: how much longer attention takes from 64 query rows per key/value head on; nothing is
            added up to 32, and the factor grows evenly in between.
    """

    bandwidth_efficiency: float = 1.0
    compute_efficiency: float = 1.0
    overhead_s: float = 0.0
    sharpness: float = math.inf
    saturation_tokens: float = 0.0
    token_overhead_s: float = 0.0
    rank_overhead_s: float = 0.0
    rank_contention: float = 0.0
    wide_factor: float = 1.0


TEXTBOOK: Final = Constants()
# p = 2.5 was within 0.2 points of the best of fifteen forms on held-out GEMM shapes of nine GPUs, and 4 us is
# the median floor of their bf16 linear kernels (AIConfigurator 0.12.0 tables,
# https://pypi.org/project/aiconfigurator-core/, Apache-2.0).
DEFAULT_SHARPNESS: Final = 2.5
DEFAULT_LINEAR_OVERHEAD_S: Final = 4e-6


class Prior(Fact):
    """Attained shares of bandwidth and peak that a device without measurements is given.

    Attributes:
        devices: profile ids.
        arithmetic: dtype of the weights and arithmetic (``w8a16`` and ``w4a16``: weight-only).
        bandwidth_efficiency: e_b.
        compute_efficiency: e_f.
        basis: fitted on this device, carried over from its architecture class, or judged.
        note: what it rests on.
    """

    devices: tuple[str, ...]
    arithmetic: str
    bandwidth_efficiency: float
    compute_efficiency: float
    basis: Literal["fit", "class", "judged"]
    note: str


class Priors(Fact):
    """All priors, with the source of the fitted ones."""

    source: str
    prior: tuple[Prior, ...]


@cache
def priors() -> Priors:
    """The table of priors that ships with the profiles."""
    path = data_folder() / "calibrations" / "priors.toml"
    data: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    listed = [{**entry, "devices": tuple(entry["devices"])} for entry in data["prior"]]
    return Priors.read({**data, "prior": tuple(Prior.read(entry, str(path)) for entry in listed)}, str(path))


def prior_of(device: str, arithmetic: str) -> Prior | None:
    """The prior of a device for one arithmetic, if there is one."""
    for prior in priors().prior:
        if prior.arithmetic == arithmetic and device in prior.devices:
            return prior
    return None
