"""What a capacity question asks, in the words of the command line."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from rooflines.costs.routing import DEFAULT_ROUTING
from rooflines.errors import InputError, UnitError
from rooflines.serving.engine import DEFAULT_BATCHED_TOKENS, DEFAULT_SEQUENCES
from rooflines.serving.goodput import Objective
from rooflines.serving.memory import DEFAULT_RESERVE
from rooflines.units import Dimension, parse_quantity

# Requests a second beyond it are a slip of the keyboard.
MOST_REQUESTS_PER_S: Final = 1e9


@dataclass(frozen=True, slots=True)
class ServedOption:
    """One way to serve the target.

    Attributes:
        hardware: profile id, alias or file.
        tensor_parallel: t.
        expert_parallel: e, a multiple of t.
        weight_dtype: format of linear layers; None keeps the checkpoint's.
        kv_dtype: format of cached keys and values; None keeps the checkpoint's.
        drafters: compared with plain decoding.
        price_per_hour: of one card, in any currency; None where no price was given.
    """

    hardware: str
    tensor_parallel: int = 1
    expert_parallel: int = 1
    weight_dtype: str | None = None
    kv_dtype: str | None = None
    drafters: tuple[str, ...] = ()
    price_per_hour: float | None = None

    def __post_init__(self) -> None:
        if self.price_per_hour is not None and not 0 < self.price_per_hour < math.inf:
            raise InputError(
                f"price of a card is {self.price_per_hour:g} an hour: it must be above 0 and finite"
            )

    @property
    def name(self) -> str:
        """How tables call it."""
        degrees = [f"{max(self.tensor_parallel, self.expert_parallel)} x {self.hardware}"]
        if self.expert_parallel > 1:
            degrees.append(f"tp {self.tensor_parallel} ep {self.expert_parallel}")
        return ", ".join(
            [*degrees, *filter(None, (self.weight_dtype, self.kv_dtype and f"{self.kv_dtype} KV"))]
        )


def drafters_of(options: Sequence[ServedOption]) -> tuple[str, ...]:
    """The drafters of all options, each once."""
    return tuple(dict.fromkeys(drafter for option in options for drafter in option.drafters))


@dataclass(frozen=True, slots=True)
class CapacityQuestion:
    """What is asked, in the words of the command line.

    Attributes:
        options: ways to serve, compared with each other.
        target: preset, config.json or folder of the model.
        prompt_tokens: a constant or a distribution; None with a trace.
        output_tokens: likewise.
        trace: CSV of arrivals and lengths.
        rate: load of all engines together (requests/s); None asks for what one engine carries, or takes
            the trace's.
        concurrency: requests that a benchmark client keeps running on one engine; a table of its own.
        acceptance: of the drafters: one for all, or ``NAME=...`` for each.
        acceptance_sources: the file that each of these was read from, in words; empty where it was given, and
            for all of them none.
        draft_length: a schedule.
        slo_tpot: promised time per output token, with its unit.
        slo_ttft: promised time to first token, with its unit.
        share: share of tokens and requests that must be within.
        prefix_hit: share of prompt tokens that a cache holds.
        max_sequences: most sequences an engine runs at once.
        batched_tokens: most positions in a step.
        kv_transfer: bandwidth between prefill and decode engines, with its unit; None serves them together.
        overhead: host time per pass, with its unit.
        cycle_overhead: host time per cycle, with its unit; or an engine, for what is known of it.
        request_overhead: host time of a request before its first token, with its unit.
        calibration: name, file, ``auto``, ``none`` or ``textbook``.
        memory_reserve: share of the memory kept free.
        routing: which experts the tokens of a pass hit.
        encoder_positions: of an encoder-decoder, per sequence.
    """

    options: tuple[ServedOption, ...]
    target: str
    prompt_tokens: str | None = None
    output_tokens: str | None = None
    trace: str | None = None
    rate: float | None = None
    concurrency: tuple[int, ...] = ()
    acceptance: tuple[str, ...] = ()
    draft_length: str = "0..8"
    slo_tpot: str | None = None
    slo_ttft: str | None = None
    share: float = 0.95
    prefix_hit: float = 0.0
    max_sequences: int = DEFAULT_SEQUENCES
    batched_tokens: int = DEFAULT_BATCHED_TOKENS
    kv_transfer: str | None = None
    overhead: str = "0 s"
    cycle_overhead: str = "0 s"
    request_overhead: str = "0 s"
    calibration: str = "auto"
    memory_reserve: float = DEFAULT_RESERVE
    routing: str = DEFAULT_ROUTING
    encoder_positions: int | None = None
    acceptance_sources: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.options:
            raise InputError("capacity needs a device, such as h100-sxm5-80gb")
        if (self.trace is None) == (self.prompt_tokens is None or self.output_tokens is None):
            raise InputError("say what requests ask for: prompt and output tokens, or a trace, but not both")
        if self.rate is not None and not 0 < self.rate <= MOST_REQUESTS_PER_S:
            raise InputError(
                f"rate is {self.rate:g} requests/s: it must be above 0 and at most {MOST_REQUESTS_PER_S:g}"
            )
        if self.concurrency and self.kv_transfer is not None:
            raise InputError(
                "--concurrency with --kv-transfer: how requests at once divide between prefill and decode "
                "engines depends on how many there are of each, which a load decides: ask with --rate, or "
                "leave the link out"
            )
        drafting = any(option.drafters for option in self.options)
        if drafting and not self.acceptance:
            raise InputError("a drafter needs its acceptance, such as 0.8 or conditional:0.8,0.75")
        if self.acceptance and not drafting:
            raise InputError(
                f"acceptance {self.acceptance[0]} is given, but no drafter: add one, such as eagle3"
            )
        if len(set(self.options)) < len(self.options):
            raise InputError("an option is given twice: write what differs, such as tp=8 or hardware=NAME")
        if not 0 <= self.memory_reserve < 1:
            raise InputError(f"memory reserve is {self.memory_reserve:g}: it is a share within 0..1, below 1")

    @property
    def objective(self) -> Objective:
        """What was promised.

        Raises:
            UnitError: a promise that is no time.
            InputError: one of 0, or a share outside 0..1.
        """
        return Objective(
            _quantity("--slo-tpot", self.slo_tpot, "s", "30 ms"),
            _quantity("--slo-ttft", self.slo_ttft, "s", "1 s"),
            self.share,
        )

    @property
    def request_s(self) -> float:
        """Host time of a request before its first token (s).

        Raises:
            UnitError: it is no time.
        """
        return _given("--request-overhead", self.request_overhead, "s", "5 ms")

    @property
    def transfer_bytes_per_s(self) -> float | None:
        """The link between prefill and decode engines (bytes/s).

        Raises:
            UnitError: it is no bandwidth.
        """
        return _quantity("--kv-transfer", self.kv_transfer, "byte/s", "50 GB/s")


def _quantity(option: str, text: str | None, dimension: Dimension, example: str) -> float | None:
    """A quantity whose mistakes name the option that it was given with; None where it was not."""
    return None if text is None else _given(option, text, dimension, example)


def _given(option: str, text: str, dimension: Dimension, example: str) -> float:
    try:
        return parse_quantity(text, dimension)
    except UnitError as error:
        reason = str(error).partition(", such as")[0].partition(": write")[0]
        raise UnitError(f"{option}: {reason}; write a number and its unit, such as {example!r}") from None
