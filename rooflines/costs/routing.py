"""How many distinct experts the tokens of a pass hit in one layer: that many are read from memory.

All forms lie between k and min(E, N k); uniform routing is the largest of those that treat tokens as
independent, since 1 - (1 - p)^N is concave in p.

Positions of one sequence choose experts partly alike, which is what times of passes take (`SHARED_EXPERTS`):
it makes a verify pass cheaper, and says nothing of a plain step, in which each sequence has one position. A
prompt is positions of a sequence too, so that it is priced alike. Far ones agree less than the neighbours
that were measured, but that hardly shows: 512 positions hit all experts to 0.2 % either way (to 5 % where a
token takes one of 128, as in Llama 4 Maverick).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rooflines.costs.cost import Number
from rooflines.errors import InputError

# (experts E, experts per token k, batch B, new tokens per sequence n) -> distinct experts D.
Routing: TypeAlias = Callable[[int, int, Number, Number], Number]

_KINDS: Final = "uniform, powerlaw:A or correlated:RHO"


@dataclass(frozen=True, slots=True)
class IndependentRouting:
    """Tokens choose experts at random, those of one sequence partly alike.

    Attributes:
        skew: a; experts have weights 1 / rank^a, and a token takes k without replacement (0: uniform).
        correlation: rho; the n tokens of one sequence count as 1 + (n - 1) (1 - rho) independent ones.
    """

    skew: float = 0.0
    correlation: float = 0.0

    def __post_init__(self) -> None:
        if not 0.0 <= self.skew < float("inf"):
            raise InputError(f"skew of expert routing is {self.skew}: it must be 0 (uniform) or more")
        if not 0.0 <= self.correlation <= 1.0:
            raise InputError(f"correlation of expert routing is {self.correlation}: it must lie in 0..1")

    def __call__(self, experts: int, per_token: int, batch: Number, new_tokens: Number) -> Number:
        """D: E (1 - (1 - k/E)^N) when uniform, else the sum of 1 - (1 - p_e)^N over experts."""
        tokens = batch * (1.0 + (new_tokens - 1.0) * (1.0 - self.correlation))
        if self.skew == 0.0:
            return experts * (1.0 - (1.0 - per_token / experts) ** tokens)
        return _expected(_inclusion(experts, per_token, self.skew), tokens)


UNIFORM: Final = IndependentRouting()
# How much alike positions of one sequence choose experts. Measured: neighbours share 38 % of them, and four
# positions hit 31 % fewer than strangers would (0.35 and 0.45; Cohere's Command,
# https://cohere.com/blog/mixture-of-experts-models-get-more-from-speculative-decoding as summarised at
# https://headsupai.io/updates/cohere-proves-mixture-experts-models-amplify-speculative-decoding-gains); they
# share 25.7 % in GLM-4.7-Flash (0.21; https://github.com/ml-explore/mlx-lm/pull/1485). The middle of the
# three, and their ends.
SHARED_EXPERTS: Final = IndependentRouting(correlation=0.35)
SHARED_LEAST: Final = IndependentRouting(correlation=0.21)
SHARED_MOST: Final = IndependentRouting(correlation=0.45)
# As the command line writes it: what predictions of times take where nothing else is said.
DEFAULT_ROUTING: Final = f"correlated:{SHARED_EXPERTS.correlation:g}"


def parse_routing(text: str) -> IndependentRouting:
    """Routing as written on the command line: ``uniform``, ``powerlaw:1.01``, ``correlated:0.3``.

    Raises:
        InputError: another word, or a number that is none or out of range.
    """
    kind, colon, value = text.strip().lower().partition(":")
    if kind == "uniform" and not colon:
        return UNIFORM
    try:
        number = float(value)
    except ValueError:
        raise InputError(f"cannot read the expert routing {text!r}: write {_KINDS}") from None
    if kind == "powerlaw":
        return IndependentRouting(skew=number)
    if kind == "correlated":
        return IndependentRouting(correlation=number)
    raise InputError(f"unknown expert routing {text!r}: write {_KINDS}")


def distinct_experts(
    routing: Routing, experts: int, per_token: int, batch: Number, new_tokens: Number
) -> Number:
    """Distinct experts that a pass hits in one layer, checked.

    Args:
        routing: one of this module, or a function of your own.
        experts: E.
        per_token: k.
        batch: B, over all devices that share the experts.
        new_tokens: n.

    Raises:
        InputError: fewer than k, or more than min(E, N k): no routing does that.
    """
    found = routing(experts, per_token, batch, new_tokens)
    most = np.minimum(float(experts), batch * new_tokens * per_token)
    slack = 1e-9 * experts  # of rounding
    if not (np.all(np.asarray(found) >= per_token - slack) and np.all(found <= most + slack)):
        raise InputError(
            f"a routing gave {np.min(found):g} to {np.max(found):g} distinct experts: with {experts} "
            f"experts and {per_token} a token, it must lie between {per_token} "
            "and that many for every token"
        )
    return found


def distinct_log_sd(
    routing: Routing, experts: int, per_token: int, batch: Number, new_tokens: Number
) -> Number:
    """Standard deviation of ln(D) for how much alike positions choose: half of the measured range.

    0 for one position a sequence; and for any other routing than `SHARED_EXPERTS`, which is taken as given.

    Args:
        routing: which of them is assumed.
        experts: E.
        per_token: k.
        batch: B, over all devices that share the experts.
        new_tokens: n.
    """
    if routing != SHARED_EXPERTS:
        return 0.0
    most, least = (end(experts, per_token, batch, new_tokens) for end in (SHARED_LEAST, SHARED_MOST))
    half: Number = np.log(most / least) / 2.0
    return half


def routing_words(routing: Routing) -> str:
    """What is assumed of how experts are hit, as a clause."""
    if routing == SHARED_EXPERTS:
        measured = f"{SHARED_LEAST.correlation:g} to {SHARED_MOST.correlation:g}"
        return (
            f"positions of a sequence choose experts alike by {SHARED_EXPERTS.correlation:g} (measured: "
            f"{measured}; set routing for another)"
        )
    if not isinstance(routing, IndependentRouting):
        return "experts hit by a routing of your own"
    skew = f", by popularity 1/rank^{routing.skew:g}" if routing.skew else ""
    if not routing.correlation:
        return f"positions choose experts on their own{skew}"
    return f"positions of a sequence choose experts alike by {routing.correlation:g}{skew}, as given"


@lru_cache(maxsize=256)
def _inclusion(experts: int, per_token: int, skew: float) -> NDArray[np.float64]:
    """Chance of each expert to be among the k of a token, weights 1 / rank^a, without replacement.

    Taking k without replacement is waiting for the first k of independent exponential clocks (the Gumbel
    top-k trick, arXiv 1903.06059, section 2), so p_e = 1 - exp(-w_e t) with t such that the p_e sum to k;
    that t is taken as fixed, which is exact for many experts.
    """
    weights = np.arange(1, experts + 1, dtype=float) ** -skew
    if per_token == experts:
        return np.ones(experts)
    low, high = 0.0, 1.0
    while np.sum(-np.expm1(-weights * high)) < per_token:
        high *= 2.0
    for _ in range(200):
        middle = (low + high) / 2.0
        low, high = (middle, high) if np.sum(-np.expm1(-weights * middle)) < per_token else (low, middle)
    return np.asarray(-np.expm1(-weights * high))


def _expected(inclusion: NDArray[np.float64], tokens: Number) -> Number:
    # Grids repeat few distinct token counts, so each is worked out once.
    distinct, where = np.unique(np.asarray(tokens, dtype=float), return_inverse=True)
    found = np.array([np.sum(1.0 - (1.0 - inclusion) ** count) for count in distinct])
    return float(found[0]) if np.ndim(tokens) == 0 else found[where].reshape(np.shape(tokens))
