"""Groups of commands that import a command only to run it, so that help answers at once."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

import click

from rooflines.errors import UnknownNameError


class LazyGroup(click.Group):
    """A group that knows its commands by name and by their line in the help.

    Args:
        table: command -> (``module:attribute``, its line in the help), in the order people meet them.
        noun: what a command is called where an unknown one is refused.
    """

    def __init__(
        self,
        *args: Any,  # noqa: ANN401 - click's signature
        table: Mapping[str, tuple[str, str]],
        noun: str,
        **extra: Any,  # noqa: ANN401 - click's signature
    ) -> None:
        super().__init__(*args, **extra)
        self.table = table
        self.noun = noun

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Commands in the order people meet them."""
        return list(self.table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's
        """Import one command.

        Raises:
            UnknownNameError: a typo, with near matches.
        """
        if cmd_name not in self.table:
            raise UnknownNameError(self.noun, cmd_name, self.table, f"(known: {', '.join(self.table)})")
        module, attribute = self.table[cmd_name][0].split(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in self.table.items()])
