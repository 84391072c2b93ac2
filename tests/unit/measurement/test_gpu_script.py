from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from rooflines.models.readers import read_config
from rooflines.models.spec import ModelSpec


@pytest.fixture(scope="module", params=[False, True], ids=["gpu", "small"])
def configs(request, root, tmp_path_factory):
    folder = tmp_path_factory.mktemp("configs")
    words = [
        sys.executable,
        root / "benchmarks" / "gpu_configs.py",
        folder,
        *(["--small"] if request.param else []),
    ]
    subprocess.run(words, check=True)  # noqa: S603 - our own script
    return {file.stem: json.loads(file.read_text()) for file in folder.glob("*.json")}


def query_heads_per_kv_head(spec: ModelSpec) -> float:
    mixer = spec.layers[0].mixer
    return mixer.query_heads / mixer.kv_heads


def test_the_configs_are_models_that_can_be_priced(configs):
    specs = {name: read_config(config, name) for name, config in configs.items()}
    assert set(specs) == {"dense", "moe", "drafter", "attention-g1", "attention-g4", "attention-g8"}
    assert [query_heads_per_kv_head(specs[f"attention-g{group}"]) for group in (1, 4, 8)] == [1, 4, 8]
    assert specs["moe"].layers[0].feed_forwards[0].experts > 1


def test_every_config_runs(configs):
    """On meta tensors, so that 8B cost nothing."""
    torch = pytest.importorskip("torch", reason="needs torch (extra [measure])")
    transformers = pytest.importorskip("transformers", reason="needs transformers (extra [measure])")
    from rooflines.measurement.llama import is_llama_like

    for name, facts in configs.items():
        config = transformers.AutoConfig.for_model(**facts)
        assert is_llama_like(config) is (name != "moe")
        with torch.device("meta"):
            transformers.AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)


def bash(*words, **environment):
    return subprocess.run(  # noqa: S603 - our own script
        ["bash", *words],  # noqa: S607 - bash is where the system has it
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHON": sys.executable, **environment},
    )


def test_the_script_parses_and_says_how_to_call_it(root):
    script = root / "benchmarks" / "gpu.sh"
    assert os.access(script, os.X_OK)
    assert bash("-n", script).returncode == 0
    refused = bash(script)
    assert refused.returncode != 0
    assert "usage: benchmarks/gpu.sh FOLDER" in refused.stderr


def test_what_is_there_is_kept_and_what_has_no_time_left_is_said(root, tmp_path):
    pytest.importorskip("torch", reason="needs torch (extra [measure])")
    (tmp_path / "machine.toml").write_text("")
    result = bash(root / "benchmarks" / "gpu.sh", tmp_path, LIMIT_S="0")
    assert result.returncode == 1
    assert "kept" in result.stdout
    assert result.stdout.count("no time left") == 7
    assert "0 files of measurements" in result.stdout
