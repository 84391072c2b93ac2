"""Typed look-ups in a quantisation block; every mistake becomes one line that names the key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rooflines.errors import ConfigError, shortened


@dataclass(frozen=True, slots=True)
class Block:
    """A JSON object of a config, with the way to it for messages."""

    data: Mapping[str, Any]
    where: str

    def has(self, key: str) -> bool:
        """Whether `key` is given and not null."""
        return self.data.get(key) is not None

    def child(self, key: str) -> Block:
        """The object under `key`.

        Raises:
            ConfigError: missing or no object.
        """
        value = self.data.get(key)
        if not isinstance(value, Mapping):
            raise self.wrong(key, "an object")
        return Block(value, f"{self.where}.{key if key.isprintable() else ascii(key)}")

    def integer(self, key: str, least: int, most: int, otherwise: int | None = None) -> int:
        """A whole number within bounds; `otherwise` where the key is missing or null.

        Raises:
            ConfigError: missing without `otherwise`, no whole number, or out of bounds.
        """
        value = self.data.get(key)
        if value is None and otherwise is not None:
            return otherwise
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise self.wrong(key, f"a whole number from {least} to {most}")
        return value

    def number(self, key: str, least: float, most: float) -> float:
        """A number within bounds.

        Raises:
            ConfigError: missing, no number, or out of bounds.
        """
        value = self.data.get(key)
        if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
            raise self.wrong(key, f"a number from {least:g} to {most:g}")
        return float(value)

    def flag(self, key: str, *, otherwise: bool) -> bool:
        """True or false; `otherwise` where the key is missing or null.

        Raises:
            ConfigError: neither.
        """
        value = self.data.get(key)
        if value is None:
            return otherwise
        if not isinstance(value, bool):
            raise self.wrong(key, "true or false")
        return value

    def text(self, key: str, otherwise: str | None = None) -> str:
        """A non-empty string; `otherwise` where the key is missing or null.

        Raises:
            ConfigError: missing without `otherwise`, or no string.
        """
        value = self.data.get(key)
        if value is None and otherwise is not None:
            return otherwise
        if not isinstance(value, str) or not value:
            raise self.wrong(key, "a string")
        return value

    def names(self, *keys: str) -> tuple[str, ...]:
        """The strings listed under the first of `keys` that is given; empty where none is.

        Raises:
            ConfigError: not a list of strings.
        """
        for key in keys:
            value = self.data.get(key)
            if value is None:
                continue
            if not isinstance(value, list | tuple) or not all(isinstance(entry, str) for entry in value):
                raise self.wrong(key, "a list of module names")
            return tuple(value)
        return ()

    def wrong(self, key: str, allowed: str) -> ConfigError:
        """The error for a value that is not what `key` needs."""
        if key not in self.data:
            return ConfigError(f"{self.where}.{key} is missing: it must be {allowed}")
        return ConfigError(f"{self.where}.{key} is {shortened(self.data[key])}: it must be {allowed}")
