"""Options that several commands share, and how their texts are read."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import click

from rooflines.errors import FileFormatError, InputError
from rooflines.output.tables import FORMATS, Columns, document_text, render

Command = Callable[..., Any]
Decorator = Callable[[Command], Command]

_MOST_VALUES: Final = 10_000
# Sequences or positions beyond it are a slip of the keyboard.
LARGEST_COUNT: Final = 10**9
_MOST_DIGITS: Final = 9
_RANGE: Final = re.compile(rf"(-?\d{{1,{_MOST_DIGITS}}})(?:\.\.(-?\d{{1,{_MOST_DIGITS}}}))?")


def parse_integers(text: str, what: str, least: int) -> tuple[int, ...]:
    """Read ``1..8``, ``1,8,64`` or a mixture as increasing whole numbers.

    Args:
        text: as typed.
        what: for the message.
        least: smallest number allowed.

    Raises:
        InputError: not numbers, an empty range, or a number below `least`.
    """
    values: set[int] = set()
    for part in text.split(","):
        match = _RANGE.fullmatch(part.strip())
        if match is None:
            example = f"write one number, 1,8,64 or 1..8, of at most {_MOST_DIGITS} digits"
            raise InputError(f"{what} {text!r} is not understood: {example}")
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first or last - first > _MOST_VALUES:
            raise InputError(
                f"{what} {text!r}: the range {part.strip()} must rise, by {_MOST_VALUES} at most"
            )
        values.update(range(first, last + 1))
    if min(values) < least:
        raise InputError(f"{what} is {min(values)}: it must be {least} or more")
    return tuple(sorted(values))


def together(*options: Decorator) -> Decorator:
    """Several options as one, in the order in which the help shows them."""

    def add(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return add


files_argument: Final = click.argument(
    "files", nargs=-1, required=True, metavar="FILE...", type=click.Path(dir_okay=False, path_type=Path)
)
format_option: Final = click.option(
    "--format", "fmt", type=click.Choice(FORMATS), default="text", show_default=True, help="How to print it."
)
output_option: Final = click.option(
    "--output", type=click.Path(dir_okay=False, path_type=Path), help="Write to this file instead."
)
rows_option: Final = click.option(
    "--rows",
    "rows_file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write every row with its prediction to this CSV file.",
)
figure_option: Final = click.option(
    "--output",
    required=True,
    type=click.Path(dir_okay=False, path_type=Path),
    help="The figure: .svg, .png or .pdf.",
)
html_option: Final = click.option(
    "--html",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Also write one self-contained page with figures, to mail or attach.",
)
hardware_option: Final = click.option(
    "--hardware", required=True, metavar="NAME|FILE", help="Device: see `rooflines hardware list`."
)
calibration_option: Final = click.option(
    "--calibration",
    default="auto",
    show_default=True,
    metavar="auto|none|textbook|NAME|FILE",
    help="auto: measured on the device, else on its class; none: transferable defaults; textbook: datasheet.",
)
# How a model is served.
deployment_options: Final = together(
    click.option("--tp", default=1, show_default=True, type=int, help="Tensor-parallel degree."),
    click.option(
        "--weight-dtype", metavar="DTYPE", help="Format of the linear layers (default: checkpoint's)."
    ),
    click.option("--kv-dtype", metavar="DTYPE", help="Format of cached keys and values."),
    click.option(
        "--overhead", default="0 s", show_default=True, help="Host time per pass, such as '300 us'."
    ),
)


def _routing(default: str) -> Decorator:
    return click.option(
        "--routing",
        default=default,
        show_default=True,
        metavar="uniform|powerlaw:A|correlated:RHO",
        help="Which experts the tokens of a pass hit.",
    )


# That of questions about time, rooflines.costs.routing.DEFAULT_ROUTING, which help need not load NumPy for.
routing_option: Final = _routing("correlated:0.35")
_expert_option: Final = click.option(
    "--ep", default=1, show_default=True, type=int, help="Expert-parallel degree."
)
_encoder_option: Final = click.option(
    "--encoder-positions", type=click.IntRange(min=1), help="Encoder positions of each sequence (T5)."
)
# What matters to mixtures of experts and encoder-decoders: in questions about time, and where work is
# counted.
architecture_options: Final = together(_expert_option, routing_option, _encoder_option)
counting_options: Final = together(_expert_option, _routing("uniform"), _encoder_option)


def emit_answer(
    fmt: str,
    output: Path | None,
    *,
    document: Callable[[], Mapping[str, Any]],
    columns: Callable[[], Columns],
    text: Callable[[], str],
) -> None:
    """Print an answer, or write it to a file.

    Args:
        fmt: what was asked for.
        output: where to; None prints it.
        document: all of it, for JSON.
        columns: its main table, for CSV.
        text: what people read, in text or Markdown.

    Raises:
        InputError: the file cannot be written.
    """
    if fmt == "json":
        emit(document_text(document()), output)
    elif fmt == "csv":
        emit(render(columns(), fmt), output)
    else:
        emit(text(), output)


def emit_rows(columns: Callable[[], Columns], rows_file: Path | None) -> None:
    """Write the CSV file that `rows_option` names, if it names one.

    Raises:
        InputError: the file cannot be written.
    """
    if rows_file is not None:
        emit(render(columns(), "csv"), rows_file)


def emit(text: str, output: Path | None) -> None:
    """Print, or write to a file whose folder must exist.

    Raises:
        InputError: the file cannot be written.
    """
    if output is None:
        click.echo(text)
        return
    try:
        output.write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot write {output}: {error.strerror}") from None


def read_document(path: Path, what: str) -> dict[str, Any]:
    """Read a JSON result of an earlier run.

    Raises:
        FileFormatError: missing, not JSON, or not an object.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:  # ValueError: not UTF-8, not JSON, endless digits
        reason = error.strerror if isinstance(error, OSError) else "not JSON"
        raise FileFormatError(f"{what} {path} cannot be read: {reason}") from None
    if not isinstance(data, dict):
        raise FileFormatError(f"{what} {path} is not a JSON object")
    return data
