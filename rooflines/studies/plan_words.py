"""The answer of a plan in words, and what changed against an earlier one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from rooflines.errors import FileFormatError
from rooflines.speculation.crossover import Crossover
from rooflines.timing.deployment import Deployment

_BINDS: Final = {
    "compute": "arithmetic",
    "memory": "memory bandwidth",
    "network": "the network",
    "overhead": "per-kernel overhead",
}
_CHANGE_THAT_COUNTS: Final = 1e-9


def answer_text(
    target: Deployment,
    recommendation: Sequence[Mapping[str, Any]],
    ends: Sequence[tuple[str, Crossover]],
    crossover_batch: int | None,
    reasons: Mapping[int, str] | None = None,
) -> str:
    """One sentence a batch, then where it stops paying and why.

    Args:
        target: what is sped up.
        recommendation: one entry a batch.
        ends: by drafter, where it stops paying.
        crossover_batch: where no drafter pays any more.
        reasons: `cycle_words` of the batches that deserve them.
    """
    cards = target.parallelism.devices
    where = f"{cards} x {target.machine.profile.name}" if cards > 1 else target.machine.profile.name
    several = len(ends) > 1
    sentences = [f"{target.model.name} on {where}:"]
    why = reasons or {}
    sentences += [
        _sentence(entry, with_name=several, why=why.get(entry["batch"])) for entry in recommendation
    ]
    last = max(ends, key=lambda end: end[1].batch or end[1].searched_to)[1]
    if not any(entry["fits"] for entry in recommendation):
        return " ".join(sentences)
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


def _sentence(entry: Mapping[str, Any], *, with_name: bool, why: str | None) -> str:
    batch = entry["batch"]
    if not entry["fits"]:
        room = entry["largest_batch"]
        most = f"the largest batch that does is {room}" if room else "no batch does"
        return f"Batch {batch} does not fit in memory ({most})."
    if not entry["speculate"]:
        because = f": {why}" if why else ""
        return f"At batch {batch} do not speculate (best {speedup_words(entry)}{because}).{_doubt(entry)}"
    name = f" with {entry['drafter']}" if with_name else ""
    nodes = entry["verify_width"] - 1
    tree = f" deep, {nodes:g} nodes" if nodes > entry["draft_length"] else ""
    because = f" ({why})" if why else ""
    return (
        f"At batch {batch} draft {entry['draft_length']}{tree}{name}: {speedup_words(entry)}{because}."
        f"{_doubt(entry)}"
    )


def speedup_words(entry: Mapping[str, Any]) -> str:
    """A speedup with its 90 % interval where it has one: ``1.93x (1.8-2.1)``."""
    value = f"{entry['speedup']:.2f}x"
    low, high = entry.get("speedup_low"), entry.get("speedup_high")
    if low is None or high is None or low == high:
        return value
    return f"{value} ({low:.2f}-{high:.2f})"


def _doubt(entry: Mapping[str, Any]) -> str:
    """That times are not known well enough to tell whether it pays."""
    return (
        " Whether it pays cannot be told: the 90 % interval includes 1." if entry["certain"] is False else ""
    )


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
