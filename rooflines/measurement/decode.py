"""The decode loop: times of passes of a model, raw, in interleaved rounds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pydantic import JsonValue

from rooflines.errors import InputError
from rooflines.measurement.cases import Case, Grid, plan_cases
from rooflines.measurement.clock import timer
from rooflines.measurement.files import Journal
from rooflines.measurement.models import LoadedModel
from rooflines.measurement.rounds import Progress, Rounds, Task, run_rounds
from rooflines.measurement.schema import DecodeFile, Inputs, Sample
from rooflines.measurement.surroundings import environment, machine_facts, now, rooflines_version, versions
from rooflines.measurement.threads import computing_threads

if TYPE_CHECKING:
    from rooflines.measurement.runner import Runner

_WARMUP: Final = 2


@dataclass(frozen=True, slots=True)
class DecodeQuestion:
    """How a model is measured.

    Attributes:
        grid: which passes.
        threads: that compute, on a CPU.
        rounds: times each pass is timed.
        group_size: inputs that share a scale in the int4 copy; None times no copy.
        graphs: replay CUDA graphs where the device has them.
        seed: of tokens and of the order within rounds.
    """

    grid: Grid
    threads: int = 1
    rounds: int = 20
    group_size: int | None = 32
    graphs: bool = True
    seed: int = 0

    def options(self) -> dict[str, JsonValue]:
        """What the times depend on, as a file records it."""
        grid = self.grid
        return {
            "batch": list(grid.batches),
            "positions": list(grid.positions),
            "context": list(grid.contexts),
            "depth": list(grid.depths),
            "prefill": list(grid.prefills),
            "cross": grid.cross,
            "threads": self.threads,
            "rounds": self.rounds,
            "group_size": self.group_size,
            "graphs": self.graphs,
            "seed": self.seed,
            "environment": {**environment()},
        }


def measure_decode(
    loaded: LoadedModel, question: DecodeQuestion, output: Path, progress: Progress
) -> DecodeFile:
    """Time the passes of a model and write the raw times to `output`.

    A run that was killed continues where its last whole round ended.

    Raises:
        InputError: the file exists, or the model cannot run a pass that is asked for.
    """
    runner = loaded.runner
    machine = machine_facts(runner.device, question.threads)
    lean = runner.name != "transformers"
    cases = plan_cases(question.grid, runner.depth, lean=lean)
    if question.group_size is None:
        cases = tuple(case for case in cases if case.kind != "draft")
    inputs = Inputs(
        model=loaded.name,
        config=loaded.config,
        weights=loaded.weights,
        dtype=loaded.dtype,
        runner=runner.name,
        seed=question.seed,
        options=question.options(),
    )
    asked = {
        "kind": "decode",
        "rooflines": rooflines_version(),
        "device": machine.device,
        **inputs.model_dump(),
    }
    journal = Journal.open(output, asked)
    with computing_threads(question.threads):
        rounds = run_rounds(
            make_tasks(loaded, cases, question),
            rounds=question.rounds,
            warmup=_WARMUP,
            seed=question.seed,
            time_once=timer(runner.device),
            journal=journal,
            progress=progress,
        )
    file = DecodeFile(
        created=now(),
        rooflines=rooflines_version(),
        machine=machine,
        versions=versions(),
        inputs=inputs,
        stability=rounds.stability,
        samples=tuple(_sample(case, rounds) for case in cases),
    )
    journal.finish(file, output)
    return file


def make_tasks(loaded: LoadedModel, cases: tuple[Case, ...], question: DecodeQuestion) -> Mapping[str, Task]:
    """What to time for each case.

    Raises:
        InputError: the model cannot run one of them.
    """
    import torch

    torch.manual_seed(question.seed)
    runner, makers = loaded.runner, _runners(loaded, cases, question)
    room = dict.fromkeys(((case.batch, case.context) for case in cases), 0)
    for case in cases:
        place = (case.batch, case.context)
        room[place] = max(room[place], case.context + case.new_positions)
    caches: dict[tuple[str, int, int], Any] = {}
    tasks = {}
    for case in cases:
        if case.kind == "head":
            tasks[case.name] = _head_task(runner, case)
            continue
        own = makers[case.kind]
        # A copy of the target reads the target's cache, as it does when it drafts; the miniature has its own.
        key = ("empty" if case.kind == "empty" else "", case.batch, case.context)
        if key not in caches:
            caches[key] = own.new_cache(case.batch, room[case.batch, case.context])
            own.fill(caches[key], case.context)
        task = _pass_task(own, caches[key], case)
        replayed = question.graphs and runner.device.startswith("cuda") and runner.name != "transformers"
        tasks[case.name] = _graphed(task) if replayed else task
    return tasks


def _runners(loaded: LoadedModel, cases: tuple[Case, ...], question: DecodeQuestion) -> Mapping[str, Runner]:
    runner = loaded.runner
    runners = {"step": runner, "prefill": runner}
    kinds = {case.kind for case in cases}
    if "draft" in kinds and question.group_size is not None:
        runners["draft"] = runner.int4_copy(question.group_size)
    if "empty" in kinds:
        from rooflines.measurement.llama import LlamaRunner, miniature

        if not isinstance(runner, LlamaRunner):
            raise InputError(f"a {runner.name} runner has no miniature to time the host's work with")
        runners["empty"] = miniature(runner)
    return runners


def _pass_task(runner: Runner, cache: Any, case: Case) -> Task:  # noqa: ANN401 - each runner has its own cache
    import torch

    tokens = torch.randint(runner.vocabulary, (case.batch, case.new_positions), device=runner.device)
    depth = None if case.depth == runner.depth else case.depth
    logits: Any = "last" if case.kind == "prefill" else "all"

    def work() -> None:
        runner.forward(tokens, cache, depth=depth, logits=logits)

    return Task(work, prepare=lambda: cache.roll_back(case.context))


def _head_task(runner: Any, case: Case) -> Task:  # noqa: ANN401 - a runner with a head of its own
    import torch

    like = runner.embedding
    hidden = torch.randn(case.batch, case.new_positions, like.shape[1], device=like.device).to(like.dtype)
    return Task(lambda: runner.project(hidden))


def _graphed(task: Task) -> Task:
    """The same work, captured once and replayed: its launches cost the host nothing."""
    import torch

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):  # what capturing must not meet for the first time
        for _ in range(3):
            task.prepare()
            task.work()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    task.prepare()
    with torch.cuda.graph(graph):
        task.work()
    task.prepare()
    return Task(graph.replay)


def _sample(case: Case, rounds: Rounds) -> Sample:
    times = rounds.times[case.name]
    return Sample(
        case=case.kind,
        batch=case.batch,
        new_positions=case.new_positions,
        context=case.context,
        depth=case.depth,
        cpu_s=tuple(one.cpu_s for one in times),
        wall_s=tuple(one.wall_s for one in times),
        device_s=tuple(one.device_s for one in times if one.device_s is not None),
    )
