from __future__ import annotations

import json

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs torch and transformers (extra [oracle])")
pytest.importorskip("transformers", reason="needs torch and transformers (extra [oracle])")

from rooflines.errors import InputError
from rooflines.measurement.files import read_measured
from rooflines.measurement.models import load_model
from rooflines.measurement.schema import SpeculationFile
from rooflines.measurement.speculation import session
from rooflines.measurement.speculation.choices import parse_drafter
from rooflines.measurement.speculation.prompts import choose_prompts
from rooflines.measurement.speculation.session import Question, measure_speculation

pytestmark = pytest.mark.torch

CONFIG = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "vocab_size": 64,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
    "initializer_range": 0.3,
}


@pytest.fixture(scope="module")
def loaded(tmp_path_factory):
    file = tmp_path_factory.mktemp("model") / "config.json"
    file.write_text(json.dumps(CONFIG))
    return load_model(str(file), "fp32")


def _question(*drafters, lengths=(1, 3), prompts=("random:10", "random:6"), **more):
    return Question(
        drafters=tuple(map(parse_drafter, drafters or ("prompt-lookup", "int4"))),
        draft_lengths=lengths,
        prompts=choose_prompts(prompts),
        tokens=8,
        **more,
    )


def _ignore(_done, _total):
    pass


def test_every_drafter_meets_every_length_and_prompt(loaded, tmp_path):
    told = []
    file = measure_speculation(loaded, _question(), tmp_path / "out.json", lambda *at: told.append(at))
    cases = [(run.prompt, run.draft_length, run.drafter) for run in file.runs]
    assert cases == [
        (p, n, d) for p in ("random:10", "random:6") for n in (1, 3) for d in ("prompt-lookup", "int4")
    ]
    assert told == [(done, 8) for done in range(9)]
    assert all(sum(cycle.emitted for cycle in run.cycles) == len(run.plain_s) >= 8 for run in file.runs)
    assert all(seconds > 0 for run in file.runs for seconds in run.plain_s)
    assert not any(run.divergences for run in file.runs)


def test_the_file_says_what_was_measured(loaded, tmp_path):
    file = measure_speculation(loaded, _question("int4", seed=7), tmp_path / "out.json", _ignore)
    assert isinstance(file, SpeculationFile)
    assert read_measured(tmp_path / "out.json") == file
    assert (file.inputs.dtype, file.inputs.runner, file.inputs.seed) == ("fp32", "static-llama", 7)
    assert file.inputs.options["drafters"] == ["int4 cache=shared"]
    assert json.loads(file.inputs.config)["num_hidden_layers"] == 3
    assert file.machine.threads == 1
    assert not (tmp_path / "out.json.partial").exists()


def test_a_killed_run_keeps_what_is_finished(loaded, tmp_path, monkeypatch):
    real, calls = session.run, []

    def killed(*arguments):
        calls.append(arguments)
        if len(calls) == 6:  # two runs, each after its warm-up, are finished; then the third's warm-up
            raise KeyboardInterrupt
        return real(*arguments)

    monkeypatch.setattr(session, "run", killed)
    output = tmp_path / "out.json"
    with pytest.raises(KeyboardInterrupt):
        measure_speculation(loaded, _question(), output, _ignore)
    assert not output.exists()
    lines = [json.loads(line) for line in (tmp_path / "out.json.partial").read_text().splitlines()]
    kept = [line["data"]["run"] for line in lines[1:]]
    assert len(kept) == 2
    calls[:] = [None] * 10
    file = measure_speculation(loaded, _question(), output, _ignore)
    assert len(file.runs) == 8
    for run, before in zip(file.runs, kept, strict=False):
        assert run.model_dump(mode="json") == before


def test_a_journal_of_another_question_is_refused(loaded, tmp_path):
    (tmp_path / "out.json.partial").write_text(json.dumps({"question": {"kind": "speculation"}}) + "\n")
    with pytest.raises(InputError, match="other inputs"):
        measure_speculation(loaded, _question(), tmp_path / "out.json", _ignore)


def test_drafts_of_the_same_seed_are_the_same(loaded, tmp_path):
    def counts(name, **more):
        question = _question("int4", "forced:0.5", lengths=(3,), prompts=("random:8",), **more)
        file = measure_speculation(loaded, question, tmp_path / name, _ignore)
        return [[cycle.accepted for cycle in run.cycles] for run in file.runs]

    assert counts("a.json") == counts("b.json")
    assert counts("c.json", seed=1) != counts("a2.json")


def test_words_need_a_model_that_knows_some(loaded, tmp_path):
    with pytest.raises(InputError, match="write --prompts random:64"):
        measure_speculation(loaded, _question(prompts=("chat",)), tmp_path / "out.json", _ignore)
    assert list(tmp_path.iterdir()) == []


def test_what_the_target_cannot_do_is_refused_before_measuring(loaded, tmp_path):
    with pytest.raises(InputError, match="the target has 3"):
        measure_speculation(loaded, _question("early-exit:3"), tmp_path / "out.json", _ignore)
    assert list(tmp_path.iterdir()) == []


def test_words_go_through_the_chat_template_where_there_is_one():
    class Tokenizer:
        chat_template = None

        def __call__(self, text):
            return {"input_ids": [len(text)]}

        def apply_chat_template(self, said, *, add_generation_prompt, return_dict):
            assert add_generation_prompt
            assert not return_dict
            assert said[0]["role"] == "user"
            return [1, len(said[0]["content"]), 2]

    tokenizer = Tokenizer()
    assert session._spoken(tokenizer, "four").tolist() == [4]
    tokenizer.chat_template = "any"
    assert np.array_equal(session._spoken(tokenizer, "four"), [1, 4, 2])


def test_stability_is_judged_within_runs(loaded, tmp_path):
    file = measure_speculation(loaded, _question("int4", lengths=(1,)), tmp_path / "out.json", _ignore)

    def judged(*plain):
        runs = [
            run.model_copy(update={"plain_s": times}) for run, times in zip(file.runs, plain, strict=True)
        ]
        parts = [
            {"run": run.model_dump(mode="json"), "run_delay_share": share}
            for run, share in zip(runs, (0.25, None), strict=True)
        ]
        return session._collected(parts)[1]

    steady = judged(
        (1.0, 1.01, 0.99, 1.0), (3.0, 3.0, 3.03, 2.97)
    )  # the machine was three times slower later
    assert steady.stable
    assert steady.iqr_share < 0.02
    assert steady.run_delay_share == 0.25
    assert not judged((1.0, 1.5, 1.0, 1.5), (1.0, 1.5, 1.0, 1.5)).stable
