"""Held-out head shapes of measured decode attention whose cache exceeds the last-level cache twice."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from rooflines.hardware.catalogue import load_hardware
from rooflines.validation.fit import KernelTimes, held_out_errors

# TensorRT-LLM on the A100 is left out: its kernel misses by 31 % on held-out shapes, so two constants do not fit it.
GROUPS = [
    ("a100_sxm", "vllm", "a100-sxm4-80gb", 40e6),
    ("b200_sxm", "sglang", "b200-sxm-180gb", 126e6),
    ("h100_sxm", "sglang", "h100-sxm5-80gb", 50e6),
    ("h100_sxm", "vllm", "h100-sxm5-80gb", 50e6),
    ("h200_sxm", "vllm", "h200-sxm-141gb", 60e6),
]


@pytest.mark.parametrize(("gpu", "engine", "device", "cache_bytes"), GROUPS)
def test_constants_predict_decode_attention_of_other_heads(reference_data, gpu, engine, device, cache_bytes):
    with (reference_data / "silicon" / "attention_decode.csv").open() as file:
        rows = [
            row
            for row in csv.DictReader(file)
            if (row["gpu"], row["engine"], row["kv_cache_dtype"]) == (gpu, engine, "bfloat16")
            and float(row["kv_read_bytes"]) > 2 * cache_bytes
        ]
    heads = np.array([[int(row[name]) for name in ("q_heads", "kv_heads", "head_dim")] for row in rows])
    _, shape = np.unique(heads, axis=0, return_inverse=True)
    kv_bytes = np.array([float(row["kv_read_bytes"]) for row in rows])
    memory_s = kv_bytes / load_hardware(device).bandwidth_bytes_per_s
    measured_s = np.array([float(row["time_us"]) for row in rows]) * 1e-6
    errors = held_out_errors(KernelTimes(np.zeros_like(memory_s), memory_s, measured_s, shape.ravel()))
    assert np.median(np.abs(errors)) <= 0.08
    assert np.median(np.abs(errors)) < np.median(np.abs(memory_s / measured_s - 1)) / 3
