"""What a reader finds in another tool's file, in our definitions."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import Annotated, Final, Literal

from pydantic import Field, field_validator

from rooflines.facts import Fact
from rooflines.measurement.schema import Count, Positive, Step
from rooflines.speculation.acceptance import Acceptance
from rooflines.speculation.acceptance_text import parse_acceptance

SCHEMA_VERSION: Final = 1

# Digits that survive from counters and logs; more would be noise of the division.
_DIGITS: Final = 8
Setting = str | int | float | bool | None


class AcceptanceRecord(Fact):
    """How often drafts were accepted, in one run or one engine.

    Attributes:
        label: which run.
        definition: of `rooflines.speculation.definitions`.
        values: under that definition.
        draft_length: drafted tokens per cycle; needed by definitions that mean nothing without it.
        cycles: that it was counted over; None where the file does not say.
        tokens_per_cycle: tau, the target's own token included, over all cycles; None where unknown.
        meaning: what the tool prints, and how it was read.
    """

    label: str
    definition: str
    values: Annotated[tuple[float, ...], Field(min_length=1)]
    draft_length: Positive | None
    cycles: Count | None
    tokens_per_cycle: Annotated[float, Field(ge=1)] | None
    meaning: str

    @classmethod
    def of_length(
        cls, tokens_per_cycle: float, *, label: str, draft_length: int, cycles: int | None, meaning: str
    ) -> AcceptanceRecord:
        """What an accepted length says, the target's own token included."""
        return cls(
            label=label,
            definition="accepted-length",
            values=(tokens_per_cycle,),
            draft_length=draft_length,
            cycles=cycles,
            tokens_per_cycle=tokens_per_cycle,
            meaning=meaning,
        )

    @property
    def text(self) -> str:
        """The record as ``--acceptance`` takes it."""
        return f"{self.definition}:{','.join(self.entries)}"

    @property
    def entries(self) -> tuple[str, ...]:
        """The values as ``--acceptance`` takes them; those that need the draft length carry it."""
        at = "" if self.definition in {"survival", "conditional", "histogram"} else f"@{self.draft_length}"
        return tuple(f"{value:.{_DIGITS}g}{at}" for value in self.values)

    def acceptance(self) -> Acceptance:
        """The record as conditional rates.

        Raises:
            InputError: impossible values.
        """
        return parse_acceptance(self.text)


class ServingRecord(Fact):
    """Throughput and latency of a run under load.

    Attributes:
        label: which run.
        concurrency: sequences at a time (mean); None where the file does not say.
        requests: completed.
        duration_s: of the run (s); None where the file does not say.
        input_tokens: per request (mean); None where the file does not say.
        output_tokens: per request (mean); None where the file does not say.
        output_tokens_per_s: of all requests together; None where the file does not say.
        latencies_s: name of the tool's statistic (``mean_ttft``, ``p99_tpot``, ...) -> seconds.
    """

    label: str
    concurrency: Annotated[float, Field(ge=0)] | None
    requests: Count
    duration_s: Annotated[float, Field(gt=0)] | None
    input_tokens: Annotated[float, Field(ge=0)] | None
    output_tokens: Annotated[float, Field(ge=0)] | None
    output_tokens_per_s: Annotated[float, Field(ge=0)] | None
    latencies_s: dict[str, float]


class Imported(Fact):
    """All that was found in a file.

    Attributes:
        kind: ``imported``.
        source: the tool, its version where the file says it, and the file.
        versions: of the tool, by name.
        created: when it was measured, as the file says it; empty where it does not.
        settings: what else the file says of the run, in the tool's own words.
        acceptance: how often drafts were accepted.
        serving: throughput and latency.
        steps: times of passes.
        notes: what to know before using the numbers.
    """

    schema_version: Literal[1] = SCHEMA_VERSION
    kind: Literal["imported"] = "imported"
    source: str
    versions: dict[str, str] = Field(default_factory=dict)
    created: str = ""
    settings: dict[str, Setting] = Field(default_factory=dict)
    acceptance: tuple[AcceptanceRecord, ...] = ()
    serving: tuple[ServingRecord, ...] = ()
    steps: tuple[Step, ...] = ()
    notes: tuple[str, ...] = ()

    @field_validator("settings", mode="after")
    @classmethod
    def _writable(cls, settings: dict[str, Setting]) -> dict[str, Setting]:
        """JSON has no infinity, which Python writes for a request rate without limit."""
        return {
            key: str(value) if isinstance(value, float) and not isfinite(value) else value
            for key, value in settings.items()
        }


@dataclass(frozen=True, slots=True)
class Source:
    """What a reader is given.

    Attributes:
        text: of the file.
        where: its name, for messages.
        before: an earlier scrape of the same counters; None without one.
        draft_length: as the user states it, for files that do not.
    """

    text: str
    where: str
    before: str | None = None
    draft_length: int | None = None
