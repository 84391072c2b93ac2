"""The command line: parse, call one function, print.

Commands are imported only when they are called, so that `rooflines --help` answers at once.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence
from typing import Any, Final, NoReturn

import click

from rooflines import __version__
from rooflines.cli.lazy import LazyGroup
from rooflines.errors import RooflinesError

# Command -> (where it is, its line in the help). A test keeps the line equal to the command's own.
COMMANDS: Final[dict[str, tuple[str, str]]] = {
    "plan": ("rooflines.cli.plan:plan", "Should I speculate, with which draft length, at which batch?"),
    "capacity": (
        "rooflines.cli.capacity:capacity",
        "How many cards for a load, with speculation or without?",
    ),
    "sweep": (
        "rooflines.cli.sweep:sweep",
        "Price a grid of any size into Parquet, and ask what is best in it.",
    ),
    "explore": ("rooflines.cli.explore:explore", "Look at a plan: move sliders, see what changes."),
    "compare": (
        "rooflines.cli.compare:compare",
        "Speculate, quantise or distil: what gains how much?",
    ),
    "speedup": (
        "rooflines.cli.speedup:speedup",
        "Speedup from acceptance, draft length and cost ratio alone.",
    ),
    "intensity": (
        "rooflines.cli.intensity:intensity",
        "Cost, intensity and time of a pass, operator by operator.",
    ),
    "plot": ("rooflines.cli.plot:plot", "Draw rooflines, verify costs, speedup curves and Pareto curves."),
    "measure": ("rooflines.cli.measure:measure", "Time this machine and what runs on it."),
    "validate": ("rooflines.cli.validate:validate", "Hold predictions against measured times."),
    "import": (
        "rooflines.cli.import_results:import_results",
        "Read what other tools measured, in our definitions.",
    ),
    "calibrate": ("rooflines.cli.calibrate:calibrate", "Fit constants to what was measured."),
    "check": (
        "rooflines.cli.check:check",
        "Does measured speculation follow from what is known?",
    ),
    "report": ("rooflines.cli.report:report", "Remake the reports."),
    "hardware": ("rooflines.cli.hardware:hardware", "Devices: what is known about them, and who says so."),
    "models": ("rooflines.cli.models:models", "List and show models."),
}


class CommandLine(LazyGroup):
    """The top of the command line: an expected error is one line with its exit code."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,  # noqa: ANN401 - click's signature
    ) -> Any:  # noqa: ANN401 - click's signature
        """Run; an expected error becomes one line and its exit code, never a traceback."""
        if not standalone_mode:
            return super().main(args, prog_name, complete_var, standalone_mode=False, **extra)
        try:
            code = super().main(args, prog_name, complete_var, standalone_mode=False, **extra)
        except RooflinesError as error:
            _fail(str(error), error.exit_code)
        except click.exceptions.NoArgsIsHelpError as error:
            error.show()  # the whole help, which is no message to be put on one line
            sys.exit(error.exit_code)
        except click.ClickException as error:
            _fail(error.format_message(), RooflinesError.exit_code)
        except click.Abort:
            _fail("stopped", 130)
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            _drop_output()
            _fail(
                f"cannot write the answer: {error.strerror}: make room, or give --output",
                RooflinesError.exit_code,
            )
        sys.exit(code if isinstance(code, int) else 0)

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401 - click's signature
        """Run the command; a reader of a pipe that has seen enough is no mistake (click exits with 1)."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            _drop_output()
            return ctx.exit(0)


def _drop_output() -> None:
    """Let what is still buffered for standard output go nowhere: flushing it at exit would fail anew."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fail(message: str, code: int) -> NoReturn:
    click.echo(f"rooflines: {' '.join(message.split())}", err=True)
    sys.exit(code)


@click.group(
    cls=CommandLine,
    table=COMMANDS,
    noun="command",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="rooflines")
def main() -> None:
    """Roofline analysis and performance modelling of speculative decoding.

    From a model's config.json and a device to "speculate with this draft length, and be this much faster".
    """


if __name__ == "__main__":
    sys.exit(main())
