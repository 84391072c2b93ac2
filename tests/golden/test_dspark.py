"""DSpark (https://arxiv.org/abs/2607.05147, https://github.com/deepseek-ai/DeepSpec)."""

from __future__ import annotations

import numpy as np
import pytest

from rooflines.speculation.acceptance import Acceptance
from rooflines.speculation.acceptance_text import parse_acceptance
from rooflines.speculation.verify_length import StepTable, choose_verify_lengths

# Figure 2 (digitised): conditional acceptance c_1..c_7 of Qwen3-4B, and table 1's accepted lengths (bonus token
# included, footnote 3) of the three benchmarks whose mean the curve is.
FIGURE_2_AND_TABLE_1 = {
    "DFlash math": ([0.885, 0.827, 0.8198, 0.8338, 0.8414, 0.839, 0.8277], [5.40, 4.85, 4.15]),
    "DFlash code": ([0.8654, 0.8145, 0.7971, 0.8013, 0.8098, 0.8014, 0.777], [4.40, 4.74, 4.18]),
    "DFlash chat": ([0.7181, 0.6479, 0.6382, 0.6606, 0.682, 0.6919, 0.6877], [3.07, 2.96, 2.83]),
    "Eagle3 math": ([0.8106, 0.8231, 0.8382, 0.8442, 0.8508, 0.8557, 0.8502], [5.14, 4.62, 3.92]),
    "Eagle3 code": ([0.771, 0.7737, 0.7812, 0.7913, 0.787, 0.7939, 0.784], [3.69, 4.16, 3.77]),
    "Eagle3 chat": ([0.5336, 0.5894, 0.6421, 0.6782, 0.7086, 0.7289, 0.7325], [2.39, 2.26, 2.55]),
    "DSpark math": ([0.9053, 0.8899, 0.8878, 0.8854, 0.8872, 0.8906, 0.8824], [6.11, 5.70, 4.89]),
    "DSpark code": ([0.8857, 0.8719, 0.8598, 0.8608, 0.8579, 0.8594, 0.851], [5.13, 5.38, 4.86]),
    "DSpark chat": ([0.7353, 0.7376, 0.7402, 0.7441, 0.7583, 0.7656, 0.7609], [3.64, 3.54, 3.29]),
}


@pytest.mark.parametrize("series", FIGURE_2_AND_TABLE_1)
def test_table_1_follows_from_figure_2(series):
    rates, lengths = FIGURE_2_AND_TABLE_1[series]
    ours = Acceptance.conditional_rates(rates).tokens_per_cycle(7)
    assert ours == pytest.approx(np.mean(lengths), rel=0.008)


def test_a_constant_of_the_mean_rate_misses_by_up_to_18_percent():
    errors = {}
    for series, (rates, lengths) in FIGURE_2_AND_TABLE_1.items():
        errors[series] = Acceptance.constant(np.mean(rates)).tokens_per_cycle(7) / np.mean(lengths) - 1
    assert errors.pop("Eagle3 chat") == pytest.approx(0.179, abs=0.002)
    assert min(errors.values()) == pytest.approx(-0.036, abs=0.002)
    assert max(errors.values()) == pytest.approx(0.028, abs=0.002)


# Figure 5, acceptance rate in % at threshold 0, against table 1's tau / 8: the rate counts the bonus token.
@pytest.mark.parametrize(("percent", "tau"), [(76.9, 6.11), (67.6, 5.38), (45.7, 3.64)])
def test_figure_5s_acceptance_rate_is_tau_per_verified_position(percent, tau):
    read = parse_acceptance(f"tau-per-width:{percent / 100}@7")
    assert read.tokens_per_cycle(7) == pytest.approx(tau, rel=0.008)


# Appendix A: SPS(1, 2, 3) = 1.0, 0.5, 0.45.
APPENDIX_A = StepTable(positions=(1, 2, 3), steps_per_s=(1.0, 0.5, 0.45))


def survival_of(*rates):
    return Acceptance.conditional_rates(list(rates)).survival_profile(len(rates))[None, :]


def test_appendix_a_early_stop_verifies_nothing():
    choice = choose_verify_lengths(survival_of(0.8, 0.9), APPENDIX_A, stop_early=True)
    assert choice.lengths.tolist() == [0]
    assert choice.tokens_per_s == pytest.approx(1.0)


def test_appendix_a_global_search_verifies_both():
    choice = choose_verify_lengths(survival_of(0.8, 0.9), APPENDIX_A, stop_early=False)
    assert choice.lengths.tolist() == [2]
    assert choice.batch_tokens == 3
    assert choice.tokens_per_s == pytest.approx(1.134)


def test_appendix_a_a_later_confidence_changes_whether_the_first_token_is_verified():
    # Which is why the global search is not lossless: c_2 depends on the sampled first token.
    choice = choose_verify_lengths(survival_of(0.8, 0.0), APPENDIX_A, stop_early=False)
    assert choice.lengths.tolist() == [0]


def test_appendix_a_biased_output_of_a_global_search():
    # Draft token A or B with target probabilities 0.7 and 0.3. The first draft is verified only where its
    # second position looks good, which is after A; so A is kept as drafted there, and otherwise resampled.
    target = {"A": 0.7, "B": 0.3}
    draft = {"A": 0.5, "B": 0.5}
    output = dict.fromkeys(target, 0.0)
    for token, second in (("A", 0.9), ("B", 0.0)):
        verified = (
            choose_verify_lengths(survival_of(0.8, second), APPENDIX_A, stop_early=False).lengths[0] > 0
        )
        if verified:  # accepted with min(1, p / q) = 1 for A
            assert min(1.0, target[token] / draft[token]) == 1.0
            output[token] += draft[token]
        else:
            for emitted, share in target.items():
                output[emitted] += draft[token] * share
    assert output == pytest.approx({"A": 0.85, "B": 0.15})
    assert sum(min(draft[t], target[t]) for t in draft) == pytest.approx(0.8)  # the c_1 of the appendix
