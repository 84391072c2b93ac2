"""Derived host times of engines, derived again from the published cycles and our own device times."""

from __future__ import annotations

import numpy as np
import pytest

from rooflines.engines.host import host_time
from rooflines.speculation.cycle import cycle_times
from rooflines.speculation.drafters.registry import make_drafter
from rooflines.studies.serve import make_deployment, make_machine


@pytest.mark.parametrize(("batch", "tau", "rate"), [(1, 6.352, 1161.88), (32, 6.482, 15326.81)])
def test_sglangs_overlapped_cycles(batch, tau, rate):
    """SGLang pull request 23000: DFlash for Qwen3-8B on a B200, GSM8K, version 2 of speculation.

    What its cycles take beyond our device time and prompts (512 in, 1,024 out). The figures are restated with
    two digits and move with the calibration; hence a tenth of the cycle.
    """
    target = make_deployment("qwen3-8b", make_machine("b200-sxm-180gb", "b200-sxm-180gb.sglang-0.5.14"))
    drafter = make_drafter("dflash:qwen3-8b-dflash,block=16", target)
    times = cycle_times(target, drafter, float(batch), 1024.0, 15.0)
    device_s = float(np.asarray(times.draft.seconds + times.verify.seconds))
    prompts_s = tau * batch * float(np.asarray(target.prefill(1.0, 512.0).seconds)) / 1024
    cycle_s = batch * tau / rate
    host = host_time("sglang-overlap").time
    stated_s = host.cycle_s + batch * host.sequence_s
    assert device_s + prompts_s + stated_s == pytest.approx(cycle_s, rel=0.10)
