"""Base of every value that is read from a file: frozen, strict, nothing unknown accepted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, ValidationError

from rooflines.errors import FileFormatError, RooflinesError


class Fact(BaseModel):
    """A frozen record of facts; an unknown or mistyped field is an error, never ignored."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    @classmethod
    def read(cls, data: Mapping[str, Any], where: str, error: type[RooflinesError] = FileFormatError) -> Self:
        """Validate `data`; a mistake becomes one line that names `where`, the field and the rule.

        Raises:
            RooflinesError: of class `error`, with the first few mistakes.
        """
        try:
            return cls.model_validate(data)
        except ValidationError as mistakes:
            raise error(f"{where}: {render_mistakes(mistakes)}") from None


def render_mistakes(mistakes: ValidationError, most: int = 3) -> str:
    """One readable line out of pydantic's report."""
    lines = []
    for mistake in mistakes.errors(include_url=False)[:most]:
        field = ".".join(str(part) for part in mistake["loc"]) or "value"
        given = "" if mistake["type"] == "missing" else f" (given {_short(mistake['input'])})"
        lines.append(f"{field}: {mistake['msg'].removeprefix('Value error, ')}{given}")
    rest = mistakes.error_count() - most
    return "; ".join(lines) + (f"; and {rest} more" if rest > 0 else "")


def _short(value: object, width: int = 60) -> str:
    text = repr(value)
    return text if len(text) <= width else text[: width - 3] + "..."
