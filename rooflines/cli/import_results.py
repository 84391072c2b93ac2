"""``rooflines import``: results of other tools."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from rooflines import __version__
from rooflines.cli.options import emit, format_option, output_option
from rooflines.errors import InputError
from rooflines.output.tables import document_text, render
from rooflines.units import format_quantity

if TYPE_CHECKING:
    from rooflines.measurement.readers.results import Imported
    from rooflines.output.tables import Columns

_KINDS: Final = (
    "llama-bench, llama-batched-bench, llama-log, vllm-serve, vllm-latency, vllm-throughput, vllm-log, "
    "sglang-bench, sglang-log, trtllm-bench, prometheus, transformers, csv"
)


@click.command(
    "import",
    epilog=f"KIND is one of {_KINDS}; docs/engines.md says what each is read as. Without it the file is "
    "recognised by what stands in it.",
)
@click.argument("words", nargs=-1, metavar="[KIND] FILE")
@click.option(
    "--before",
    type=click.Path(dir_okay=False, path_type=Path),
    help="An earlier scrape of the same /metrics, to see the time in between alone.",
)
@click.option("--draft-length", type=int, help="Drafted tokens per cycle, where the file does not say it.")
@format_option
@output_option
def import_results(
    words: tuple[str, ...], before: Path | None, draft_length: int | None, fmt: str, output: Path | None
) -> None:
    """Read what other tools measured, in our definitions."""
    from rooflines.measurement.readers.catalogue import import_file

    kind, file = _kind_and_file(words)
    found = import_file(kind, file, before=before, draft_length=draft_length)
    emit(_json(found) if fmt == "json" else _text(found, fmt), output)


def _kind_and_file(words: tuple[str, ...]) -> tuple[str | None, Path]:
    """What was typed: a file alone, or its kind before it."""
    if not 1 <= len(words) <= 2:  # noqa: PLR2004 - a kind and a file
        raise click.UsageError("Give one file, or KIND and one file: rooflines import vllm-log server.log.")
    *kind, file = words
    return (kind[0] if kind else None), Path(file)


def _json(found: Imported) -> str:
    """A table of step times is a file of measurements, all else a document of its own."""
    from rooflines.measurement.readers.steps import steps_file

    if not found.steps:
        return document_text(found.model_dump(mode="json"))
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return document_text(steps_file(found, created=now, written_by=__version__).model_dump(mode="json"))


def _text(found: Imported, fmt: str) -> str:
    tables = {
        "Acceptance": _acceptance(found),
        "Under load": _serving(found),
        "Times of passes": _steps(found, people=fmt != "csv"),
    }
    filled = {title: columns for title, columns in tables.items() if any(columns.values())}
    if fmt == "csv":
        if len(filled) > 1:
            raise InputError(f"{found.source} holds several tables ({', '.join(filled)}): write json or text")
        return render(next(iter(filled.values())), fmt)
    parts = [f"{found.source}{', ' + found.created if found.created else ''}"]
    parts += [render(columns, fmt, title) for title, columns in filled.items()]
    if found.notes:
        parts.append("Note: " + "; ".join(found.notes) + ".")
    return "\n\n".join(parts)


def _acceptance(found: Imported) -> Columns:
    records = found.acceptance
    return {
        "run": [record.label for record in records],
        "--acceptance": [record.text for record in records],
        "tokens/cycle": [record.tokens_per_cycle for record in records],
        "cycles": [record.cycles for record in records],
        "read from": [record.meaning for record in records],
    }


def _serving(found: Imported) -> Columns:
    records = found.serving
    names = list(dict.fromkeys(name for record in records for name in record.latencies_s))
    return {
        "run": [record.label for record in records],
        "concurrency": [record.concurrency for record in records],
        "requests": [record.requests for record in records],
        "input": [record.input_tokens for record in records],
        "output": [record.output_tokens for record in records],
        "tokens/s": [record.output_tokens_per_s for record in records],
        **{f"{name} (s)": [record.latencies_s.get(name) for record in records] for name in names},
    }


def _steps(found: Imported, *, people: bool) -> Columns:
    means = [sum(step.seconds) / len(step.seconds) for step in found.steps]
    return {
        "batch": [step.batch for step in found.steps],
        "new positions": [step.new_positions for step in found.steps],
        "context": [step.context for step in found.steps],
        "repetitions": [len(step.seconds) for step in found.steps],
        "mean time" if people else "mean_time_s": [
            format_quantity(mean, "s") if people else mean for mean in means
        ],
    }
