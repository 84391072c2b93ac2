from __future__ import annotations

import numpy as np
import pytest

from rooflines.errors import InputError
from rooflines.measurement.speculation.protocol import Draft
from rooflines.measurement.speculation.sampling import Certain, Sampling, Spread, judge


class Rows:
    def __init__(self, rows):
        self.rows = np.asarray(rows, dtype=np.float32)

    def first_choices(self):
        return self.rows.argmax(axis=-1)

    def array(self):
        return self.rows


def test_greedy_reads_first_choices_only():
    reading = Sampling.parse("greedy").read(Rows([[0, 2, 1], [5, 0, 0]]))
    assert isinstance(reading, Certain)
    assert reading.pick(np.random.default_rng(0)).tolist() == [1, 0]
    assert reading.probabilities is None


def test_a_temperature_reads_distributions():
    reading = Sampling.parse("temperature:0.5").read(Rows([np.log([1, 3])]))
    assert isinstance(reading, Spread)
    assert reading.probabilities == pytest.approx(np.array([[0.1, 0.9]]), rel=1e-6)


def test_a_certain_draft_is_kept_as_often_as_the_target_would_say_it():
    reading = Spread(np.array([[0.3, 0.7], [0.5, 0.5]]))
    generator = np.random.default_rng(1)
    draft = Draft(np.array([0]))
    verdicts = [reading.judge(draft, generator) for _ in range(5000)]
    kept = np.array([int(verdict.accepted) for verdict in verdicts])
    assert kept.mean() == pytest.approx(0.3, abs=0.03)
    assert {int(verdict.token) for verdict in verdicts if not verdict.accepted} == {1}


def test_forcing_overrides_the_rule():
    reading = Certain(np.array([1, 1, 1]))
    wrong = Draft(np.array([0, 0]))
    generator = np.random.default_rng(2)
    assert int(judge(reading, wrong, None, generator).accepted) == 0
    assert int(judge(reading, wrong, 1.0, generator).accepted) == 2


@pytest.mark.parametrize("text", ["greedy", "temperature:0.8", "temperature:1"])
def test_texts_come_back(text):
    assert str(Sampling.parse(text)) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hot",
        "temperature",
        "temperature:0",
        "temperature:-1",
        "temperature:nan",
        "temperature:inf",
        "top:1",
    ],
)
def test_other_texts_are_refused(text):
    with pytest.raises(InputError, match=r"write greedy or temperature:0\.8"):
        Sampling.parse(text)
