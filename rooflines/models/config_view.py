"""A config.json seen through typed look-ups that remember what was read.

Missing is not null, a string is not a number, and nothing has a default that is not written where it is
asked for. Keys that nobody read are reported; those among them that would change a shape are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

from rooflines.errors import ConfigError, UnsupportedArchitectureError, shortened

# Sizes above these are mistakes: the largest published model has 2.6 million rows or columns nowhere.
MOST_ELEMENTS: Final = 2**31
MOST_LAYERS: Final = 4096
MOST_MODULES: Final = 64  # multi-token-prediction modules

_Value = TypeVar("_Value")


class ConfigView:
    """One level of a config, with the levels around it.

    Attributes:
        data: the keys and values of this level.
        name: what people call the model or file, for messages.
        path: dotted way to this level (empty at the top).
        outer: the level around it, if there is one.
        assumed: what had to be taken as usual since the config leaves it unsaid.
    """

    __slots__ = ("_read", "assumed", "data", "name", "outer", "path")

    def __init__(
        self, data: Mapping[str, Any], name: str, path: str = "", outer: ConfigView | None = None
    ) -> None:
        self.data = data
        self.name = name
        self.path = path
        self.outer = outer
        self.assumed: list[str] = []
        self._read: set[str] = set()

    # What is there

    def has(self, key: str) -> bool:
        """Whether `key` is given and not null."""
        return self.value(key) is not None

    def missing(self, key: str) -> bool:
        """Whether `key` is not given at all; null is given."""
        self._read.add(key)
        return key not in self.data

    def value(self, key: str) -> Any:  # noqa: ANN401  # whatever JSON holds
        """The raw value of `key`, or None where it is missing or null."""
        self._read.add(key)
        return self.data.get(key)

    def unread(self) -> tuple[str, ...]:
        """Keys of this level that nobody asked for, in order; metadata (leading underscore) left out."""
        return tuple(key for key in self.data if key not in self._read and not key.startswith("_"))

    def disregard(self, *keys: str) -> None:
        """Count `keys` as understood although they change nothing here."""
        self._read.update(keys)

    def level(self, key: str) -> ConfigView:
        """The object under `key`.

        Raises:
            ConfigError: missing or no object.
        """
        value = self.value(key)
        if not isinstance(value, Mapping):
            raise self.wrong(key, "an object")
        return ConfigView(value, self.name, self.where(key), self)

    # Typed values

    def size(self, *keys: str, most: int = MOST_ELEMENTS) -> int:
        """A positive whole number under the first of several spellings; it must be there.

        Raises:
            ConfigError: missing, null, no positive whole number, or two spellings that disagree.
        """
        found = self.optional_size(*keys, most=most)
        if found is None:
            raise self.lacking(*keys)
        return found

    def optional_size(self, *keys: str, most: int = MOST_ELEMENTS, least: int = 1) -> int | None:
        """A whole number under one of several spellings, or None where all are missing or null.

        Raises:
            ConfigError: no whole number from `least` to `most`, or two spellings that disagree.
        """
        given = [(key, self.data[key]) for key in keys if self.has(key)]
        for key, value in given:
            if type(value) is not int or not least <= value <= most:
                raise self.wrong(key, f"a whole number from {least} to {most}")
        if len({value for _, value in given}) > 1:
            pairs = " and ".join(f"{self.where(key)} {value}" for key, value in given)
            raise ConfigError(f"{self.name}: {pairs} contradict each other: keep one")
        return given[0][1] if given else None

    def count(self, *keys: str, default: int | None = None, most: int = MOST_ELEMENTS) -> int:
        """A whole number that may be 0; `default` where it is missing or null, if there is one.

        Raises:
            ConfigError: missing without a default, negative, or no whole number.
        """
        found = self.optional_size(*keys, most=most, least=0)
        if found is None and default is None:
            raise self.lacking(*keys)
        return found if found is not None else default or 0

    def flag(self, key: str, *, default: bool) -> bool:
        """True or false; `default` where it is missing or null.

        Raises:
            ConfigError: neither.
        """
        value = self.value(key)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise self.wrong(key, "true or false")
        return value

    def number(self, key: str) -> float:
        """A positive finite number.

        Raises:
            ConfigError: missing, null, or no such number.
        """
        value = self.value(key)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= MOST_ELEMENTS:
            raise self.wrong(key, "a positive number") if key in self.data else self.lacking(key)
        return value

    def text(self, key: str, default: str | None = None) -> str:
        """A string; `default` where it is missing or null, if there is one.

        Raises:
            ConfigError: missing without a default, or no string.
        """
        value = self.value(key)
        if value is None and default is not None:
            return default
        if not isinstance(value, str):
            raise self.wrong(key, "a string") if key in self.data else self.lacking(key)
        return value

    # One value a layer

    def items(self, key: str, length: int, check: Callable[[object], _Value]) -> tuple[_Value, ...]:
        """A list with one entry a layer.

        Args:
            key: where the list is.
            length: how many entries it must have.
            check: turns an entry into what it means; a ValueError becomes a ConfigError.

        Raises:
            ConfigError: no list, another length, or an entry that `check` refuses.
        """
        value = self.value(key)
        if not isinstance(value, Sequence) or isinstance(value, str):
            raise self.wrong(key, f"a list with one entry for each of {length} layers")
        if len(value) != length:
            raise ConfigError(
                f"{self.name}: {self.where(key)} has {len(value)} entries for {length} layers: "
                "give one a layer"
            )
        try:
            return tuple(check(entry) for entry in value)
        except ValueError as mistake:
            raise ConfigError(f"{self.name}: {self.where(key)}: {mistake}") from None

    def choices(self, key: str, length: int, allowed: Mapping[str, _Value]) -> tuple[_Value, ...]:
        """A list of words with one entry a layer, each translated by `allowed`.

        Raises:
            UnsupportedArchitectureError: a word that is not in `allowed`.
            ConfigError: no list, or another length.
        """

        def translate(entry: object) -> _Value:
            if not isinstance(entry, str) or entry not in allowed:
                raise UnsupportedArchitectureError(
                    f"{self.name}: {self.where(key)} has {shortened(entry)}, which is not modelled "
                    f"(known: {', '.join(allowed)})"
                )
            return allowed[entry]

        return self.items(key, length, translate)

    def sizes(self, *keys: str, length: int, nothing: bool = False) -> tuple[int, ...]:
        """One positive whole number for all layers, or a list with one a layer.

        Args:
            keys: spellings.
            length: number of layers.
            nothing: allow null and 0 in a list, where they mean 0: the layer has none of it.

        Raises:
            ConfigError: missing, or not such numbers.
        """
        key = next((key for key in keys if self.has(key)), keys[0])
        if not isinstance(self.value(key), list | tuple):
            return (self.size(*keys),) * length

        def check(entry: object) -> int:
            if nothing and (entry is None or (entry == 0 and type(entry) is int)):
                return 0
            if type(entry) is not int or not 1 <= entry <= MOST_ELEMENTS:
                raise ValueError(f"entry {shortened(entry)} must be a whole number from 1 to {MOST_ELEMENTS}")
            return entry

        return self.items(key, length, check)

    # Refusals

    def refuse(self, key: str, why: str = "") -> None:
        """Refuse a config in which `key` says anything but null, false, 0 or nothing.

        Raises:
            UnsupportedArchitectureError: naming the field.
        """
        if self.value(key):
            raise self.unsupported(key, why)

    def unsupported(self, key: str, why: str = "") -> UnsupportedArchitectureError:
        """The error for a field that is not modelled."""
        reason = f": {why}" if why else ""
        return UnsupportedArchitectureError(
            f"{self.name}: {self.where(key)} = {shortened(self.data.get(key))} is not modelled{reason}"
        )

    def wrong(self, key: str, allowed: str) -> ConfigError:
        """The error for a value that is not `allowed`."""
        if key not in self.data:
            return self.lacking(key)
        return ConfigError(
            f"{self.name}: {self.where(key)} is {shortened(self.data[key])}: it must be {allowed}"
        )

    def lacking(self, *keys: str) -> ConfigError:
        """The error for a field that is not there; no class default stands in for it."""
        names = " or ".join(self.where(key) for key in keys)
        nulls = [key for key in keys if key in self.data]
        state = "is null" if nulls else "is missing"
        return ConfigError(
            f"{self.name}: {names} {state}: add it to the config (no class default stands in for it)"
        )

    def where(self, key: str) -> str:
        """Dotted name of a key."""
        return f"{self.path}.{key}" if self.path else key
