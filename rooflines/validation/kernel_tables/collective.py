"""All-reduces between the devices of one node."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from rooflines.costs.cost import Cost, Operator
from rooflines.validation.kernel_tables.kind import (
    Context,
    Described,
    Kind,
    column,
    labels,
    reasons,
    regions,
)
from rooflines.validation.kernel_tables.rows import Texts

if TYPE_CHECKING:
    import pandas as pd

_REGIONS: Final = ((8 * 2.0**10, "message <= 8 KiB"), (2 * 2.0**20, "message 8 KiB-2 MiB"))
_BEYOND: Final = "message > 2 MiB"
# The worst kernel of the tables attains 0.21 of its link with such messages, and those of a link that was not
# used (DGX A100 in Vidur: 11 GB/s where NVLink has 300) 0.04 to 0.13.
_LEAST_SHARE: Final = 0.15
_LARGE_BYTES: Final = 32e6
# Vidur launches from the host: below it, times are those of the launch, in steps of 1 us.
_SHORTEST_S: Final = 50e-6
# Nodes of the devices in these tables have eight.
_NODE: Final = 8


def all_reduces(message_bytes: NDArray[np.float64], ranks: int) -> Operator:
    """Sums of messages (N) over `ranks` devices, as rooflines.costs.linear.all_reduce prices them."""
    sent = 2.0 * (ranks - 1) / ranks * message_bytes
    return Operator(
        "all-reduce", "collective", Cost(network_bytes=sent, kernels=1.0), ranks=ranks, reduces=True
    )


def _left_out(frame: pd.DataFrame, context: Context, devices: str) -> Texts:
    ranks = column(frame, devices)
    link = context.profile.interconnect_bytes_per_s or context.profile.pcie_bytes_per_s
    pairs = np.zeros(len(frame), dtype=bool)
    if "topology" in frame:
        pairs = np.char.find(np.asarray(frame["topology"], dtype=np.str_), "pairwise") >= 0
    eager = np.zeros(len(frame), dtype=bool)
    seconds = column(frame, "time_us") * 1e-6
    size = column(frame, "message_bytes")
    short = (seconds < _SHORTEST_S) & ("topology" in frame)
    direct = context.profile.interconnect_bytes_per_s
    elsewhere = direct is not None and _share_of_link(size, seconds, ranks, direct) < _LEAST_SHARE
    if "kernel_source" in frame:
        eager = np.char.find(np.char.lower(np.asarray(frame["kernel_source"], dtype=np.str_)), "eager") >= 0
    return reasons(
        len(frame),
        (eager, "launched by the host, not from a graph as engines replay it"),
        (ranks < 2, "one device reduces nothing"),  # noqa: PLR2004 - it takes two
        (ranks > _NODE, "spans nodes: profiles state the link inside one"),
        (pairs & (ranks > 2), "only pairs have a direct link: more devices talk over the host"),  # noqa: PLR2004 - a pair
        (link is None, "the profile of the device states no link"),
        (
            elsewhere,
            f"large messages attain less than {_LEAST_SHARE:.0%} of the stated link: not run over it",
        ),
        (short, f"shorter than {_SHORTEST_S * 1e6:.0f} us: launched by the host, with a timer of 1 us"),
    )


def _share_of_link(
    size: NDArray[np.float64], seconds: NDArray[np.float64], ranks: NDArray[np.float64], link: float
) -> float:
    """Share of the link's bandwidth that the largest messages of a group attain; 1 where none is large."""
    large = size >= _LARGE_BYTES
    if not large.any():
        return 1.0
    sent = 2.0 * (ranks - 1.0) / ranks * size
    return float(np.median(sent[large] / seconds[large])) / link


def _describe(frame: pd.DataFrame, context: Context, devices: str) -> Described:  # noqa: ARG001  # a kind's signature
    size = column(frame, "message_bytes")
    ranks = int(column(frame, devices)[0])
    return Described(
        (all_reduces(size, ranks),), labels(frame, "message_bytes"), regions(size, _REGIONS, _BEYOND), size
    )


def _kind(device: str, engine: str, kernel: str, devices: str) -> Kind:
    return Kind(
        name="all-reduces",
        operator="collective",
        device=device,
        dtype="=bf16",
        engine=engine,
        time="time_us",
        numbers=(devices, "message_bytes"),
        leave_out=partial(_left_out, devices=devices),
        describe=partial(_describe, devices=devices),
        kernel=kernel,
        variants=(devices,),
    )


COLLECTIVE_KINDS: Final = (
    _kind("gpu", "engine", "kernel_source", "num_gpus"),
    _kind("topology", "=vidur", "topology", "num_workers"),
)
