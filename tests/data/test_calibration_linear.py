"""Held-out shapes of measured bf16 products, per device and engine, beside the plain roofline."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from rooflines.hardware.catalogue import load_hardware
from rooflines.validation.fit import KernelTimes, held_out_errors

GROUPS = [
    ("a100_sxm", "sglang", "a100-sxm4-80gb"),
    ("a100_sxm", "vllm", "a100-sxm4-80gb"),
    ("b200_sxm", "vllm", "b200-sxm-180gb"),
    ("gb200", "vllm", "gb200"),
    ("h100_sxm", "sglang", "h100-sxm5-80gb"),
    ("h100_sxm", "vllm", "h100-sxm5-80gb"),
    ("h200_sxm", "vllm", "h200-sxm-141gb"),
    ("l40s", "vllm", "l40s"),
]


@pytest.mark.parametrize(("gpu", "engine", "device"), GROUPS)
def test_constants_predict_products_of_other_shapes(reference_data, gpu, engine, device):
    """Rows whose weights exceed L2, n and k of 512 and more; the tolerance is per group, never one average."""
    profile = load_hardware(device)
    with (reference_data / "silicon" / "gemm_bf16.csv").open() as file:
        rows = [
            row
            for row in csv.DictReader(file)
            if (row["gpu"], row["engine"], row["weights_exceed_l2"]) == (gpu, engine, "1")
        ]
    m, n, k, us = (np.array([float(row[name]) for row in rows]) for name in ("m", "n", "k", "time_us"))
    used = (n >= 512) & (k >= 512)
    m, n, k, us = m[used], n[used], k[used], us[used]
    _, shape = np.unique(np.stack([n, k]), axis=1, return_inverse=True)
    compute_s = 2 * m * n * k / profile.peak_flop_per_s("bf16")
    memory_s = 2 * (n * k + m * k + m * n) / profile.bandwidth_bytes_per_s
    errors = held_out_errors(KernelTimes(compute_s, memory_s, us * 1e-6, shape.ravel()))
    plain = np.maximum(compute_s, memory_s) / (us * 1e-6) - 1
    regions = [m <= 64, (m > 64) & (m <= 512), m > 512]
    reached = [float(np.median(np.abs(errors[region]))) for region in regions]
    before = [float(np.median(np.abs(plain[region]))) for region in regions]
    assert np.mean(reached) <= 0.12
    assert np.mean(reached) < np.mean(before) / 2
