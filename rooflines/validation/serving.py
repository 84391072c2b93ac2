"""Predicts serving benchmarks row by row without fitting to them, and says how wrong it is by source."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Final

import numpy as np

from rooflines.costs.setting import Precision
from rooflines.errors import CannotTellError, RooflinesError
from rooflines.serving.benchmark import WAVES, benchmark_state
from rooflines.serving.engine import Engine, StepCurve, step_curve
from rooflines.serving.lengths import Lengths
from rooflines.serving.steady import ClosedState
from rooflines.serving.uncertain import ClientEnds, client_ends, engine_errors
from rooflines.serving.workload import Workload
from rooflines.timing.deployment import Deployment
from rooflines.timing.machine import Machine
from rooflines.validation.serving_tables import ServedAs, ServingRow, served_as

# Two configurations are told apart where their throughputs differ by more than this.
DIFFERENCE: Final = 1.1
# Slices of uniform lengths; their mean is exact, and waits depend on the spread little.
_SLICES: Final = 4


@dataclass(frozen=True, slots=True)
class Predicted:
    """A row beside its prediction.

    Attributes:
        row: as measured.
        served: what it ran.
        tpot_s: predicted time per output token (s).
        ttft_s: predicted time to first token (s).
        plain_tpot_s: the plain roofline's time per output token (s).
        batch: predicted mean batch.
        basis: what the constants rest on.
        ends: of the 90 % intervals; None where nothing states how wrong the constants are.
    """

    row: ServingRow
    served: ServedAs
    tpot_s: float
    ttft_s: float
    plain_tpot_s: float
    batch: float
    basis: str
    ends: ClientEnds | None

    @property
    def measured_tokens_per_s(self) -> float:
        """Output tokens per second and card, from the times of a request (Little's law)."""
        return self._throughput(self.row.ttft_s, self.row.tpot_s)

    @property
    def predicted_tokens_per_s(self) -> float:
        """The same, predicted."""
        return self._throughput(self.ttft_s, self.tpot_s)

    @property
    def inside(self) -> tuple[bool, bool] | None:
        """Whether the measured time per token and time to first token lie inside their intervals."""
        if self.ends is None:
            return None
        pairs = ((self.ends.tpot_s, self.row.tpot_s), (self.ends.ttft_s, self.row.ttft_s))
        tpot, ttft = (low <= measured <= high for (low, high), measured in pairs)
        return tpot, ttft

    def _throughput(self, ttft_s: float, tpot_s: float) -> float:
        served = self.served
        tokens = served.mean_output
        each = tokens / (ttft_s + (tokens - 1.0) * tpot_s)
        return served.sequences * each / served.parallelism.tensor


@dataclass(frozen=True, slots=True)
class ServingVerdict:
    """Errors of the rows of one source.

    Attributes:
        source: origin, system, backend, model and format.
        rows: predicted rows.
        tpot_median_abs_error: median of abs(predicted / measured - 1) of time per token.
        tpot_p90_abs_error: its 90 % quantile.
        tpot_bias: median of predicted / measured - 1.
        ttft_median_abs_error: of time to first token.
        throughput_median_abs_error: of tokens per second and card.
        plain_tpot_median_abs_error: time per token of the plain roofline.
        tpot_coverage: share of rows inside the 90 % interval of time per token; None where there is none.
        ttft_coverage: of time to first token.
        basis: what the constants rest on.
    """

    source: tuple[str, ...]
    rows: int
    tpot_median_abs_error: float
    tpot_p90_abs_error: float
    tpot_bias: float
    ttft_median_abs_error: float
    throughput_median_abs_error: float
    plain_tpot_median_abs_error: float
    tpot_coverage: float | None
    ttft_coverage: float | None
    basis: str


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A row that was not predicted, and why."""

    row: ServingRow
    reason: str


def predict_serving(
    rows: Iterable[ServingRow],
    machine_of: Callable[[str], Machine],
    plain_machine_of: Callable[[str], Machine],
) -> tuple[list[Predicted], list[LeftOut]]:
    """Predict every row that says enough; the others come back with the reason, by source.

    Args:
        rows: of tables.
        machine_of: device id to the constants to predict with.
        plain_machine_of: device id to the plain roofline, for comparison.

    Raises:
        CannotTellError: no row can be predicted.
    """
    left: list[LeftOut] = []
    alike: dict[tuple[Any, ...], list[tuple[ServingRow, ServedAs]]] = defaultdict(list)
    seen: set[tuple[object, ...]] = set()
    for row in rows:
        served = served_as(row)
        repeated = (*row.source[1:], *sorted(row.numbers.items()))
        if isinstance(served, str):
            left.append(LeftOut(row, served))
        elif repeated in seen:
            left.append(LeftOut(row, "repeats a row of another file"))
        else:
            seen.add(repeated)
            alike[_configuration(served)].append((row, served))
    found: list[Predicted] = []
    machine, plain_machine = cache(machine_of), cache(plain_machine_of)
    for members in alike.values():
        try:
            found += _predict_alike(members, machine, plain_machine)
        except RooflinesError as error:
            left += [LeftOut(row, str(error)) for row, _ in members]
    if not found:
        why = dict.fromkeys(one.reason for one in left)
        raise CannotTellError(f"no row can be predicted: {'; '.join(list(why)[:3]) or 'the table has none'}")
    return found, sorted(left, key=lambda one: (one.row.source, one.reason))


def _configuration(served: ServedAs) -> tuple[Any, ...]:
    """All but the load: rows that share it share a curve."""
    return (
        served.device,
        served.model.name,
        served.weights,
        served.kv,
        served.parallelism,
        served.prompt,
        served.output,
        served.settings,
    )


def _predict_alike(
    members: Sequence[tuple[ServingRow, ServedAs]],
    machine_of: Callable[[str], Machine],
    plain_machine_of: Callable[[str], Machine],
) -> list[Predicted]:
    first = members[0][1]
    lengths = [_lengths(length, first.settings.shortest) for length in (first.prompt, first.output)]
    workload = Workload.independent(lengths[0], lengths[1])
    largest = max(served.at_most for _, served in members)
    engines = [_engine(first, source(first.device), largest) for source in (machine_of, plain_machine_of)]
    curve, plain = (step_curve(engine, workload) for engine in engines)
    errors = engine_errors(engines[0], workload, curve.max_sequences)
    found = []
    for row, served in members:
        most = min(served.at_most, curve.max_sequences)
        own, bare = (replace(one, max_sequences=most) for one in (curve, plain))
        state, textbook = (_state(one, workload, served.sequences) for one in (own, bare))
        basis = engines[0].target.machine.basis
        ends = (
            None
            if errors is None
            else client_ends(own, workload, served.sequences, errors.served(state.batch, 0.0))
        )
        found.append(
            Predicted(row, served, state.tpot_s, state.ttft_s, textbook.tpot_s, state.batch, basis, ends)
        )
    return found


def _state(curve: StepCurve, workload: Workload, sequences: float) -> ClosedState:
    equal = workload.equal_lengths
    return benchmark_state(curve, workload.decode_tokens, sequences, WAVES, equal_lengths=equal)


def _lengths(nominal: int, shortest: float) -> Lengths:
    """Uniform between the shortest and the nominal length, as the middles of a few slices."""
    slices = 1 if shortest == 1.0 else _SLICES
    middles = (np.arange(slices) + 0.5) / slices
    values = nominal * (shortest + (1.0 - shortest) * middles) if slices > 1 else np.array([float(nominal)])
    return Lengths(values, np.full(slices, 1.0 / slices))


def _engine(served: ServedAs, machine: Machine, largest: int) -> Engine:
    return Engine(
        Deployment(served.model, machine, Precision(served.weights, served.kv), served.parallelism),
        max_sequences=largest,
        batched_tokens=served.settings.batched_tokens,
        host=served.settings.host,
    )


def judge_serving(predicted: Iterable[Predicted]) -> list[ServingVerdict]:
    """Errors by source."""
    groups: dict[tuple[str, ...], list[Predicted]] = defaultdict(list)
    for one in predicted:
        groups[one.row.source].append(one)
    return [_verdict(source, members) for source, members in sorted(groups.items())]


def _verdict(source: tuple[str, ...], members: Sequence[Predicted]) -> ServingVerdict:
    tpot = np.array([one.tpot_s / one.row.tpot_s - 1.0 for one in members])
    ttft = np.array([one.ttft_s / one.row.ttft_s - 1.0 for one in members])
    plain = np.array([one.plain_tpot_s / one.row.tpot_s - 1.0 for one in members])
    throughput = np.array([one.predicted_tokens_per_s / one.measured_tokens_per_s - 1.0 for one in members])
    return ServingVerdict(
        source,
        len(members),
        float(np.median(abs(tpot))),
        float(np.quantile(abs(tpot), 0.9)),
        float(np.median(tpot)),
        float(np.median(abs(ttft))),
        float(np.median(abs(throughput))),
        float(np.median(abs(plain))),
        *_coverage(members),
        members[0].basis,
    )


def _coverage(members: Sequence[Predicted]) -> tuple[float | None, float | None]:
    """Shares of rows inside their intervals: of time per token, and of time to first token."""
    inside = [one.inside for one in members if one.inside is not None]
    if not inside:
        return None, None
    tpot, ttft = np.mean(inside, axis=0)
    return float(tpot), float(ttft)


def overall(predicted: Sequence[Predicted]) -> ServingVerdict:
    """Errors of all rows together; there is one at least."""
    return _verdict(("all", "", "", "", ""), predicted)


@dataclass(frozen=True, slots=True)
class Order:
    """Pairs of configurations for the same model and lengths, and how many are ordered as measured."""

    pairs: int
    right: int

    @property
    def share(self) -> float | None:
        """Share of pairs that are ordered right; None where there are none."""
        return self.right / self.pairs if self.pairs else None


def order_of(predicted: Iterable[Predicted]) -> Order:
    """Which of two configurations gives more tokens per second and card.

    Compared are rows of the same model and lengths, whatever their device, engine, format, degree and load,
    that differ by more than 10 % as measured.
    """
    groups: dict[tuple[object, ...], list[Predicted]] = defaultdict(list)
    for one in predicted:
        groups[one.served.model.name, one.served.prompt, one.served.output].append(one)
    pairs = right = 0
    for members in groups.values():
        measured = np.array([one.measured_tokens_per_s for one in members])
        guess = np.array([one.predicted_tokens_per_s for one in members])
        faster = measured[:, None] > DIFFERENCE * measured[None, :]
        pairs += int(faster.sum())
        right += int((faster & (guess[:, None] > guess[None, :])).sum())
    return Order(pairs, right)
