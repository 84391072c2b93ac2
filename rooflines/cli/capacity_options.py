"""What `capacity` and its figure ask for on the command line."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import click

from rooflines.cli.options import (
    architecture_options,
    calibration_option,
    deployment_options,
    hardware_option,
    together,
)
from rooflines.cli.plan_options import acceptance_from_option, host_option
from rooflines.errors import InputError

if TYPE_CHECKING:
    from rooflines.studies.capacity import CapacityQuestion, ServedOption

_COUNT: Final = click.IntRange(1, 10**7)
_KEYS: Final = ("hardware", "tp", "ep", "weight-dtype", "kv-dtype", "drafter", "price")
# Amounts that can have one unit only, and so may do without.
_RATE: Final = re.compile(r"(\S+?)\s*(?:(?:requests?|req)?\s*/\s*s)?")
_PRICE: Final = re.compile(r"[$€£¥]?\s*(\S+?)\s*(?:/\s*h(?:r|our)?)?")


def _number_in(text: str, pattern: re.Pattern[str]) -> float:
    """The number of an amount.

    Raises:
        ValueError: there is none.
    """
    found = pattern.fullmatch(text.strip())
    return float(found[1] if found else text)


def _amount(pattern: re.Pattern[str], example: str) -> Callable[..., float | None]:
    """Reads an option that is an amount."""

    def read(_context: click.Context, option: click.Parameter, value: str | None) -> float | None:
        try:
            return None if value is None else _number_in(value, pattern)
        except ValueError:
            raise click.BadParameter(f"{value!r}: write a number, such as {example}", param=option) from None

    return read


def _in_percent(_context: click.Context, option: click.Parameter, value: float) -> float:
    """A percentile as it is; refuses a share."""
    if value <= 1.0:
        reason = f"{value:g} is a share; percentiles are in percent: 95, not 0.95"
        raise click.BadParameter(reason, param=option)
    return value


# What is served to whom.
workload_options: Final = together(
    hardware_option,
    click.option("--target", required=True, metavar="NAME|PATH", help="The model that is served."),
    click.option(
        "--prompt-tokens",
        metavar="N|KIND:..",
        help="1024, uniform:A..B, exponential:MEAN or lognormal:MEDIAN,SIGMA.",
    ),
    click.option("--output-tokens", metavar="N|KIND:..", help="Likewise, tokens generated."),
    click.option("--trace", metavar="FILE", help="CSV: arrival_s, prompt_tokens, output_tokens."),
    click.option("--prefix-hit", default=0.0, show_default=True, help="Share of prompts that is cached."),
)
_drafting_options: Final = together(
    click.option(
        "--drafter",
        "drafters",
        multiple=True,
        metavar="KIND[:MODEL][:KEY=VALUE,..]",
        help="Compare speculation with this drafter; repeat it for several.",
    ),
    click.option(
        "--acceptance",
        multiple=True,
        metavar="[NAME=]ALPHA|DEFINITION:VALUES",
        help="How often drafts are accepted; with several drafters, one NAME=... each.",
    ),
    acceptance_from_option,
    click.option(
        "--draft-length",
        default="0..8",
        show_default=True,
        metavar="N|A..B|N@BATCH,..",
        help="4 always, the best of 0..8 at each batch, or 4@16,2@64,0.",
    ),
)
_engine_options: Final = together(
    click.option("--max-sequences", default=256, show_default=True, type=_COUNT, help="Sequences at once."),
    click.option(
        "--batched-tokens", default=8192, show_default=True, type=_COUNT, help="Positions in a step."
    ),
    click.option(
        "--kv-transfer", metavar="RATE", help="Prefill on engines of its own, linked at '50 GB/s', say."
    ),
    host_option,
    click.option("--memory-reserve", default=0.1, show_default=True, help="Share of memory kept free."),
)
# By which engines, with which drafts.
serving_options: Final = together(
    _drafting_options,
    click.option(
        "--option",
        "options",
        multiple=True,
        metavar="KEY=VALUE;..",
        help=f"Another way to serve, what differs only: {', '.join(_KEYS)}.",
    ),
    _engine_options,
    deployment_options,
    architecture_options,
    calibration_option,
)
# How much of it, and how fast.
load_options: Final = together(
    click.option(
        "--rate",
        metavar="NUMBER",
        callback=_amount(_RATE, "20 or 20/s"),
        help="Load of all engines together (requests/s).",
    ),
    click.option(
        "--concurrency", metavar="N,..", help="Also a benchmark client that keeps N requests running."
    ),
    click.option("--slo-tpot", metavar="TIME", help="Promised time per output token, such as '30 ms'."),
    click.option("--slo-ttft", metavar="TIME", help="Promised time to first token, such as '1 s'."),
    click.option(
        "--percentile",
        default=95.0,
        show_default=True,
        type=click.FloatRange(0, 100, min_open=True, max_open=True),
        callback=_in_percent,
        help="Share of tokens and requests that must be in time.",
    ),
    click.option(
        "--request-overhead",
        default="0 s",
        show_default=True,
        metavar="TIME",
        help="Host time of a request before its first token (HTTP, tokenising), such as '5 ms'.",
    ),
    click.option(
        "--price",
        metavar="NUMBER",
        callback=_amount(_PRICE, "2.5 or '$2.5'"),
        help="Of one card an hour, in any currency.",
    ),
)


def question_of(
    given: dict[str, Any],
    *,
    price: float | None = None,
    concurrency: tuple[int, ...] = (),
    **asked: Any,  # noqa: ANN401 - fields of a question by name
) -> CapacityQuestion:
    """The question that options ask.

    Args:
        given: values of `workload_options` and `serving_options` by name.
        price: of a card of the first option, an hour.
        concurrency: requests at once of a client.
        asked: further fields of the question.

    Raises:
        InputError: an option that is none, a file of acceptance for several drafters, or a question without
            sense.
        FileFormatError: a file that says nothing of accepted drafts.
    """
    from rooflines.studies.capacity import CapacityQuestion, ServedOption
    from rooflines.studies.capacity_question import drafters_of
    from rooflines.studies.plan_acceptance import printed_for

    rest = dict(given)
    first = ServedOption(
        hardware=rest.pop("hardware"),
        tensor_parallel=rest.pop("tp"),
        expert_parallel=rest.pop("ep"),
        weight_dtype=rest.pop("weight_dtype"),
        kv_dtype=rest.pop("kv_dtype"),
        drafters=rest.pop("drafters"),
        price_per_hour=price,
    )
    options = (first, *(_other(text, first) for text in rest.pop("options")))
    given_rates = rest.pop("acceptance")
    printed = printed_for(rest.pop("acceptance_files"), drafters_of(options))
    return CapacityQuestion(
        options=options,
        concurrency=concurrency,
        acceptance=(*given_rates, *(text for text, _ in printed)),
        acceptance_sources=(*("" for _ in given_rates), *(source for _, source in printed)),
        **rest,
        **asked,
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
            given,
            "price",
            partial(_number_in, pattern=_PRICE),
            first.price_per_hour if "hardware" not in given else None,
        ),
    }
    return replace(first, **changes)


def _number(
    given: dict[str, str], key: str, read: Callable[[str], float], default: float | None
) -> float | None:
    if key not in given:
        return default
    try:
        return read(given[key])
    except ValueError:
        raise InputError(f"option {key}={given[key]!r}: a number is needed") from None
