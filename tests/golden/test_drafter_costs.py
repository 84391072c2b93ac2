"""Published costs and outcomes of drafting, against prediction from facts alone."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from rooflines.costs.setting import Shape
from rooflines.speculation.acceptance_text import parse_rates
from rooflines.speculation.cycle import cycle, cycle_times
from rooflines.speculation.drafters.registry import make_drafter
from rooflines.studies.serve import make_deployment, make_machine


@cache
def served(hardware, model, calibration="none", tensor=1, overhead="0 s"):
    return make_deployment(model, make_machine(hardware, calibration, overhead), tensor=tensor)


def outcome(target, drafter, acceptance, batch, length, *, context=1024.0, overhead_s=0.0):
    times = cycle_times(
        target,
        make_drafter(drafter, target),
        np.asarray(batch, dtype=float),
        context,
        np.asarray(length, dtype=float),
        overhead_s=overhead_s,
    )
    return cycle(times, parse_rates(acceptance))


class TestDFlashFigure3:
    """arXiv 2602.06036, figure 3 (bars read off, ms): EAGLE-3 7/12/25 for 4/8/16 tokens, DFlash flat at 5-6.

    The reference runs on Transformers, whose host time is most of a pass; ratios between numbers of tokens
    are what the figure shows of the method.
    """

    def test_an_autoregressive_draft_grows_with_its_tokens_and_a_block_does_not(self):
        target = served("h200-sxm-141gb", "qwen3-8b")
        eagle = outcome(target, "eagle3", "0.7", 1, [4, 8, 16]).draft_s
        block = outcome(target, "dflash", "0.7", 1, [3, 7, 15]).draft_s
        assert eagle[1] / eagle[0] == pytest.approx(12 / 7, rel=0.2)
        assert eagle[2] / eagle[1] == pytest.approx(25 / 12, rel=0.2)
        assert block[2] / block[0] == pytest.approx(1.0, abs=0.03)

    def test_with_the_hosts_time_of_one_bar_the_others_follow(self):
        """Host time per pass from EAGLE-3's 25 ms for 16 tokens: 1.4 ms; then 7 and 12 ms follow within 15 %."""
        bare = served("h200-sxm-141gb", "qwen3-8b")
        alone = float(outcome(bare, "eagle3", "0.7", 1, 16).draft_s)
        host_s = (25e-3 - alone) / 16
        slow = served("h200-sxm-141gb", "qwen3-8b", overhead=f"{host_s} s")
        found = outcome(slow, "eagle3", "0.7", 1, [4, 8]).draft_s
        assert found == pytest.approx([7e-3, 12e-3], rel=0.15)
        assert float(outcome(slow, "dflash", "0.7", 1, 15).draft_s) < 6e-3


class TestSpecDecodeBench:
    """https://specdecode-bench.github.io: T = c_kv N_kv + c_tok N + c_fixed, H100, Llama-3.1-8B, vLLM 0.10.1."""

    def test_an_eagle_step_costs_its_kv_and_its_tokens_within_a_factor_of_two(self):
        """c_kv 2.378e-9 s a cached token, c_tok 8.414e-7 s a token of the EAGLE draft."""
        head = make_drafter("eagle3", served("h100-sxm5-80gb", "llama-3.1-8b")).head

        def step(batch, context):
            return float(head.timed(Shape(batch, 1.0, context)).seconds)

        kv = (step(256.0, 4096.0) - step(256.0, 1024.0)) / (256 * 3072)
        token = (step(8192.0, 1.0) - step(4096.0, 1.0)) / 4096
        assert 0.5 <= kv / 2.378e-9 <= 2.0
        assert 0.5 <= token / 8.414e-7 <= 2.0

    def test_the_fixed_time_of_the_fit_covers_three_passes_and_the_host(self):
        """c_fixed 2.135e-3 s with 3 drafted tokens; the rest of it is the host's."""
        target = served("h100-sxm5-80gb", "llama-3.1-8b")
        draft = float(outcome(target, "eagle3", "0.7", 1, 3, context=1.0).draft_s)
        assert 0.3 * 2.135e-3 < draft < 2.135e-3


class TestCostRatioGrowsWithContext:
    """Qwen3-0.6B caches 114,688 bytes a token and Qwen3-8B 147,456 (bf16), so c goes from 0.08 towards 0.78."""

    @pytest.mark.parametrize("batch", [1, 64])
    def test_from_the_ratio_of_weights_to_the_ratio_of_caches(self, batch):
        target = served("h100-sxm5-80gb", "qwen3-8b", "textbook")
        ratios = [
            float(outcome(target, "independent:qwen3-0.6b", "0.0", batch, 4, context=s).cost_ratio)
            for s in (0.0, 1024.0, 8192.0, 65536.0, 1e8)
        ]
        assert ratios[0] == pytest.approx(0.08, abs=0.015)
        assert ratios == sorted(ratios)
        assert ratios[-1] == pytest.approx(114_688 / 147_456, rel=0.005)


class TestEagleFigure1:
    """arXiv 2401.15077, figure 1 and section 4.1: speculative sampling with a draft of the target's family."""

    @pytest.mark.parametrize("alpha", [0.6, 0.7, 0.8])
    @pytest.mark.parametrize("overhead", ["0 s", "25 ms"])
    def test_a_7b_draft_for_13b_hardly_pays(self, alpha, overhead):
        """Printed N/A: no faster than vanilla; on Transformers the host's time weighs equally on both."""
        target = served("a100-sxm-80gb", "vicuna-13b-v1.3", overhead=overhead)
        best = np.max(
            outcome(
                target, "independent:vicuna-7b-v1.3", str(alpha), 1, np.arange(2, 11), context=512.0
            ).speedup
        )
        assert best < (1.2 if overhead == "0 s" else 1.0)

    def test_the_same_draft_for_70b_does(self):
        """Printed 1.88x (draft length swept 2..10); its acceptance is not stated, 0.7 to 0.8 is usual."""
        target = served("a100-sxm-80gb", "llama-2-70b", tensor=4)
        low, high = (
            np.max(
                outcome(target, "independent:llama-2-7b", alpha, 1, np.arange(2, 11), context=512.0).speedup
            )
            for alpha in ("0.7", "0.8")
        )
        assert low < 1.88 < high


class TestDFlashTable5:
    """arXiv 2602.06036, table 5: Llama-3.1-8B on a B200, SGLang Spec-v1 (no overlap of host and device).

    Rows: drafter, tau, draft length, batch, measured speedup; three tasks.
    """

    BLOCK, TREE_60, TREE_10 = (
        "dflash:block=10",
        "eagle3:topk=10,nodes=59",
        "eagle3:topk=10,nodes=9",
    )
    ROWS = (
        (BLOCK, 4.32, 9, 8, 2.1),
        (BLOCK, 4.32, 9, 16, 1.8),
        (BLOCK, 4.32, 9, 32, 1.6),
        (BLOCK, 4.91, 9, 8, 2.5),
        (BLOCK, 4.91, 9, 16, 2.1),
        (BLOCK, 4.91, 9, 32, 1.8),
        (BLOCK, 3.73, 9, 8, 1.8),
        (BLOCK, 3.73, 9, 16, 1.5),
        (BLOCK, 3.73, 9, 32, 1.4),
        (TREE_60, 4.55, 7, 4, 1.6),
        (TREE_60, 4.55, 7, 8, 1.3),
        (TREE_60, 4.65, 7, 4, 1.7),
        (TREE_60, 4.65, 7, 8, 1.3),
        (TREE_60, 4.07, 7, 4, 1.5),
        (TREE_60, 4.07, 7, 8, 1.2),
        (TREE_10, 3.49, 7, 1, 1.6),
        (TREE_10, 3.49, 7, 8, 1.4),
        (TREE_10, 3.62, 7, 1, 2.0),
        (TREE_10, 3.62, 7, 8, 1.8),
        (TREE_10, 3.11, 7, 1, 1.5),
        (TREE_10, 3.11, 7, 8, 1.4),
    )

    def predicted(self, row, overhead_s=0.0):
        drafter, tau, length, batch, _ = row
        target = served("b200", "llama-3.1-8b")
        acceptance = f"accepted-length:{tau}@{length}"
        return float(outcome(target, drafter, acceptance, batch, length, overhead_s=overhead_s).speedup)

    def test_a_tree_of_60_loses_by_concurrency_32_where_a_block_of_10_still_gains(self):
        for tau in (4.55, 4.65, 4.07):
            assert self.predicted((self.TREE_60, tau, 7, 32, None)) < 1.0
        for tau in (4.32, 4.91, 3.73):
            assert self.predicted((self.BLOCK, tau, 9, 32, None)) > 1.4

    def test_without_the_hosts_time_every_row_is_an_upper_bound(self):
        assert all(self.predicted(row) > row[-1] for row in self.ROWS)

    def test_with_the_hosts_time_of_one_row_the_others_follow(self):
        """Bisection on the first row's 2.1x gives the host's time per cycle, about 3 ms; no other is used."""
        low, high = 0.0, 20e-3
        for _ in range(40):
            middle = (low + high) / 2
            low, high = (middle, high) if self.predicted(self.ROWS[0], middle) > 2.1 else (low, middle)
        errors = np.array([self.predicted(row, low) / row[-1] - 1.0 for row in self.ROWS[1:]])
        assert 1e-3 < low < 5e-3
        assert np.median(np.abs(errors)) <= 0.15
        assert np.max(np.abs(errors)) <= 0.25


class TestMagicDec:
    """arXiv 2408.11049 and its page, table 2: with a drafter on a window, the gain grows with the batch.

    LLaMA-2-7B-32K on 8 A100: TinyLlama 1.29/1.57/1.66x at batch 32/64/128 and 8,000 positions, 1.91x at
    32,000; the target itself on a window 1.18/1.48/1.63x.
    """

    @pytest.mark.parametrize(
        "drafter", ["independent:tinyllama-1.1b-v1.0,window=256", "sparse-kv:window=256"]
    )
    def test_the_gain_grows_with_the_batch_at_long_context(self, drafter):
        target = served("a100-sxm-80gb", "llama-2-7b", tensor=8)
        gains = outcome(target, drafter, "0.75", [8, 32, 64, 128], 3, context=8000.0).speedup
        assert np.all(np.diff(gains) > 0)

    def test_and_falls_with_it_at_short_context(self):
        target = served("a100-sxm-80gb", "llama-2-7b")
        gains = outcome(
            target, "independent:tinyllama-1.1b-v1.0", "0.75", [64, 128, 256], 3, context=128.0
        ).speedup
        assert np.all(np.diff(gains) < 0)

    def test_a_window_helps_where_the_drafts_own_cache_would_grow(self):
        target = served("a100-sxm-80gb", "llama-2-7b", tensor=8)
        full, window = (
            outcome(target, f"independent:tinyllama-1.1b-v1.0{more}", "0.75", 64, 3, context=32000.0).speedup
            for more in ("", ",window=256")
        )
        assert window > full


class TestMixturesOfExperts:
    """MoESD (arXiv 2505.19645): gains are largest at medium batches; Cohere's blog (2026-04-21): not monotonic."""

    @pytest.mark.parametrize(
        ("model", "hardware", "tensor"),
        [("gpt-oss-120b", "h100-sxm5-80gb", 1), ("deepseek-v3", "h200-sxm-141gb", 8)],
    )
    def test_small_batches_lose_what_medium_ones_recover(self, model, hardware, tensor):
        target = served(hardware, model, tensor=tensor)
        batches = np.array([1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024])
        gains = np.asarray(outcome(target, "eagle3", "0.7", batches, 3).speedup)
        trough = int(np.argmin(gains[:6]))
        assert trough > 0
        assert gains[trough] < 0.85 * gains[0]
        peak = trough + int(np.argmax(gains[trough:]))
        assert gains[peak] > 1.15 * gains[trough]
        assert gains[-1] < gains[peak]

    def test_a_dense_target_of_the_same_kind_only_falls(self):
        target = served("h100-sxm5-80gb", "llama-3.1-8b")
        gains = outcome(target, "eagle3", "0.7", [1, 4, 16, 64, 128, 256, 512], 3, context=256.0).speedup
        assert np.all(np.diff(gains) < 0.02)

    def test_a_weak_drafter_loses_at_small_batch_and_wins_at_medium(self):
        target = served("h100-sxm5-80gb", "gpt-oss-120b")
        gains = np.asarray(outcome(target, "eagle3", "0.5", [1, 4, 8, 64], 3).speedup)
        assert max(gains[1:3]) < 1.0 < min(gains[0], gains[3])


class TestSpecBundle:
    """Cycle cost kappa = tau / speedup of SGLang with EAGLE-3 heads on H200, mean over seven (480B: two) tasks.

    https://github.com/sgl-project/SpecForge/blob/main/docs/spec_bundle/public/raw_data/data.json; batch 1 for
    8B, else 8. Rows: model, tensor parallelism (not in the data: the smallest that fits), drafter, kappa.
    """

    DENSE = (
        ("llama-3.1-8b", 1, 1, "eagle3:depth=5", 1.49),
        ("llama-3.1-8b", 1, 1, "eagle3:depth=7", 1.63),
        ("llama-3.3-70b", 2, 8, "eagle3:depth=3", 1.24),
        ("llama-3.3-70b", 2, 8, "eagle3:depth=7", 1.41),
        ("llama-3.3-70b", 2, 8, "eagle3:topk=4,nodes=7,depth=7", 1.55),
    )
    EXPERTS = (
        ("qwen3-coder-480b-a35b", 8, 8, "eagle3:depth=3", 1.86),
        ("qwen3-coder-480b-a35b", 8, 8, "eagle3:depth=5", 2.08),
        ("qwen3-coder-480b-a35b", 8, 8, "eagle3:depth=7", 2.22),
        ("kimi-k2", 8, 8, "eagle3:depth=3", 1.98),
        ("kimi-k2", 8, 8, "eagle3:depth=5", 2.31),
        ("kimi-k2", 8, 8, "eagle3:topk=4,nodes=7,depth=7", 2.49),
    )

    HOST_S = 1.4e-3  # a cycle, from the chains of 8B

    def predicted(self, row):
        model, tensor, batch, drafter, _ = row
        target = served("h200-sxm-141gb", model, tensor=tensor)
        length = make_drafter(drafter, target).draft_lengths((1,))[0]
        return float(outcome(target, drafter, "0.7", batch, length).cycle_cost)

    def test_experts_set_the_cost_of_a_cycle_and_are_predicted(self):
        """With the host's time that the chains of 8B show; bare they lack it, as dense cycles do."""
        errors = []
        for row in self.EXPERTS:
            bare = self.predicted(row)
            assert bare < row[-1]
            step_s = float(served("h200-sxm-141gb", row[0], tensor=row[1]).decode(row[2], 1024.0).seconds)
            errors.append((bare + self.HOST_S / step_s) / row[-1] - 1.0)
        assert np.max(np.abs(errors)) <= 0.16
        assert np.median(np.abs(errors)) <= 0.08

    def test_dense_cycles_lack_only_the_hosts_time(self):
        """Its share of a short step is what prediction without it leaves out: never more than a quarter."""
        errors = [self.predicted(row) / row[-1] - 1.0 for row in self.DENSE]
        assert all(-0.25 <= error < 0 for error in errors)

    def test_one_host_time_explains_both_chains_of_8b(self):
        """About 1.4 ms a cycle, whatever the number of steps."""
        step_s = float(served("h200-sxm-141gb", "llama-3.1-8b").decode(1.0, 1024.0).seconds)
        missing = [(row[-1] - self.predicted(row)) * step_s for row in self.DENSE[:2]]
        assert missing == pytest.approx([self.HOST_S, self.HOST_S], rel=0.15)

    def test_configurations_are_ranked_as_measured(self):
        rows = (*self.DENSE, *self.EXPERTS)
        ranks = [
            np.argsort(np.argsort(values))
            for values in ([self.predicted(r) for r in rows], [r[-1] for r in rows])
        ]
        assert np.corrcoef(*ranks)[0, 1] >= 0.9
