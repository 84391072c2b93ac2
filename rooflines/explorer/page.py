"""The right-hand side of the explorer as HTML: the answer, charts that can be saved, and the numbers."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from html import escape

from rooflines.errors import RooflinesError
from rooflines.explorer.choices import Choices
from rooflines.output.charts.bars import cycle_chart, memory_chart
from rooflines.output.charts.break_even import map_chart
from rooflines.output.charts.roofline import roofline_chart
from rooflines.output.charts.speedup import batch_chart, length_chart
from rooflines.output.plan_text import plan_text
from rooflines.studies.explore import DeviceView, explore


def shown_html(choices: Choices, notes: Sequence[str] = (), refused: str = "") -> str:
    """The answer, or why there is none.

    Args:
        choices: the state of the page.
        notes: what of the address was not understood.
        refused: why a choice was refused already; empty if none was.
    """
    try:
        return refusal_html(refused) if refused else answer_html(choices, notes)
    except RooflinesError as error:
        return refusal_html(str(error))


def answer_html(choices: Choices, notes: Sequence[str] = ()) -> str:
    """Everything that follows from the choices.

    Args:
        choices: the state of the page.
        notes: what of the address was not understood.

    Raises:
        RooflinesError: whatever a plan refuses.
    """
    model = choices.model()
    views = [explore(choices.question(name), choices.draft_length, model) for name in choices.hardware]
    warnings = dict.fromkeys(note for view in views for note in view.plan.warnings)
    parts = [
        *(f'<p class="note">{escape(note)}</p>' for note in notes),
        '<div class="answer" id="answer" role="status">',
        *(f"<p>{escape(view.plan.text)}</p>" for view in views),
        "</div>",
        *(_basis(view) for view in views),
        *(f'<p class="note">{escape(note)}</p>' for note in warnings),
        '<div class="charts">',
        *(_figure(name, caption, chart) for name, caption, chart in _charts(choices, views) if chart),
        "</div>",
        *(_numbers(choices, view) for view in views),
    ]
    return "\n".join(parts)


def refusal_html(message: str) -> str:
    """What stands in the place of an answer that there is none of."""
    return f'<p class="refused" id="answer" role="alert">{escape(message)}</p>'


def _basis(view: DeviceView) -> str:
    return f'<p class="basis">{escape(view.plan.question.hardware)}: {escape(view.plan.basis)}</p>'


def _charts(choices: Choices, views: Sequence[DeviceView]) -> list[tuple[str, str, str]]:
    """Name of the file, heading and chart."""
    first = next((one for view in views for one in view.maps), None)
    of = f", draft {first.draft_length} of {first.drafter}" if first else ""
    return [
        (
            "speedup-by-length",
            f"Speedup against draft length at batch {choices.batch}",
            length_chart(views, choices.draft_length),
        ),
        ("speedup-by-batch", "Speedup against batch", batch_chart(views, choices.batch)),
        ("roofline", "Operators under the roof", roofline_chart(views)),
        ("cycle", "Where the time of a cycle goes", cycle_chart(views)),
        ("break-even", f"Where it pays{of}", map_chart(views)),
        ("memory", "Memory of one device", memory_chart(views)),
    ]


def _figure(name: str, heading: str, chart: str) -> str:
    """A chart with a button that `head.html` makes a file of it with."""
    save = f'<button type="button" data-save="{name}.svg">Save as SVG</button>'
    caption = f"<figcaption><strong>{escape(heading)}</strong> {save}</figcaption>"
    return f'<figure id="{name}">{caption}{chart}</figure>'


def _numbers(choices: Choices, view: DeviceView) -> str:
    where = view.plan.question.hardware
    command = shlex.join(choices.command(where))
    own = "" if not choices.config else " (its target is the path of your config.json)"
    return (
        f"<details><summary>Numbers for {escape(where)}</summary>"
        f"<p>The same on the command line{own}:</p><pre>{escape(command)}</pre>"
        f'<pre tabindex="0">{escape(plan_text(view.plan, "text"))}</pre></details>'
    )
