"""The answer of a plan in words, and what changed against an earlier one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any, Final, TypeAlias

from rooflines.errors import FileFormatError
from rooflines.speculation.crossover import Crossover
from rooflines.timing.deployment import Deployment

_BINDS: Final = {
    "compute": "arithmetic",
    "memory": "memory bandwidth",
    "network": "the network",
    "overhead": "per-kernel overhead",
}
# Neighbours of equal advice that share a sentence; fewer have one each.
_SEVERAL: Final = 3
# Sentences that are still read; where advice changes more often, the schedule says it.
_MOST_SENTENCES: Final = 12
Entry: TypeAlias = Mapping[str, Any]
_CHANGE_THAT_COUNTS: Final = 1e-9


def answer_text(
    target: Deployment,
    recommendation: Sequence[Entry],
    ends: Sequence[tuple[str, Crossover]],
    crossover_batch: int | None,
    reasons: Mapping[int, str] | None = None,
    *,
    schedule: Sequence[Entry] = (),
    slack: float = 0.0,
    misfit: str | None = None,
) -> str:
    """One sentence a batch, or for batches alike, then where it stops paying and why.

    Args:
        target: what is sped up.
        recommendation: one entry a batch.
        ends: by drafter, where it stops paying.
        crossover_batch: where no drafter pays any more.
        reasons: `cycle_words` of the batches that deserve them.
        schedule: of the plan, which says it in fewer words where advice changes often.
        slack: what the schedule may lose against the best, as a share.
        misfit: why no batch fits, and what to change.
    """
    cards = target.parallelism.devices
    where = f"{cards} x {target.machine.profile.name}" if cards > 1 else target.machine.profile.name
    several = len(ends) > 1
    sentences = [f"{target.model.name} on {where}:"]
    groups = _alike(recommendation)
    if len(groups) <= _MOST_SENTENCES:
        sentences += [_sentence(group, with_name=several, why=reasons or {}) for group in groups]
    else:
        sentences += _by_schedule(recommendation, schedule, slack, with_name=several)
    edge = [entry["batch"] for entry in recommendation if entry["longest_compared"]]
    if edge:
        sentences.append(
            f"At {_lower(_batches(edge))} that is the longest draft compared: longer ones may gain more."
        )
    last = max(ends, key=lambda end: end[1].batch or end[1].searched_to)[1]
    if not any(entry["fits"] for entry in recommendation):
        return " ".join([*sentences, *([f"{misfit[0].upper()}{misfit[1:]}."] if misfit else [])])
    if crossover_batch is None:
        reach = max(end.searched_to for _, end in ends if end.batch is None)
        sentences.append(f"It still pays at batch {reach}, the largest that fits or was searched.")
    elif crossover_batch == 1:
        sentences.append("It pays at no batch.")
    elif last.operator is None:
        sentences.append(f"It stops paying at batch {crossover_batch}.")
    else:
        sentences.append(
            f"It stops paying at batch {crossover_batch}, where {_BINDS[str(last.bound)]} binds the "
            f"{last.operator} of the verify pass."
        )
    return " ".join(sentences)


def cycle_words(row: Mapping[str, Any]) -> str:
    """What a cycle costs in plain steps of the same target, and yields: why it pays or not.

    Args:
        row: of a plan, with time.
    """
    verify, draft = (row[part] / row["target_step_s"] for part in ("verify_s", "draft_s"))
    return (
        f"verifying {row['verify_width']:.3g} positions costs {verify:.2f} plain steps and drafting "
        f"{draft:.2f}, for {row['tokens_per_cycle']:.2f} tokens"
    )


def _alike(recommendation: Sequence[Entry]) -> list[list[Entry]]:
    """Neighbours of equal advice together where there are several; one entry each otherwise."""
    runs = [list(run) for _, run in groupby(recommendation, key=_advice)]
    return [
        group
        for run in runs
        for group in ([run] if len(run) >= _SEVERAL or not run[0]["fits"] else [[one] for one in run])
    ]


def _advice(entry: Entry) -> tuple[object, ...]:
    """What batches that one sentence holds have in common."""
    if not entry["fits"]:
        return (False, entry["largest_batch"])
    told = ("speculate", "draft_length", "verify_width", "measured_length", "certain")
    return (*(entry[key] for key in told), entry["drafter"] if entry["speculate"] else None)


def _sentence(group: Sequence[Entry], *, with_name: bool, why: Mapping[int, str]) -> str:
    """What to do at batches of equal advice."""
    first, last = group[0], group[-1]
    batches = _batches([entry["batch"] for entry in group])
    if not first["fits"]:
        room = first["largest_batch"]
        most = f"the largest batch that does is {room}" if room else "no batch does"
        verb = "does" if len(group) == 1 else "do"
        return f"{batches} {verb} not fit in memory ({most})."
    gain = speedup_words(first) if len(group) == 1 else f"{speedup_words(first)} to {speedup_words(last)}"
    reason = why.get(first["batch"])
    if reason and len(group) > 1:
        reason = f"at batch {first['batch']}, {reason}"
    if not first["speculate"]:
        if first["certain"] is False:
            reason = "; ".join(filter(None, ("the 90 % interval includes 1, so that it may pay", reason)))
        because = f": {reason}" if reason else ""
        return f"At {_lower(batches)} do not speculate (best {gain}{because})."
    name = f" with {first['drafter']}" if with_name else ""
    known = first["measured_length"]
    beyond = f" (beyond the {known} position{'s' if known > 1 else ''} measured)" if known else ""
    because = f" ({reason})" if reason else ""
    doubt = " Whether it pays cannot be told: the 90 % interval includes 1."
    return (
        f"At {_lower(batches)} draft {_shape(first)}{beyond}{name}: {gain}{because}."
        f"{doubt if first['certain'] is False else ''}"
    )


def _by_schedule(
    recommendation: Sequence[Entry], schedule: Sequence[Entry], slack: float, *, with_name: bool
) -> list[str]:
    """What to do by ranges of batches, near the best of each."""
    fitting = [entry for entry in recommendation if entry["fits"]]
    asked = sorted(entry["batch"] for entry in fitting)
    parts = []
    for entry in schedule:
        inside = [batch for batch in asked if entry["first_batch"] <= batch <= entry["last_batch"]]
        if not inside:
            continue
        name = f" with {entry['drafter']}" if with_name else ""
        advice = f"draft {_shape(entry)}{name} ({entry['speedup']:.2f}x or more)"
        parts.append(
            f"at {_lower(_batches(inside))} {advice if entry['draft_length'] else 'do not speculate'}"
        )
    sentences = [f"Within {slack:.0%} of the best: {'; '.join(parts)}."] if parts else []
    beyond = [entry["batch"] for entry in fitting if entry["measured_length"]]
    if beyond:
        sentences.append(f"At {_lower(_batches(beyond))} the best draft is longer than was measured.")
    doubtful = [entry["batch"] for entry in fitting if entry["certain"] is False]
    if doubtful:
        sentences.append(
            f"At {_lower(_batches(doubtful))} whether it pays cannot be told: the 90 % interval includes 1."
        )
    none = [entry for entry in recommendation if not entry["fits"]]
    return [*sentences, *([_sentence(none, with_name=False, why={})] if none else [])]


def _shape(entry: Entry) -> str:
    """A draft in words: its length, or the depth and nodes of a tree."""
    nodes = entry["verify_width"] - 1
    return f"{entry['draft_length']}{f' deep, {nodes:g} nodes' if nodes > entry['draft_length'] else ''}"


def _batches(values: Sequence[int]) -> str:
    """Batches in words: ``Batch 4``, or ``Batches 1-51, 64``."""
    runs: list[list[int]] = []
    for value in values:
        if runs and value == runs[-1][-1] + 1:
            runs[-1].append(value)
        else:
            runs.append([value])
    listed = ", ".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else f"{run[0]}" for run in runs)
    return f"Batch{'es' if len(values) > 1 else ''} {listed}"


def _lower(text: str) -> str:
    return text[0].lower() + text[1:]


def speedup_words(entry: Mapping[str, Any]) -> str:
    """A speedup with its 90 % interval where it has one: ``1.93x (1.8-2.1)``."""
    value = f"{entry['speedup']:.2f}x"
    low, high = entry.get("speedup_low"), entry.get("speedup_high")
    if low is None or high is None or low == high:
        return value
    return f"{value} ({low:.2f}-{high:.2f})"


def compare_plans(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """What changed from one plan document to another, in words; empty where nothing did.

    Raises:
        FileFormatError: the old document is no plan of this schema version.
    """
    no_plan = "the earlier answer is no plan as `rooflines plan --format json` writes it"
    if "schema_version" not in old or "answer" not in old:
        raise FileFormatError(
            f"{no_plan}: it has no {'answer' if 'schema_version' in old else 'schema_version'}"
        )
    if old["schema_version"] != new["schema_version"]:
        raise FileFormatError(
            f"the earlier answer has schema_version {old['schema_version']!r} and {new['schema_version']} is "
            "needed: ask for it again with this release"
        )
    try:
        return _changes(old, new)
    except (AttributeError, KeyError, TypeError):
        # Any field of a file that somebody edited may be of another kind; the schema is not read here.
        raise FileFormatError(no_plan) from None


def _changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    changes = [
        f"question: {key} was {old['question'].get(key)!r} and is {value!r}"
        for key, value in new["question"].items()
        if old["question"].get(key) != value
    ]
    if old.get("basis") != new["basis"]:
        changes.append(f"basis: was {old.get('basis')!r} and is {new['basis']!r}")
    before = {entry["batch"]: entry for entry in old["answer"]["recommendation"]}
    for entry in new["answer"]["recommendation"]:
        changes += _changed_entry(before.get(entry["batch"]), entry)
    for key in ("crossover_batch", "break_even_acceptance"):
        was, now = old["answer"].get(key), new["answer"][key]
        if _differs(was, now):
            changes.append(f"{key.replace('_', ' ')}: was {was} and is {now}")
    return changes


def _changed_entry(was: Mapping[str, Any] | None, now: Mapping[str, Any]) -> list[str]:
    batch = now["batch"]
    if was is None:
        return [f"batch {batch}: not asked before"]
    changes = [
        f"batch {batch}: {key.replace('_', ' ')} was {was.get(key)} and is {now[key]}"
        for key in ("fits", "drafter", "draft_length")
        if was.get(key) != now[key]
    ]
    if _differs(was.get("speedup"), now["speedup"]):
        changes.append(
            f"batch {batch}: speedup was {_times(was.get('speedup'))} and is {_times(now['speedup'])}"
        )
    return changes


def _differs(was: object, now: object) -> bool:
    if isinstance(was, int | float) and isinstance(now, int | float):
        return abs(was - now) > _CHANGE_THAT_COUNTS * max(abs(was), abs(now))
    return was != now


def _times(value: float | None) -> str:
    return "none" if value is None else f"{value:.4g}x"
