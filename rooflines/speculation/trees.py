"""Draft trees: their shape, what verifying them takes, and how many tokens they yield.

A tree holds the drafted nodes; its root is the last token already emitted, which every verify pass carries
along. So n = nodes + 1 positions are verified, and tau = 1 + sum over nodes of the product of acceptances
along the path from the root: Medusa's expected length (https://arxiv.org/abs/2401.10774) and
Sequoia's F(T) (https://arxiv.org/abs/2402.12374), which counts the root as the 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Self

import numpy as np
from numpy.typing import NDArray

from rooflines.errors import InputError
from rooflines.speculation.acceptance import whole_number
from rooflines.speculation.branches import BranchAcceptance

ROOT = -1


@dataclass(frozen=True, slots=True)
class DraftTree:
    """Drafted nodes, each after its parent.

    Attributes:
        parents: index of each node's parent, `ROOT` (-1) for a child of the root.
        ranks: which guess of its parent's candidates the node is, 0 the best; unlike among siblings.
    """

    parents: tuple[int, ...]
    ranks: tuple[int, ...]

    def __post_init__(self) -> None:
        if len(self.parents) != len(self.ranks):
            raise InputError(
                f"{len(self.parents)} parents and {len(self.ranks)} ranks: give one of each a node"
            )
        for node, (parent, rank) in enumerate(zip(self.parents, self.ranks, strict=True)):
            if not ROOT <= parent < node:
                raise InputError(
                    f"node {node} has parent {parent}: a parent comes earlier, or is {ROOT}, the root"
                )
            if rank < 0:
                raise InputError(f"node {node} has rank {rank}: ranks count from 0, the best guess")
        if len(set(zip(self.parents, self.ranks, strict=True))) != self.nodes:
            raise InputError("two siblings have the same rank: they would be the same token")

    @classmethod
    def chain(cls, draft_length: int) -> Self:
        """One node after another: the tree without branches."""
        length = int(whole_number(draft_length, "draft length"))
        return cls(tuple(range(ROOT, length - 1)), (0,) * length)

    @classmethod
    def from_paths(cls, paths: Iterable[Sequence[int]]) -> Self:
        """A static tree as Medusa and EAGLE-1 list it ("choices"): each node as the ranks along its path.

        Args:
            paths: in any order; a node's parent must be among them.

        Raises:
            InputError: a parent is missing, a path is empty or comes twice.
        """
        ordered = sorted((tuple(path) for path in paths), key=lambda path: (len(path), path))
        index = {path: node for node, path in enumerate(ordered)}
        if len(index) != len(ordered) or () in index:
            raise InputError("a path of the tree is empty or comes twice")
        missing = [path for path in ordered if path[:-1] and path[:-1] not in index]
        if missing:
            raise InputError(f"path {list(missing[0])} lacks its parent {list(missing[0][:-1])}")
        return cls(
            tuple(index[path[:-1]] if path[:-1] else ROOT for path in ordered),
            tuple(path[-1] for path in ordered),
        )

    @classmethod
    def cartesian(cls, widths: Sequence[int]) -> Self:
        """Medusa's dense tree: the top-s_k guesses of head k under every node of depth k - 1.

        It has sum over k of s_1 s_2 ... s_k nodes (Medusa, https://arxiv.org/abs/2401.10774).

        Args:
            widths: s_1, s_2, ...
        """
        for width in widths:
            whole_number(width, "tree width", least=1)
        ranges = [range(width) for width in widths]
        return cls.from_paths(
            path for depth in range(1, len(ranges) + 1) for path in product(*ranges[:depth])
        )

    @property
    def nodes(self) -> int:
        """Drafted tokens."""
        return len(self.parents)

    @property
    def verify_width(self) -> int:
        """Positions n of the verify pass: nodes and root."""
        return self.nodes + 1

    @property
    def depths(self) -> tuple[int, ...]:
        """Depth of each node; children of the root have 1."""
        depths: list[int] = []
        for parent in self.parents:
            depths.append(1 if parent == ROOT else depths[parent] + 1)
        return tuple(depths)

    @property
    def depth(self) -> int:
        """Most tokens one cycle can accept, and the steps of an autoregressive drafter; 0 without nodes."""
        return max(self.depths, default=0)

    @property
    def ancestors(self) -> int:
        """Query-key pairs among the verified positions, each seeing itself, its ancestors and the root.

        The sum of node depths with the root at depth 1: n (n + 1) / 2 for a chain.
        """
        return 1 + sum(depth + 1 for depth in self.depths)

    @property
    def widths(self) -> tuple[int, ...]:
        """Nodes at depth 1, 2, ...: positions each drafting step decides."""
        counts = np.bincount(np.asarray(self.depths, dtype=np.int64), minlength=1)
        return tuple(counts[1:].tolist())

    @property
    def paths(self) -> tuple[tuple[int, ...], ...]:
        """The ranks along each node's path: the inverse of `from_paths`."""
        paths: list[tuple[int, ...]] = []
        for parent, rank in zip(self.parents, self.ranks, strict=True):
            paths.append((*(paths[parent] if parent != ROOT else ()), rank))
        return tuple(paths)

    def conditional_rates(self, branches: BranchAcceptance) -> NDArray[np.float64]:
        """Acceptance of each node given its parent's; shape (nodes,).

        Raises:
            InputError: the tree has a node for which no rate is known.
        """
        rates = [branches.rate(depth, rank) for depth, rank in zip(self.depths, self.ranks, strict=True)]
        return np.asarray(rates, dtype=float)

    def path_products(self, rates: NDArray[np.float64]) -> NDArray[np.float64]:
        """Probability that each node is accepted, f(v): the product of rates along its path.

        Args:
            rates: acceptance of each node given its parent's; shape (..., nodes).

        Raises:
            InputError: wrong length, no probabilities, or siblings whose rates exceed 1 together.
        """
        given = np.asarray(rates, dtype=float)
        if given.ndim == 0 or given.shape[-1] != self.nodes:
            raise InputError(
                f"{self.nodes} nodes need {self.nodes} rates along the last axis, not {given.shape}"
            )
        if not np.all((given >= 0) & (given <= 1)):
            raise InputError("acceptance of a tree node lies outside 0..1")
        families = np.zeros((*given.shape[:-1], self.nodes + 1))
        products = np.empty_like(given)
        for node, parent in enumerate(self.parents):
            families[..., parent] += given[..., node]
            above = products[..., parent] if parent != ROOT else 1.0
            products[..., node] = above * given[..., node]
        if np.any(families > 1.0 + 1e-3):  # rounding of printed rates
            raise InputError("rates of siblings sum to more than 1, yet only one of them can be accepted")
        return products

    def tokens_per_cycle(self, branches: BranchAcceptance) -> float:
        """Tokens a cycle emits, the target's own included: tau = 1 + sum of the path products."""
        return float(1.0 + np.sum(self.path_products(self.conditional_rates(branches))))
