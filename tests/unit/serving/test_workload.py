from __future__ import annotations

import numpy as np
import pytest

from rooflines.errors import InputError
from rooflines.serving.lengths import parse_lengths
from rooflines.serving.workload import Workload


def test_a_constant_workload_by_hand():
    workload = Workload.independent(parse_lengths("1000", "p"), parse_lengths("101", "o"), 0.5)
    assert workload.mean_prompt == 1000.0
    assert workload.mean_output == 101.0
    assert workload.decode_tokens == 100.0
    # Steps see 1000, 1001, ..., 1099 cached positions.
    assert workload.mean_context == pytest.approx(np.arange(1000, 1100).mean())
    assert workload.longest == 1101.0
    assert workload.prefix_hit == 0.5


def test_long_outputs_count_by_the_steps_they_stay():
    workload = Workload(np.array([100.0, 1000.0]), np.array([11.0, 91.0]), np.array([0.5, 0.5]))
    contexts = np.concatenate([np.arange(100, 110), np.arange(1000, 1090)])
    assert workload.mean_context == pytest.approx(contexts.mean())
    assert workload.decode_tokens == 50.0


def test_prompts_and_outputs_that_do_not_depend_on_each_other():
    prompts, outputs = parse_lengths("uniform:10..90", "p"), parse_lengths("exponential:40", "o")
    workload = Workload.independent(prompts, outputs)
    assert workload.weights.sum() == pytest.approx(1.0)
    assert workload.mean_prompt == pytest.approx(prompts.mean)
    assert workload.mean_output == pytest.approx(outputs.mean)
    assert workload.prompts.size == prompts.values.size * outputs.values.size


def test_prompts_are_priced_in_few_slices():
    workload = Workload.independent(parse_lengths("lognormal:500,1", "p"), parse_lengths("100", "o"))
    values, weights = workload.prompt_slices()
    assert values.size <= 16
    assert values @ weights == pytest.approx(workload.mean_prompt)


@pytest.mark.parametrize("hit", [-0.1, 1.0, 2.0])
def test_a_cache_cannot_hold_a_whole_prompt(hit):
    with pytest.raises(InputError, match="prefix-cache hit rate"):
        Workload.independent(parse_lengths("10", "p"), parse_lengths("10", "o"), hit)


def test_one_token_out_of_a_prefill_is_no_decoding():
    with pytest.raises(InputError, match="more than one token"):
        Workload.independent(parse_lengths("10", "p"), parse_lengths("1", "o"))
