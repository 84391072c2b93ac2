"""Settings of an engine from what to draft at which batch: the same advice in each engine's words.

What is written can be pasted; lines that begin with ``#`` say what the engine cannot be told.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from rooflines.engines.catalogue import engine
from rooflines.engines.served import STARTS, Served
from rooflines.engines.words import Method
from rooflines.errors import InputError, UnknownNameError, bare

_ADAPTIVE_FILE: Final = "speculative-adaptive.json"
# Merged in March 2026: https://github.com/NVIDIA/TensorRT-LLM/pull/10860.
_UPPER_KEYS: Final = "pull request 10860"
_SPS_FILE: Final = "dspark-sps.json"
_SGLANG_ADAPTS: Final = "SGLang adapts chains of EAGLE and EAGLE3 only"
_LLAMA_HAS_ONE: Final = "llama.cpp has one draft length for all batches"


@dataclass(frozen=True, slots=True)
class Range:
    """How much to draft at the batches of a range.

    Attributes:
        first: smallest batch.
        last: largest batch.
        draft_length: drafted tokens per cycle (levels of a tree); 0 is plain decoding.
    """

    first: int
    last: int
    draft_length: int


@dataclass(frozen=True, slots=True)
class StepCost:
    """What a cycle costs.

    Attributes:
        batch: sequences.
        draft_length: drafted tokens per cycle.
        verify_width: positions verified per sequence.
        seconds: of the cycle (s).
    """

    batch: int
    draft_length: int
    verify_width: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Advice:
    """What to run.

    Attributes:
        family: of the drafter (``eagle3``, ``independent``, ...).
        target: checkpoint of the model that is sped up.
        model: the drafter's checkpoint; None where none is known, or it has none.
        ranges: by batch, rising and without a gap from batch 1.
        single: draft length for an engine that takes one for all batches; 0 is plain decoding.
        top_k: children of each expanded node of a tree; None for a chain.
        nodes: drafted nodes of a tree of depth `single` that are verified, the root not counted; None for a
            chain.
        served: how the target is served.
        costs: of the cycles that were planned.
        missing: what the checkpoints lack without which no engine starts; empty where nothing.
        notes: what to know before these settings are used.
    """

    family: str
    target: str
    model: str | None
    ranges: tuple[Range, ...]
    single: int
    served: Served
    top_k: int | None = None
    nodes: int | None = None
    costs: tuple[StepCost, ...] = ()
    missing: str = ""
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        ends = [0, *(one.last for one in self.ranges)]
        starts = [one.first for one in self.ranges]
        if not self.ranges or starts != [end + 1 for end in ends[:-1]]:
            raise InputError(f"batches must run from 1 without a gap, and begin at {starts}")
        if (self.top_k is None) != (self.nodes is None):
            raise InputError("a tree has both a top-k and a number of nodes")

    @property
    def longest(self) -> int:
        """The longest draft at any batch."""
        return max(one.draft_length for one in self.ranges)


def settings_text(advice: Advice, name: str) -> str:
    """The advice in the words of an engine, whose name is taken in any spelling (``vLLM``, ``TensorRT-LLM``).

    Raises:
        UnknownNameError: an engine for which nothing can be written.
        InputError: the engine cannot run that drafter, or not as a tree, or a checkpoint lacks its module.
    """
    key = _writer(name)
    if advice.longest == 0:
        return "# Plain decoding is fastest at every batch of this plan: leave speculation off."
    method = engine(key).method(advice.family)
    if advice.missing:
        raise InputError(f"no settings can start this plan: {advice.missing}")
    start, notes = STARTS[key](advice.served)
    lines = WRITERS[key](advice, method, start)
    if all(line.startswith("#") for line in lines):
        return "\n".join(lines)
    return "\n".join([*lines, *(f"# {note}" for note in (*notes, *advice.notes))])


def _writer(name: str) -> str:
    """The key of an engine that settings are written for, by name or title."""
    for key in WRITERS:
        if bare(name) in (bare(key), bare(engine(key).title)):
            return key
    raise UnknownNameError("engine", name, WRITERS, f"(known: {', '.join(WRITERS)})")


def _vllm(advice: Advice, method: Method, start: Sequence[str]) -> list[str]:
    if advice.top_k is not None:
        raise InputError("vLLM 0.33.0 verifies chains only: plan this drafter without topk and nodes")
    config: dict[str, object] = {"method": method.name}
    if method.needs_model:
        config["model"] = _model(advice)
    config["num_speculative_tokens"] = method.setting_value(advice.longest)
    after: list[str] = []
    if len(advice.ranges) > 1:
        config["num_speculative_tokens_per_batch_size"] = [
            [one.first, one.last, one.draft_length] for one in advice.ranges
        ]
        last = advice.ranges[-1]
        kept = f"vLLM keeps the last entry ({last.draft_length})"
        after = [f"# Beyond batch {last.last} {kept}; the plan ends there."]
    words = ["vllm", "serve", advice.target, *start, "--speculative-config", json.dumps(config)]
    return [shlex.join(words), *after]


def _sglang(advice: Advice, method: Method, start: Sequence[str]) -> list[str]:
    flags = ["--speculative-algorithm", method.name]
    if method.needs_model:
        flags += ["--speculative-draft-model-path", _model(advice)]
    before: list[str] = []
    after: list[str] = []
    adaptive = len(advice.ranges) > 1 and method.name in {"EAGLE", "EAGLE3"} and advice.top_k is None
    length = advice.longest if adaptive else advice.single
    if length == 0:
        return [_left_off(advice, _SGLANG_ADAPTS)]
    if method.name in {"DFLASH", "DSPARK", "NGRAM"}:
        flags += [method.setting, str(method.setting_value(length))]
    else:
        width = method.setting_value(length if advice.nodes is None else advice.nodes)
        flags += ["--speculative-num-steps", str(length), "--speculative-eagle-topk", str(advice.top_k or 1)]
        flags += [method.setting, str(width)]
    if adaptive:
        steps = {str(one.first): {"candidate_steps": [one.draft_length]} for one in advice.ranges}
        before = _file(_ADAPTIVE_FILE, json.dumps(steps))
        flags += ["--speculative-adaptive", "--speculative-adaptive-config", _ADAPTIVE_FILE]
    else:
        after = _one_length(advice, _SGLANG_ADAPTS)
    if method.name == "DSPARK" and advice.costs:
        before = _file(_SPS_FILE, _sps_table(advice.costs))
        flags += ["--speculative-dspark-sps-table-path", _SPS_FILE]
    launched = ["python", "-m", "sglang.launch_server", "--model-path", advice.target]
    return [*before, shlex.join([*launched, *start, *flags]), *after]


def _sps_table(costs: Sequence[StepCost]) -> str:
    """Steps per second by verified tokens of the batch: DSpark's SPS(B) as SGLang's `SpsCostTable`."""
    slowest: dict[int, float] = {}
    for cost in costs:
        tokens = cost.batch * cost.verify_width
        slowest[tokens] = max(slowest.get(tokens, 0.0), cost.seconds)
    tokens_rising = sorted(slowest)
    return json.dumps(
        {
            "sample_batch_tokens": tokens_rising,
            "sample_steps_per_sec": [1.0 / slowest[tokens] for tokens in tokens_rising],
            "max_batch_tokens": tokens_rising[-1],
        }
    )


def _tensorrt_llm(advice: Advice, method: Method, start: Sequence[str]) -> list[str]:
    one_length = "a tree has no draft_len_schedule"
    longest = advice.longest if advice.top_k is None else advice.single
    if longest == 0:
        return [_left_off(advice, one_length)]
    lines = [*start, "speculative_config:", f"  decoding_type: {method.name}"]
    lines.append(f"  {method.setting}: {method.setting_value(longest)}")
    if method.needs_model:
        lines.append(f"  speculative_model: {json.dumps(_model(advice))}")
    if advice.top_k is not None:
        lines += [
            f"  max_total_draft_tokens: {advice.nodes}",
            "  use_dynamic_tree: true",
            f"  dynamic_tree_max_topK: {advice.top_k}",
        ]
        after = _one_length(advice, one_length)
    else:
        entries, after = _draft_len_schedule(advice)
        lines += ["  draft_len_schedule:", *(f"    {last}: {length}" for last, length in entries.items())]
    costs = sorted(advice.costs, key=lambda cost: (cost.batch, cost.draft_length))
    table = [f"#   {cost.batch}, {cost.draft_length}: {cost.seconds * 1e3:.4g}" for cost in costs]
    heading = ["# Planned cost table (batch, draft length: ms per cycle):"] if table else []
    return [*lines, *after, *heading, *table]


def _draft_len_schedule(advice: Advice) -> tuple[dict[int, int], list[str]]:
    """Draft lengths by the largest batch of each range, and what to know about them.

    The first entry must be max_draft_len (llm_args.py, `validate_draft_len_schedule_and_sort`), which bounds
    the others; where the plan begins with another, batch 1 alone takes it.
    """
    final = max(index for index, one in enumerate(advice.ranges) if one.draft_length > 0)
    kept = advice.ranges[: final + 1]
    entries = {one.last: one.draft_length for one in kept}
    notes = [
        f"# Keys are the largest batch of a range; releases before {_UPPER_KEYS} take them as the smallest.",
        f"# Beyond batch {kept[-1].last} the schedule switches speculation off.",
    ]
    first = kept[0].draft_length
    if first != advice.longest:
        entries = {**entries, 1: advice.longest}
        notes.append(
            f"# The first entry must be max_draft_len, {advice.longest}: the plan has {first} there."
        )
    return dict(sorted(entries.items())), notes


def _llama_cpp(advice: Advice, method: Method, start: Sequence[str]) -> list[str]:
    if advice.top_k is not None:
        raise InputError("llama.cpp verifies chains only: plan this drafter without topk and nodes")
    if advice.single == 0:
        return [_left_off(advice, _LLAMA_HAS_ONE)]
    flags = ["llama-server", "--model", _gguf(advice.target, "TARGET"), *start, "--spec-type", method.name]
    if method.needs_model:
        flags += ["--spec-draft-model", _gguf(advice.model, "DRAFTER")]
    flags += [method.setting, str(method.setting_value(advice.single))]
    return [shlex.join(flags), *_one_length(advice, _LLAMA_HAS_ONE)]


def _gguf(model: str | None, of: str) -> str:
    """A model as llama.cpp loads it: a file in its own format."""
    return model if model is not None and model.endswith(".gguf") else f"PATH-OF-THE-{of}.gguf"


def _model(advice: Advice) -> str:
    return advice.model if advice.model is not None else "PATH-OF-THE-DRAFTER"


def _one_length(advice: Advice, why: str) -> list[str]:
    """What the engine cannot be told, where one draft length stands for all batches."""
    if all(one.draft_length == advice.single for one in advice.ranges):
        return []
    return [f"# {why}: {advice.single} is written, where the plan has:", *_listed(advice)]


def _left_off(advice: Advice, why: str) -> str:
    """What to do where one draft length would have to stand for batches that lose by any."""
    why_off = f"# {why}, and none gains over the batches asked for: leave speculation off."
    return "\n".join([why_off, "# The plan has:", *_listed(advice)])


def _listed(advice: Advice) -> list[str]:
    return [f"#   batch {one.first}..{one.last}: {one.draft_length}" for one in advice.ranges]


def _file(name: str, text: str) -> list[str]:
    return [f"cat > {name} <<'END'", text, "END"]


WRITERS: Final[dict[str, Callable[[Advice, Method, Sequence[str]], list[str]]]] = {
    "vllm": _vllm,
    "sglang": _sglang,
    "trtllm": _tensorrt_llm,
    "llamacpp": _llama_cpp,
}
