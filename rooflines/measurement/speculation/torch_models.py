"""Models of the loop on torch; importing this module imports torch (extra ``[measure]``)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from rooflines.errors import InputError
from rooflines.measurement.runner import Cache, Runner
from rooflines.measurement.speculation.rejection import Tokens


@dataclass(frozen=True, slots=True)
class TorchLogits:
    """Logits, shape [n, V], wherever torch has them."""

    rows: torch.Tensor

    def first_choices(self) -> Tokens:
        """The most likely token of each position; of equal ones the first. Waits for the device."""
        choices: Tokens = self.rows.argmax(dim=-1).cpu().numpy()
        return choices

    def array(self) -> NDArray[np.float32]:
        """All logits as numpy's."""
        values: NDArray[np.float32] = self.rows.float().cpu().numpy()
        return values


@dataclass(frozen=True, slots=True)
class TorchModel:
    """A runner as the loop wants it: one sequence, numpy tokens.

    Attributes:
        runner: what computes.
        exit_after: layers to run before the head; None for all.
    """

    runner: Runner
    exit_after: int | None = None

    @property
    def depth(self) -> int:
        """Layers that run."""
        return self.runner.depth if self.exit_after is None else self.exit_after

    def new_cache(self, positions: int) -> Cache:
        """An empty cache with room for `positions`."""
        cache: Cache = self.runner.new_cache(1, positions)
        return cache

    def forward(self, tokens: Tokens, cache: Any) -> TorchLogits:  # noqa: ANN401 - each runner has its own cache
        """Append tokens, shape [n], and answer for each of them."""
        batch = torch.as_tensor(tokens, device=self.runner.device)[None]
        return TorchLogits(self.runner.forward(batch, cache, depth=self.exit_after)[0])


@dataclass(slots=True)
class TorchModels:
    """The models that drafters are made of; each is made once.

    Attributes:
        target: what runs the target.
        group_size: inputs that share a scale in the int4 copy.
        load: makes the runner of an independent drafter.
    """

    target: Runner
    group_size: int
    load: Callable[[str], Runner]
    _copy: TorchModel | None = None
    _others: dict[str, TorchModel] = field(default_factory=dict)

    @property
    def layers(self) -> int:
        """Layers of the target."""
        return self.target.depth

    def int4_copy(self) -> TorchModel:
        """The target with its linear layers in int4.

        Raises:
            InputError: torch's kernels cannot, or not with this group size.
        """
        if self._copy is None:
            self._copy = TorchModel(self.target.int4_copy(self.group_size))
        return self._copy

    def early_exit(self, layers: int) -> TorchModel:
        """The target cut after so many layers."""
        return TorchModel(self.target, layers)

    def independent(self, name: str) -> TorchModel:
        """Another model.

        Raises:
            InputError: it speaks another vocabulary.
        """
        if name not in self._others:
            other = self.load(name)
            if other.vocabulary != self.target.vocabulary:
                raise InputError(
                    f"drafter {name} has a vocabulary of {other.vocabulary}, the target one of "
                    f"{self.target.vocabulary}: its tokens mean nothing to the target, so take another"
                )
            self._others[name] = TorchModel(other)
        return self._others[name]
