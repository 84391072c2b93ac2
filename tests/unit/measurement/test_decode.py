from __future__ import annotations

import json

import pytest

pytest.importorskip("torch", reason="needs torch (extra [measure])")
pytest.importorskip("transformers", reason="needs transformers (extra [measure])")

from rooflines.errors import InputError
from rooflines.measurement.cases import Grid, plan_cases
from rooflines.measurement.decode import DecodeQuestion, make_tasks, measure_decode
from rooflines.measurement.files import read_measured
from rooflines.measurement.models import load_model
from rooflines.models.readers import read_config

pytestmark = pytest.mark.torch

FACTS = {
    "model_type": "llama",
    "vocab_size": 64,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
}
GRID = Grid(batches=(1, 2), positions=(1, 4), contexts=(8, 32), depths=(1,), prefills=(16,))
QUESTION = DecodeQuestion(grid=GRID, rounds=3)


@pytest.fixture
def loaded(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(FACTS))
    return load_model(str(tmp_path), "fp32")


def quiet(_done, _total):
    pass


def test_every_planned_case_comes_out_with_raw_times_of_every_round(loaded, tmp_path):
    path = tmp_path / "decode.json"
    written = measure_decode(loaded, QUESTION, path, quiet)
    file = read_measured(path)
    assert file == written
    planned = plan_cases(GRID, 3, lean=True)
    found = [(one.case, one.batch, one.new_positions, one.context, one.depth) for one in file.samples]
    assert found == [(one.kind, one.batch, one.new_positions, one.context, one.depth) for one in planned]
    assert {len(one.cpu_s) for one in file.samples} == {len(one.wall_s) for one in file.samples} == {3}
    assert all(one.device_s == () and min(one.seconds) > 0 for one in file.samples)


def test_the_file_says_what_ran(loaded, tmp_path):
    file = measure_decode(loaded, QUESTION, tmp_path / "decode.json", quiet)
    assert file.inputs.runner == "static-llama"
    assert file.inputs.dtype == "fp32"
    assert file.inputs.weights == "random, seed 0"
    assert file.inputs.options["positions"] == [1, 4]
    assert file.versions["torch"]
    assert len(read_config(json.loads(file.inputs.config), "measured").layers) == 3


def test_each_pass_starts_from_its_own_context_however_often_it_is_run(loaded, monkeypatch):
    seen = []
    forward = type(loaded.runner).forward

    def spying(self, tokens, cache, **options):
        seen.append((cache.length, tuple(tokens.shape), options.get("depth"), options["logits"]))
        return forward(self, tokens, cache, **options)

    monkeypatch.setattr(type(loaded.runner), "forward", spying)
    cases = plan_cases(GRID, 3, lean=True)
    tasks = make_tasks(loaded, cases, QUESTION)
    for case in cases:
        seen.clear()
        for _ in range(2):
            tasks[case.name].prepare()
            tasks[case.name].work()
        wanted = (
            case.context,
            (case.batch, case.new_positions),
            None if case.depth == 3 else case.depth,
            "last" if case.kind == "prefill" else "all",
        )
        assert seen == ([] if case.kind == "head" else [wanted] * 2)


def test_more_work_takes_longer(tmp_path):
    """The smallest claim that timing must support: four times the layers, and eight times the prompt."""
    facts = {**FACTS, "hidden_size": 256, "intermediate_size": 1024, "num_hidden_layers": 8}
    (tmp_path / "config.json").write_text(json.dumps(facts))
    loaded = load_model(str(tmp_path), "fp32")
    grid = Grid(positions=(1,), contexts=(16,), depths=(2,), prefills=(16, 128))
    file = measure_decode(loaded, DecodeQuestion(grid=grid, rounds=5), tmp_path / "m.json", quiet)
    best = {(one.case, one.new_positions, one.depth): min(one.seconds) for one in file.samples}
    assert best["step", 1, 8] > 1.5 * best["step", 1, 2]
    assert best["prefill", 128, 8] > 2 * best["prefill", 16, 8]


def test_a_killed_measurement_continues_and_another_question_does_not(loaded, tmp_path):
    path = tmp_path / "decode.json"
    cases = len(plan_cases(GRID, 3, lean=True))

    def killed(done, _total):
        if done == cases * (2 + 1) + 2:  # two warm-ups and one round are over
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        measure_decode(loaded, QUESTION, path, killed)
    assert not path.exists()
    with pytest.raises(InputError, match="different: options"):
        measure_decode(loaded, DecodeQuestion(grid=GRID, rounds=4), path, quiet)
    totals = []
    file = measure_decode(loaded, QUESTION, path, lambda _done, total: totals.append(total))
    assert totals[-1] == cases * (2 + 2)
    assert {len(one.cpu_s) for one in file.samples} == {3}
    assert [one.name for one in tmp_path.glob("decode*")] == ["decode.json"]


def test_another_architecture_is_timed_as_a_whole(tmp_path):
    facts = {
        "model_type": "gpt2",
        "vocab_size": 64,
        "n_embd": 32,
        "n_layer": 2,
        "n_head": 2,
        "n_positions": 128,
    }
    (tmp_path / "config.json").write_text(json.dumps(facts))
    loaded = load_model(str(tmp_path), "fp32")
    grid = Grid(batches=(1, 2), positions=(1, 4), contexts=(0, 8), prefills=(16,))
    file = measure_decode(loaded, DecodeQuestion(grid=grid, rounds=2), tmp_path / "m.json", quiet)
    assert {one.case for one in file.samples} == {"step", "prefill"}
    assert file.inputs.runner == "transformers"


def test_no_copy_is_timed_where_none_is_wanted_and_none_where_shapes_forbid_it(loaded, tmp_path):
    without = DecodeQuestion(grid=GRID, rounds=1, group_size=None)
    file = measure_decode(loaded, without, tmp_path / "m.json", quiet)
    assert "draft" not in {one.case for one in file.samples}
    with pytest.raises(InputError, match="groups of 128 do not fit"):
        measure_decode(
            loaded, DecodeQuestion(grid=GRID, rounds=1, group_size=128), tmp_path / "n.json", quiet
        )
