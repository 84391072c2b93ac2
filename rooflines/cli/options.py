"""Options that several commands share, and how their texts are read."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import click

from rooflines.errors import FileFormatError, InputError
from rooflines.output.tables import FORMATS

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


def format_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--format``."""
    return click.option(
        "--format",
        "fmt",
        type=click.Choice(FORMATS),
        default="text",
        show_default=True,
        help="How to print it.",
    )(command)


def output_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--output``."""
    return click.option(
        "--output", type=click.Path(dir_okay=False, path_type=Path), help="Write to this file instead."
    )(command)


def html_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--html``."""
    return click.option(
        "--html",
        type=click.Path(dir_okay=False, path_type=Path),
        help="Also write one self-contained page with figures, to mail or attach.",
    )(command)


def hardware_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--hardware``."""
    return click.option(
        "--hardware", required=True, metavar="NAME|FILE", help="Device: see `rooflines hardware list`."
    )(command)


def calibration_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--calibration``."""
    return click.option(
        "--calibration",
        default="auto",
        show_default=True,
        metavar="auto|none|textbook|NAME|FILE",
        help="auto: measured on the device, else on its class; none: transferable defaults; textbook: "
        "datasheet.",
    )(command)


def deployment_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say how a model is served."""
    for option in (
        click.option(
            "--overhead", default="0 s", show_default=True, help="Host time per pass, such as '300 us'."
        ),
        click.option("--kv-dtype", metavar="DTYPE", help="Format of cached keys and values."),
        click.option(
            "--weight-dtype", metavar="DTYPE", help="Format of the linear layers (default: checkpoint's)."
        ),
        click.option("--tp", default=1, show_default=True, type=int, help="Tensor-parallel degree."),
    ):
        command = option(command)
    return command


def architecture_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that matter to mixtures of experts and encoder-decoders."""
    for option in (
        click.option(
            "--encoder-positions", type=click.IntRange(min=1), help="Encoder positions of each sequence (T5)."
        ),
        click.option(
            "--routing",
            default="uniform",
            show_default=True,
            metavar="uniform|powerlaw:A|correlated:RHO",
            help="Which experts the tokens of a pass hit.",
        ),
        click.option("--ep", default=1, show_default=True, type=int, help="Expert-parallel degree."),
    ):
        command = option(command)
    return command


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


def document_text(document: Mapping[str, Any]) -> str:
    """A result as JSON."""
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)


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
