"""All runs of a command: every drafter, draft length and prompt, finished parts kept, one file at the end."""

from __future__ import annotations

import gc
import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import JsonValue

from rooflines.errors import InputError
from rooflines.measurement.clock import RunDelay, timer
from rooflines.measurement.files import Journal
from rooflines.measurement.models import LoadedModel, load_model, load_tokenizer
from rooflines.measurement.rounds import Progress
from rooflines.measurement.schema import Inputs, SpeculationFile, SpeculationRun, Stability
from rooflines.measurement.speculation.choices import DrafterChoice
from rooflines.measurement.speculation.loop import Wanted, run
from rooflines.measurement.speculation.prompts import Prompt
from rooflines.measurement.speculation.record import speculation_run
from rooflines.measurement.speculation.rejection import Tokens
from rooflines.measurement.speculation.sampling import GREEDY, Sampling
from rooflines.measurement.stability import judge
from rooflines.measurement.surroundings import environment, machine_facts, now, rooflines_version, versions
from rooflines.measurement.threads import computing_threads

if TYPE_CHECKING:
    from rooflines.measurement.runner import Runner


@dataclass(frozen=True, slots=True)
class Question:
    """What to measure.

    Attributes:
        drafters: each with every draft length and prompt.
        draft_lengths: gamma, each 1 or more.
        prompts: to continue.
        tokens: to emit in each run.
        sampling: how tokens are chosen.
        threads: that compute, on a CPU.
        seed: of random prompts and all choices.
        group_size: inputs that share a scale in the int4 copy.
    """

    drafters: tuple[DrafterChoice, ...]
    draft_lengths: tuple[int, ...]
    prompts: tuple[Prompt, ...]
    tokens: int
    sampling: Sampling = GREEDY
    threads: int = 1
    seed: int = 0
    group_size: int = 32

    def options(self) -> dict[str, JsonValue]:
        """What the times depend on, as a file records it."""
        return {
            "drafters": [choice.label for choice in self.drafters],
            "draft_lengths": list(self.draft_lengths),
            "prompts": [prompt.name for prompt in self.prompts],
            "tokens": self.tokens,
            "sampling": str(self.sampling),
            "threads": self.threads,
            "group_size": self.group_size,
            "seed": self.seed,
            "environment": {**environment()},
        }

    def parts(self) -> Iterator[tuple[str, DrafterChoice, int, Prompt]]:
        """The runs with their names; drafters alternate fastest, so that drift meets all of them alike."""
        for prompt, length, choice in itertools.product(self.prompts, self.draft_lengths, self.drafters):
            yield f"{choice.label} | {length} | {prompt.name}", choice, length, prompt


def measure_speculation(
    loaded: LoadedModel, question: Question, output: Path, progress: Progress
) -> SpeculationFile:
    """Measure every run that a journal beside `output` does not hold yet, and write the file.

    Args:
        loaded: the target.
        question: what to measure with it.
        output: the file to write; it must not exist.
        progress: told how many runs of how many are finished.

    Raises:
        InputError: the file exists, the journal answers another question, or a drafter or prompt that this
            model cannot serve.
    """
    bench = _Bench(loaded, question)
    machine = machine_facts(loaded.runner.device, question.threads)
    inputs = _inputs(loaded, question)
    asked = {
        "kind": "speculation",
        "rooflines": rooflines_version(),
        "device": machine.device,
        **inputs.model_dump(),
    }
    journal = Journal.open(output, asked)
    parts = list(question.parts())
    with computing_threads(question.threads):
        for done, (name, choice, length, prompt) in enumerate(parts):
            progress(done, len(parts))
            if name not in journal.parts:
                seen, waited = bench.run(choice, length, prompt)
                journal.add(name, {"run": seen.model_dump(mode="json"), "run_delay_share": waited})
        progress(len(parts), len(parts))
    runs, stability = _collected([journal.parts[name] for name, *_ in parts])
    file = SpeculationFile(
        created=now(),
        rooflines=rooflines_version(),
        machine=machine,
        versions=versions(),
        inputs=inputs,
        stability=stability,
        runs=runs,
    )
    journal.finish(file, output)
    return file


class _Bench:
    """A loaded model and everything that drafts for it."""

    def __init__(self, loaded: LoadedModel, question: Question) -> None:
        from rooflines.measurement.speculation.torch_models import TorchModel, TorchModels

        runner = loaded.runner

        def load(name: str) -> Runner:
            return load_model(name, loaded.dtype, runner.device, question.seed).runner

        self.question, self.dtype = question, loaded.dtype
        self.target = TorchModel(runner)
        self.models = TorchModels(runner, question.group_size, load)
        self.tokens = _prompt_tokens(loaded, question)
        self.time_once = timer(runner.device)
        self.warm: set[tuple[str, int]] = set()
        for choice in question.drafters:
            choice.check(runner.depth)

    def run(self, choice: DrafterChoice, length: int, prompt: Prompt) -> tuple[SpeculationRun, float | None]:
        """One run, and the share of its time that went into waiting for a core."""
        question = self.question
        wanted = Wanted(question.tokens, length, question.sampling, choice.forced_acceptance, question.seed)
        opener = choice.opener(self.models, question.sampling, question.seed)
        tokens = self.tokens[prompt.name]
        if (choice.label, length) not in self.warm:  # kernels choose their ways at the first pass of a shape
            run(self.target, opener, tokens, replace(wanted, tokens=1), self.time_once)
            self.warm.add((choice.label, length))
        with _no_collection():
            start = RunDelay.read()
            seen = run(self.target, opener, tokens, wanted, self.time_once)
            waited = RunDelay.read().share_since(start)
        return speculation_run(seen, choice, prompt, wanted, self.dtype), waited


def _prompt_tokens(loaded: LoadedModel, question: Question) -> dict[str, Tokens]:
    """Tokens of each prompt, through the model's chat template where it has one.

    Raises:
        InputError: words for a model that knows none.
    """
    wordy = [prompt for prompt in question.prompts if prompt.text is not None]
    if wordy and loaded.folder is None:
        raise InputError(
            f"{loaded.name} has random weights and no words, so {wordy[0].name!r} means nothing to it: "
            "write --prompts random:64"
        )
    tokenizer = load_tokenizer(loaded.folder) if wordy and loaded.folder else None
    return {
        prompt.name: prompt.random_tokens(loaded.runner.vocabulary, question.seed)
        if prompt.text is None
        else _spoken(tokenizer, prompt.text)
        for prompt in question.prompts
    }


def _spoken(tokenizer: Any, text: str) -> Tokens:  # noqa: ANN401 - a tokenizer of transformers
    if tokenizer.chat_template is None:
        return np.array(tokenizer(text)["input_ids"], dtype=np.int64)
    said = [{"role": "user", "content": text}]
    ids = tokenizer.apply_chat_template(said, add_generation_prompt=True, return_dict=False)
    return np.array(ids, dtype=np.int64)


def _inputs(loaded: LoadedModel, question: Question) -> Inputs:
    return Inputs(
        model=loaded.name,
        config=loaded.config,
        weights=loaded.weights,
        dtype=loaded.dtype,
        runner=loaded.runner.name,
        seed=question.seed,
        options=question.options(),
    )


def _collected(parts: Sequence[Mapping[str, Any]]) -> tuple[tuple[SpeculationRun, ...], Stability]:
    """The runs, and whether plain steps, which all of them contain, took the same time within a run.

    Each is taken relative to its run's median: a machine that is slower in another run, or a longer context,
    does not touch the ratios within this one.
    """
    # Strict facts take lists for tuples from JSON only.
    runs = tuple(SpeculationRun.model_validate_json(json.dumps(part["run"])) for part in parts)
    waited = [part["run_delay_share"] for part in parts if part["run_delay_share"] is not None]
    relative = [seconds / float(np.median(one.plain_s)) for one in runs for seconds in one.plain_s]
    return runs, judge(relative, float(np.mean(waited)) if waited else None)


@contextmanager
def _no_collection() -> Iterator[None]:
    """Keep the garbage collector out of what is timed; it runs between runs."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
