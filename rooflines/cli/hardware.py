"""``rooflines hardware``: list the devices, show one with its sources, check profiles for mistakes."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Final

import click

from rooflines.cli.options import emit, format_option, output_option
from rooflines.hardware.catalogue import hardware_files, list_hardware, load_hardware, read_profile
from rooflines.hardware.lint import Finding, lint_names, lint_profile
from rooflines.hardware.profile import HardwareProfile, Statement
from rooflines.output.tables import render
from rooflines.units import Dimension, format_quantity

_FOR_PEOPLE: Final = ("text", "markdown")
Column = Sequence[object]


@click.group()
def hardware() -> None:
    """Devices: what is known about them, and who says so."""


@hardware.command("list")
@format_option
@output_option
def list_command(fmt: str, output: Path | None) -> None:
    """List the devices: memory, bandwidth, dense peaks and ridge point (bf16; fp16 where bf16 is missing).

    Devices of your own come from the folders named in ROOFLINES_HARDWARE.
    """
    profiles = [load_hardware(name) for name in list_hardware()]
    emit(render(_overview(profiles, people=fmt in _FOR_PEOPLE), fmt), output)


@hardware.command("show")
@click.argument("name")
@click.option(
    "--calibration", is_flag=True, help="Show the constants that were fitted on it, or on its class, instead."
)
@format_option
@output_option
def show_command(name: str, calibration: bool, fmt: str, output: Path | None) -> None:
    """Show every number of a device with its basis and source.

    NAME is an id, an alias (h100-sxm) or the path of a TOML file.
    """
    profile = load_hardware(name)
    if calibration:
        emit(_calibration_text(profile, fmt), output)
        return
    if profile.status == "announced":
        click.echo(f"warning: {profile.id} is announced, not shipping: its numbers may change", err=True)
    rows = _rows(profile, people=fmt in _FOR_PEOPLE)
    columns = {column: [row.get(column) for row in rows] for column in _COLUMNS}
    if fmt not in _FOR_PEOPLE:
        emit(render(columns, fmt), output)
        return
    shown = {column: columns[column] for column in ("field", "value", "basis", "source")}
    remarks = [f"{row['field']}: {_remark(row)}" for row in rows if _remark(row)]
    remarks += [
        f"{', '.join(one.fields)}: not as {one.rule} expects: {one.reason}" for one in profile.exceptions
    ]
    sections = (
        ("Also called", profile.aliases),
        ("Notes", remarks),
        ("Sources", [f"{key}: {words}" for key, words in profile.sources.items()]),
    )
    parts = [render(shown, fmt, f"{profile.name} ({profile.id})")]
    parts += [
        "\n".join([f"{title}:", *(f"- {line}" for line in lines)]) for title, lines in sections if lines
    ]
    emit("\n\n".join(parts), output)


def _calibration_text(profile: HardwareProfile, fmt: str) -> str:
    from rooflines.hardware.calibration_files import calibration_of, calibrations_of, transferable_calibration
    from rooflines.output.calibration_tables import calibrations_report
    from rooflines.timing.machine import calibrated_machine, default_machine

    chosen = calibration_of(profile)
    listed = calibrations_of(profile.id) or (chosen or transferable_calibration(),)
    report = calibrations_report(listed, fmt)
    if fmt not in _FOR_PEOPLE:
        return report
    machine = calibrated_machine(profile, chosen) if chosen else default_machine(profile)
    return f"{profile.name} ({profile.id}), --calibration auto: {machine.basis}\n\n{report}"


@hardware.command("lint")
@click.argument("files", nargs=-1, metavar="[FILE]...")
@click.option("--verbose", is_flag=True, help="Also print the exceptions, with their reasons.")
def lint_command(files: tuple[str, ...], verbose: bool) -> None:
    """Check profiles against rules that wrong tables break; without a FILE, all of them.

    Exit code 1: a rule fails. Exit code 2: a file cannot be read.
    """
    chosen: Sequence[Path | Traversable] = [_file(given) for given in files] or hardware_files()
    profiles = [(file.name.removesuffix(".toml"), read_profile(file)) for file in chosen]
    findings = [(profile.id, finding) for _, profile in profiles for finding in lint_profile(profile)]
    findings += lint_names(profiles)
    wanted = ("fails", "excepted") if verbose else ("fails",)
    for profile_id, finding in findings:
        if finding.verdict in wanted:
            click.echo(f"{profile_id}: {finding.field}: {finding.rule} {finding.verdict}: {finding.detail}")
    counts = {verdict: _count(findings, verdict) for verdict in ("holds", "excepted", "fails")}
    noun = "profile" if len(profiles) == 1 else "profiles"
    click.echo(
        f"{len(profiles)} {noun}: {counts['holds']} checks hold, {counts['excepted']} are excepted for a "
        f"stated reason, {counts['fails']} fail"
    )
    click.get_current_context().exit(1 if counts["fails"] else 0)


def _file(given: str) -> Path:
    if Path(given).exists() or given.endswith(".toml"):
        return Path(given)
    raise click.UsageError(f"{given!r} is no file: name the TOML file of a profile")


def _count(findings: Sequence[tuple[str, Finding]], verdict: str) -> int:
    return sum(finding.verdict == verdict for _, finding in findings)


def _overview(profiles: Sequence[HardwareProfile], *, people: bool) -> dict[str, Column]:
    """SI numbers with the unit in the column's name for machines, quantities with a prefix for people."""
    capacity = [_si(profile.memory_capacity) for profile in profiles]
    bandwidth = [_si(profile.memory_bandwidth) for profile in profiles]
    bf16 = [_si(profile.peaks.get("bf16")) for profile in profiles]
    fp8 = [_si(profile.peaks.get("fp8")) for profile in profiles]
    dtypes = [_ridge_dtype(profile) for profile in profiles]
    ridge = [
        profile.ridge_point(dtype) if dtype else None for profile, dtype in zip(profiles, dtypes, strict=True)
    ]
    first: dict[str, Column] = {"id": [one.id for one in profiles], "name": [one.name for one in profiles]}
    last: dict[str, Column] = {"status": [one.status for one in profiles]}
    if not people:
        numbers: dict[str, Column] = {
            "memory_bytes": capacity,
            "bandwidth_bytes_per_s": bandwidth,
            "bf16_flop_per_s": bf16,
            "fp8_flop_per_s": fp8,
            "ridge_flop_per_byte": ridge,
            "ridge_dtype": dtypes,
        }
        return {**first, **numbers, **last}
    shown = _quantities(ridge, "FLOP/byte")
    return {
        **first,
        "memory": _quantities(capacity, "byte"),
        "bandwidth": _quantities(bandwidth, "byte/s"),
        "bf16 peak": _quantities(bf16, "FLOP/s"),
        "fp8 peak": _quantities(fp8, "FLOP/s"),
        "ridge": [
            f"{text} (fp16)" if dtype == "fp16" else text for text, dtype in zip(shown, dtypes, strict=True)
        ],
        **last,
    }


def _quantities(values: Sequence[float | None], dimension: Dimension) -> list[str | None]:
    return [None if value is None else format_quantity(value, dimension) for value in values]


def _si(statement: Statement | None) -> float | None:
    return None if statement is None else statement.value.si


def _ridge_dtype(profile: HardwareProfile) -> str | None:
    if profile.memory_bandwidth is None:
        return None
    return next((dtype for dtype in ("bf16", "fp16") if dtype in profile.peaks), None)


_COLUMNS: Final = ("field", "role", "value", "value_si", "basis", "source", "stated", "note")


def _rows(profile: HardwareProfile, *, people: bool) -> list[dict[str, object]]:
    """One row a fact: identity, adopted numbers with the other statements, ridge points."""
    words = {
        "vendor": profile.vendor,
        "architecture": profile.architecture,
        "memory_type": profile.memory_type,
        "kind": profile.kind,
        "status": profile.status,
    }
    identity = profile.identity_source if people else profile.sources.get(profile.identity_source or "")
    cited = ("vendor", "architecture", "memory_type")
    rows: list[dict[str, object]] = [
        {"field": field, "role": "identity", "value": value, "source": identity if field in cited else None}
        for field, value in words.items()
        if value
    ]
    for field, entry in profile.entries():
        for role, statement in (("adopted", entry), *(("alternative", one) for one in entry.alternatives)):
            rows.append(
                {
                    "field": f"{field} (other statement)" if people and role == "alternative" else field,
                    "role": role,
                    "value": statement.value.text,
                    "value_si": statement.value.si,
                    "basis": statement.basis,
                    "source": statement.source if people else profile.source_of(statement),
                    "stated": statement.stated,
                    "note": statement.note,
                }
            )
    if profile.memory_bandwidth is not None:
        rows += [_ridge_row(profile, dtype) for dtype in profile.peaks]
    return rows


def _ridge_row(profile: HardwareProfile, dtype: str) -> dict[str, object]:
    ridge = profile.ridge_point(dtype)
    return {
        "field": f"ridge.{dtype}",
        "role": "ridge",
        "value": format_quantity(ridge, "FLOP/byte"),
        "value_si": ridge,
        "basis": "derived",
        "source": f"peaks.{dtype} / memory_bandwidth",
    }


def _remark(row: dict[str, object]) -> str:
    stated = f'the source prints "{row["stated"]}"' if row.get("stated") else ""
    return "; ".join(str(part) for part in (stated, row.get("note")) if part)
