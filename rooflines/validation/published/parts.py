"""What a plain step and a cycle of an engine are made of, the speedup, and how wrong it may be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, cast

from rooflines.costs.cost import Number
from rooflines.estimates import Estimate, total
from rooflines.speculation.cycle import CycleTimes
from rooflines.timing.machine import Machine
from rooflines.timing.roofline import PassTime
from rooflines.timing.uncertain import pass_estimate

# Standard deviations of ln(truth / value) that no residuals state.
# Two figures for one sequence in SGLang, 1.2 ms (vLLM's) and 2.0 ms (measured with DFlash): ln 0.52 apart.
HOST_LOG_SD: Final = 0.5
# Requests that are half or twice as long in and out as assumed.
PROMPT_LOG_SD: Final = 0.7
# Eight rows in steps over one in llama.cpp's kernels for 4 bits: 1.70 on a DGX Spark, 2.39 on CUDA in field
# reports (https://github.com/sudoingX/qwen38-mtp): ln 0.34 apart.
ROWS_LOG_SD: Final = 0.34


Errors = Mapping[str, Number]
PassErrors = Mapping[str, Errors]


def pass_errors(times: CycleTimes, machine: Machine) -> PassErrors:
    """Standard deviations of ln(truth / time) of a plain step, a verify pass and a draft, by cause.

    A draft is taken to err as a plain step does, part by part, since its passes are smaller ones of the same
    kinds. Published rows ran other versions of engines than constants were fitted to.
    """
    # A deployment's times are those of its operators.
    plain, verify = cast("PassTime", times.target), cast("PassTime", times.verify)
    return {
        name: pass_estimate(one, machine, name, software="engine").errors
        for name, one in (("decode", plain), ("verify", verify), ("draft", plain))
    }


@dataclass(frozen=True, slots=True)
class Parts:
    """Times of one plain step and of one cycle, and tokens per cycle; seconds.

    Attributes:
        tokens_per_cycle: tau.
        step_s: device time of a plain step.
        draft_s: of a draft.
        verify_s: of a verify pass, further kernels of trees included.
        plain_host_s: of the host in a plain step.
        cycle_host_s: of the host in a cycle.
        prompt_s: that prompts add to a plain step; tau times that to a cycle.
        launched: whether passes take the time that the host launches them in.
        unpacked: whether rows of quantised weights set the verify pass.
    """

    tokens_per_cycle: float
    step_s: float
    draft_s: float
    verify_s: float
    plain_host_s: float
    cycle_host_s: float
    prompt_s: float
    launched: bool = False
    unpacked: bool = False

    @property
    def plain_s(self) -> float:
        """A plain step, all in."""
        return self.step_s + self.plain_host_s + self.prompt_s

    @property
    def cycle_s(self) -> float:
        """A cycle, all in."""
        passes = self.draft_s + self.verify_s
        return passes + self.cycle_host_s + self.tokens_per_cycle * self.prompt_s

    @property
    def cycle_cost(self) -> float:
        """Cycle in plain steps, all in."""
        return self.cycle_s / self.plain_s

    @property
    def speedup(self) -> float:
        """Tokens per cycle over its cost."""
        return self.tokens_per_cycle / self.cycle_cost

    def estimate(self, passes: PassErrors) -> Estimate:
        """The speedup with its errors by cause; those that act on a step and on a cycle alike cancel.

        Args:
            passes: errors of `pass_errors`.
        """
        errors: dict[str, Errors] = dict(passes)
        if self.launched:
            errors = {name: {f"host time by layer of {name}": HOST_LOG_SD} for name in errors}
            errors["verify"] = errors["decode"]  # the same layers, launched the same way
        if self.unpacked:
            errors["verify"] = {**errors["decode"], "cost of rows": ROWS_LOG_SD}
        host, prompt = {"host time": HOST_LOG_SD}, {"prompts": PROMPT_LOG_SD}
        step = total(
            (
                Estimate(self.step_s, errors["decode"]),
                Estimate(self.plain_host_s, host),
                Estimate(self.prompt_s, prompt),
            )
        )
        spent = total(
            (
                Estimate(self.draft_s, errors["draft"]),
                Estimate(self.verify_s, errors["verify"]),
                Estimate(self.cycle_host_s, host),
                Estimate(self.tokens_per_cycle * self.prompt_s, prompt),
            )
        )
        return step / spent * self.tokens_per_cycle
