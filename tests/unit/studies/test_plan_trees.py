from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rooflines.speculation.acceptance_text import parse_branches
from rooflines.speculation.branches import BranchAcceptance
from rooflines.speculation.cycle import cycle, cycle_times
from rooflines.speculation.drafters.registry import make_drafter
from rooflines.speculation.tree_growth import TreeGrowth
from rooflines.speculation.tree_search import sequoia_table
from rooflines.studies.plan import PlanQuestion, make_plan
from rooflines.studies.plan_trees import nested_yields
from rooflines.studies.serve import make_deployment, make_machine

VECTOR = (0.6, 0.2, 0.1)
QUESTION = PlanQuestion(
    hardware="h100-sxm5-80gb",
    target="llama-3.1-8b",
    drafters=("eagle3:topk=3,nodes=16",),
    acceptance="sequoia:0.6,0.2,0.1",
    draft_lengths=(1, 2, 3, 4),
    batches=(1, 8, 64),
    context=1024,
    calibration="textbook",
    best_tree=True,
)


def test_the_yields_of_all_sizes_are_those_of_each_alone():
    branches = BranchAcceptance.positional(VECTOR)
    together = nested_yields(TreeGrowth(3, 40), branches, 4)
    assert together[0] == 1.0
    for nodes in (1, 2, 7, 25, 40):
        alone = TreeGrowth(3, nodes).tokens_per_cycle(branches, 4)
        assert together[nodes] == pytest.approx(float(alone))


def test_they_are_sequoias_where_the_width_does_not_bind():
    """https://arxiv.org/abs/2402.12374: G(n, d) with the root among the n."""
    together = nested_yields(TreeGrowth(30, 20), BranchAcceptance.positional(VECTOR), 3)
    table = sequoia_table(VECTOR, verify_width=21, depth=3).best_tokens()
    assert together == pytest.approx(table[1:, 3])


def test_nodes_without_a_rate_add_nothing():
    together = nested_yields(TreeGrowth(4, 30), parse_branches("medusa:0.6,0.1;0.5"), 5)
    assert together[4:] == pytest.approx(np.full(27, together[4]))


def test_no_tree_of_the_same_width_is_faster():
    """Against the cycle of every size and depth."""
    target = make_deployment("llama-3.1-8b", make_machine("h100-sxm5-80gb", "textbook"))
    rates = BranchAcceptance.positional(VECTOR)
    for best in make_plan(QUESTION).best_trees:
        found = {}
        for nodes in range(1, 80):
            drafter = make_drafter(f"eagle3:topk=3,nodes={nodes}", target)
            times = cycle_times(target, drafter, float(best["batch"]), 1024.0, np.array([1.0, 2.0, 3.0, 4.0]))
            for depth, speedup in enumerate(np.asarray(cycle(times, rates).speedup), start=1):
                if times.draft.tree.verified_nodes(depth) == nodes:
                    found[nodes, depth] = float(speedup)
        assert best["speedup"] == pytest.approx(max(found.values()), rel=1e-9)
        assert found[best["nodes"], best["draft_length"]] == pytest.approx(best["speedup"], rel=1e-9)


def test_its_own_numbers_agree():
    for best in make_plan(QUESTION).best_trees:
        assert best["speedup"] == pytest.approx(best["tokens_per_cycle"] / best["cycle_cost"])
        assert sum(best["widths"]) == best["nodes"]
        assert len(best["widths"]) <= best["draft_length"]


def test_trees_shrink_as_the_batch_grows():
    sizes = [best["nodes"] for best in make_plan(QUESTION).best_trees]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] > 4 * sizes[-1]


def test_host_time_of_a_cycle_favours_larger_trees():
    plain = make_plan(QUESTION).best_trees
    slow = make_plan(replace(QUESTION, cycle_overhead="5 ms")).best_trees
    assert all(
        one["tokens_per_cycle"] <= other["tokens_per_cycle"] for one, other in zip(plain, slow, strict=True)
    )
    assert sum(one["nodes"] for one in slow) > sum(one["nodes"] for one in plain)


def test_chains_and_unknown_guesses_have_no_best_tree():
    assert make_plan(replace(QUESTION, drafters=("eagle3",))).best_trees == []
    unknown = make_plan(replace(QUESTION, acceptance="0.7"))
    assert unknown.best_trees == []
    assert any("second guesses" in note for note in unknown.warnings)
    assert make_plan(replace(QUESTION, best_tree=False)).best_trees == []


TALL = replace(QUESTION, drafters=("eagle3:topk=10,nodes=59",), draft_lengths=(6,), batches=(1, 32))


def test_the_best_tree_is_what_is_recommended():
    """Where the drafter's own tree loses at a batch, a smaller one may pay."""
    own, best = make_plan(replace(TALL, best_tree=False)), make_plan(TALL)
    assert not own.recommendation[1]["speculate"]
    for advice, tree in zip(best.recommendation, best.best_trees, strict=True):
        assert advice["speculate"]
        assert advice["speedup"] == tree["speedup"]
        assert advice["verify_width"] == tree["nodes"] + 1.0
        assert f"At batch {tree['batch']} draft 6 deep, {tree['nodes']} nodes" in best.text
    assert best.rows == own.rows
    assert best.crossover_batch is None or best.crossover_batch > own.crossover_batch


def test_the_schedule_takes_best_trees_where_they_gain():
    best = make_plan(TALL)
    at = {
        tree["batch"]: next(
            entry for entry in best.schedule if entry["first_batch"] <= tree["batch"] <= entry["last_batch"]
        )
        for tree in best.best_trees
    }
    for tree in best.best_trees:
        assert at[tree["batch"]]["draft_length"] == 6
        assert at[tree["batch"]]["speedup"] <= tree["speedup"] * (1 + 1e-9)
    assert at[32]["verify_width"] < at[1]["verify_width"]
    widths = [entry["verify_width"] for entry in best.schedule]
    assert widths == sorted(widths, reverse=True)


def test_a_best_tree_is_a_row_of_the_plan_with_its_nodes():
    best = make_plan(TALL)
    for tree in best.best_trees:
        assert set(tree) == {*best.rows[0], "nodes", "widths"}


def test_where_trees_pay_is_searched_whatever_batches_were_asked_for():
    few, many = make_plan(replace(TALL, batches=(1,))), make_plan(replace(TALL, batches=(1, 48)))
    assert few.crossover_batch == many.crossover_batch
    assert few.schedule[-1]["first_batch"] == pytest.approx(many.schedule[-1]["first_batch"], rel=0.05)
