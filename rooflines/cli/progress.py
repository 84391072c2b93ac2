"""How far a long command is, told on a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress


@contextmanager
def progress_bar(what: str, unit: str = "") -> Iterator[Callable[[int, int], None]]:
    """A bar with count, rate and time left on a terminal's stderr; silent elsewhere.

    It is drawn only when told: a bar that redraws itself would run while the machine is measured.

    Args:
        what: is going on.
        unit: what is counted, such as "rows".

    Yields:
        What is to be told how many of how many are done.
    """
    with _bar(what, unit) as bar:
        task = bar.add_task(what, total=None)

        def told(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total, refresh=True)

        yield told


def _bar(what: str, unit: str) -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
    from rich.text import Text

    class Count(ProgressColumn):
        """How many of how many, and how many a second where that is one or more."""

        def render(self, task: Task) -> Text:
            total = "?" if task.total is None else f"{task.total:,.0f}"
            rate = f", {task.speed:,.0f}/s" if task.speed is not None and task.speed >= 1 else ""
            return Text(f"{task.completed:,.0f} of {total} {unit}".rstrip() + rate)

    console = Console(stderr=True)
    columns = (TextColumn(what), BarColumn(), Count(), TimeRemainingColumn())
    # Answers go to stdout as they are, whatever is drawn beside them.
    return Progress(
        *columns, console=console, auto_refresh=False, redirect_stdout=False, disable=not console.is_terminal
    )
