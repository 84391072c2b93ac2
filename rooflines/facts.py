"""Base of every value that is read from a file: frozen, strict, nothing unknown accepted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Final, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError
from pydantic_core import ErrorDetails

from rooflines.errors import FileFormatError, RooflinesError, near_matches, shortened


def _as_tuple(given: object) -> object:
    return tuple(given) if isinstance(given, list) else given


# A tuple that files write as a list.
LISTED: Final = BeforeValidator(_as_tuple)
Texts = Annotated[tuple[str, ...], LISTED]


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
            raise error(f"{where}: {render_mistakes(mistakes, cls.model_fields)}") from None


def render_mistakes(mistakes: ValidationError, fields: Iterable[str] = (), most: int = 3) -> str:
    """One readable line out of pydantic's report.

    Args:
        mistakes: the report.
        fields: what the record may have, to suggest what an unknown field was meant to be.
        most: how many mistakes are told.
    """
    lines = [_line(mistake, tuple(fields)) for mistake in mistakes.errors(include_url=False)[:most]]
    rest = mistakes.error_count() - most
    return "; ".join(lines) + (f"; and {rest} more" if rest > 0 else "")


def _line(mistake: ErrorDetails, fields: tuple[str, ...]) -> str:
    field = ".".join(str(part) for part in mistake["loc"])
    rule = mistake["msg"].removeprefix("Value error, ")
    if mistake["type"] == "value_error" and not field:
        return rule  # a rule about several fields names them itself
    if mistake["type"] == "extra_forbidden":
        near = near_matches(field, fields) if len(mistake["loc"]) == 1 else ()
        rule = f"unknown field; did you mean {near[0]!r}?" if near else "unknown field"
    a_table = mistake["type"] == "value_error" and isinstance(mistake["input"], Mapping)
    known = mistake["type"] == "missing" or a_table or repr(mistake["input"]) in rule
    return f"{field or 'value'}: {rule}" + ("" if known else f" (given {shortened(mistake['input'])})")
