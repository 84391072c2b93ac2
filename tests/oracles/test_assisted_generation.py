"""Another implementation as judge: how fast transformers' own speculation is, predicted within 15 %.

transformers decodes plainly, by prompt lookup and with an int4 copy of the target as assistant. Its passes are
counted; what they cost is measured apart from it, as passes of that width over a cache; tokens per cycle are its
own. The difference that remains is what `generate` does outside the passes.
"""

from __future__ import annotations

import copy
import os
import time
from collections import Counter

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs torch and transformers (extra [oracle])")
pytest.importorskip("transformers", reason="needs torch and transformers (extra [oracle])")

import torch
from transformers import AutoModelForCausalLM

from rooflines.measurement.clock import time_on_cpu
from rooflines.measurement.matrices import DenseMatrix, quantised
from rooflines.measurement.models import load_tokenizer
from rooflines.measurement.speculation.prompts import choose_prompts
from rooflines.measurement.threads import computing_threads
from rooflines.measurement.transformers_runner import TransformersRunner

pytestmark = [
    pytest.mark.torch,
    pytest.mark.slow,
    pytest.mark.skipif(
        "PYTEST_XDIST_WORKER" in os.environ,
        reason="times real passes, which other tests beside it would slow: run it alone, without -n",
    ),
]

TOKENS = 32
ROUNDS = 2
TOLERANCE = 0.15


class Int4Linear(torch.nn.Module):
    def __init__(self, linear):
        super().__init__()
        self.matrix = quantised(DenseMatrix(linear.weight.detach()), 32)

    def forward(self, x):
        return self.matrix(x)


def _int4_copy(model):
    small = copy.deepcopy(model)
    for name, module in list(small.named_modules()):
        if isinstance(module, torch.nn.Linear):
            parent = small.get_submodule(name.rpartition(".")[0]) if "." in name else small
            setattr(parent, name.rpartition(".")[2], Int4Linear(module))
    return small


@pytest.fixture(scope="module")
def models(smollm2):
    target = AutoModelForCausalLM.from_pretrained(smollm2, dtype=torch.bfloat16).eval()
    assistant = _int4_copy(target)
    # Every draft has the length that is asked for, however sure the assistant is.
    assistant.generation_config.num_assistant_tokens_schedule = "constant"
    assistant.generation_config.assistant_confidence_threshold = 0.0
    with computing_threads(1):
        yield target, assistant, load_tokenizer(str(smollm2))


class Counted:
    """Counts passes of a model by width, while it is in use."""

    def __init__(self, model):
        self.model, self.widths = model, Counter()

    def __enter__(self):
        self.hook = self.model.register_forward_pre_hook(self._count, with_kwargs=True)
        return self.widths

    def _count(self, _module, _args, kwargs):
        self.widths[kwargs["input_ids"].shape[1]] += 1

    def __exit__(self, *_):
        self.hook.remove()


def _generate(target, prompt, **how):
    start = time.thread_time()
    with torch.inference_mode():
        tokens = target.generate(
            prompt,
            attention_mask=torch.ones_like(prompt),
            do_sample=False,
            min_new_tokens=TOKENS,
            max_new_tokens=TOKENS,
            **how,
        )
    assert tokens.shape[1] == prompt.shape[1] + TOKENS
    return time.thread_time() - start


class Passes:
    """What a pass of a width costs after a context, measured when it is first asked for and once a round."""

    def __init__(self, model, context):
        self.runner = TransformersRunner(model)
        self.context = context
        self.times = {}

    def sample(self, width):
        cache = self.runner.new_cache(1, 0)
        # A pass as wide as the prompt is the prefill, which begins with nothing cached.
        self.runner.fill(cache, 0 if width >= self.context else self.context)
        tokens = torch.randint(self.runner.vocabulary, (1, width))
        logits = "last" if width >= self.context else "all"
        taken = time_on_cpu(lambda: self.runner.forward(tokens, cache, logits=logits).argmax(-1).tolist())
        self.times.setdefault(width, []).append(taken.seconds)

    def total(self, widths):
        return sum(count * np.mean(self.times[width]) for width, count in widths.items())


@pytest.mark.parametrize(
    ("drafter", "prompt"),
    [
        ("lookup", "copying-minutes"),
        ("lookup", "chat-bread"),
        ("int4", "copying-minutes"),
        ("int4", "chat-bread"),
    ],
)
def test_transformers_own_speculation_is_predicted(models, drafter, prompt):
    target, assistant, tokenizer = models
    (chosen,) = choose_prompts([prompt])
    said = [{"role": "user", "content": chosen.text}]
    ids = tokenizer.apply_chat_template(
        said, add_generation_prompt=True, return_tensors="pt", return_dict=False
    )
    length = 4
    how = {"prompt_lookup_num_tokens": length}
    if drafter == "int4":
        assistant.generation_config.num_assistant_tokens = length
        how = {"assistant_model": assistant}
    context = ids.shape[1] - 1
    of_target, of_assistant = Passes(target, context), Passes(assistant, context)
    _generate(target, ids, **how)  # once to count, and to warm up
    with Counted(target) as plain_widths:
        _generate(target, ids)
    with Counted(target) as widths, Counted(assistant) as draft_widths:
        _generate(target, ids, **how)
    plain_s, assisted_s = [], []
    for _ in range(ROUNDS):
        plain_s.append(_generate(target, ids))
        assisted_s.append(_generate(target, ids, **how))
        for width in plain_widths | widths:
            of_target.sample(width)
        for width in draft_widths:
            of_assistant.sample(width)
    measured = np.mean(plain_s) / np.mean(assisted_s)
    predicted = of_target.total(plain_widths) / (of_target.total(widths) + of_assistant.total(draft_widths))
    assert widths[length + 1], "transformers sent no draft of the length that was asked for"
    assert predicted == pytest.approx(measured, rel=TOLERANCE)
