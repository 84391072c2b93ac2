"""``rooflines calibrate``: fit constants to what was measured."""

from __future__ import annotations

import importlib
from typing import Final

import click

from rooflines.errors import UnknownNameError

# Command -> (where it is, its line in the help); each is imported only to run it.
SUBCOMMANDS: Final[dict[str, tuple[str, str]]] = {
    "decode": (
        "rooflines.cli.calibrate_decode:decode_command",
        "Constants of this machine from measured passes of a model (rooflines measure decode).",
    ),
}


class CalibrateGroup(click.Group):
    """A group that imports a command only to run it."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Commands in the order people meet them."""
        return list(SUBCOMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's
        """Import one command; a typo is answered with near matches."""
        if cmd_name not in SUBCOMMANDS:
            raise UnknownNameError("calibration", cmd_name, SUBCOMMANDS, f"(known: {', '.join(SUBCOMMANDS)})")
        module, attribute = SUBCOMMANDS[cmd_name][0].split(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in SUBCOMMANDS.items()])


@click.group(cls=CalibrateGroup)
def calibrate() -> None:
    """Fit constants to what was measured."""
