"""How positions share experts: one default wherever times are predicted, said in the answer, and changed."""

from __future__ import annotations

import json
import tomllib

import pytest
from click.testing import CliRunner

from rooflines.cli import main
from rooflines.costs.routing import DEFAULT_ROUTING
from rooflines.studies.alternatives import AlternativesQuestion
from rooflines.studies.capacity_question import CapacityQuestion
from rooflines.studies.plan import PlanQuestion
from rooflines.studies.sweep.grid import SweepGrid

TARGET = ["--hardware", "h100-sxm5-80gb", "--target", "qwen3-30b-a3b"]
DRAFTED = ["--drafter", "ngram", "--acceptance", "0.6"]
ASKED = {
    "plan": [*TARGET, *DRAFTED, "--context", "1024", "--draft-length", "4"],
    "compare": [*TARGET, *DRAFTED, "--context", "1024", "--draft-length", "4"],
    "capacity": [*TARGET, *DRAFTED, "--prompt-tokens", "512", "--output-tokens", "128"],
}
ASSUMED = "positions of a sequence choose experts alike by 0.35 (measured: 0.21 to 0.45; set routing"
GRID = """
hardware = "h100-sxm5-80gb"
target = ["llama-3.1-8b", "{target}"]
drafter = "ngram"
batch = 1
context = 1024
draft_length = 4
acceptance = 0.6
"""


def run(*arguments):
    result = CliRunner().invoke(main, list(map(str, arguments)))
    assert result.exit_code == 0, result.stderr
    return result.stdout


def asked(command, *more):
    return json.loads(run(command, *ASKED[command], *more, "--format", "json"))


@pytest.mark.parametrize("question", [PlanQuestion, AlternativesQuestion, CapacityQuestion])
def test_questions_about_time_share_one_default(question):
    assert question.__dataclass_fields__["routing"].default == DEFAULT_ROUTING


def test_so_does_a_grid():
    assert SweepGrid.model_validate(tomllib.loads(GRID.format(target="x"))).routing == DEFAULT_ROUTING


@pytest.mark.parametrize("command", ASKED)
def test_and_so_does_the_command_line(command):
    assert asked(command)["question"]["routing"] == DEFAULT_ROUTING
    help_text = " ".join(run(command, "--help").split())
    assert f"Which experts the tokens of a pass hit. [default: {DEFAULT_ROUTING}]" in help_text


def test_where_work_is_counted_positions_are_strangers():
    arguments = ["--hardware", "h100-sxm5-80gb", "--model", "qwen3-30b-a3b", "--phase", "verify"]
    counted = json.loads(run("intensity", *arguments, "--context", 64, "--new-tokens", 5, "--format", "json"))
    assert counted["question"]["routing"] == "uniform"
    assert counted["basis"].endswith("positions choose experts on their own")


@pytest.mark.parametrize("command", ASKED)
def test_an_answer_about_experts_says_what_was_assumed_and_another_is_taken(command):
    assert ASSUMED in str(asked(command)["basis"])
    assert ASSUMED in run(command, *ASKED[command])
    assert "choose experts on their own" in str(asked(command, "--routing", "uniform")["basis"])


def test_a_dense_target_assumes_nothing_of_experts():
    arguments = [text.replace("qwen3-30b-a3b", "llama-3.1-8b") for text in ASKED["plan"]]
    assert "experts" not in json.loads(run("plan", *arguments, "--format", "json"))["basis"]


def test_the_same_experts_are_cheaper_to_verify_than_as_strangers_and_a_plain_step_is_the_same():
    shared, strangers = asked("plan"), asked("plan", "--routing", "uniform")
    (one,), (other,) = ([row for row in plan["rows"] if row["batch"] == 1] for plan in (shared, strangers))
    assert one["target_step_s"] == other["target_step_s"]
    assert one["verify_s"] < 0.95 * other["verify_s"]


def test_what_is_assumed_widens_the_interval_of_a_verify_pass_and_what_is_given_does_not():
    """0.351 prices the same, and says that it is known."""
    (assumed,), (given,) = (
        [row for row in asked("plan", *more)["rows"] if row["batch"] == 1]
        for more in ((), ("--routing", "correlated:0.351"))
    )
    assert given["verify_s"] == pytest.approx(assumed["verify_s"], rel=0.002)
    for name, unit in (("verify", "_s"), ("speedup", "")):
        wide, narrow = (row[f"{name}_high{unit}"] / row[f"{name}_low{unit}"] for row in (assumed, given))
        assert wide > 1.005 * narrow
    assert given["target_step_low_s"] == assumed["target_step_low_s"]


@pytest.mark.parametrize(("target", "said"), [("qwen3-30b-a3b", True), ("qwen3-8b", False)])
def test_a_sweep_says_it_where_a_target_has_experts(tmp_path, target, said):
    pytest.importorskip("pyarrow", reason="sweeps need pyarrow (extra [scale])")
    grid = tmp_path / "grid.toml"
    grid.write_text(GRID.format(target=target), encoding="utf-8")
    assert (ASSUMED in run("sweep", grid, "--output", tmp_path / "rows")) == said
    again = json.loads(run("sweep", grid, "--output", tmp_path / "rows", "--format", "json"))
    assert (again["routing"] is not None) == said
