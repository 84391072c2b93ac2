from __future__ import annotations

import json
from dataclasses import replace

from rooflines.explorer.choices import Choices
from rooflines.explorer.page import shown_html
from rooflines.models.catalogue import load_preset
from rooflines.studies.plan import make_plan

CHOICES = Choices(target="llama-3.1-8b", tensor_parallel=1, calibration="textbook", batch=4)


def test_the_answer_is_that_of_the_plan_for_every_device():
    chosen = replace(CHOICES, hardware=("h100-sxm5-80gb", "a100-sxm4-80gb"))
    html = shown_html(chosen)
    for name in chosen.hardware:
        assert make_plan(chosen.question(name)).text in html
        assert f"--hardware {name}" in html
    assert html.count("<figure") == html.count("<svg") == html.count("data-save=") == 6


def test_a_note_about_the_address_stands_above_the_answer():
    html = shown_html(CHOICES, ["read without its <batch>"])
    assert html.index("read without its &lt;batch&gt;") < html.index('id="answer"')


def test_what_a_plan_warns_of_is_said_once():
    chosen = replace(
        CHOICES, acceptance=("conditional:0.8,0.7",), hardware=("h100-sxm5-80gb", "a100-sxm4-80gb")
    )
    assert shown_html(chosen).count("acceptance was measured up to draft length 2") == 1


def test_a_refusal_takes_the_place_of_the_answer():
    html = shown_html(replace(CHOICES, acceptance=("1.5",)))
    assert 'role="alert"' in html
    assert "1.5" in html
    assert "<svg" not in html
    assert 'role="alert"' in shown_html(CHOICES, refused="config.json: not JSON")
    assert 'role="alert"' in shown_html(replace(CHOICES, drafters=()))


def test_what_does_not_fit_keeps_its_roofline_and_its_memory():
    html = shown_html(replace(CHOICES, target="llama-3.1-405b"))
    assert "does not fit" in html
    assert 'id="roofline"' in html
    assert 'id="memory"' in html
    assert 'id="cycle"' not in html


def test_an_uploaded_model_is_priced_like_its_preset():
    config = json.dumps(load_preset("llama-3.1-8b"))
    html = shown_html(replace(CHOICES, target="mine", config=config))
    plan = make_plan(CHOICES.question("h100-sxm5-80gb"))
    assert plan.text.replace("llama-3.1-8b", "mine") in html
