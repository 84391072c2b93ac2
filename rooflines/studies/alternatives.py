"""What else makes decoding faster, on the same scale: quantise, distil, speculate, and what they do together.

Every alternative is priced by the same passes on the same machine. They differ in what they change: exact
speculation (Leviathan et al. 2023, arXiv 2211.17192) leaves the output distribution as it is, quantisation
and a smaller model do not, and a lossy rule such as Medusa's typical acceptance (arXiv 2401.10774, section
3.3.1) trades distribution for acceptance. Gains do not multiply: a quantised target has a shorter step,
beside which the same draft costs more, and its verify pass leaves the memory-bound region at fewer positions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np

from rooflines.costs.routing import DEFAULT_ROUTING
from rooflines.errors import InputError
from rooflines.serving.memory import largest_batch, memory_fit
from rooflines.speculation.acceptance_text import parse_rates
from rooflines.speculation.branches import Rates
from rooflines.speculation.cycle import cycle, cycle_times
from rooflines.speculation.drafters.base import Drafter
from rooflines.speculation.drafters.registry import make_drafter
from rooflines.studies.serve import make_deployment, make_machine
from rooflines.timing.deployment import Deployment

SCHEMA_VERSION: Final = 1
PLAIN: Final = "as it is"
SPECULATE: Final = "speculate"
LOSSY: Final = "speculate, lossy"
# What an alternative does to the output.
EXACT: Final = "the same distribution"
ROUNDED: Final = "the distribution of the rounded weights"
OTHER: Final = "another model's distribution"
RELAXED: Final = "a distribution that the acceptance rule bends"


@dataclass(frozen=True, slots=True)
class AlternativesQuestion:
    """What is asked, in the words of the command line.

    Attributes:
        hardware: profile id, alias or file.
        target: the model as it is.
        drafter: `KIND[:MODEL][:key=value,...]`.
        acceptance: of its drafts under the exact rule.
        draft_lengths: gammas, of which the best is taken at each batch.
        batches: B to answer for.
        context: S cached positions per sequence.
        quantized: formats to quantise the linear layers to.
        smaller: models to distil to.
        lossy_acceptance: of the same drafts under a lossy rule; None to leave that out.
        tensor_parallel: t.
        weight_dtype: format of the target as it is; None keeps the checkpoint's.
        kv_dtype: format of cached keys and values; None keeps the checkpoint's.
        overhead: host time per pass, with its unit.
        calibration: ``auto``, ``none`` or ``textbook``.
        routing: which experts the tokens of a pass hit.
    """

    hardware: str
    target: str
    drafter: str
    acceptance: str
    draft_lengths: tuple[int, ...]
    batches: tuple[int, ...]
    context: int
    quantized: tuple[str, ...] = ("fp8", "int4-g128")
    smaller: tuple[str, ...] = ()
    lossy_acceptance: str | None = None
    tensor_parallel: int = 1
    weight_dtype: str | None = None
    kv_dtype: str | None = None
    overhead: str = "0 s"
    calibration: str = "auto"
    routing: str = DEFAULT_ROUTING

    def __post_init__(self) -> None:
        if max(self.draft_lengths, default=0) < 1:
            raise InputError(
                "speculation is compared with what else there is: give a draft length of 1 or more"
            )
        if self.context < 0:
            raise InputError(f"context is {self.context}: it must be 0 or more")


@dataclass(frozen=True, slots=True)
class _Option:
    """One thing to do: a target as it is served, and perhaps a drafter with its acceptance."""

    name: str
    target: Deployment
    output: str
    model: str
    drafter: Drafter | None = None
    rates: Rates | None = None
    parts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Alternatives:
    """The answer.

    Attributes:
        question: what was asked.
        text: the answer in words.
        rows: a row per alternative and batch.
        basis: what the times rest on.
    """

    question: AlternativesQuestion
    text: str
    rows: list[dict[str, Any]]
    basis: str

    def document(self) -> dict[str, Any]:
        """The answer as JSON takes it (schema: docs/schemas/compare.schema.json)."""
        question = {
            key: list(value) if isinstance(value, tuple) else value
            for key, value in asdict(self.question).items()
        }
        return {
            "schema_version": SCHEMA_VERSION,
            "question": question,
            "answer": {"text": self.text},
            "basis": self.basis,
            "rows": self.rows,
        }


def compare_alternatives(question: AlternativesQuestion) -> Alternatives:
    """Price every alternative at every batch.

    Raises:
        RooflinesError: unknown names, impossible numbers, degrees that do not divide.
    """
    options = list(_options(question))
    rows: list[dict[str, Any]] = []
    for batch in question.batches:
        rows += _with_gains([_row(question, option, batch) for option in options], options)
    return Alternatives(question, _words(rows, question), rows, options[0].target.basis)


def _options(question: AlternativesQuestion) -> Iterator[_Option]:
    machine = make_machine(question.hardware, question.calibration, question.overhead)

    def served(model: str, weights: str | None) -> Deployment:
        return make_deployment(
            model,
            machine,
            weight_dtype=weights,
            kv_dtype=question.kv_dtype,
            tensor=question.tensor_parallel,
            routing=question.routing,
            among_others=model != question.target,
        )

    target = served(question.target, question.weight_dtype)
    drafter = make_drafter(question.drafter, target)
    rates = parse_rates(question.acceptance)
    same, drafted = "unchanged", "unchanged, with a drafter beside it"
    yield _Option(PLAIN, target, EXACT, same)
    for name in question.quantized:
        yield _Option(f"quantise to {name}", served(question.target, name), ROUNDED, f"in {name}")
    for name in question.smaller:
        yield _Option(f"distil to {name}", served(name, question.weight_dtype), OTHER, name)
    yield _Option(SPECULATE, target, EXACT, drafted, drafter, rates)
    for name in question.quantized:
        smaller = served(question.target, name)
        yield _Option(
            f"speculate on {name}",
            smaller,
            ROUNDED,
            f"in {name}, with a drafter beside it",
            make_drafter(question.drafter, smaller),
            rates,
            (f"quantise to {name}", SPECULATE),
        )
    if question.lossy_acceptance is not None:
        lossy = parse_rates(question.lossy_acceptance)
        yield _Option(LOSSY, target, RELAXED, drafted, drafter, lossy)


def _row(question: AlternativesQuestion, option: _Option, batch: int) -> dict[str, Any]:
    """One alternative at one batch, with the best of the draft lengths that fit."""
    target, context = option.target, float(question.context)
    lengths = (0,) if option.drafter is None else option.drafter.draft_lengths(question.draft_lengths)
    best: dict[str, Any] | None = None
    for length in lengths:
        fit = memory_fit(target, option.drafter, float(batch), context, float(length))
        used = float(np.asarray(fit.used_bytes))
        seconds, tokens = _time_per_token(option, batch, context, length)
        found = {
            "alternative": option.name,
            "batch": batch,
            "draft_length": length,
            "time_per_token_s": seconds if bool(np.all(fit.fits)) else None,
            "tokens_per_cycle": tokens,
            "gain": None,
            "product_of_parts": None,
            "output": option.output,
            "model": option.model,
            "memory_bytes": used,
            "fits": bool(np.all(fit.fits)),
            "largest_batch": largest_batch(target, option.drafter, context, float(length)),
        }
        better = best is None or (found["fits"] and (not best["fits"] or seconds < best["time_per_token_s"]))
        best = found if better else best
    if best is None:
        raise InputError(f"{option.name} has no draft length")
    return best


def _time_per_token(option: _Option, batch: int, context: float, length: int) -> tuple[float, float]:
    if option.drafter is None or option.rates is None:
        return float(np.asarray(option.target.decode(float(batch), context).seconds)), 1.0
    times = cycle_times(option.target, option.drafter, float(batch), context, float(length))
    found = cycle(times, option.rates)
    return float(np.asarray(found.time_per_token_s)), float(np.asarray(found.tokens_per_cycle))


def _with_gains(rows: list[dict[str, Any]], options: list[_Option]) -> list[dict[str, Any]]:
    """Rows of one batch with the gain over the model as it is, and the product of what a combination does."""
    plain = rows[0]["time_per_token_s"]
    gains = {
        row["alternative"]: None
        if plain is None or row["time_per_token_s"] is None
        else plain / row["time_per_token_s"]
        for row in rows
    }
    found = []
    for row, option in zip(rows, options, strict=True):
        parts = [gains[part] for part in option.parts]
        known = [gain for gain in parts if gain is not None]
        product = float(np.prod(known)) if option.parts and len(known) == len(parts) else None
        found.append({**row, "gain": gains[option.name], "product_of_parts": product})
    return found


def _words(rows: list[dict[str, Any]], question: AlternativesQuestion) -> str:
    """The best exact alternative and the best of all at every batch."""
    lines = []
    for batch in question.batches:
        here = [row for row in rows if row["batch"] == batch and row["gain"] is not None]
        if not here:
            lines.append(f"At batch {batch} the model as it is does not fit, so there is no gain over it.")
            continue
        exact = max((row for row in here if row["output"] == EXACT), key=lambda row: float(row["gain"]))
        best = max(here, key=lambda row: float(row["gain"]))
        line = (
            f"At batch {batch}, {exact['alternative']} ({exact['gain']:.2f}x) is best that keeps the output"
        )
        if best is not exact:
            line += f"; {best['alternative']} is fastest ({best['gain']:.2f}x, {best['output']})"
        combined = [row for row in here if row["product_of_parts"] is not None]
        if combined:
            row = max(combined, key=lambda row: float(row["gain"]))
            line += (
                f"; {row['alternative']} gains {row['gain']:.2f}x, where the product of both would be "
                f"{row['product_of_parts']:.2f}x"
            )
        lines.append(f"{line}.")
    return " ".join(lines)
