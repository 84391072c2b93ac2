"""Published acceptance, per position or as accepted lengths, against what our definitions make of it.

Two tables are known: profiles (source_key, target_model, drafter_kind, task, definition, position, value,
gamma, tau_published), whose positions must give the printed length; and curves of accepted length by draft
length (model, method, thinking, gamma, acceptance_length_tokens), which a form of two numbers must follow.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from rooflines.errors import CannotTellError, InputError, RooflinesError
from rooflines.rows import Columns
from rooflines.speculation.acceptance import Acceptance
from rooflines.speculation.acceptance_fit import fit_acceptance
from rooflines.speculation.definitions import acceptance_from
from rooflines.validation.left_out import with_left_out
from rooflines.validation.published.rows import Unused, read_positive, read_table

SCHEMA_VERSION: Final = 1
_PROFILE: Final = ("definition", "position", "value", "tau_published")
_PROFILE_KEYS: Final[tuple[str, ...]] = (
    "source_key",
    "target_model",
    "draft_model",
    "drafter_kind",
    "task",
    "temperature",
    "definition",
    "table_or_figure",
)
_CURVE_KEYS: Final[tuple[str, ...]] = ("model", "method", "thinking")
_CURVE: Final = ("gamma", "acceptance_length_tokens")
# Definitions in tables -> ours.
_DEFINITIONS: Final = {"conditional": "conditional", "prefix_survival": "survival"}
# DSpark's domains and the benchmarks that their curves are means of (arXiv 2607.05147, table 1 and figure 2).
_DOMAIN: Final = re.compile(r"(\w+) \(domain mean of 3 benchmarks\)")
_BENCHMARKS: Final = {
    "Math": ("GSM8K", "MATH", "AIME25"),
    "Code": ("HumanEval", "MBPP", "LiveCodeBench"),
    "Chat": ("MT-Bench", "Alpaca", "Arena-Hard"),
}
_PLACE: Final = ("file", "line")
_Place = tuple[str, int]
_LEAST_POINTS: Final = 3  # a form of two numbers passes through any two


@dataclass(frozen=True, slots=True)
class JudgedAcceptance:
    """One profile or curve beside what we make of it.

    Attributes:
        file: name of the table.
        line: of its first row in it.
        source: key of the source, or model of a curve.
        what: target, drafter and task.
        kind: ``positions`` (their sum against the printed length) or ``curve`` (fitted alpha r^(k-1)).
        points: positions or draft lengths.
        measured: printed length at the largest draft length.
        predicted: ours there.
        worst_error: largest relative error: of the length, or of all points of a curve.
        constant_error: the same with one constant rate for all positions.
    """

    file: str
    line: int
    source: str
    what: str
    kind: str
    points: int
    measured: float
    predicted: float
    worst_error: float
    constant_error: float


@dataclass(frozen=True, slots=True)
class AcceptanceValidation:
    """Profiles and curves beside ours.

    Attributes:
        files: names of the tables.
        judged: every used profile and curve.
        unused: what was not used, with reasons.
    """

    files: tuple[str, ...]
    judged: tuple[JudgedAcceptance, ...]
    unused: tuple[Unused, ...]


def validate_acceptance(paths: Iterable[Path]) -> AcceptanceValidation:
    """Read tables of acceptance and judge every profile and curve.

    Raises:
        FileFormatError: a file is neither kind of table.
        CannotTellError: nothing can be judged.
    """
    judged: list[JudgedAcceptance] = []
    unused: list[Unused] = []
    files = []
    for path in paths:
        files.append(path.name)
        rows = read_table(path, ("gamma",))
        judge, keys = _curve, _CURVE_KEYS
        if not (rows and set(_CURVE) <= set(rows[0][1])):
            rows = _with_domain_lengths(read_table(path, _PROFILE))
            judge, keys = _profile, _PROFILE_KEYS
        groups: dict[tuple[str, ...], list[tuple[int, dict[str, str]]]] = defaultdict(list)
        for line, cells in rows:
            groups[tuple(cells.get(key, "") for key in keys)].append((line, cells))
        for key, group in groups.items():
            try:
                judged.append(judge((path.name, group[0][0]), key, [cells for _, cells in group]))
            except RooflinesError as error:
                unused += [Unused(path.name, line, key[0], str(error)) for line, _ in group]
    if not judged:
        raise CannotTellError("no acceptance can be judged: no positions with a printed length, and no curve")
    return AcceptanceValidation(tuple(files), tuple(judged), tuple(unused))


def _with_domain_lengths(rows: list[tuple[int, dict[str, str]]]) -> list[tuple[int, dict[str, str]]]:
    """Rows where the curve of a domain has the mean length of its benchmarks, which are printed apart."""
    printed: dict[tuple[str, ...], float] = {}
    for _, cells in rows:
        if cells["definition"] == "tau only":
            with suppress(InputError):  # the row itself is left out with this reason
                length = read_positive(cells["tau_published"], "no length is printed")
                printed[*_drafted(cells), cells.get("task", "")] = length
    found = []
    for line, cells in rows:
        match = _DOMAIN.fullmatch(cells.get("task", ""))
        names = _BENCHMARKS.get(match[1], ()) if match and not cells["tau_published"] else ()
        lengths = [printed.get((*_drafted(cells), name)) for name in names]
        known = [length for length in lengths if length is not None]
        if names and len(known) == len(names):
            found.append((line, {**cells, "tau_published": repr(float(np.mean(known)))}))
        else:
            found.append((line, cells))
    return found


def _drafted(cells: Mapping[str, str]) -> tuple[str, ...]:
    return cells.get("source_key", ""), cells.get("target_model", ""), cells.get("drafter_kind", "")


def _profile(at: _Place, key: tuple[str, ...], group: Sequence[dict[str, str]]) -> JudgedAcceptance:
    definition = group[0]["definition"]
    if "TREE tau" in group[0].get("notes", ""):
        raise InputError("the rates are of a chain and the length beside them is of a tree")
    if definition not in _DEFINITIONS:
        raise InputError(f"positions of the kind {definition!r} give no tokens per cycle of a chain")
    published = {cells["tau_published"] for cells in group}
    if len(published) != 1 or published == {""}:
        raise InputError("no one length is printed beside the positions")
    ordered = sorted(group, key=lambda cells: read_positive(cells["position"], "a position is not stated"))
    if [float(cells["position"]) for cells in ordered] != list(range(1, len(ordered) + 1)):
        raise InputError("positions are missing or stand twice")
    if ordered[0]["gamma"] and read_positive(ordered[0]["gamma"], "") != len(ordered):
        raise InputError("not every drafted position has a rate")
    values = [read_positive(cells["value"], "a rate is not stated") for cells in ordered]
    rates = acceptance_from(_DEFINITIONS[definition], [values], [])
    measured = read_positive(published.pop(), "")
    count = len(values)
    ours = float(np.asarray(rates.tokens_per_cycle(count)))
    conditional = values if definition == "conditional" else _conditional(values)
    constant = Acceptance.constant(float(np.mean(conditional)))
    return JudgedAcceptance(
        file=at[0],
        line=at[1],
        source=key[0],
        what=", ".join(dict.fromkeys(part for part in key[1:5] if part)),
        kind="positions",
        points=count,
        measured=measured,
        predicted=ours,
        worst_error=abs(ours / measured - 1.0),
        constant_error=abs(float(np.asarray(constant.tokens_per_cycle(count))) / measured - 1.0),
    )


def _conditional(survival: Sequence[float]) -> list[float]:
    return [after / before for before, after in zip([1.0, *survival[:-1]], survival, strict=True)]


def _curve(at: _Place, key: tuple[str, ...], group: Sequence[dict[str, str]]) -> JudgedAcceptance:
    points = sorted(
        (
            int(read_positive(cells["gamma"], "a draft length is not stated")),
            read_positive(cells["acceptance_length_tokens"], "a length is not stated"),
        )
        for cells in group
    )
    if len(points) < _LEAST_POINTS:
        raise InputError(f"a curve of {len(points)} points says nothing of a form of two numbers")
    lengths, measured = [length for length, _ in points], [value for _, value in points]
    decaying = fit_acceptance(lengths, measured, "decaying")
    constant = fit_acceptance(lengths, measured, "constant")
    return JudgedAcceptance(
        file=at[0],
        line=at[1],
        source=key[0],
        what=", ".join(part for part in key[1:] if part),
        kind="curve",
        points=len(points),
        measured=measured[-1],
        predicted=float(np.asarray(decaying.acceptance.tokens_per_cycle(lengths[-1]))),
        worst_error=decaying.worst_relative_error,
        constant_error=constant.worst_relative_error,
    )


def acceptance_columns(judged: Sequence[JudgedAcceptance]) -> Columns:
    """Every profile and curve as a table; errors are fractions."""
    names = [name for name in JudgedAcceptance.__dataclass_fields__ if name not in _PLACE]
    return {name: [getattr(one, name) for one in judged] for name in names}


def row_columns(found: AcceptanceValidation) -> Columns:
    """Every profile and curve at its first line, and every line that was left out, with the reason."""
    used = {name: [getattr(one, name) for one in found.judged] for name in _PLACE}
    unused = {name: [getattr(one, name) for one in found.unused] for name in (*_PLACE, "source")}
    return with_left_out(
        {**used, **acceptance_columns(found.judged)}, unused, [one.reason for one in found.unused]
    )


def source_columns(judged: Sequence[JudgedAcceptance]) -> dict[str, list[Any]]:
    """Errors by kind and source: median, 90 % quantile, worst, and beside them those of constant rates."""
    groups: dict[tuple[str, str], list[JudgedAcceptance]] = defaultdict(list)
    for one in judged:
        groups[one.kind, one.source].append(one)
    columns: dict[str, list[Any]] = {
        name: []
        for name in ("kind", "source", "rows", "median_abs_error", "p90_abs_error", "worst", "worst_constant")
    }
    for (kind, source), group in sorted(groups.items()):
        errors = [one.worst_error for one in group]
        values = (
            kind,
            source,
            len(group),
            float(np.median(errors)),
            float(np.quantile(errors, 0.9)),
            max(errors),
            max(one.constant_error for one in group),
        )
        for name, value in zip(columns, values, strict=True):
            columns[name].append(value)
    return columns
