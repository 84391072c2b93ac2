"""The command line: parse, call one function, print.

Commands are imported only when they are called, so that `rooflines --help` answers at once.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence
from typing import Any, Final, NoReturn

import click

from rooflines import __version__
from rooflines.errors import RooflinesError, UnknownNameError

# Command -> (where it is, its line in the help). A test keeps the line equal to the command's own.
COMMANDS: Final[dict[str, tuple[str, str]]] = {
    "plan": ("rooflines.cli.plan:plan", "Should I speculate, with which draft length, at which batch?"),
    "capacity": (
        "rooflines.cli.capacity:capacity",
        "How many cards for a load, with speculation or without?",
    ),
    "speedup": (
        "rooflines.cli.speedup:speedup",
        "Speedup from acceptance, draft length and cost ratio alone.",
    ),
    "intensity": (
        "rooflines.cli.intensity:intensity",
        "Cost, intensity and time of a pass, operator by operator.",
    ),
    "plot": ("rooflines.cli.plot:plot", "Draw rooflines and speedup curves."),
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


class LazyGroup(click.Group):
    """A group that knows its commands by name and imports one only to run it."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Commands in the order people meet them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's
        """Import one command."""
        if cmd_name not in COMMANDS:
            return None
        module, attribute = COMMANDS[cmd_name][0].split(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])

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
        except BrokenPipeError:
            # The reader of a pipe has seen enough; nothing is left to flush to it.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(0)
        sys.exit(code if isinstance(code, int) else 0)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; a typo is answered with near matches."""
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            raise UnknownNameError("command", args[0], COMMANDS, "(see rooflines --help)")
        return super().resolve_command(ctx, args)


def _fail(message: str, code: int) -> NoReturn:
    click.echo(f"rooflines: {' '.join(message.split())}", err=True)
    sys.exit(code)


@click.group(
    cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(__version__, prog_name="rooflines")
def main() -> None:
    """Roofline analysis and performance modelling of speculative decoding.

    From a model's config.json and a device to "speculate with this draft length, and be this much faster".
    """


if __name__ == "__main__":
    sys.exit(main())
