"""`plan` between engines: acceptance from what one printed, settings for one to run."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from rooflines.cli import main

SAMPLES = Path(__file__).parent.parent / "unit" / "measurement" / "samples"
BASE = {
    "--hardware": "h100-sxm5-80gb",
    "--target": "llama-3.1-8b",
    "--context": "2048",
    "--batch": "1,64",
    "--draft-length": "1..6",
    "--calibration": "textbook",
}


def plan(*more):
    return CliRunner().invoke(
        main, ["plan", *(part for pair in BASE.items() for part in pair), *map(str, more)]
    )


def document(*more):
    result = plan("--drafter", "independent:llama-3.2-1b", "--format", "json", *more)
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("vllm-serve.json", "survival:0.75,0.5,0.25"),
        ("sglang-bench.jsonl", "accepted-length:2.62@3"),
        ("vllm-after.prom", "survival:0.69545455,0.41363636"),
        ("lengths.csv", "accepted-length:2.1@2,2.9@4"),
    ],
)
def test_acceptance_from_a_file_is_the_acceptance_that_it_prints(name, text):
    printed, given = document("--acceptance-from", SAMPLES / name), document("--acceptance", text)
    assert printed["question"]["acceptance"] == text
    assert printed["rows"] == given["rows"]


def test_acceptance_is_given_once():
    drafter = ("--drafter", "independent:llama-3.2-1b")
    for more in ((), ("--acceptance", "0.8", "--acceptance-from", SAMPLES / "survival.csv")):
        result = plan(*drafter, *more)
        assert result.exit_code == 2
        assert "Give --acceptance or --acceptance-from" in result.stderr


def emitted(engine, drafter, *more):
    result = plan("--drafter", drafter, "--acceptance", "0.8", "--emit", engine, *more)
    assert result.exit_code == 0, result.stderr
    return result.stdout


def test_settings_follow_the_schedule_of_the_plan():
    schedule = document("--acceptance", "0.8")["answer"]["schedule"]
    words = shlex.split(emitted("vllm", "independent:llama-3.2-1b").splitlines()[0])
    config = json.loads(words[words.index("--speculative-config") + 1])
    assert config["num_speculative_tokens_per_batch_size"] == [
        [entry["first_batch"], entry["last_batch"], entry["draft_length"]] for entry in schedule
    ]
    assert config["num_speculative_tokens"] == max(entry["draft_length"] for entry in schedule)
    assert (config["method"], config["model"]) == ("draft_model", "meta-llama/Llama-3.2-1B")


def test_settings_start_what_was_planned():
    served = ("--weight-dtype", "fp8", "--kv-dtype", "fp8", "--memory-reserve", "0.2", "--tp", "2")
    text = emitted("vLLM", "independent:llama-3.2-1b", *served)
    for flags in (
        "--tensor-parallel-size 2",
        "--quantization fp8",
        "--kv-cache-dtype fp8",
        "--gpu-memory-utilization 0.8",
    ):
        assert f" {flags} " in text.splitlines()[0]


def test_a_module_that_no_checkpoint_has_is_not_set():
    result = plan("--drafter", "mtp", "--acceptance", "0.8", "--emit", "vllm")
    assert result.exit_code == 2
    assert "warning: mtp: llama-3.1-8b ships no MTP module: this one is hypothetical" in result.stderr
    assert result.stderr.splitlines()[-1].endswith("llama-3.1-8b ships no MTP module")


def test_a_tree_of_59_nodes_is_60_to_sglang():
    text = emitted("sglang", "eagle3:depth=6,topk=10,nodes=59")
    assert "--speculative-num-draft-tokens 60" in text
    assert "--speculative-eagle-topk 10" in text


def test_a_dflash_block_of_16_is_15_to_vllm_and_16_to_sglang():
    assert '"num_speculative_tokens": 15' in emitted("vllm", "dflash:block=16")
    assert "--speculative-dflash-block-size 16" in emitted("sglang", "dflash:block=16")
    assert "--spec-draft-n-max 15" in emitted("llamacpp", "dflash:block=16")


def test_a_quantised_copy_has_no_checkpoint_of_that_name():
    assert "PATH-OF-THE-DRAFTER" in emitted("vllm", "quantized:int4")


def test_settings_that_cannot_be_written_are_refused():
    def message(*more):
        result = plan("--acceptance", "0.8", *more)
        assert result.exit_code == 2
        return result.stderr.splitlines()[-1]

    assert "did you mean 'vllm'" in message("--drafter", "mtp", "--emit", "vlm")
    assert "chains only" in message("--drafter", "eagle3:depth=6,topk=10,nodes=59", "--emit", "vllm")
    assert "no setting for drafters of kind 'medusa'" in message("--drafter", "medusa", "--emit", "vllm")
    assert "verify all that they draft" in message(
        "--drafter", "mtp", "--verify-length", "2", "--emit", "vllm"
    )
    assert "nothing of this plan fits" in message(
        "--drafter", "mtp", "--context", "9000000", "--emit", "vllm"
    )
