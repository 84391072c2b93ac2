"""Published speedups by batch against the intervals of predicted ones, acceptance and host being known."""

from __future__ import annotations

import math
from pathlib import Path
from statistics import NormalDist

import numpy as np
import pytest

from rooflines.engines.host import host_time
from rooflines.serving.engine import Engine
from rooflines.serving.lengths import parse_lengths
from rooflines.serving.schedule import Schedule
from rooflines.serving.uncertain import engine_errors
from rooflines.serving.workload import Workload
from rooflines.speculation.acceptance_text import parse_acceptance
from rooflines.speculation.drafters.registry import make_drafter
from rooflines.speculation.host import CycleHost
from rooflines.studies.serve import make_deployment, make_machine


@pytest.fixture(scope="module")
def curves(load_module):
    """The curves of test_load_crossovers.py."""
    return load_module(Path(__file__).with_name("test_load_crossovers.py"))


def log_sd(hardware, drafter, acceptance, length, *, host, context):
    """Standard deviation of ln(truth / speedup) by batch."""
    target = make_deployment("llama-3.1-8b", make_machine(hardware))
    engine = Engine(
        target,
        make_drafter(drafter, target),
        parse_acceptance(acceptance),
        Schedule.fixed(length),
        cycle_host=host,
    )
    asked = Workload.independent(parse_lengths(str(context), "prompt"), parse_lengths("2", "output"))
    errors = engine_errors(engine, asked, 512)
    return lambda batch: float(errors.speedup_log_sd(np.array([float(batch)]))[0, 0])


def points(curves):
    """Published over predicted (log) and its standard deviation, point by point."""
    step = CycleHost(plain_s=curves.OVERHEAD_S, cycle_s=curves.OVERHEAD_S)
    for task, (tau, published) in curves.EAGLE3.items():
        predicted = curves.eagle3_speedups(task)
        context = 1200 if task == "CNN/DailyMail" else 400
        sd = log_sd("h100-sxm5-80gb", "eagle3", f"accepted-length:{tau}@3", 3, host=step, context=context)
        for batch, speedup in published.items():
            yield math.log(speedup / predicted[batch - 1]), sd(batch)
    host = host_time("sglang", "dflash2026", "dflash", "b200-sxm-180gb").time
    predicted = curves.dflash_speedups(host.cycle_s + host.sequence_s * curves.BATCHES)
    sd = log_sd("b200-sxm-180gb", "dflash:block=10", "accepted-length:4.32@9", 9, host=host, context=400)
    for batch, speedup in curves.DFLASH.items():
        yield math.log(speedup / predicted[batch - 1]), sd(batch)


def test_most_published_speedups_lie_inside(curves):
    reach = NormalDist().inv_cdf(0.95)
    found = [(abs(residual), sd) for residual, sd in points(curves)]
    inside = sum(residual <= reach * sd for residual, sd in found)
    assert len(found) == 15
    assert inside >= 11
    # None of the others is off by much more.
    assert max(residual / sd for residual, sd in found) < 2.0 * reach
    # Narrow enough to mean something: less than 8 % either way.
    assert max(sd for _, sd in found) * reach < 0.08
