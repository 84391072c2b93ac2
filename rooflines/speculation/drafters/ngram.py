"""N-gram, prompt lookup and suffix drafting: the host finds the draft in the text so far.

There are no weights and no cache. A lookup proposes only where the text repeats itself, and seldom less than
it was asked for; what was not found is not verified. Acceptance is that of drafted tokens, as vLLM, llama.cpp
and Transformers count it. Where tau tokens a cycle were counted over all cycles, those with a proposal emit
1 + (tau - 1) / hit.

Its time is the host's. Without a measured one it is taken as a share of the verify pass: 0.5875 % on an H100
with Llama-3.1-8B in vLLM 0.10.1 (simulator of https://specdecode-bench.github.io).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from rooflines.costs.cost import Number
from rooflines.errors import InputError
from rooflines.speculation.acceptance import Acceptance
from rooflines.speculation.drafters.base import (
    Draft,
    Drafter,
    Repeated,
    Spent,
    Uncached,
    chain,
    drafting,
    possible_lengths,
)
from rooflines.speculation.drafters.kind import DrafterKind, label, share, whole
from rooflines.timing.deployment import Deployment
from rooflines.timing.step_times import StepTimer
from rooflines.units import parse_quantity

_SHARE_OF_VERIFY: Final = 0.005875


@dataclass(frozen=True, slots=True)
class LookupDrafter(Uncached):
    """A lookup on the host.

    Attributes:
        name: what the plan calls it.
        target: what times the verify pass of the model it drafts for.
        proposals: how often it finds something and how long that is; None where it always finds all.
        host_s: time of the lookups of one sequence in a cycle (s); None takes the share of the verify pass.
        only: the one draft length that was asked of it.
    """

    name: str
    target: StepTimer
    proposals: Acceptance | None = None
    host_s: float | None = None
    only: int | None = None

    def draft_lengths(self, asked: Sequence[int]) -> tuple[int, ...]:
        """Any, or the one that was fixed."""
        return possible_lengths(asked, self.only)

    def draft(self, batch: Number, context: Number, draft_length: Number) -> Draft:
        """Price the lookups: one after another for the sequences of a batch, whatever is found."""
        gamma = np.asarray(draft_length, dtype=float)
        spent: Spent
        if self.host_s is None:
            verify = self.target.verify(batch, context, gamma + 1.0)
            spent = (Repeated(_SHARE_OF_VERIFY * drafting(gamma), verify),)
        else:
            spent = self.host_s * np.asarray(batch, dtype=float) * drafting(gamma)
        return replace(chain(spent, gamma), proposals=self.proposals)

    def weight_bytes(self) -> float:
        """None."""
        return 0.0

    def warnings(self) -> tuple[str, ...]:
        """Where the time of the lookup comes from, and that every cycle is taken to find something."""
        notes = []
        if self.host_s is None:
            notes.append(
                f"{self.name}: the lookup is taken as {_SHARE_OF_VERIFY:.2%} of the verify pass (vLLM 0.10.1 "
                "on H100): set host=... where yours was measured"
            )
        if self.proposals is None:
            notes.append(
                f"{self.name}: every cycle is taken to find a proposal: set hit=... to the share that does"
            )
        return tuple(notes)


def _proposals(parameters: Mapping[str, str]) -> Acceptance | None:
    hit, ends = share(parameters, "hit"), share(parameters, "ends")
    if hit is None and ends is None:
        return None
    return Acceptance((1.0 if hit is None else hit, 1.0 - (ends or 0.0)))


def _make(model: str | None, parameters: Mapping[str, str], target: Deployment) -> Drafter:
    if model is not None:
        raise InputError(f"ngram takes no model, not {model!r}: it looks the draft up in the text")
    host = parameters.get("host")
    return LookupDrafter(
        name=label("ngram", None, parameters),
        target=target,
        proposals=_proposals(parameters),
        host_s=None if host is None else parse_quantity(host, "s"),
        only=whole(parameters, "depth"),
    )


KINDS: Final = {
    "ngram": DrafterKind(
        _make,
        {
            "host": "time of the lookup of one sequence, such as 20us (default: 0.59 % of the verify pass)",
            "hit": "share of cycles with a proposal, which acceptance is counted over (default: 1, all)",
            "ends": "chance before each further token that the proposal ends (default: 0)",
            "depth": "tokens, in place of the draft lengths of the plan",
        },
        "n-gram, prompt lookup or suffix tree on the host",
    )
}
