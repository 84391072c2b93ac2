"""Medusa (https://arxiv.org/abs/2401.10774): trees, heads and the acceleration law."""

from __future__ import annotations

import numpy as np
import pytest

from rooflines.speculation.acceptance_presets import acceptance_preset
from rooflines.speculation.branches import BranchAcceptance
from rooflines.speculation.closed_form import speedup
from rooflines.speculation.tree_search import greedy_tree
from rooflines.speculation.trees import DraftTree

# medusa/model/medusa_choices.py, mc_sim_7b_63: the sparse tree of Vicuna-7B in the order it was grown
# (https://github.com/FasterDecoding/Medusa). Digits are ranks along the path.
MC_SIM_7B_63 = [
    "0",
    "00",
    "1",
    "01",
    "2",
    "000",
    "10",
    "02",
    "3",
    "03",
    "4",
    "04",
    "20",
    "05",
    "001",
    "5",
    "06",
    "6",
    "07",
    "010",
    "11",
    "7",
    "08",
    "002",
    "30",
    "09",
    "8",
    "9",
    "100",
    "020",
    "12",
    "003",
    "40",
    "21",
    "004",
    "005",
    "0000",
    "011",
    "006",
    "030",
    "50",
    "13",
    "007",
    "008",
    "009",
    "60",
    "040",
    "14",
    "70",
    "012",
    "200",
    "31",
    "22",
    "80",
    "050",
    "15",
    "101",
    "021",
    "90",
    "060",
    "0001",
    "16",
    "070",
]


def paths():
    return [tuple(int(rank) for rank in path) for path in MC_SIM_7B_63]


def test_the_63_node_tree():
    tree = DraftTree.from_paths(paths())
    assert (tree.nodes, tree.verify_width, tree.depth) == (63, 64, 4)
    assert sum(tree.widths) == 63
    assert set(tree.paths) == set(paths())
    # The root sees itself; a node at depth d sees d + 1 positions.
    assert tree.ancestors == 1 + sum(len(path) + 1 for path in paths())


def test_greedy_growth_repeats_the_published_order():
    # From the published head accuracies (assets/medusa_acc.csv) of the same model, an earlier training run: the
    # first 11 nodes come in exactly the published order.
    branches = acceptance_preset("medusa-vicuna-7b").branches()
    grown = []
    for nodes in range(1, 12):
        grown.extend(set(greedy_tree(branches, nodes).paths) - set(grown))
    assert grown == paths()[:11]


def test_expected_length_is_one_plus_the_sum_of_path_products():
    branches = BranchAcceptance.heads([(0.6, 0.2), (0.4, 0.1)])
    tree = DraftTree.from_paths([(0,), (1,), (0, 0), (1, 1)])
    assert tree.tokens_per_cycle(branches) == pytest.approx(1 + 0.6 + 0.2 + 0.6 * 0.4 + 0.2 * 0.1)


@pytest.mark.parametrize(("widths", "nodes"), [((2, 3), 8), ((1,) * 4, 4), ((4, 4, 2), 4 + 16 + 32)])
def test_cartesian_tree_has_sum_of_products_nodes(widths, nodes):
    # Nodes = sum over k of prod over i <= k of s_i.
    tree = DraftTree.cartesian(widths)
    assert tree.nodes == nodes == sum(np.cumprod(widths))
    assert tree.widths == tuple(np.cumprod(widths))


# Table 1 (Medusa-2 on MT-Bench): acceleration rate, overhead, speedup as printed.
@pytest.mark.parametrize(
    ("acceleration", "overhead", "printed"), [(3.14, 1.18, 2.66), (3.51, 1.23, 2.83), (3.01, 1.27, 2.35)]
)
def test_speedup_is_acceleration_rate_over_overhead(acceleration, overhead, printed):
    # Section 7.1; the printed overhead has three digits, hence 1 %.
    assert speedup(acceleration, overhead) == pytest.approx(printed, rel=0.01)
