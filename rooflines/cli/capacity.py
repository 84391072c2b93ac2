"""``rooflines capacity``: cards for a load."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from rooflines.cli.options import (
    architecture_options,
    calibration_option,
    deployment_options,
    emit_answer,
    format_option,
    hardware_option,
    html_option,
    output_option,
    parse_integers,
)
from rooflines.errors import InputError

if TYPE_CHECKING:
    from rooflines.studies.capacity import ServedOption

_COUNT: Final = click.IntRange(1, 10**7)
_KEYS: Final = ("hardware", "tp", "ep", "weight-dtype", "kv-dtype", "drafter", "price")


def _workload_options(command: Any) -> Any:  # noqa: ANN401 - click decorates callables of any signature
    for option in (
        click.option("--prefix-hit", default=0.0, show_default=True, help="Share of prompts that is cached."),
        click.option("--rate", type=float, help="Load of all engines together (requests/s)."),
        click.option(
            "--concurrency", metavar="N,..", help="Also a benchmark client that keeps N requests running."
        ),
        click.option("--trace", metavar="FILE", help="CSV: arrival_s, prompt_tokens, output_tokens."),
        click.option("--output-tokens", metavar="N|KIND:..", help="Likewise, tokens generated."),
        click.option(
            "--prompt-tokens",
            metavar="N|KIND:..",
            help="1024, uniform:A..B, exponential:MEAN or lognormal:MEDIAN,SIGMA.",
        ),
    ):
        command = option(command)
    return command


def _engine_options(command: Any) -> Any:  # noqa: ANN401 - click decorates callables of any signature
    for option in (
        click.option("--memory-reserve", default=0.1, show_default=True, help="Share of memory kept free."),
        click.option("--cycle-overhead", default="0 s", show_default=True, help="Host time per cycle."),
        click.option(
            "--kv-transfer", metavar="RATE", help="Prefill on engines of its own, linked at '50 GB/s', say."
        ),
        click.option(
            "--batched-tokens", default=8192, show_default=True, type=_COUNT, help="Positions in a step."
        ),
        click.option(
            "--max-sequences", default=256, show_default=True, type=_COUNT, help="Sequences at once."
        ),
    ):
        command = option(command)
    return command


def _promise_options(command: Any) -> Any:  # noqa: ANN401 - click decorates callables of any signature
    for option in (
        click.option("--price", type=float, help="Of one card an hour, in any currency."),
        click.option(
            "--percentile",
            default=95.0,
            show_default=True,
            type=click.FloatRange(0, 100, min_open=True, max_open=True),
            help="Share of tokens and requests that must be in time.",
        ),
        click.option("--slo-ttft", metavar="TIME", help="Promised time to first token, such as '1 s'."),
        click.option("--slo-tpot", metavar="TIME", help="Promised time per output token, such as '30 ms'."),
    ):
        command = option(command)
    return command


@click.command()
@hardware_option
@click.option("--target", required=True, metavar="NAME|PATH", help="The model that is served.")
@_workload_options
@click.option(
    "--drafter",
    "drafters",
    multiple=True,
    metavar="KIND[:MODEL][:KEY=VALUE,..]",
    help="Compare speculation with this drafter; repeat it for several.",
)
@click.option(
    "--acceptance",
    multiple=True,
    metavar="[NAME=]ALPHA|DEFINITION:VALUES",
    help="How often drafts are accepted; with several drafters, one NAME=... each.",
)
@click.option(
    "--draft-length",
    default="0..8",
    show_default=True,
    metavar="N|A..B|N@BATCH,..",
    help="4 always, the best of 0..8 at each batch, or 4@16,2@64,0.",
)
@_promise_options
@click.option(
    "--option",
    "options",
    multiple=True,
    metavar="KEY=VALUE;..",
    help=f"Another way to serve, what differs only: {', '.join(_KEYS)}.",
)
@_engine_options
@deployment_options
@architecture_options
@calibration_option
@click.option(
    "--figure",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Draw tokens/s per card against per user (.svg, .png, .pdf).",
)
@html_option
@format_option
@output_option
def capacity(
    hardware: str,
    target: str,
    drafters: tuple[str, ...],
    options: tuple[str, ...],
    percentile: float,
    price: float | None,
    tp: int,
    ep: int,
    weight_dtype: str | None,
    kv_dtype: str | None,
    figure: Path | None,
    html: Path | None,
    concurrency: str | None,
    fmt: str,
    output: Path | None,
    **asked: Any,  # noqa: ANN401 - the rest is passed on by name
) -> None:
    """How many cards for a load, with speculation or without?"""
    from rooflines.output.capacity_text import capacity_columns, capacity_text
    from rooflines.output.figures.style import file_type
    from rooflines.studies.capacity import CapacityQuestion, ServedOption, make_capacity

    if figure is not None:
        file_type(figure)
    first = ServedOption(hardware, tp, ep, weight_dtype, kv_dtype, drafters, price)
    answer = make_capacity(
        CapacityQuestion(
            options=(first, *(_other(text, first) for text in options)),
            target=target,
            share=percentile / 100.0,
            concurrency=() if concurrency is None else parse_integers(concurrency, "concurrency", 1),
            **asked,
        )
    )
    for note in answer.warnings:
        click.echo(f"rooflines: warning: {note}", err=True)
    if figure is not None:
        from rooflines.output.figures.pareto import pareto_figure
        from rooflines.output.figures.style import figure_style, save_figure

        with figure_style():
            save_figure(pareto_figure(answer.pareto, title=target), figure)
        click.echo(f"wrote {figure}", err=True)
    if html is not None:
        from rooflines.output.capacity_page import capacity_page
        from rooflines.output.page import write_page

        write_page(capacity_page(answer), html)
        click.echo(f"wrote {html}", err=True)
    emit_answer(
        fmt,
        output,
        document=answer.document,
        columns=lambda: capacity_columns(answer),
        text=lambda: capacity_text(answer, fmt),
    )


def _other(text: str, first: ServedOption) -> ServedOption:
    """Another option: the first one with what `text` says changed."""
    from dataclasses import replace

    from rooflines.errors import UnknownNameError

    given: dict[str, str] = {}
    for part in filter(None, (piece.strip() for piece in text.split(";"))):
        key, equals, value = part.partition("=")
        if key not in _KEYS:
            raise UnknownNameError("key of an option", key, _KEYS, f"(known: {', '.join(_KEYS)})")
        if not equals or not value or key in given:
            raise InputError(f"option {text!r}: {part!r} is no key=value that stands once")
        given[key] = value
    changes: dict[str, Any] = {
        "hardware": given.get("hardware", first.hardware),
        "tensor_parallel": _number(given, "tp", int, first.tensor_parallel),
        "expert_parallel": _number(given, "ep", int, first.expert_parallel),
        "weight_dtype": given.get("weight-dtype", first.weight_dtype),
        "kv_dtype": given.get("kv-dtype", first.kv_dtype),
        "drafters": (given["drafter"],) if "drafter" in given else first.drafters,
        # A price belongs to a device, so another device does not inherit it.
        "price_per_hour": _number(
            given, "price", float, first.price_per_hour if "hardware" not in given else None
        ),
    }
    return replace(first, **changes)


def _number(given: dict[str, str], key: str, kind: type, default: float | None) -> float | None:
    if key not in given:
        return default
    try:
        value: float = kind(given[key])
    except ValueError:
        raise InputError(f"option {key}={given[key]!r}: a number is needed") from None
    return value
