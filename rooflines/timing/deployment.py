"""A deployment: a model, in some precision, on some devices, that can say how long its passes take."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypedDict

from rooflines.costs.cost import Number
from rooflines.costs.passes import decode_pass, prefill_pass, verify_pass
from rooflines.costs.routing import SHARED_EXPERTS, Routing, routing_words
from rooflines.costs.setting import Parallelism, Precision
from rooflines.models.spec import ModelSpec
from rooflines.timing.machine import Machine
from rooflines.timing.roofline import PassTime, pass_time


class _Served(TypedDict):
    """What every pass of a deployment is given."""

    precision: Precision
    parallelism: Parallelism
    routing: Routing
    encoder_positions: Number | None


@dataclass(frozen=True, slots=True)
class Deployment:
    """A model as it is served.

    Attributes:
        model: what is run.
        machine: on what, with which constants.
        precision: in which number formats.
        parallelism: over how many devices.
        routing: how many distinct experts the tokens of a pass hit.
        encoder_positions: positions of the encoder per sequence, for a model that has one.
    """

    model: ModelSpec
    machine: Machine
    precision: Precision = field(default_factory=Precision)
    parallelism: Parallelism = field(default_factory=Parallelism)
    routing: Routing = SHARED_EXPERTS
    encoder_positions: Number | None = None

    def decode(self, batch: Number, context: Number) -> PassTime:
        """Time of one plain decode step."""
        return pass_time(
            decode_pass(self.model, batch, context, **self._served),
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
                **self._served,
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
                **self._served,
            ),
            self.machine,
        )

    @property
    def basis(self) -> str:
        """What its times rest on: the constants of the machine that it uses, and how experts are hit."""
        passes = (self.decode(1.0, 1.0), self.prefill(1.0, 1.0))
        classes = {time.operator.kind for one in passes for time in one.operators}
        return "; ".join(filter(None, (self.machine.basis_for(classes), self.assumed_routing)))

    @property
    def assumed_routing(self) -> str | None:
        """How experts are hit, as a clause; None where there are none."""
        return routing_words(self.routing) if self.model.has_experts else None

    @property
    def _served(self) -> _Served:
        return {
            "precision": self.precision,
            "parallelism": self.parallelism,
            "routing": self.routing,
            "encoder_positions": self.encoder_positions,
        }
