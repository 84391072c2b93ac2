from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from click.testing import CliRunner

from rooflines.cli import main

BASE = ["plan", "--hardware", "h100-sxm5-80gb", "--target", "llama-3.1-8b", "--context", "2048"]
DRAFTERS = ["--drafter", "eagle3:depth=6,topk=10,nodes=59", "--drafter", "dflash", "--drafter", "ngram"]
ACCEPTANCE = ["--acceptance", "0.75", "--acceptance", "ngram=0.3"]


def plan(*more):
    return CliRunner().invoke(main, [*BASE, *more])


@pytest.fixture(scope="module")
def schema(validator_of):
    return validator_of("plan")


def test_drafters_stand_in_one_table_with_acceptance_of_their_own():
    text = plan(*DRAFTERS, *ACCEPTANCE, "--batch", "1,16", "--draft-length", "4").stdout
    assert "eagle3:depth=6,topk=10,nodes=59 0.75, dflash 0.75, ngram 0.3, as given" in text
    table = text.split("\nCycles\n\n")[1].split("\n\n")[0].splitlines()
    assert [line.split()[0] for line in table[2:]] == [
        *["eagle3:depth=6,topk=10,nodes=59"] * 2,
        *["dflash"] * 2,
        *["ngram"] * 2,
    ]
    assert "Draft by batch" in text


def test_json_of_everything_follows_the_schema(schema):
    result = plan(
        *DRAFTERS,
        *ACCEPTANCE,
        "--batch",
        "1,16,4000",
        "--adaptive-verify",
        "--explain",
        "--verify-length",
        "3",
        "--format",
        "json",
    )
    document = json.loads(result.stdout)
    schema.validate(document)
    assert {row["drafter"] for row in document["answer"]["verify_budget"]} == {"dflash", "ngram"}
    assert document["question"]["acceptance"] == ["0.75", "ngram=0.3"]


def test_one_acceptance_stays_a_text_in_json():
    document = json.loads(plan("--drafter", "eagle3", "--acceptance", "0.7", "--format", "json").stdout)
    assert document["question"]["acceptance"] == "0.7"


def test_how_much_to_verify_is_a_table_where_asked_for():
    command = ["--drafter", "ngram", "--acceptance", "0.4", "--batch", "128", "--draft-length", "6"]
    assert "How much of a draft to verify" not in plan(*command).stdout
    assert "How much of a draft to verify" in plan(*command, "--adaptive-verify").stdout


def test_the_best_tree_is_a_table_and_follows_the_schema(schema):
    command = ["--drafter", "medusa:topk=5,nodes=30", "--acceptance", "sequoia:0.6,0.15,0.05", "--best-tree"]
    assert "Best tree" in plan(*command).stdout
    document = json.loads(plan(*command, "--format", "json").stdout)
    schema.validate(document)
    (best,) = document["answer"]["best_trees"]
    assert best["nodes"] == sum(best["widths"])


def test_reasons_are_tables_where_asked_for():
    command = ["--drafter", "dflash", "--acceptance", "0.7", "--batch", "8", "--draft-length", "4"]
    text = plan(*command, "--explain").stdout
    assert (
        text.index("Where a cycle goes")
        < text.index("What each further token adds")
        < text.index("Not modelled")
    )
    assert "Where a cycle goes" not in plan(*command).stdout


def test_what_a_shape_was_assumed_from_is_a_warning():
    result = plan("--drafter", "eagle3", "--acceptance", "0.7")
    assert (
        "rooflines: warning: eagle3: a head of its family's usual shape, derived from llama-3.1-8b"
        in result.stderr
    )


def test_what_is_said_of_several_drafters_is_said_once():
    drafters = ("--drafter", "eagle3", "--drafter", "medusa", "--drafter", "dflash", "--drafter", "ngram")
    lines = plan(*drafters, "--acceptance", "survival:0.8,0.6").stderr.splitlines()
    assert sum("usual shape" in line for line in lines) == 1
    assert lines[0].startswith(
        "rooflines: warning: eagle3, medusa, dflash: a head of its family's usual shape"
    )
    (extrapolated,) = [line for line in lines if "carried on" in line]
    assert extrapolated.startswith(
        "rooflines: warning: eagle3, medusa, dflash, ngram: acceptance was measured"
    )


def test_a_tree_is_told_by_its_depth_and_nodes():
    text = plan("--drafter", "eagle3:depth=6,topk=10,nodes=59", "--acceptance", "0.75").stdout
    assert "At batch 1 draft 6 deep, 59 nodes: " in text


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--drafter", "eagle3", "--acceptance", "medusa=0.7"], "names no drafter"),
        (["--drafter", "eagle3", "--acceptance", "0.7", "--acceptance", "0.8"], "given twice"),
        (["--drafter", "eagle3", "--drafter", "ngram", "--acceptance", "ngram=0.8"], "no acceptance"),
        (["--drafter", "eagle3", "--drafter", "eagle3", "--acceptance", "0.8"], "given twice"),
        (["--drafter", "eagle3:topk=4", "--acceptance", "0.8"], "nodes="),
        (["--drafter", "eagle3:missing", "--acceptance", "0.8"], "drafter head"),
        (["--drafter", "eagle3", "--acceptance", "0.8", "--verify-length", "0"], "verify length"),
        (["--drafter", "medusa", "--acceptance", "medusa:0.7,0.5"], "sum to"),
        (["--drafter", "ngram:host=fast", "--acceptance", "0.8"], "fast"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(more, message):
    result = plan(*more)
    assert (result.exit_code, result.stdout) == (2, "")
    assert isinstance(result.exception, SystemExit)
    (line,) = result.stderr.splitlines()
    assert message in line


def test_eight_drafters_over_eight_batches_take_a_process_about_a_second():
    """Processor time of the best of three: 0.75 s on a quiet core; cores that share their units take longer."""
    drafters = (
        "independent:llama-3.2-1b",
        "medusa",
        "eagle3:topk=10,nodes=59",
        "dflash",
        "dspark",
        "mtp",
        "ngram",
    )
    command = [
        sys.executable,
        "-m",
        "rooflines",
        *BASE,
        "--acceptance",
        "0.7",
        "--batch",
        "1,2,4,8,16,32,64,128",
    ]
    for drafter in (*drafters, "quantized:int4-g128"):
        command += ["--drafter", drafter]
    taken = []
    for _ in range(3):
        before = os.times()
        subprocess.run(command, check=True, capture_output=True)  # noqa: S603 - our own command
        after = os.times()
        taken.append(
            after.children_user - before.children_user + after.children_system - before.children_system
        )
    assert min(taken) < 1.5
