"""What engines add to a cycle: every figure has a source, and none is used for rows of that source."""

from __future__ import annotations

from dataclasses import astuple

import pytest

from rooflines.engines.host import HOST_TIMES, TREE_KERNELS, host_time, row_cost
from rooflines.errors import UnknownNameError
from rooflines.hardware.catalogue import load_hardware


def test_every_figure_has_a_source_and_a_basis():
    for one in HOST_TIMES:
        assert "https://" in one.source
        assert one.basis in ("measured", "derived", "assumed")
        assert one.note
        assert min(astuple(one.time)) >= 0.0


def test_no_figure_is_used_for_the_rows_that_it_was_taken_from():
    for judged in ("specdecodebench2026", "dflash2026", "cast2026", "specbundle2026"):
        for engine in {one.engine for one in HOST_TIMES}:
            for kind in ("", "dflash", "eagle3"):
                found = host_time(engine, judged, kind)
                assert found is None or found.measured_by != judged
    assert host_time("vllm", "specdecodebench2026") is None
    assert host_time("transformers", "dflash2026").measured_by == "cast2026"
    assert host_time("transformers", "cast2026").measured_by == "dflash2026"


def test_the_figure_that_was_measured_most_alike_goes_before_others():
    block, one, several = (
        host_time("sglang", kind=kind, device="h200-sxm-141gb", ranks=ranks)
        for kind, ranks in (("dflash", 1), ("eagle3", 1), ("eagle3", 4))
    )
    assert "dflash" in block.kinds
    assert (one.ranks, several.ranks) == (1, 8)
    assert "eagle3" in one.kinds
    assert "eagle3" in several.kinds
    # On the device itself before another's, whatever drafts: a host waits longer beside a faster device.
    assert host_time("sglang", kind="eagle3", device="b200-sxm-180gb") == block
    # A device that nobody names is none, and a kind that nobody measured leaves the number of devices to decide.
    assert host_time("sglang", kind="ngram").ranks == 1
    assert host_time("sglang", kind="ngram", ranks=2).ranks == 8


def test_sglangs_chains_with_and_without_overlap():
    """Pull request 11398, Llama-3.1-8B on one device: 12.115 and 11.008 ms; 12128, DeepSeek-R1 on eight."""
    assert host_time("sglang", kind="eagle").time.cycle_s == pytest.approx(12.115e-3 - 11.008e-3, abs=2e-6)
    assert host_time("sglang", kind="mtp", ranks=8).time.cycle_s == pytest.approx(
        16.339e-3 - 14.376e-3, abs=2e-6
    )


def test_what_overlapping_hides_in_sglang():
    """Pull request 23000, Qwen3-8B on a B200: 7.50 and 5.47 ms a cycle at batch 1, 18.20 and 13.53 ms at 32."""
    host = host_time("sglang", kind="dflash").time
    assert host.cycle_s + host.sequence_s == pytest.approx(7.500e-3 - 5.467e-3, abs=2e-6)
    assert host.cycle_s + 32 * host.sequence_s == pytest.approx(18.200e-3 - 13.533e-3, abs=2e-6)


def test_rows_of_blocks_in_llama_cpp():
    assert row_cost("llama.cpp", 4, 1) == 1.0
    assert row_cost("llama.cpp", 4, 8) == 1.696
    assert row_cost("llama.cpp", 4, 3) == pytest.approx((1.243 + 1.358) / 2)
    assert row_cost("llama.cpp", 8, 4) == 1.121
    assert row_cost("llama.cpp", 4, 500) == 3.13
    assert row_cost("llama.cpp", 16, 8) == row_cost("vllm", 4, 8) == 1.0
    costs = [row_cost("llama.cpp", 4, rows) for rows in range(1, 33)]
    assert costs == sorted(costs)


def test_an_unknown_engine_is_refused_with_those_that_are_known():
    with pytest.raises(UnknownNameError, match=r"known: .*vllm"):
        host_time("vlm")
    assert all(one.device == "" or load_hardware(one.device).id == one.device for one in HOST_TIMES)
    assert set(TREE_KERNELS) <= {one.engine for one in HOST_TIMES}
