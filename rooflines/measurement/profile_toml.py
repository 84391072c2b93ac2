"""A hardware profile of the machine that was probed, as TOML that every ``--hardware FILE`` takes."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from typing import Final

from rooflines.hardware.lint import lint_profile
from rooflines.hardware.profile import HardwareProfile
from rooflines.measurement.probe import sustained
from rooflines.measurement.schema import MachineFile, ProbeSample
from rooflines.measurement.surroundings import last_cache_bytes
from rooflines.units import Dimension, format_quantity

_DIGITS: Final = 4
_SOURCE: Final = "probe"


def profile_text(file: MachineFile, raw_name: str) -> str:
    """The profile of a probed machine.

    Bandwidth is what reading sustains, peaks are what square products sustain: real kernels reach both.
    Their spread stands in the notes; what a launch costs, in the source.

    Args:
        file: the probe's raw times.
        raw_name: of the file that keeps them, to cite.
    """
    machine, by_name = file.machine, {(one.quantity, one.dtype): one for one in file.samples}
    threads = f"{machine.threads} thread{'s' if machine.threads > 1 else ''}"
    where = f" on {threads}" if machine.kind == "cpu" else ""
    launch_s, _ = sustained(by_name["launch", "fp32"])
    tables = {
        "memory_capacity": _entry(f"{machine.memory_bytes} B", "the system's own account"),
        "memory_bandwidth": _rate(by_name["read", "fp32"], "reading", where, by_name["copy", "fp32"]),
    }
    cache = last_cache_bytes(machine)
    if cache:
        tables["last_level_cache"] = _entry(f"{cache} B", "the system's own account")
    for (quantity, dtype), sample in by_name.items():
        if quantity == "gemm":
            tables[f"peaks.{dtype}"] = _rate(sample, f"square products of {sample.shape[0]}", where)
    tools = ", ".join(f"{name} {version}" for name, version in file.versions.items())
    source = (
        f"rooflines {file.rooflines} measure machine, {file.created}, {machine.system}, {tools}; raw times "
        f"in {raw_name}; {file.stability.advice}; a launch takes {format_quantity(launch_s, 's')}"
    )
    head = {
        "id": profile_id(machine.device, machine.threads if machine.kind == "cpu" else None),
        "name": f"{machine.device} ({threads}, measured)"
        if machine.kind == "cpu"
        else f"{machine.device} (measured)",
        "kind": machine.kind,
    }
    lines = [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in head.items()]
    for name, table in tables.items():
        lines += ["", f"[{name}]", *(f"{key} = {json.dumps(value)}" for key, value in table.items())]
    lines += ["", "[sources]", f"{_SOURCE} = {json.dumps(source, ensure_ascii=False)}"]
    text = "\n".join(lines)
    return "\n".join([*lines[: len(head)], "", *_exceptions(text), *lines[len(head) + 1 :]])


def profile_id(device: str, threads: int | None) -> str:
    """An id out of a device's name: ``AMD EPYC`` on one thread is ``measured-amd-epyc-1t``."""
    words: Sequence[str] = re.findall(r"[a-z0-9]+", device.lower())
    return "-".join(["measured", *words, *([] if threads is None else [f"{threads}t"])])


def _exceptions(text: str) -> list[str]:
    """A core has less arithmetic for its bandwidth than the GPUs that the rule on ridges is made for."""
    profile = HardwareProfile.read(tomllib.loads(text), "the profile of this machine")
    fields = [one.field for one in lint_profile(profile) if one.rule == "ridge" and one.verdict == "fails"]
    if not fields:
        return []
    reason = "measured on this machine: square products and streaming reads, not a datasheet's peaks"
    return ["[[exceptions]]", 'rule = "ridge"', f"fields = {json.dumps(fields)}", f'reason = "{reason}"', ""]


def _rate(sample: ProbeSample, what: str, where: str, copy: ProbeSample | None = None) -> Mapping[str, str]:
    value, spread = sustained(sample)
    dimension: Dimension = "FLOP/s" if sample.quantity == "gemm" else "byte/s"
    note = f"{what}{where}: median of {len(sample.seconds)}, IQR {spread:.1%}"
    if copy is not None:
        note += f"; copying moves {format_quantity(sustained(copy)[0], 'byte/s')}, read and written"
    return _entry(format_quantity(value, dimension, _DIGITS), note)


def _entry(value: str, note: str) -> Mapping[str, str]:
    return {"value": value, "basis": "measured", "source": _SOURCE, "note": note}
