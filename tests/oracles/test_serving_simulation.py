"""The steady state against a discrete-event simulation of the same engine, step by step."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

import numpy as np
import pytest
import simpy

from rooflines.serving.engine import Engine, StepCurve, step_curve
from rooflines.serving.lengths import parse_lengths
from rooflines.serving.schedule import parse_schedule
from rooflines.serving.steady import closed_state, open_state, saturation_per_s
from rooflines.serving.workload import Workload
from rooflines.speculation.acceptance import Acceptance
from rooflines.speculation.drafters.registry import make_drafter
from rooflines.studies.serve import make_deployment, make_machine


@dataclass
class _Request:
    arrival_s: float
    prompt: float
    output: int
    first_s: float = 0.0
    produced: int = 0


@dataclass
class _Simulation:
    """Continuous batching with chunked prefill: decode first, chunks of prompts first come, first served."""

    curve: StepCurve
    budget: float
    width: float
    lengths: np.ndarray  # probability of 1, 2, ... tokens a step and sequence
    mean_prompt: float
    rng: np.random.Generator
    waiting: deque = field(default_factory=deque)
    done: list = field(default_factory=list)

    def engine(self, env: simpy.Environment, bell: simpy.Store):
        decoding: list[_Request] = []
        prompts: deque[list] = deque()
        choices = np.arange(1, self.lengths.size + 1)
        step_s, extra_s = self.curve.step_s, self.curve.extra_s
        while True:
            while self.waiting and len(decoding) + len(prompts) < self.curve.max_sequences:
                request = self.waiting.popleft()
                prompts.append([request, request.prompt])
            if not decoding and not prompts:
                yield bell.get()
                bell.items.clear()
                continue
            n, room = len(decoding), self.budget - len(decoding) * self.width
            taken, finished = 0.0, []
            for entry in prompts:
                part = min(entry[1], room - taken)
                entry[1] -= part
                taken += part
                if entry[1] <= 0:
                    finished.append(entry)
                if taken >= room:
                    break
            yield env.timeout(step_s[n] + extra_s[n] * taken / self.mean_prompt)
            tokens = self.rng.choice(choices, size=n, p=self.lengths)
            for request, made in zip(decoding, tokens, strict=True):
                request.produced += int(made)
            for request in [r for r in decoding if r.produced >= r.output - 1]:
                decoding.remove(request)
                self.done.append((request, env.now))
                self.left(request)
            for entry in finished:
                prompts.remove(entry)
                entry[0].first_s = env.now
                decoding.append(entry[0])

    def left(self, request: _Request) -> None:
        """A hook: closed systems replace the request."""


def _run(simulation: _Simulation, workload: Workload, rate: float, requests: int):
    env = simpy.Environment()
    bell = simpy.Store(env)
    rng = simulation.rng
    picks = rng.choice(workload.prompts.size, size=requests, p=workload.weights)

    def arrivals():
        for pick in picks:
            yield env.timeout(rng.exponential(1.0 / rate))
            simulation.waiting.append(_Request(env.now, workload.prompts[pick], int(workload.outputs[pick])))
            yield bell.put(1)

    env.process(arrivals())
    env.process(simulation.engine(env, bell))
    env.run(until=requests / rate * 1.5 + 100.0)
    assert len(simulation.done) == requests, "the simulation must serve all it was given"
    served = sorted(simulation.done, key=lambda pair: pair[0].arrival_s)[requests // 5 :]
    tokens = sum(request.output - 1 for request, _ in served)
    tpot = sum(end - request.first_s for request, end in served) / tokens
    ttft = np.array([request.first_s - request.arrival_s for request, _ in served])
    return tpot, ttft


def _saturated(simulation: _Simulation, workload: Workload, requests: int) -> float:
    """Completions per second while there is always another request waiting."""
    env = simpy.Environment()
    picks = simulation.rng.choice(workload.prompts.size, size=4 * requests, p=workload.weights)
    for pick in picks:
        simulation.waiting.append(_Request(0.0, workload.prompts[pick], int(workload.outputs[pick])))
    env.process(simulation.engine(env, simpy.Store(env)))
    while len(simulation.done) < requests:
        env.step()
    ends = np.array([end for _, end in simulation.done])
    half = requests // 2
    return (requests - half) / (ends[requests - 1] - ends[half - 1])


def _additive(most: int, prompt: float, budget: float, extra_s: float) -> StepCurve:
    """Steps of 8 ms + 60 us a sequence: the shape of an 8B model on a current GPU."""
    every = np.arange(most + 1, dtype=float)
    room = budget - every
    return StepCurve(
        step_s=np.where(every > 0, 8e-3 + 60e-6 * every, 0.0),
        tokens_per_step=np.ones(most + 1),
        draft_length=np.zeros(most + 1),
        prompt_extra_s=np.full((most + 1, 1), extra_s),
        prompt_chunks=np.ceil(prompt / room)[:, None],
        prompt_weights=np.ones(1),
        chunk_share=prompt / room,
        max_sequences=most,
    )


def _simulation(curve: StepCurve, budget: float, prompt: float, seed: int) -> _Simulation:
    return _Simulation(curve, budget, 1.0, np.ones(1), prompt, np.random.default_rng(seed))


def _workload(prompt: str, output: str) -> Workload:
    return Workload.independent(parse_lengths(prompt, "prompt"), parse_lengths(output, "output"))


@pytest.mark.parametrize("load", [0.3, 0.6, 0.8, 0.9])
@pytest.mark.parametrize(("prompt", "extra_s"), [(512.0, 8e-3), (4096.0, 70e-3)])
def test_time_per_token_below_saturation(load, prompt, extra_s):
    workload, curve = _workload(f"{prompt:.0f}", "129"), _additive(64, prompt, 2048.0, extra_s)
    rate = load * saturation_per_s(curve, workload.decode_tokens)
    state = open_state(curve, workload.decode_tokens, rate)
    # Near saturation a run of minutes differs from the next by some percent: the mean of several is compared.
    seeds, requests = (range(1, 7), 4000) if load == 0.9 else (range(1, 4), 2500)
    runs = [_run(_simulation(curve, 2048.0, prompt, seed), workload, rate, requests) for seed in seeds]
    assert state.tpot_s == pytest.approx(np.mean([tpot for tpot, _ in runs]), rel=0.05)
    # Time to first token is an approximation, which errs to the safe side near saturation.
    ttft = np.concatenate([times for _, times in runs])
    assert 0.85 < state.ttft_s / ttft.mean() < 1.6
    assert state.ttft_quantile_s(0.95) > 0.9 * np.quantile(ttft, 0.95)


@pytest.mark.parametrize("load", [0.5, 0.75, 0.9])
@pytest.mark.parametrize(("most", "safe"), [(1, 1.0), (3, 1.55)])
def test_few_places_for_long_prompts(most, safe, load):
    """What a sequence meets is then bounded by the other places, and errs to the safe side."""
    workload, curve = _workload("32768", "129"), _additive(most, 32768.0, 2048.0, 1.6)
    rate = load * saturation_per_s(curve, workload.decode_tokens)
    runs = [_run(_simulation(curve, 2048.0, 32768.0, seed), workload, rate, 300) for seed in range(1, 4)]
    told = np.mean([tpot for tpot, _ in runs])
    state = open_state(curve, workload.decode_tokens, rate)
    assert 0.999 * told < state.tpot_s < 1.001 * safe * told


@pytest.mark.parametrize("output", ["129", "uniform:2..256", "exponential:129"])
def test_the_distribution_of_outputs_does_not_matter(output):
    """Insensitivity: only the mean output enters, apart from rounding."""
    workload, curve = _workload("512", output), _additive(64, 512.0, 2048.0, 8e-3)
    rate = 0.7 * saturation_per_s(curve, workload.decode_tokens)
    state = open_state(curve, workload.decode_tokens, rate)
    tpot, _ = _run(_simulation(curve, 2048.0, 512.0, 5), workload, rate, 6000)
    assert state.tpot_s == pytest.approx(tpot, rel=0.05)


@pytest.mark.parametrize(("prompt", "extra_s"), [(512.0, 8e-3), (4096.0, 70e-3)])
@pytest.mark.parametrize("most", [8, 64])
def test_saturation_rate(prompt, extra_s, most):
    workload, curve = _workload(f"{prompt:.0f}", "129"), _additive(most, prompt, 2048.0, extra_s)
    measured = _saturated(_simulation(curve, 2048.0, prompt, 11), workload, 2000)
    assert saturation_per_s(curve, workload.decode_tokens) == pytest.approx(measured, rel=0.05)


@pytest.mark.parametrize(("most", "apart"), [(1, 0.05), (2, 0.08), (3, 0.08), (8, 0.05)])
def test_few_places_for_long_prompts_saturate_as_predicted(most, apart):
    """As docs/capacity.md states how far off it is."""
    workload, curve = _workload("32768", "129"), _additive(most, 32768.0, 2048.0, 1.6)
    measured = _saturated(_simulation(curve, 2048.0, 32768.0, 1), workload, 800)
    assert saturation_per_s(curve, workload.decode_tokens) == pytest.approx(measured, rel=apart)


@pytest.mark.parametrize("sequences", [2, 16, 48])
def test_a_fixed_number_of_requests(sequences):
    workload, curve = _workload("512", "uniform:2..256"), _additive(64, 512.0, 2048.0, 8e-3)
    simulation = _Simulation(curve, 2048.0, 1.0, np.ones(1), 512.0, np.random.default_rng(3))
    picks = simulation.rng.choice(workload.outputs, size=sequences)
    simulation.waiting.extend(_Request(0.0, 512.0, int(output)) for output in picks)
    simulation.left = lambda request: (
        simulation.waiting.append(  # another of the workload, not the same again
            _Request(0.0, request.prompt, int(simulation.rng.choice(workload.outputs)))
        )
    )
    env = simpy.Environment()
    env.process(simulation.engine(env, simpy.Store(env)))
    while len(simulation.done) < 4000:
        env.step()
    measured = 3000 / (simulation.done[-1][1] - simulation.done[-3001][1])
    assert closed_state(curve, workload.decode_tokens, sequences).rate_per_s == pytest.approx(
        measured, rel=0.05
    )


@pytest.fixture(scope="module")
def speculative():
    """A real model, device and drafter whose draft length changes with the batch."""
    target = make_deployment("llama-3.1-8b", make_machine("h100-sxm5-80gb", "textbook"))
    drafter = make_drafter("independent:llama-3.2-1b", target)
    return Engine(target, drafter, Acceptance.constant(0.7), parse_schedule("3"), max_sequences=96)


def _drafting(engine: Engine, curve: StepCurve, seed: int) -> _Simulation:
    chances = engine.acceptance.length_probabilities(3)
    return _Simulation(curve, 8192.0, 4.0, chances, 1024.0, np.random.default_rng(seed))


@pytest.mark.parametrize("load", [0.4, 0.8])
def test_speculation_under_load(speculative, load):
    workload = _workload("1024", "401")
    curve = step_curve(speculative, workload)
    rate = load * saturation_per_s(curve, workload.decode_tokens)
    state = open_state(curve, workload.decode_tokens, rate)
    tpot, _ = _run(_drafting(speculative, curve, 2), workload, rate, 4000)
    assert state.tpot_s == pytest.approx(tpot, rel=0.05)


def test_saturation_with_speculation(speculative):
    workload = _workload("1024", "401")
    curve = step_curve(speculative, workload)
    measured = _saturated(_drafting(speculative, curve, 4), workload, 1500)
    assert saturation_per_s(curve, workload.decode_tokens) == pytest.approx(measured, rel=0.05)
