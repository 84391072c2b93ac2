"""Published per-position acceptance against the accepted lengths printed beside it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from rooflines.speculation.acceptance import Acceptance
from rooflines.speculation.acceptance_fit import fit_acceptance
from rooflines.speculation.acceptance_text import parse_acceptance

# vLLM speculators blog, figure 1 (https://vllm.ai/blog/2026-05-28-speculators-v050): "Pos k" and average length.
SPECULATORS = {
    "HumanEval": ([0.858, 0.721, 0.603, 0.504, 0.418, 0.343, 0.269, 0.196], 4.91),
    "math_reasoning": ([0.887, 0.761, 0.648, 0.549, 0.455, 0.365, 0.288, 0.215], 5.17),
    "qa": ([0.675, 0.410, 0.238, 0.138, 0.081, 0.045, 0.026, 0.013], 2.63),
    "rag": ([0.761, 0.548, 0.398, 0.287, 0.199, 0.129, 0.070, 0.038], 3.43),
    "tool_call": ([0.657, 0.457, 0.316, 0.217, 0.150, 0.096, 0.062, 0.036], 2.99),
}

# MiniMax-M3-EAGLE3 model card (https://huggingface.co/Inferact/MiniMax-M3-EAGLE3): per-position, mean length.
MINIMAX = {
    "MT-Bench": ([0.749, 0.547, 0.402], 2.698),
    "GSM8K": ([0.923, 0.839, 0.756], 3.518),
    "HumanEval": ([0.922, 0.832, 0.744], 3.499),
    "AIME": ([0.889, 0.763, 0.638], 3.291),
}


def as_text(values):
    return ",".join(str(value) for value in values)


@pytest.mark.parametrize("task", SPECULATORS)
def test_vllm_positions_are_survival_and_sum_to_the_printed_length(task):
    positions, printed = SPECULATORS[task]
    ours = parse_acceptance(f"survival:{as_text(positions)}").tokens_per_cycle(8)
    # Half a unit of the printed length and of each of 8 printed positions.
    assert ours == pytest.approx(printed, abs=0.005 + 8 * 0.0005)


@pytest.mark.parametrize("task", MINIMAX)
def test_minimax_positions_are_survival_and_sum_to_the_printed_length(task):
    positions, printed = MINIMAX[task]
    ours = parse_acceptance(f"survival:{as_text(positions)}").tokens_per_cycle(3)
    assert ours == pytest.approx(printed, abs=0.0005 + 3 * 0.0005)


def test_minimax_positions_read_as_conditional_do_not():
    positions, printed = MINIMAX["MT-Bench"]
    assert parse_acceptance(f"conditional:{as_text(positions)}").tokens_per_cycle(3) < 0.9 * printed


def test_minimax_draft_accept_rate_is_accepted_per_drafted():
    # The card prints 56.60 % beside a mean length of 2.698 at 3 drafted tokens.
    assert parse_acceptance("accepted-per-drafted:0.566@3").tokens_per_cycle(3) == pytest.approx(
        2.698, abs=5e-4
    )


def test_vllm_blogs_rounder_minimax_positions_are_0_05_off_their_length():
    # https://vllm.ai/blog/2026-06-12-minimax-m3-vllm prints 76/56/43 % and 2.80: 1 + sum is 2.75.
    assert parse_acceptance("survival:0.76,0.56,0.43").tokens_per_cycle(3) == pytest.approx(2.75)


# llama.cpp pull request 24536 and vLLM issue 48892 state survival and length alike.
def test_llama_cpp_positions_are_survival():
    assert parse_acceptance("survival:0.805,0.632,0.483").tokens_per_cycle(3) == pytest.approx(
        2.92, abs=0.005
    )


# EAGLE (https://arxiv.org/abs/2401.15077) table 2, n-alpha, and the accepted length of chain drafts (temperature 0).
EAGLE_CHAIN = {
    "Vicuna 13B": ([0.79, 0.74, 0.72, 0.74, 0.70], 3.23),
    "Vicuna 33B": ([0.74, 0.69, 0.67, 0.67, 0.66], 2.97),
    "LLaMA2-Chat 7B": ([0.76, 0.69, 0.67, 0.68, 0.68], 3.00),
    "LLaMA2-Chat 13B": ([0.77, 0.69, 0.69, 0.70, 0.71], 3.18),
}


@pytest.mark.parametrize("target", EAGLE_CHAIN)
def test_eagles_n_alpha_gives_its_chain_length_within_3_percent(target):
    # n-alpha conditions on predicted features, which is only nearly "all before were accepted", and the chain's
    # length (5 here) is not stated; hence 3 %.
    rates, printed = EAGLE_CHAIN[target]
    assert parse_acceptance(f"n-alpha:{as_text(rates)}").tokens_per_cycle(5) == pytest.approx(
        printed, rel=0.03
    )


def test_deepseek_v3_mtp_emits_1_85_to_1_90_tokens():
    # https://arxiv.org/abs/2412.19437 section 5.4.3: second-token acceptance 85-90 %, "1.8 times TPS".
    assert [Acceptance.constant(c).tokens_per_cycle(1) for c in (0.85, 0.90)] == pytest.approx([1.85, 1.90])


# SemiAnalysis InferenceX golden acceptance lengths (https://github.com/SemiAnalysisAI/InferenceX), SPEED-Bench
# coding, vLLM on B300, draft lengths 1..8: model -> lengths, worst relative error of a constant to one decimal %.
INFERENCEX = {
    "deepseek-v4-pro MTP on": ([1.79, 2.27, 2.49, 2.54, 2.55, 2.55, 2.54, 2.58], 10.2),
    "deepseek-v4-pro MTP off": ([1.92, 2.61, 2.97, 3.00, 3.10, 3.16, 3.00, 3.11], 14.7),
    "minimax-m3 EAGLE3 on": ([1.78, 2.38, 2.83, 3.11, 3.35, 3.45, 3.53, 3.74], 3.0),
    "qwen3.5-397b MTP on": ([1.93, 2.73, 3.39, 3.97, 4.41, 4.80, 5.04, 5.21], 4.7),
}


@pytest.mark.parametrize("curve", INFERENCEX)
def test_two_parameters_follow_measured_lengths_where_a_constant_does_not(curve):
    lengths, constant_worst = INFERENCEX[curve]
    fit = fit_acceptance(range(1, 9), lengths, "decaying")
    constant = fit_acceptance(range(1, 9), lengths, "constant")
    assert fit.worst_relative_error <= 0.065
    assert fit.worst_relative_error < constant.worst_relative_error
    assert 100 * constant.worst_relative_error == pytest.approx(constant_worst, abs=0.1)
    assert fit.acceptance.is_extrapolated(8) == np.False_
    assert fit.acceptance.is_extrapolated(9) == np.True_


def test_alpha_of_one_drafted_token_overshoots_eight_by_up_to_112_percent():
    # DeepSeek-V4 MTP, thinking off: 1.92 at draft length 1, 3.11 at 8, while alpha = 0.92 would give 6.6.
    overshoot = parse_acceptance("accepted-length:1.92@1").tokens_per_cycle(8)
    assert overshoot == pytest.approx(6.60, abs=0.01)
    assert overshoot / 3.11 - 1 == pytest.approx(1.12, abs=0.005)


def test_every_golden_curve_beside_the_project(reference_data):
    rows = pd.read_csv(reference_data / "acceptance" / "golden_acceptance_length.csv")
    errors = {"decaying": [], "constant": []}
    for _, curve in rows.groupby(["model", "method", "thinking"]):
        for form, worst in errors.items():
            fit = fit_acceptance(curve.gamma.tolist(), curve.acceptance_length_tokens.tolist(), form)
            worst.append(fit.worst_relative_error)
    assert len(errors["decaying"]) >= 7
    assert max(errors["decaying"]) <= 0.065
    assert max(errors["constant"]) > 0.14


def test_every_profile_beside_the_project_gives_its_published_length(reference_data):
    rows = pd.read_csv(reference_data / "acceptance" / "acceptance_profiles.csv")
    rows = rows[rows.definition == "prefix_survival"]
    checked = 0
    for _, profile in rows.groupby(["source_key", "target_model", "task"]):
        positions = profile.sort_values("position").value.tolist()
        ours = parse_acceptance(f"survival:{as_text(positions)}").tokens_per_cycle(len(positions))
        assert ours == pytest.approx(profile.tau_published.iloc[0], abs=0.005 + len(positions) * 0.0005)
        checked += 1
    assert checked >= 15
