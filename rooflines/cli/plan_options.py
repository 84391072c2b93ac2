"""What `plan`, `compare` and `plot speedup` ask for on the command line."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import click

from rooflines.cli.options import (
    LARGEST_COUNT,
    Decorator,
    calibration_option,
    deployment_options,
    hardware_option,
    parse_integers,
    together,
)

if TYPE_CHECKING:
    from rooflines.studies.plan import PlanQuestion

_DRAFTER: Final = "KIND[:MODEL][,KEY=VALUE..]"
_DRAFTERS: Final = "Who drafts: independent:llama-3.2-1b, eagle3:depth=6,topk=10,nodes=59, ..."
_RATES: Final = "0.8, conditional:0.8,0.75, survival:..., accepted-length:3.1@5 ..."

drafter_option: Final = click.option("--drafter", required=True, metavar=_DRAFTER, help=_DRAFTERS)
drafters_option: Final = click.option(
    "--drafter",
    "drafters",
    required=True,
    multiple=True,
    metavar=_DRAFTER,
    help=f"{_DRAFTERS}; repeat it to compare.",
)
acceptance_option: Final = click.option(
    "--acceptance", required=True, metavar="ALPHA|DEFINITION:VALUES", help=_RATES
)
acceptances_option: Final = click.option(
    "--acceptance",
    "acceptances",
    multiple=True,
    metavar="[NAME=]ALPHA|DEFINITION:VALUES",
    help=f"{_RATES}; repeat it with NAME= (a drafter as written, or its kind) to give each its own.",
)
acceptance_from_option: Final = click.option(
    "--acceptance-from",
    "acceptance_files",
    multiple=True,
    metavar="[NAME=]FILE",
    help="What an engine printed: a log, metrics, a benchmark's JSON or a CSV (see `rooflines import`); "
    "repeat it with NAME= to give each drafter its own.",
)


class _Positions(click.IntRange):
    """A number of positions; one in thousands is refused with the two that it may mean."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:  # noqa: ANN401 - as click has it
        """Read what was typed."""
        thousands = re.fullmatch(r"(\d{1,6})[kK]", value.strip()) if isinstance(value, str) else None
        if thousands:
            count = int(thousands[1])
            self.fail(f"{value!r} may be {count * 1000} or {count * 1024}: write the number", param, ctx)
        return super().convert(value, param, ctx)


def speculation_options(*drafting: Decorator, batch: str) -> Decorator:
    """Target, drafters and how often drafts hold, and the points to answer for.

    Args:
        drafting: options that say who drafts, and how well.
        batch: batches where none are given.
    """
    return together(
        hardware_option,
        click.option("--target", required=True, metavar="NAME|PATH", help="The model that is sped up."),
        *drafting,
        click.option(
            "--draft-length", default="1..8", show_default=True, metavar="A..B|A,B", help="Draft lengths."
        ),
        click.option(
            "--batch", default=batch, show_default=True, metavar="A..B|A,B", help="Sequences in the batch."
        ),
        click.option(
            "--context",
            required=True,
            type=_Positions(0, LARGEST_COUNT),
            help="Cached positions per sequence.",
        ),
    )


# How target and drafter are served.
serving_options: Final = together(deployment_options, calibration_option)
host_option: Final = click.option(
    "--cycle-overhead",
    default="0 s",
    show_default=True,
    metavar="TIME|ENGINE",
    help="Host time per cycle, such as '1 ms', or that of vllm, sglang, sglang-overlap or transformers.",
)


def points(given: dict[str, Any]) -> dict[str, Any]:
    """Fields that questions share, out of the options of `speculation_options` and `serving_options`.

    Args:
        given: values of options by name; those that a question calls by other names are taken out.

    Raises:
        InputError: a list of numbers that is none.
    """
    return {
        "draft_lengths": parse_integers(given.pop("draft_length"), "draft length", 0),
        "batches": parse_integers(given.pop("batch"), "batch", 1),
        "tensor_parallel": given.pop("tp"),
    }


def plan_question(
    acceptances: tuple[str, ...], acceptance_files: tuple[str, ...], given: dict[str, Any]
) -> PlanQuestion:
    """The question that the options of `plan`, or those of its figure, ask.

    Args:
        acceptances: one for all drafters, or one each.
        acceptance_files: where others stand, in the same way.
        given: values of the other options by name.

    Raises:
        InputError: a list of numbers that is none, a file for several drafters, or a question without sense.
        FileFormatError: a file that says nothing of accepted drafts.
    """
    from rooflines.studies.plan import PlanQuestion
    from rooflines.studies.plan_acceptance import printed_for

    rest = dict(given)
    whole = [text for text in acceptance_files if "=" not in text]
    if not (acceptances or acceptance_files) or (whole and acceptances):
        raise click.UsageError("Give --acceptance or --acceptance-from, one of the two.")
    if "ep" in rest:
        rest["expert_parallel"] = rest.pop("ep")
    printed = printed_for(acceptance_files, rest["drafters"]) if acceptance_files else ()
    texts = (*acceptances, *(text for text, _ in printed))
    return PlanQuestion(
        acceptance=texts[0] if len(texts) == 1 else texts,
        acceptance_sources=(*("" for _ in acceptances), *(source for _, source in printed))
        if printed
        else (),
        **points(rest),
        **rest,
    )
