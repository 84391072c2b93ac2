"""Decode points a second of other tools that PyPI has, each in a virtual environment of its own.

The same question as far as a tool has it: one decode step of a 65 to 70B model on 4 H100 for a batch and a
context, asked again and again in one process, at other batches and contexts each time, after a warm-up.
That is less than a point here, which has a draft, a verify pass and an acceptance beside its decode step.
"""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path
from typing import Final

CACHE: Final = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "rooflines" / "peers"

_TIMED: Final = """
import time
for index in range(WARM):
    ask(1 + index % 32, 2048 + index)
start_s = time.process_time()
for index in range(COUNT):
    ask(1 + index % 32, 1024 + index % 900)
print("RATE", COUNT / (time.process_time() - start_s))
"""
# Tool -> (what pip installs, a script that defines ask(batch, context), points to warm up with, and to time).
PEERS: Final[dict[str, tuple[str, str, int, int]]] = {
    "ridgepoint": (
        "ridgepoint==0.1.2",
        """
import ridgepoint
def ask(batch, context):
    ridgepoint.fit("llama-3-70b", "h100-80gb", count=4, ctx=context + batch)
""",
        100,
        100_000,
    ),
    "aiconfigurator, a kept session": (
        "aiconfigurator==0.12.0",
        """
import logging
logging.disable(logging.CRITICAL)
from aiconfigurator.sdk import common, config, models, perf_database
from aiconfigurator.sdk.backends.factory import get_backend
from aiconfigurator.sdk.inference_session import InferenceSession
version = perf_database.get_latest_database_version("h100_sxm", "vllm")
chosen = config.ModelConfig(
    tp_size=4,
    gemm_quant_mode=common.GEMMQuantMode.bfloat16,
    kvcache_quant_mode=common.KVCacheQuantMode.bfloat16,
    fmha_quant_mode=common.FMHAQuantMode.bfloat16,
)
session = InferenceSession(
    models.get_model("meta-llama/Meta-Llama-3.1-70B", chosen, "vllm"),
    perf_database.get_database("h100_sxm", "vllm", version),
    get_backend("vllm"),
)
def ask(batch, context):
    asked = config.RuntimeConfig(batch_size=batch, isl=context, osl=2)
    session.run_static_latency_only(asked, "static_gen")
""",
        50,
        20_000,
    ),
    "llm-analysis": (
        "llm-analysis==0.2.2",
        """
import logging
logging.disable(logging.CRITICAL)
from llm_analysis.analysis import LLMAnalysis
from llm_analysis.config import (
    ParallelismConfig, get_dtype_config_by_name, get_gpu_config_by_name, get_model_config_by_name,
)
analysis = LLMAnalysis(
    get_model_config_by_name("decapoda-research_llama-65b-hf"),
    get_gpu_config_by_name("h100-sxm-80gb"),
    get_dtype_config_by_name("w16a16e16"),
    ParallelismConfig(tp_size=4),
    flops_efficiency=0.8,
    hbm_memory_efficiency=0.8,
)
def ask(batch, context):
    analysis.inference(batch, min(context, 1900), 1)
""",
        20,
        2_000,
    ),
    "genz-llm": (
        "genz-llm==0.0.16",
        """
import contextlib, io, warnings
warnings.filterwarnings("ignore")
from GenZ import decode_moddeling
def ask(batch, context):
    with contextlib.redirect_stdout(io.StringIO()):
        decode_moddeling(
            model="meta-llama/Llama-3.1-70B", batch_size=batch, input_tokens=context, output_tokens=0, Bb=1,
            system_name="H100_GPU", bits="bf16", tensor_parallel=4,
        )
""",
        1,
        20,
    ),
}


def compare(own_rate: float) -> None:
    """Print points a second of every peer, and how many times that we are faster.

    Args:
        own_rate: whole cycles of scattered points a second, priced here and now.
    """
    print(f"\nOther tools, one decode step a point; scattered cycles here: {own_rate:,.0f}/s")
    for name, (requirement, script, warm, count) in PEERS.items():
        timed = f"{script}\nWARM, COUNT = {warm}, {count}\n{_TIMED}"
        try:
            done = subprocess.run(  # noqa: S603 - the interpreter made below and the text above
                [_python(requirement), "-c", timed], check=True, capture_output=True, text=True
            )
        except subprocess.CalledProcessError as error:
            last = (error.stderr or "").strip().splitlines()[-1:] or ["no message"]
            print(f"{name:31} {requirement:22} cannot be timed: {last[0]}")
            continue
        rate = float(done.stdout.rpartition("RATE")[2])
        print(f"{name:31} {requirement:22} {rate:11,.1f}/s: {own_rate / rate:11,.0f} x")


def _python(requirement: str) -> str:
    """The interpreter of an environment that has the tool, made on demand (some are near a gigabyte)."""
    folder = CACHE / requirement
    python = folder / "bin" / "python"
    if not (folder / "installed").exists():
        print(f"installing {requirement} into {folder} ...", file=sys.stderr)
        venv.create(folder, with_pip=True, clear=True)
        install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", requirement]
        subprocess.run(install, check=True, stdout=subprocess.DEVNULL)  # noqa: S603 - pip of that environment
        (folder / "installed").touch()
    return str(python)
