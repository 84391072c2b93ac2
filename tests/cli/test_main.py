"""What the command line does as a whole: help, typos, bad input, schemas."""

from __future__ import annotations

import importlib
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from rooflines import __version__
from rooflines.cli import COMMANDS, main

PLAN = {
    "--hardware": "a100-sxm-80gb",
    "--target": "llama-2-7b",
    "--drafter": "independent:tinyllama-1.1b-v1.0",
    "--acceptance": "0.8",
    "--context": "1024",
}
SPEEDUP = {"--acceptance": "0.8", "--draft-length": "4", "--cost-ratio": "0.05"}
CAPACITY = {
    "--hardware": "h100-sxm5-80gb",
    "--target": "llama-3.1-8b",
    "--prompt-tokens": "1024",
    "--output-tokens": "256",
}
SERVING = str(Path(__file__).parents[1] / "unit" / "validation" / "serving_runs.csv")
PUBLISHED = Path(__file__).parents[1] / "unit" / "validation" / "published"
ALTERNATIVES = {
    "--hardware": "h100-sxm5-80gb",
    "--target": "llama-3.1-8b",
    "--drafter": "eagle3",
    "--acceptance": "0.75",
    "--context": "1024",
}
SAMPLES = Path(__file__).parents[1] / "unit" / "measurement" / "samples"
INTENSITY = {
    "--hardware": "a100-sxm-80gb",
    "--model": "llama-2-7b",
    "--phase": "decode",
    "--context": "1024",
}


def command(name, good, **changes):
    options = {**good, **{f"--{key.replace('_', '-')}": value for key, value in changes.items()}}
    return [name, *(part for option in options.items() for part in option)]


def run(*arguments):
    return CliRunner().invoke(main, list(arguments))


def refused(*arguments):
    """The one line that a mistake is answered with."""
    result = run(*arguments)
    assert result.exit_code == 2, result.output
    assert isinstance(result.exception, SystemExit)
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith("rooflines: ")
    assert "Traceback" not in line
    return line


def test_help_lists_the_commands_in_order():
    result = run("--help")
    assert result.exit_code == 0
    places = [result.stdout.index(f"  {name} ") for name in COMMANDS]
    assert places == sorted(places)
    assert all(line in result.stdout for _, line in COMMANDS.values())


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_says_of_itself_what_the_help_says_of_it(name):
    module, attribute = COMMANDS[name][0].split(":")
    found = getattr(importlib.import_module(module), attribute)
    assert found.name == name
    result = run(name, "--help")
    assert result.exit_code == 0
    assert found.help.partition("\n")[0] == COMMANDS[name][1]


def test_what_prints_data_writes_it_to_a_file_too(command_options):
    printing = {words for words, options in command_options.items() if "--format" in options}
    assert {("plan",), ("models", "list"), ("hardware", "show"), ("validate", "kernels")} <= printing
    assert all("--output" in command_options[words] for words in printing)


def test_version():
    assert run("--version").stdout.strip().endswith(__version__)


@pytest.mark.parametrize("arguments", [(), ("hardware",)])
def test_no_command_is_answered_with_the_whole_help(arguments):
    result = run(*arguments)
    assert result.exit_code == 2
    assert "Commands:" in result.stderr.splitlines()


WRONG = [
    (["pln"], "unknown command 'pln'; did you mean 'plan'?"),
    (["plan"], "Missing option '--hardware'"),
    (["plan", "--bogus"], "No such option '--bogus'"),
    (command("plan", PLAN, hardware="a100-sxm-80gbb"), "did you mean 'A100-SXM-80GB'"),
    (command("plan", PLAN, hardware="h100"), "'h100' is ambiguous: choose 'h100-nvl-94gb'"),
    (command("plan", PLAN, hardware="none.toml"), "does not exist"),
    (command("plan", PLAN, target="llama-2-7bb"), "did you mean 'llama-2-7b'"),
    (command("plan", PLAN, drafter="independant:x"), "did you mean 'independent'?"),
    (command("plan", PLAN, drafter="independent"), "needs its model"),
    (command("plan", PLAN, drafter="independent:tinyllama"), "unknown model 'tinyllama'"),
    (
        command("plan", PLAN, drafter="independent:tinyllama-1.1b-v1.0,tq=2"),
        "unknown parameter of independent",
    ),
    (command("plan", PLAN, drafter="independent:llama-3.2-1b"), "must share the target's tokenizer"),
    (command("plan", PLAN, acceptance="1.2"), "a rate lies within 0..1; 1.2 tokens per cycle"),
    (command("plan", PLAN, acceptance="-0.1"), "is -0.1: a probability lies within 0..1"),
    (command("plan", PLAN, acceptance="nan"), "is nan: a probability lies within 0..1"),
    (command("plan", PLAN, acceptance="often"), "'often' is no number"),
    (command("plan", PLAN, acceptance="conditonal:0.8"), "did you mean 'conditional'?"),
    (command("plan", PLAN, acceptance="accepted-length:9@5"), "is impossible"),
    (command("plan", PLAN, draft_length="-1"), "draft length is -1: it must be 0 or more"),
    (command("plan", PLAN, draft_length="0"), "give one of 1 or more"),
    (command("plan", PLAN, draft_length="8..1"), "must rise"),
    (command("plan", PLAN, batch="0"), "batch is 0: it must be 1 or more"),
    (command("plan", PLAN, batch="many"), "'many' is not understood"),
    (command("plan", PLAN, batch="1..99999999999"), "of at most 9 digits"),
    (command("plan", PLAN, context="-1"), "-1 is not in the range"),
    (command("plan", PLAN, context="9" * 400), "is not in the range"),
    (command("plan", PLAN, tp="3"), "tensor parallelism 3 does not divide 32 query heads: use 1, 2, 4, 8"),
    (command("plan", PLAN, tp="0"), "tensor parallelism is 0"),
    (command("plan", PLAN, weight_dtype="fp9"), "unknown dtype 'fp9'; did you mean 'fp8'"),
    (command("plan", PLAN, weight_dtype=""), "unknown dtype ''"),
    (command("plan", PLAN, kv_dtype="b16"), "did you mean 'bf16'"),
    (command("plan", PLAN, weight_dtype="fp8"), "states no dense fp8 peak; choose one that is stated"),
    (command("plan", PLAN, overhead="300"), "'300' has no unit: write one, such as '4 us'"),
    (command("plan", PLAN, overhead="3 GB"), "is in byte; s is needed"),
    (command("plan", PLAN, cycle_overhead="-1 us"), "must be finite and not negative"),
    (command("plan", PLAN, calibration="best"), "use auto, none or textbook"),
    (command("plan", PLAN, memory_reserve="1.5"), "it is a share within 0..1"),
    (command("plan", PLAN, memory_reserve="nan"), "it is a share within 0..1"),
    (command("plan", PLAN, format="yaml"), "'yaml' is not one of 'text', 'markdown', 'csv', 'json'"),
    (command("speedup", SPEEDUP, acceptance="1.2"), "a rate lies within 0..1"),
    (command("speedup", SPEEDUP, draft_length="-1"), "it must be 0 or more"),
    (command("speedup", SPEEDUP, draft_length="5000"), "draft length 5000 is beyond 4096"),
    (command("speedup", SPEEDUP, cost_ratio="nan"), "cost ratio is nan: it must be within"),
    (command("speedup", SPEEDUP, cost_ratio="-0.1"), "cost ratio is -0.1: it must be within"),
    (command("speedup", SPEEDUP, cost_ratio="1e308"), "cost ratio is 1e+308: it must be within"),
    (command("speedup", SPEEDUP, verify_cost="0"), "verify cost is 0"),
    (command("speedup", SPEEDUP, overhead="inf"), "overhead is inf"),
    (command("intensity", INTENSITY, phase="decod"), "'decod' is not one of 'decode', 'prefill', 'verify'"),
    (command("intensity", INTENSITY, phase="verify"), "give --draft-length G"),
    (command("intensity", INTENSITY, phase="verify", draft_length="-1"), "-1 is not in the range"),
    (command("intensity", INTENSITY, draft_length="3"), "goes with --phase verify"),
    (command("intensity", INTENSITY, new_tokens="3"), "a decode has 1 new token, not 3"),
    (command("intensity", INTENSITY, phase="prefill", context="0"), "new tokens is 0"),
    (command("intensity", INTENSITY, batch="0"), "0 is not in the range"),
    (command("intensity", INTENSITY, context="9" * 400), "is not in the range"),
    (command("intensity", INTENSITY, model="gpt5"), "did you mean 'gpt2'"),
    (command("intensity", INTENSITY, tp="5"), "does not divide 32 query heads"),
    (command("intensity", INTENSITY, weight_dtype="fp8"), "states no dense fp8 peak"),
    (command("intensity", INTENSITY, overhead="1"), "'1' has no unit"),
    (
        ["plot", "roofline", "--hardware", "l40s", "--model", "gpt2", "--context", "9" * 400],
        "is not in the range",
    ),
    (["hardware", "show", "h100"], "ambiguous"),
    (["models", "show", "gpt5"], "did you mean 'gpt2'"),
]


@pytest.mark.parametrize(("arguments", "message"), WRONG, ids=lambda value: str(value)[-60:])
def test_bad_input_is_answered_in_one_line(arguments, message):
    assert message in refused(*arguments)


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"", "the file is empty"), (bytes(range(256)), "text file"), (b"[]", ""), (b"{", "")],
    ids=["empty", "binary", "list", "broken"],
)
@pytest.mark.parametrize(("option", "name"), [("target", "model.json"), ("hardware", "device.toml")])
def test_files_that_are_no_model_or_profile(tmp_path, content, message, option, name):
    (tmp_path / name).write_bytes(content)
    line = refused(*command("plan", PLAN, **{option: str(tmp_path / name)}))
    assert message in line
    assert name in line


@pytest.mark.parametrize("option", ["target", "hardware"])
def test_an_empty_folder_is_no_model_or_profile(tmp_path, option):
    assert "folder" in refused(*command("plan", PLAN, **{option: str(tmp_path)}))


@pytest.mark.parametrize(("name", "good"), [("plan", PLAN), ("speedup", SPEEDUP), ("intensity", INTENSITY)])
def test_an_answer_is_not_written_into_a_folder_that_is_not_there(tmp_path, name, good):
    target = tmp_path / "missing" / "answer.txt"
    assert "cannot write" in refused(*command(name, good, output=str(target)))
    assert not target.parent.exists()


@pytest.mark.parametrize("fmt", ["text", "markdown", "csv", "json"])
@pytest.mark.parametrize(
    "arguments",
    [
        command("plan", PLAN),
        command("speedup", SPEEDUP),
        command("intensity", INTENSITY),
        ["models", "list"],
        ["models", "show", "gpt2"],
        ["hardware", "list"],
        ["hardware", "show", "l40s"],
        ["hardware", "show", "l40s", "--calibration"],
    ],
    ids=lambda arguments: " ".join(part for part in arguments[:2] if "-" not in part),
)
def test_a_file_gets_what_the_terminal_gets(tmp_path, arguments, fmt):
    printed = run(*arguments, "--format", fmt)
    written = run(*arguments, "--format", fmt, "--output", str(tmp_path / "answer"))
    assert printed.exit_code == written.exit_code == 0
    assert written.stdout == ""
    assert (tmp_path / "answer").read_text(encoding="utf-8") == printed.stdout


REFERENCE = Path(__file__).resolve().parents[1] / "reference" / "kernels"
KERNELS = [str(REFERENCE / name) for name in ("gemm_bf16.csv", "verify_premium.csv", "moe_layer.csv")]
DOCUMENTS = [
    ("plan", command("plan", PLAN, draft_length="0..3", batch="1,64,4096", format="json")),
    ("plan", command("plan", PLAN, acceptance="conditional:0.9,0.8", overhead="300 us", format="json")),
    ("plan", command("plan", PLAN, hardware="rtx-4090", context="100000", batch="64", format="json")),
    ("speedup", command("speedup", SPEEDUP, draft_length="0..4", format="json")),
    ("speedup", command("speedup", SPEEDUP, cost_ratio="5", format="json")),
    ("intensity", command("intensity", INTENSITY, format="json")),
    ("intensity", command("intensity", INTENSITY, phase="prefill", tp="2", format="json")),
    ("intensity", command("intensity", INTENSITY, phase="verify", draft_length="4", format="json")),
    ("hardware-list", ["hardware", "list", "--format", "json"]),
    ("hardware-show", ["hardware", "show", "h100-sxm5-80gb", "--format", "json"]),
    ("models-show", ["models", "show", "llama-2-7b", "--format", "json"]),
    ("import", ["import", "llama-bench", f"{SAMPLES}/llama-bench.json", "--format", "json"]),
    ("import", ["import", "vllm-serve", f"{SAMPLES}/vllm-serve.json", "--format", "json"]),
    ("capacity", command("capacity", CAPACITY, format="json")),
    ("capacity", command("capacity", CAPACITY, target="gpt-oss-20b", ep="4", slo_tpot="1 us", format="json")),
    (
        "capacity",
        command("capacity", CAPACITY, rate="50", slo_ttft="1 s", kv_transfer="50 GB/s", format="json"),
    ),
    (
        "capacity",
        command(
            "capacity",
            CAPACITY,
            rate="9",
            price="2",
            option="tp=2",
            drafter="ngram",
            acceptance="0.5",
            concurrency="4,512",
            format="json",
        ),
    ),
    ("validate-serving", ["validate", "serving", SERVING, "--format", "json"]),
    ("validate-speedups", ["validate", "speedups", f"{PUBLISHED}/speedups.csv", "--format", "json"]),
    ("validate-acceptance", ["validate", "acceptance", f"{PUBLISHED}/profiles.csv", "--format", "json"]),
    ("compare", command("compare", ALTERNATIVES, format="json")),
    (
        "compare",
        command(
            "compare",
            ALTERNATIVES,
            target="llama-3.1-70b",
            smaller="llama-3.1-8b",
            lossy_acceptance="0.8",
            format="json",
        ),
    ),
    ("validate-kernels", ["validate", "kernels", *KERNELS, "--format", "json"]),
    ("calibrate-kernels", ["calibrate", "kernels", *KERNELS, "--format", "json"]),
    ("validate-kernels", ["validate", "kernels", *KERNELS, "--calibration", "textbook", "--format", "json"]),
]


@pytest.mark.parametrize(("name", "arguments"), DOCUMENTS, ids=lambda value: str(value)[-40:])
def test_documents_follow_their_published_schema(validator_of, name, arguments):
    result = run(*arguments)
    assert result.exit_code == 0, result.stderr
    validator_of(name).validate(json.loads(result.stdout))


def test_every_published_schema_is_held_against_a_document(root):
    published = {file.name for file in (root / "docs" / "schemas").glob("*.schema.json")}
    checked_elsewhere = {"check", "measurements", "sweep", "sweep-best"}
    held = {name for name, _ in DOCUMENTS} | checked_elsewhere
    assert published == {f"{name}.schema.json" for name in held}


@pytest.mark.parametrize("name", ["plan", "speedup", "intensity"])
def test_schemas_refuse_what_they_do_not_describe(validator_of, name):
    arguments = next(arguments for held, arguments in DOCUMENTS if held == name)
    document = json.loads(run(*arguments).stdout)
    validator = validator_of(name)
    broken = [
        {**document, "more": 1},
        {key: value for key, value in document.items() if key != "rows"},
        {**document, "schema_version": 2},
        {**document, "rows": [{**document["rows"][0], "speed": 1.0}]},
    ]
    assert all(list(validator.iter_errors(one)) for one in broken)
