"""A deployment: a model, in some precision, on some devices, that can say how long its passes take."""

from __future__ import annotations

from dataclasses import dataclass, field

from rooflines.costs.cost import Number
from rooflines.costs.passes import decode_pass, prefill_pass, verify_pass
from rooflines.costs.setting import Parallelism, Precision
from rooflines.models.spec import ModelSpec
from rooflines.timing.machine import Machine
from rooflines.timing.roofline import PassTime, pass_time


@dataclass(frozen=True, slots=True)
class Deployment:
    """A model as it is served.

    Attributes:
        model: what is run.
        machine: on what, with which constants.
        precision: in which number formats.
        parallelism: over how many devices.
    """

    model: ModelSpec
    machine: Machine
    precision: Precision = field(default_factory=Precision)
    parallelism: Parallelism = field(default_factory=Parallelism)

    def decode(self, batch: Number, context: Number) -> PassTime:
        """Time of one plain decode step."""
        return pass_time(
            decode_pass(self.model, batch, context, precision=self.precision, parallelism=self.parallelism),
            self.machine,
        )

    def verify(
        self, batch: Number, context: Number, verify_width: Number, ancestors: Number | None = None
    ) -> PassTime:
        """Time of a verify pass of `verify_width` positions per sequence."""
        return pass_time(
            verify_pass(
                self.model,
                batch,
                context,
                verify_width,
                precision=self.precision,
                parallelism=self.parallelism,
                ancestors=ancestors,
            ),
            self.machine,
        )

    def prefill(self, batch: Number, new_tokens: Number, context: Number = 0.0) -> PassTime:
        """Time of a prefill of `new_tokens` positions per sequence after `context` cached ones."""
        return pass_time(
            prefill_pass(
                self.model,
                batch,
                new_tokens,
                context,
                precision=self.precision,
                parallelism=self.parallelism,
            ),
            self.machine,
        )
