"""Cycles of assisted generation, recorded as docs/engines.md says and read back, on a model of random weights."""

from __future__ import annotations

import re

import pytest

from rooflines.measurement.readers.catalogue import acceptance_text_from, import_file

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

pytestmark = pytest.mark.torch

PROMPT = 16
NEW = 48
DRAFTED = 3


@pytest.fixture
def recorded(root, monkeypatch, tmp_path):
    """Run the document's code in a folder of its own, and undo what it did to transformers."""
    from transformers.generation import candidate_generator

    for generator in (
        candidate_generator.AssistedCandidateGenerator,
        candidate_generator.PromptLookupCandidateGenerator,
    ):
        for method in ("get_candidates", "update_candidate_strategy"):
            monkeypatch.setattr(generator, method, getattr(generator, method))
    monkeypatch.chdir(tmp_path)
    text = (root / "docs" / "engines.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    exec(compile(block, "docs/engines.md", "exec"), {})  # noqa: S102 - our own document
    return tmp_path / "cycles.jsonl"


@pytest.fixture
def model():
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=1,
        num_attention_heads=4,
        num_key_value_heads=2,
        vocab_size=64,
        bos_token_id=None,
        eos_token_id=None,
        pad_token_id=0,
    )
    return transformers.LlamaForCausalLM(config).eval()


def generate(model, **options):
    prompt = torch.arange(PROMPT).remainder(8)[None] + 1
    with torch.no_grad():
        return model.generate(
            prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=NEW, do_sample=False, **options
        )


@pytest.mark.filterwarnings("ignore")
def test_a_model_that_assists_itself_is_always_accepted(recorded, model):
    model.generation_config.num_assistant_tokens = DRAFTED
    model.generation_config.num_assistant_tokens_schedule = "constant"
    model.generation_config.assistant_confidence_threshold = 0.0
    generate(model, assistant_model=model)
    (record,) = import_file("transformers", recorded).acceptance
    assert record.draft_length == DRAFTED
    # Every full draft is accepted; the last may be cut by the end of the answer.
    assert record.values[DRAFTED] / sum(record.values) > 0.9
    assert record.tokens_per_cycle * record.cycles >= NEW - 1


@pytest.mark.filterwarnings("ignore")
def test_emitted_tokens_are_matches_and_one_a_cycle(recorded, model):
    answer = generate(model, prompt_lookup_num_tokens=DRAFTED)
    (record,) = import_file("transformers", recorded).acceptance
    with_drafts = record.tokens_per_cycle * record.cycles
    lines = recorded.read_text(encoding="utf-8").splitlines()
    without = sum('"candidate_length": 0' in line for line in lines)
    assert with_drafts + without == pytest.approx(answer.shape[1] - PROMPT, abs=DRAFTED)
    assert acceptance_text_from(recorded).startswith("histogram:")
