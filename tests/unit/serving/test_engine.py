from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rooflines.errors import DoesNotFitError, InputError
from rooflines.serving.engine import Engine, most_sequences, step_curve
from rooflines.serving.lengths import parse_lengths
from rooflines.serving.memory import largest_batch
from rooflines.serving.mixed import chunk_extra_s
from rooflines.serving.schedule import parse_schedule
from rooflines.serving.workload import Workload
from rooflines.speculation.acceptance import Acceptance
from rooflines.speculation.cycle import cycle, cycle_times
from rooflines.speculation.drafters.registry import make_drafter
from rooflines.speculation.host import CycleHost
from rooflines.studies.serve import make_deployment, make_machine


@pytest.fixture(scope="module")
def target():
    return make_deployment("llama-3.1-8b", make_machine("h100-sxm5-80gb", "textbook"))


@pytest.fixture(scope="module")
def workload():
    return Workload.independent(parse_lengths("1024", "p"), parse_lengths("256", "o"))


@pytest.fixture(scope="module")
def speculative(target):
    drafter = make_drafter("independent:llama-3.2-1b", target)
    return Engine(
        target, drafter, Acceptance.constant(0.8), parse_schedule("0..6"), cycle_host=CycleHost(cycle_s=1e-3)
    )


def test_plain_steps_are_decode_steps(target, workload):
    curve = step_curve(Engine(target), workload)
    for batch in (1, 7, 256):
        assert curve.step_s[batch] == pytest.approx(
            float(target.decode(float(batch), workload.mean_context).seconds)
        )
    assert curve.step_s[0] == 0.0
    assert np.all(curve.tokens_per_step == 1.0)
    assert np.all(curve.draft_length == 0.0)


def test_an_idle_engine_prefills_alone(target, workload):
    curve = step_curve(Engine(target), workload)
    assert curve.prompt_extra_s[0, 0] == pytest.approx(float(target.prefill(1.0, 1024.0).seconds))
    assert curve.chunk_share[0] == pytest.approx(1024 / 8192)
    # Beside 100 sequences it saves reading the weights.
    assert curve.extra_s[100] < curve.extra_s[0]


def test_long_prompts_come_in_chunks(target):
    workload = Workload.independent(parse_lengths("5000", "p"), parse_lengths("256", "o"))
    curve = step_curve(Engine(target, batched_tokens=2048, max_sequences=64), workload)
    assert curve.chunks[0] == 3
    assert curve.chunk_share[0] == pytest.approx(5000 / 2048)
    alone = [
        target.prefill(1.0, 2048.0, 0.0),
        target.prefill(1.0, 2048.0, 2048.0),
        target.prefill(1.0, 904.0, 4096.0),
    ]
    assert curve.extra_s[0] == pytest.approx(sum(float(chunk.seconds) for chunk in alone))
    # 64 sequences leave less room in a step.
    assert curve.chunk_share[64] == pytest.approx(5000 / (2048 - 64))


def test_a_prefix_in_the_cache_is_attended_to_but_not_computed(target):
    prompts, outputs = parse_lengths("4096", "p"), parse_lengths("256", "o")
    cold, warm = (
        step_curve(Engine(target, max_sequences=16), Workload.independent(prompts, outputs, hit))
        for hit in (0.0, 0.75)
    )
    assert warm.extra_s[0] == pytest.approx(float(target.prefill(1.0, 1024.0, 3072.0).seconds))
    assert warm.extra_s[0] < 0.5 * cold.extra_s[0]
    assert np.array_equal(warm.step_s, cold.step_s)


def test_the_best_draft_length_of_every_batch_is_taken(speculative, workload):
    curve = step_curve(speculative, workload)
    batches = np.array([1.0, 32.0, 256.0])
    for batch in batches:
        times = cycle_times(
            speculative.target,
            speculative.drafter,
            batch,
            workload.mean_context,
            np.arange(7.0),
            overhead_s=1e-3,
        )
        outcome = cycle(times, speculative.acceptance)
        rates = outcome.tokens_per_cycle / outcome.cycle_s
        best = int(np.argmax(rates))
        assert curve.draft_length[int(batch)] == best
        assert curve.tokens_per_step[int(batch)] / curve.step_s[int(batch)] == pytest.approx(rates[best])
    assert curve.draft_length[256] < curve.draft_length[1]


def test_a_schedule_is_followed(speculative, workload):
    curve = step_curve(replace(speculative, schedule=parse_schedule("5@8,1@20,0")), workload)
    assert curve.draft_length[[1, 8, 9, 20, 21, 256]].tolist() == [5, 5, 1, 1, 0, 0]
    plain = step_curve(Engine(speculative.target), workload)
    assert curve.step_s[100] == pytest.approx(plain.step_s[100])


def test_prefill_elsewhere_leaves_the_steps_alone(target, workload):
    curve = step_curve(Engine(target, prefill_apart=True), workload)
    assert not curve.prompt_extra_s.any()
    assert not curve.prompt_s.any()


def test_memory_bounds_the_sequences(target):
    workload = Workload.independent(parse_lengths("20000", "p"), parse_lengths("2000", "o"))
    assert (
        most_sequences(Engine(target), workload) == largest_batch(target, None, workload.mean_context) < 256
    )
    assert most_sequences(Engine(target, max_sequences=4), workload) == 4


def test_one_request_that_does_not_fit_is_refused(target):
    workload = Workload.independent(parse_lengths("900000", "p"), parse_lengths("2000", "o"))
    with pytest.raises(DoesNotFitError, match="use more devices"):
        step_curve(Engine(target), workload)


def test_a_step_must_leave_room_for_prompts(target, workload):
    with pytest.raises(InputError, match="no prompt can start"):
        step_curve(Engine(target, batched_tokens=128, max_sequences=256), workload)


@pytest.mark.parametrize(
    "changes", [{"max_sequences": 0}, {"batched_tokens": 0}, {"schedule": parse_schedule("3")}]
)
def test_impossible_engines_are_refused(target, changes):
    with pytest.raises(InputError):
        Engine(target, **changes)


def test_a_drafter_needs_its_acceptance(target):
    with pytest.raises(InputError, match="how often drafts are accepted"):
        Engine(target, make_drafter("independent:llama-3.2-1b", target))


def test_a_tree_holds_all_its_nodes(target, workload):
    drafter = make_drafter("eagle3:depth=6,topk=10,nodes=59", target)
    tree = Engine(
        target,
        drafter,
        Acceptance.constant(0.8),
        parse_schedule("6"),
        max_sequences=10**6,
        batched_tokens=10**9,
    )
    chain = Engine(
        target,
        make_drafter("eagle3", target),
        Acceptance.constant(0.8),
        parse_schedule("6"),
        max_sequences=10**6,
    )
    assert most_sequences(tree, workload) < most_sequences(chain, workload)


def test_a_drafter_fills_its_own_cache_with_each_prompt(target, speculative, workload):
    plain, drafting = step_curve(Engine(target), workload), step_curve(speculative, workload)
    own_s = float(speculative.drafter.prefill(1024.0, 0.0))
    assert own_s == pytest.approx(float(speculative.drafter.deployment.prefill(1.0, 1024.0).seconds))
    assert drafting.prompt_extra_s[0, 0] == pytest.approx(plain.prompt_extra_s[0, 0] + own_s)


def test_an_engine_that_does_not_draft_does_not_fill_the_drafters_cache(target, workload):
    drafter = make_drafter("independent:llama-3.2-1b", target)
    off = Engine(target, drafter, Acceptance.constant(0.8), parse_schedule("4@8,0"))
    # Both hold the same number of sequences in the rows compared; the last probed batches decode plainly.
    plain, curve = step_curve(Engine(target), workload), step_curve(off, workload)
    assert curve.draft_length[200] == 0.0
    assert curve.prompt_extra_s[curve.max_sequences, 0] == pytest.approx(
        plain.prompt_extra_s[curve.max_sequences, 0]
    )


def test_lookups_leave_room_for_prompts_where_they_find_nothing(target, workload):
    def extra(hit):
        drafter = make_drafter(f"ngram:hit={hit}", target)
        engine = Engine(target, drafter, Acceptance.constant(0.5), parse_schedule("7"), batched_tokens=2048)
        return step_curve(engine, workload)

    # 256 sequences of 8 positions would fill all 2048; with a tenth of them only 435 are taken.
    assert extra(0.1).chunks[256] == 1
    with pytest.raises(InputError, match="no prompt can start"):
        extra(1.0)


@pytest.mark.parametrize(
    ("name", "schedule"),
    [
        ("independent:llama-3.2-1b", "5@8,0"),
        ("eagle3:depth=6,topk=10,nodes=59", "6@8,0"),
        ("ngram:hit=0.4", "7"),
    ],
)
def test_prompts_of_all_kinds_are_priced_at_all_batches_as_one_by_one(target, name, schedule):
    workload = Workload(np.array([300.0, 2500.0]), np.array([64.0, 64.0]), np.array([0.5, 0.5]), 0.1)
    drafter = make_drafter(name, target)
    engine = Engine(
        target,
        drafter,
        Acceptance.constant(0.7),
        parse_schedule(schedule),
        max_sequences=32,
        batched_tokens=1024,
    )
    curve, context = step_curve(engine, workload), workload.mean_context
    for batch in (1, 3, 32):  # of those that are priced; others lie between them
        length = curve.draft_length[batch]
        draft = drafter.draft(float(batch), context, length)
        width = float(np.asarray(draft.sent_width()))
        step = target.verify(float(batch), context, width, draft.ancestors if length else None)
        room = 1024 - batch * width
        for kind, cached, end in ((0, 30.0, 300.0), (1, 250.0, 2500.0)):
            expected, place, chunks = 0.0, cached, 0
            while place < end:
                size = min(end - place, room)
                expected += float(chunk_extra_s(step, target.prefill(1.0, size, place), target.machine))
                expected += float(np.asarray(drafter.prefill(size, place))) if length else 0.0
                place, chunks = place + size, chunks + 1
            assert curve.prompt_chunks[batch, kind] == chunks
            assert curve.prompt_extra_s[batch, kind] == pytest.approx(expected, rel=1e-9)
