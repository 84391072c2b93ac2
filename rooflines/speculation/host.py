"""What the host adds to a cycle beside the passes on the device: a time per cycle, and launches.

None of it is assumed: `DEVICE_ALONE` adds nothing. Engines' own figures, each with its source, are in
`rooflines.engines.host`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from rooflines.costs.cost import Number
from rooflines.speculation.drafters.base import Draft, Repeated, total_s
from rooflines.timing.roofline import OperatorTime, PassTime
from rooflines.timing.step_times import Timed

# One kernel of each of these a layer, so that they count the layers of a pass.
_ONE_A_LAYER: Final = ("decode_attention", "prefill_attention", "recurrent")


@dataclass(frozen=True, slots=True)
class CycleHost:
    """Host time that overlaps nothing on the device.

    Attributes:
        plain_s: of one plain decode step (s).
        cycle_s: of one cycle of draft and verify (s).
        sequence_s: of one cycle for each sequence of the batch (s).
        layer_s: of one layer of a pass that the host launches kernel by kernel (s); such a pass takes the
            longer of this and the device's time. 0 where graphs are replayed.
        pass_s: of such a pass beside its layers (s).
    """

    plain_s: float = 0.0
    cycle_s: float = 0.0
    sequence_s: float = 0.0
    layer_s: float = 0.0
    pass_s: float = 0.0

    def plain(self, step: Timed) -> Timed:
        """A plain decode step as the host lets it run."""
        launched = self.launched(step)
        if not self.plain_s or not isinstance(launched, PassTime):
            return launched
        host_s = launched.host_s + self.plain_s
        return replace(launched, host_s=host_s, seconds=launched.seconds + self.plain_s)

    def launched(self, time: Timed) -> Timed:
        """A pass that takes no less than its launches; one without layers is part of another's launches."""
        if not self.layer_s or not isinstance(time, PassTime):
            return time
        layers = sum(one.operator.count for one in time.operators if one.operator.kind in _ONE_A_LAYER)
        if not layers:
            return time
        least_s = self.pass_s + layers * self.layer_s
        # Where the host is slower the device waits for it, so that no operator decides the time.
        decides = np.asarray(np.asarray(time.seconds) >= least_s, dtype=float)
        return PassTime(
            tuple(_scaled(one, decides) for one in time.operators),
            time.host_s * decides + least_s * (1.0 - decides),
            np.maximum(time.seconds, least_s),
        )

    def drawn(self, draft: Draft) -> Draft:
        """A draft each of whose passes takes no less than its launches."""
        if not self.layer_s or not draft.passes:
            return draft
        passes = tuple(Repeated(one.count, self.launched(one.time)) for one in draft.passes)
        return replace(draft, seconds=total_s(passes), passes=passes)

    def outside_s(self, batch: Number, draft_length: Number) -> Number:
        """Time of a cycle outside its passes; where nothing is drafted, that of a plain step (s)."""
        each_s = self.sequence_s * np.asarray(batch) if self.sequence_s else 0.0
        return np.where(np.asarray(draft_length) > 0, self.cycle_s + each_s, self.plain_s)


DEVICE_ALONE: Final = CycleHost()


def _scaled(time: OperatorTime, share: Number) -> OperatorTime:
    return replace(
        time,
        seconds=time.seconds * share,
        memory_s=time.memory_s * share,
        compute_s=time.compute_s * share,
        network_s=time.network_s * share,
        overhead_s=time.overhead_s * share,
    )
