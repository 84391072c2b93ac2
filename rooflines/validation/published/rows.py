"""Tables of speedups, published and from the field: one claim a row, or the reason why it is none.

Two sets of columns are known. Published: source_key, table_or_figure, hardware, n_gpus, precision,
target_model, drafter_kind, draft_model, gamma_or_tree, draft_depth, batch_size, context_len, alpha, alpha_is,
tau_mean_accepted_incl_bonus, measured_speedup, notes. Field: id, project, hardware, n_gpus, tp,
precision_target, target_model, drafter_kind, draft_model, gamma_or_tree, batch_or_concurrency, context_len,
acceptance, acceptance_def, measured_speedup, notes, usable.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rooflines.errors import FileFormatError, InputError
from rooflines.validation.kernel_tables.cells import LINE, read_cells
from rooflines.validation.published.cells import read_batch, read_context, read_devices, read_format
from rooflines.validation.published.names import device_of, model_of
from rooflines.validation.published.proposals import Proposal, read_proposal
from rooflines.validation.published.sources import (
    FIELD,
    SOURCES,
    STATED_DEVICES,
    Source,
    engine_of_project,
    source_of,
)

_NEEDED: Final = ("hardware", "target_model", "drafter_kind", "gamma_or_tree", "measured_speedup", "notes")
# Names of the field table -> those of the published one.
_FIELD_NAMES: Final = {
    "id": "row",
    "url": "source_url",
    "precision_target": "precision",
    "batch_or_concurrency": "batch_size",
}
_SUSPECT: Final = ("EXCLUDE", "typo in the source")


@dataclass(frozen=True, slots=True)
class Claim:
    """A measured speedup with all that a prediction needs.

    Attributes:
        file: name of the table that it was read from.
        line: of the row in it.
        source: key of the source.
        url: where it can be read.
        table: table or figure in it.
        known: what is known of the source.
        device: profile id.
        devices: how many; None where the source does not say.
        model: preset of the target.
        weights: number format of its weights; None for the checkpoint's.
        proposal: who drafts, and how much.
        batch: sequences.
        context: mean cached positions; None where the source does not say.
        acceptance: as `rooflines.speculation.acceptance_text` reads it.
        tokens_per_cycle: tau as stated; None where another definition was.
        speedup: measured.
        task: what was generated.
        notes: what was assumed in reading.
    """

    file: str
    line: int
    source: str
    url: str
    table: str
    known: Source
    device: str
    devices: int | None
    model: str
    weights: str | None
    proposal: Proposal
    batch: int
    context: float | None
    acceptance: str
    tokens_per_cycle: float
    speedup: float
    task: str
    notes: tuple[str, ...]

    @property
    def impossible(self) -> bool:
        """Whether the speedup exceeds tau: a cycle would have cost less than a plain step."""
        return self.speedup > self.tokens_per_cycle

    @property
    def configuration(self) -> tuple[object, ...]:
        """What a cycle's cost depends on."""
        where = (self.source, self.device, self.devices, self.model, self.weights)
        return (*where, self.proposal.text, self.proposal.draft_length, self.batch, self.context)


@dataclass(frozen=True, slots=True)
class Unused:
    """A row that is no claim.

    Attributes:
        file: name of the table.
        line: of the row in it.
        source: key of the source.
        reason: why.
    """

    file: str
    line: int
    source: str
    reason: str


def read_claims(path: Path) -> tuple[list[Claim], list[Unused]]:
    """Read a table of speedups.

    Raises:
        FileFormatError: no table, or columns are missing.
    """
    claims: list[Claim] = []
    unused: list[Unused] = []
    for line, cells in read_table(path, _NEEDED):
        key = cells.get("source_key") or cells.get("project") or path.stem
        try:
            claims.append(_claim(path.name, line, key, cells))
        except InputError as error:
            unused.append(Unused(path.name, line, key, str(error)))
    return claims, unused


def read_table(path: Path, needed: tuple[str, ...]) -> list[tuple[int, dict[str, str]]]:
    """Lines of a CSV table with their cells, stripped.

    Raises:
        FileFormatError: no table of commas, rows longer than the header, or columns are missing.
    """
    table = read_cells(path).rename(columns=_FIELD_NAMES)
    missing = [name for name in needed if name not in table.columns]
    if missing:
        raise FileFormatError(f"table {path} lacks the column(s) {', '.join(missing)} (docs/published.md)")
    rows = table.drop(columns=LINE).to_dict("records")
    return [
        (int(line), {str(name): str(cell) for name, cell in cells.items()})
        for line, cells in zip(table[LINE], rows, strict=True)
    ]


def _claim(file: str, line: int, key: str, cells: Mapping[str, str]) -> Claim:
    known = _known(key, cells)
    speedup = read_positive(cells["measured_speedup"], "the speedup is not stated")
    if any(word in cells["notes"] for word in _SUSPECT):
        raise InputError("the table's own notes exclude it: its speedup or baseline is suspect")
    if cells.get("usable", "yes") != "yes":
        raise InputError("the table's own notes call it incomplete")
    model = model_of(cells["target_model"])
    devices = read_devices(cells["hardware"])
    proposal = read_proposal(cells, model.preset)
    acceptance, tau = stated_acceptance(cells, proposal.draft_length, known.engine)
    weights = read_format(cells.get("precision", "")) or model.weights
    return Claim(
        file=file,
        line=line,
        source=key,
        url=cells.get("source_url", ""),
        table=cells.get("table_or_figure", ""),
        known=known,
        device=device_of(devices.name),
        devices=_count(cells, devices.count) or STATED_DEVICES.get((key, model.preset)),
        model=model.preset,
        weights=weights,
        proposal=proposal,
        batch=read_batch(cells.get("batch_size", "")),
        context=read_context(cells.get("context_len", "")),
        acceptance=acceptance,
        tokens_per_cycle=tau,
        speedup=speedup,
        task=cells.get("task", ""),
        notes=tuple(note for note in (model.note, *proposal.notes) if note),
    )


def _known(key: str, cells: Mapping[str, str]) -> Source:
    if "project" in cells and key not in SOURCES:
        return Source(engine_of_project(key), FIELD)
    return source_of(key, cells.get("table_or_figure", ""))


def _count(cells: Mapping[str, str], written: int) -> int | None:
    """Devices that the weights are split over; None where the source is silent."""
    stated = cells.get("tp") or cells.get("n_gpus")
    if stated:
        return int(read_positive(stated, ""))
    return written if written > 1 else None


def stated_acceptance(cells: Mapping[str, str], draft_length: int, engine: str) -> tuple[str, float]:
    """Acceptance as text, and tau.

    Raises:
        InputError: none is stated, its definition is not, or it is impossible.
    """
    share = cells.get("alpha") or ""
    meaning = cells.get("alpha_is") or ""
    length = cells.get("tau_mean_accepted_incl_bonus") or ""
    if "acceptance" in cells:
        share, length, meaning = _field_acceptance(cells, engine)
    if length:
        return _from_length(read_positive(length, ""), draft_length)
    if not share:
        raise InputError("acceptance is not stated")
    value = read_positive(share, "acceptance is not stated")
    if value > 1.0:
        raise InputError(f"acceptance {share} is no share")
    if meaning.startswith(("accepted / drafted", "accepted/drafted")):
        return _from_length(1.0 + value * draft_length, draft_length)
    if meaning.startswith("token rate"):
        tau = draft_length + 1.0 if value == 1.0 else (1.0 - value ** (draft_length + 1)) / (1.0 - value)
        return str(value), tau
    raise InputError(f"acceptance of the kind {meaning or 'unknown'!r} gives no tokens per cycle")


def _field_acceptance(cells: Mapping[str, str], engine: str) -> tuple[str, str, str]:
    from rooflines.validation.published.cells import read_share

    meaning, text = cells.get("acceptance_def", ""), cells["acceptance"]
    if not text:
        raise InputError("acceptance is not stated")
    if "gated" in meaning:
        raise InputError("the draft varies from cycle to cycle (gated)")
    # SGLang's accept length counts the bonus token (`rooflines.engines.sglang`).
    if "incl. bonus" in meaning or (engine == "sglang" and meaning.startswith("average accepted length")):
        return "", text, meaning
    return str(read_share(text)), "", meaning


def _from_length(tau: float, draft_length: int) -> tuple[str, float]:
    if not 1.0 <= tau <= draft_length + 1:
        raise InputError(f"{tau:g} tokens per cycle are impossible at draft length {draft_length}")
    return f"accepted-length:{tau!r}@{draft_length}", tau


def read_positive(text: str, silent: str) -> float:
    """A number above 0.

    Raises:
        InputError: it is none; `silent` is said where the cell is empty.
    """
    if not text:
        raise InputError(silent)
    try:
        value = float(text)
    except ValueError:
        raise InputError(f"{text!r} is no number") from None
    if not 0 < value < math.inf:
        raise InputError(f"{text} is not above 0, or not finite")
    return value
