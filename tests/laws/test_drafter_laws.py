"""What must hold of every family of drafters, for dense, grouped, sparse, latent and hybrid targets."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rooflines.speculation.acceptance import Acceptance
from rooflines.speculation.cycle import cycle, cycle_times
from rooflines.speculation.drafters.registry import make_drafter
from rooflines.studies.serve import make_deployment, make_machine

TARGETS = {
    "llama-3.1-8b": 1,
    "vicuna-13b-v1.3": 1,
    "mixtral-8x7b-v0.1": 2,
    "deepseek-v3": 8,
    "gpt-oss-20b": 1,
    "gemma-3-12b": 1,
    "qwen3-next-80b-a3b": 2,
    "nvidia-nemotron-3-nano-30b-a3b": 1,
}
FAMILIES = (
    "medusa",
    "eagle",
    "eagle2",
    "eagle3",
    "eagle3:topk=4,nodes=15",
    "dflash",
    "dspark",
    "mtp",
    "ngram:host=10us",
    "layerskip:layers=3",
    "quantized:int4-g128",
    "sparse-kv:window=128",
)
LONGEST = 5  # that every family drafts
laws = settings(max_examples=60, deadline=None)


@cache
def pair(target, family):
    machine = make_machine("h200-sxm-141gb", "none")
    served = make_deployment(target, machine, tensor=TARGETS[target])
    return served, make_drafter(family, served)


pairs = st.tuples(st.sampled_from(sorted(TARGETS)), st.sampled_from(FAMILIES))
batches = st.integers(1, 256).map(float)
contexts = st.integers(1, 16384).map(float)
lengths = st.integers(1, LONGEST).map(float)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("target", TARGETS)
def test_every_family_drafts_for_every_target(target, family):
    served, drafter = pair(target, family)
    lengths = np.asarray(drafter.draft_lengths((1, 2, 4)), dtype=float)
    outcome = cycle(cycle_times(served, drafter, 4.0, 1024.0, lengths), Acceptance.constant(0.7))
    assert np.all(np.isfinite(outcome.speedup))
    assert np.all(np.asarray(outcome.draft_s) > 0)
    assert drafter.weight_bytes() >= 0
    assert float(drafter.kv_cache_bytes(1.0, 1024.0)) >= 0


@laws
@given(pairs, batches, contexts)
def test_nothing_drafted_is_plain_decoding(names, batch, context):
    outcome = cycle(cycle_times(*pair(*names), batch, context, 0.0), Acceptance.constant(0.6))
    assert outcome.draft_s == 0
    assert outcome.speedup == pytest.approx(1.0)


@laws
@given(pairs, batches, contexts, st.integers(1, LONGEST - 1).map(float))
def test_a_longer_draft_never_costs_less(names, batch, context, length):
    _, drafter = pair(*names)
    short, long = (drafter.draft(batch, context, n) for n in (length, length + 1))
    assert float(long.seconds) >= float(short.seconds) * (1 - 1e-9)
    assert float(long.verify_width) >= float(short.verify_width)


@laws
@given(pairs, st.integers(1, 255).map(float), contexts, lengths)
def test_a_larger_batch_never_costs_less(names, batch, context, length):
    _, drafter = pair(*names)
    fewer, more = (float(drafter.draft(b, context, length).seconds) for b in (batch, batch + 1))
    assert more >= fewer * (1 - 1e-9)


@laws
@given(pairs, batches, contexts, lengths)
def test_a_longer_context_never_costs_less(names, batch, context, length):
    _, drafter = pair(*names)
    near, far = (float(drafter.draft(batch, s, length).seconds) for s in (context, 2 * context))
    assert far >= near * (1 - 1e-9)


@laws
@given(pairs, batches, contexts, lengths)
def test_the_verify_pass_is_one_wider_than_the_draft_or_its_tree(names, batch, context, length):
    _, drafter = pair(*names)
    draft = drafter.draft(batch, context, length)
    nodes = length if draft.tree is None else float(draft.tree.verified_nodes(length))
    assert float(draft.verify_width) == nodes + 1
    assert (draft.ancestors is None) == (draft.tree is None)


@laws
@given(st.sampled_from(sorted(TARGETS)), batches, contexts, lengths)
def test_a_draft_by_a_part_of_the_target_costs_less_than_by_the_whole(target, batch, context, length):
    served, drafter = pair(target, "layerskip:layers=3")
    whole = length * float(served.decode(batch, context + length).seconds)
    assert float(drafter.draft(batch, context, length).seconds) < whole


@laws
@given(batches, contexts, lengths)
def test_a_wider_tree_never_drafts_or_verifies_faster(batch, context, length):
    narrow, wide = (pair("llama-3.1-8b", family)[1] for family in ("eagle3", "eagle3:topk=4,nodes=15"))
    one, other = (drafter.draft(batch, context, length) for drafter in (narrow, wide))
    assert float(other.seconds) >= float(one.seconds) * (1 - 1e-9)
    assert float(other.verify_width) >= float(one.verify_width)


@laws
@given(pairs, batches, contexts)
def test_memory_is_linear_in_the_batch(names, batch, context):
    _, drafter = pair(*names)
    one, many = (float(drafter.kv_cache_bytes(b, context)) for b in (1.0, batch))
    assert many == pytest.approx(batch * one)


@laws
@given(pairs, st.integers(2, 8192).map(float), contexts)
def test_filling_a_drafters_cache_grows_with_the_prompt(names, tokens, context):
    _, drafter = pair(*names)
    more, fewer = (float(np.asarray(drafter.prefill(count, context))) for count in (tokens, tokens / 2))
    assert more >= fewer >= 0.0
    cached = float(drafter.kv_cache_bytes(1.0, 1024.0)) > 0
    assert (more > 0) == cached


@laws
@given(
    st.sampled_from(sorted(TARGETS)), batches, contexts, lengths, st.tuples(st.floats(0, 1), st.floats(0, 1))
)
def test_more_proposals_yield_and_cost_more(target, batch, context, length, hits):
    served, _ = pair(target, "ngram:host=10us")
    low, high = sorted(hits)
    found = [
        cycle(
            cycle_times(served, make_drafter(f"ngram:host=0us,hit={hit!r}", served), batch, context, length),
            Acceptance.constant(0.6),
        )
        for hit in (low, high)
    ]
    assert found[0].tokens_per_cycle <= found[1].tokens_per_cycle * (1 + 1e-12)
    assert float(found[0].verify_s) <= float(found[1].verify_s) * (1 + 1e-9)
    # Between a plain step and a full pass.
    assert float(found[0].target_step_s) <= float(found[0].verify_s) * (1 + 1e-9)
