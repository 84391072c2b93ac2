"""A plan as files: text, CSV, JSON and a picture."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rooflines.output.figures.speedup import speedup_figure
from rooflines.output.figures.style import figure_style, save_figure
from rooflines.output.tables import document_text, render
from rooflines.studies.plan import Plan, PlanQuestion, make_plan

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# The plan that `make plan` answers, and the README shows.
DEFAULT_QUESTION: Final = PlanQuestion(
    hardware="h100-sxm5-80gb",
    target="llama-3.1-70b",
    drafters=("independent:llama-3.2-1b",),
    acceptance="0.8",
    draft_lengths=tuple(range(1, 9)),
    batches=(1, 8, 64),
    context=2048,
    tensor_parallel=4,
)


def plan_figure(plan: Plan) -> Figure:
    """Speedup against draft length at the batches asked for, and against batch up to the largest that fits.

    Call it within `figure_style`.

    Raises:
        InputError: nothing of the plan fits in memory.
    """
    question = plan.question
    ends = {row["largest_batch"] for row in plan.memory} - {0}
    # Where nothing fits there is nothing to plan again either; drawing says so.
    wide = make_plan(replace(question, batches=_batches_up_to(ends))) if ends else plan
    crossovers = {entry["drafter"]: entry["batch"] for entry in wide.crossovers}
    return speedup_figure(plan.rows, wide.rows, crossovers, _title(plan))


def _batches_up_to(ends: set[int]) -> tuple[int, ...]:
    """Powers of two up to the largest of the ends, and the ends themselves."""
    powers = {2**power for power in range(max(ends).bit_length())}
    return tuple(sorted(powers | ends))


def _title(plan: Plan) -> str:
    """What is drawn: a line of the target, and one a drafter."""
    question = plan.question
    drafting = (f"drafting: {one['drafter']}, acceptance {one['acceptance']}" for one in plan.acceptances)
    served = f"{question.target} on {question.tensor_parallel} x {question.hardware}"
    return "\n".join((f"{served}, context {question.context}", *drafting))


def draw_plan(plan: Plan, path: Path) -> None:
    """Write the figure of a plan.

    Raises:
        RooflinesError: nothing fits, or the file cannot be written.
    """
    with figure_style():
        save_figure(plan_figure(plan), path)


def write_plan(question: PlanQuestion, folder: Path, as_text: Callable[[Plan], str]) -> list[Path]:
    """Write `plan.txt`, `plan.csv`, `plan.json` and `plan.svg` into a folder, which is made.

    Args:
        question: what is asked.
        folder: where.
        as_text: how a plan reads.
    """
    plan = make_plan(question)
    folder.mkdir(parents=True, exist_ok=True)
    texts = {
        "plan.txt": as_text(plan),
        "plan.csv": render(plan.columns(), "csv"),
        "plan.json": document_text(plan.document()),
    }
    for name, text in texts.items():
        (folder / name).write_text(text + "\n", encoding="utf-8")
    draw_plan(plan, folder / "plan.svg")
    return [folder / name for name in (*texts, "plan.svg")]
