"""A small physical machine that writes files of measurements, so that fits and checks are judged by truth.

SmolLM2-135M on one thread of a two-core CPU, as docs/measuring.md saw it (bf16: 42 ms a step, T(8)/T(1) 1.23,
an int4 copy at 0.37 of a step). Memory and arithmetic times add. Every time carries noise of a few percent,
now and then a hiccup, and a drift of the whole machine that changes within seconds.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from rooflines.measurement.schema import (
    Cycle,
    DecodeFile,
    Inputs,
    MachineFacts,
    Sample,
    SpeculationFile,
    SpeculationRun,
    Stability,
)

LAYER_PARAMETERS, HEAD_PARAMETERS, LAYERS = 3_538_944, 28_311_552, 30
HOST_S, KERNEL_S, KERNELS_PER_LAYER = 0.8e-3, 20e-6, 9
BANDWIDTH, INT4_BANDWIDTH, RATE = 7.8e9, 8.0e9, 170e9
INT4_BYTES = 4.5 / 8 + 2 / 32  # g32: 4 bits, a 16-bit scale and a 4-bit zero point each 32 inputs
KV_BYTES_PER_LAYER, KV_RATE = 2 * 3 * 64 * 2, 3.6e9
PROFILE = """
id = "measured-simulated-1t"
name = "simulated (1 thread, measured)"
kind = "cpu"
[memory_capacity]
value = "16 GB"
basis = "measured"
source = "probe"
[memory_bandwidth]
value = "32 GB/s"
basis = "measured"
source = "probe"
[peaks.bf16]
value = "208 GFLOP/s"
basis = "measured"
source = "probe"
[peaks.fp32]
value = "100 GFLOP/s"
basis = "measured"
source = "probe"
[sources]
probe = "tests/reference/simulator.py"
"""


def pass_s(batch=1, new=1, context=128, depth=LAYERS, *, int4=False, head=True):
    """The true time of a pass (s)."""
    parameters = depth * LAYER_PARAMETERS + (HEAD_PARAMETERS if head else 0)
    stored = parameters * (INT4_BYTES if int4 else 2.0)
    overhead = HOST_S + KERNEL_S * (KERNELS_PER_LAYER * depth + 3)
    cached = depth * KV_BYTES_PER_LAYER * batch * context / KV_RATE
    memory = stored / (INT4_BANDWIDTH if int4 else BANDWIDTH)
    return overhead + memory + 2.0 * parameters * batch * new / RATE + cached


def fp32_s(batch=1, new=1, context=128, depth=LAYERS):
    """Kernels whose time does not rise with n: MKL's, 1, 1.69, 1.38 (4), 1.57 (8) times a step."""
    curve = np.interp(new, [1, 2, 4, 8, 16, 32], [1.0, 1.69, 1.38, 1.57, 2.6, 3.1])
    return float(curve) * pass_s(batch, 1, context, depth) * 1.6


@dataclass
class Machine:
    """Noise and drift; every measured time passes through `clock`."""

    seed: int = 0
    noise: float = 0.03
    drift: float = 0.12
    speed: float = 1.0
    elapsed: float = 0.0
    generator: np.random.Generator = field(init=False)

    def __post_init__(self):
        self.generator = np.random.default_rng(self.seed)
        self.phase = self.generator.uniform(0, 2 * math.pi)

    def clock(self, true_s):
        slow = 1.0 + self.drift * math.sin(2 * math.pi * self.elapsed / 17.0 + self.phase)
        hiccup = 1.3 if self.generator.random() < 0.01 else 1.0
        seen = true_s * self.speed * slow * hiccup * math.exp(self.noise * self.generator.standard_normal())
        self.elapsed += seen
        return seen


def config(root: Path, dtype="bfloat16"):
    preset = json.loads((root / "rooflines/models/presets/smollm2-135m.json").read_text(encoding="utf-8"))
    kept = {key: value for key, value in preset.items() if not key.startswith("_")}
    return json.dumps({**kept, "torch_dtype": dtype})


def header(root, dtype="bf16", **options):
    return {
        "created": "2026-01-01T00:00:00+00:00",
        "rooflines": "0.1.0",
        "machine": MachineFacts(
            device="simulated",
            kind="cpu",
            cpu="simulated",
            cores=2,
            threads=1,
            memory_bytes=16 * 10**9,
            caches=(),
            system="tests",
        ),
        "versions": {"python": "3.11.0", "torch": "2.13.0"},
        "inputs": Inputs(
            model="smollm2-135m",
            config=config(root, {"bf16": "bfloat16", "fp32": "float32"}[dtype]),
            weights="random, seed 0",
            dtype=dtype,
            runner="static-llama",
            options={"group_size": 32, **options},
        ),
        "stability": Stability(
            run_delay_share=0.01, iqr_share=0.05, stable=True, advice="the machine held still"
        ),
    }


WIDTHS = (1, 2, 4, 6, 8, 12, 16, 24, 32)
GRID = (
    *(("step", 1, n, s, LAYERS) for n in WIDTHS for s in (128, 1024)),
    *(("step", b, 1, 128, LAYERS) for b in (2, 4, 8, 16)),
    *(("step", 1, 1, s, LAYERS) for s in (16, 512)),
    *(("step", 1, 1, 128, d) for d in (1, 5, 10, 20)),
    *(("prefill", 1, n, 0, LAYERS) for n in (64, 256)),
    *(("draft", 1, n, s, LAYERS) for n in (1, 2) for s in (128, 1024)),
    *(("head", 1, n, 0, 0) for n in (1, 8)),
    ("empty", 1, 1, 128, LAYERS),
)


def true_s(case, batch, new, context, depth, *, dtype="bf16"):
    if case == "head":
        return 3 * KERNEL_S + HEAD_PARAMETERS * 2.0 / BANDWIDTH + 2.0 * HEAD_PARAMETERS * batch * new / RATE
    if case == "prefill":
        saved = 2.0 * HEAD_PARAMETERS * batch * (new - 1) / RATE
        return pass_s(batch, new, 0, depth) - saved
    if case == "empty":
        return HOST_S + KERNEL_S * (KERNELS_PER_LAYER * depth + 3)
    if dtype == "fp32":
        return fp32_s(batch, new, context, depth)
    return pass_s(batch, new, context, depth, int4=case == "draft")


def decode_file(root, seed=0, grid=GRID, rounds=15, dtype="bf16", **machine):
    """Interleaved rounds over a grid."""
    clock = Machine(seed, **machine).clock
    times = {cell: [] for cell in grid}
    for _ in range(rounds):
        for cell in grid:
            times[cell].append(clock(true_s(*cell, dtype=dtype)))
    samples = tuple(
        Sample(case=case, batch=b, new_positions=n, context=s, depth=d, cpu_s=tuple(seen), wall_s=tuple(seen))
        for (case, b, n, s, d), seen in times.items()
    )
    return DecodeFile(**header(root, dtype), samples=samples)


def speculation_run(
    machine, drafter="int4", draft_length=4, alpha=0.9, *, tokens=64, kind="chat", name="a", start=60
):
    """One prompt: cycles, plain steps of the same tokens, and a sample of each component, in turns."""
    clock, generator = machine.clock, machine.generator
    cycles, plain, samples, context = [], [], [], start
    while context - start < tokens:
        lookup = drafter == "prompt-lookup"
        drafted = int(generator.integers(0, draft_length + 1)) if lookup else draft_length
        each = 5e-6 if lookup else pass_s(1, 1, context, int4=True)
        accepted = 0
        while accepted < drafted and generator.random() < alpha:
            accepted += 1
        draft_s = clock(each) if lookup else sum(clock(each) for _ in range(drafted))
        verify_s, other_s = clock(pass_s(1, drafted + 1, context)), clock(10e-6)
        cycles.append(
            Cycle(
                draft_s=draft_s,
                verify_s=verify_s,
                other_s=other_s,
                wall_s=draft_s + verify_s + other_s,
                drafted=drafted,
                accepted=accepted,
                emitted=accepted + 1,
                verify_width=drafted + 1,
                context=context,
            )
        )
        plain += [clock(pass_s(1, 1, context + token)) for token in range(accepted + 1)]
        context += accepted + 1
        step_s, once_s = clock(pass_s(1, drafted + 1, context)), clock(each)
        plain_s_once = clock(pass_s(1, 1, context))
        samples += [
            Sample(
                case="plain",
                batch=1,
                new_positions=1,
                context=context,
                depth=LAYERS,
                cpu_s=(plain_s_once,),
                wall_s=(plain_s_once,),
            ),
            Sample(
                case="step",
                batch=1,
                new_positions=drafted + 1,
                context=context,
                depth=LAYERS,
                cpu_s=(step_s,),
                wall_s=(step_s,),
            ),
            Sample(
                case="draft",
                batch=1,
                new_positions=draft_length if lookup else 1,
                context=context,
                depth=0 if lookup else LAYERS,
                cpu_s=(once_s,),
                wall_s=(once_s,),
            ),
        ]
    return SpeculationRun(
        drafter=drafter,
        parameters={"longest": 3, "shortest": 1} if drafter == "prompt-lookup" else {"cache": "shared"},
        prompt=f"{kind}-{name}",
        prompt_kind=kind,
        draft_length=draft_length,
        temperature=0.0,
        forced_acceptance=None,
        cycles=tuple(cycles),
        plain_s=tuple(plain),
        plain_wall_s=tuple(plain),
        samples=tuple(samples),
    )


SHORT = (("int4", 3, 0.9, "chat"), ("prompt-lookup", 4, 0.8, "copying"))
LONG = tuple(
    (drafter, length, alpha, kind)
    for drafter, alphas in (("int4", (0.9, 0.95)), ("prompt-lookup", (0.15, 0.8)))
    for kind, alpha in zip(("chat", "copying"), alphas, strict=True)
    for length in (1, 2, 4, 6)
)


def speculation_file(root, seed=0, cases=SHORT, prompts=2, tokens=64, **machine):
    """Runs of several drafters, each on some prompts."""
    shared = Machine(seed, **machine)
    runs = [
        speculation_run(shared, drafter, length, alpha, tokens=tokens, kind=kind, name=str(prompt))
        for drafter, length, alpha, kind in cases
        for prompt in range(prompts)
    ]
    return SpeculationFile(**header(root), runs=tuple(runs))


def changed(file, change, drafter=None, draft_length=None):
    """The file with `change(cycle)`, a dict of new fields, made to every cycle of some runs."""
    return rewritten(
        file,
        lambda run: {"cycles": tuple(one.model_copy(update=change(one)) for one in run.cycles)},
        drafter,
        draft_length,
    )


def rewritten(file, change, drafter=None, draft_length=None):
    """The file with `change(run)`, a dict of new fields, made to some runs."""
    runs = tuple(
        run.model_copy(update=change(run))
        if (drafter is None or run.drafter == drafter)
        and (draft_length is None or run.draft_length == draft_length)
        else run
        for run in file.runs
    )
    return file.model_copy(update={"runs": runs})
