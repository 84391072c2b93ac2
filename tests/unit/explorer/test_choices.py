from __future__ import annotations

import base64
import json
import zlib
from urllib.parse import urlencode

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from rooflines.cli import main
from rooflines.errors import RooflinesError
from rooflines.explorer.choices import (
    LARGEST_CONFIG,
    Choices,
    from_address,
    to_address,
    uploaded_model,
)
from rooflines.hardware.catalogue import list_hardware
from rooflines.models.catalogue import list_presets, load_preset

CONFIG = json.dumps(load_preset("llama-3.1-8b"))

choices = st.builds(
    Choices,
    hardware=st.lists(st.sampled_from(list_hardware()), min_size=1, max_size=3, unique=True).map(tuple),
    target=st.sampled_from(list_presets()),
    drafters=st.lists(
        st.sampled_from(
            ["ngram", "eagle3:depth=6,topk=10,nodes=59", "independent:llama-3.2-1b", "quantized:int4"]
        ),
        min_size=1,
        unique=True,
    ).map(tuple),
    acceptance=st.sampled_from(
        [("0.75",), ("conditional:0.8,0.7",), ("ngram=0.3", "eagle3=medusa:0.7,0.1;0.6,0.1")]
    ),
    draft_length=st.integers(1, 64),
    verify_length=st.integers(0, 64),
    batch=st.integers(1, 1024),
    context=st.integers(0, 10**6),
    tensor_parallel=st.sampled_from([1, 2, 8]),
    expert_parallel=st.sampled_from([1, 8]),
    routing=st.sampled_from(["uniform", "powerlaw:1.2"]),
    weight_dtype=st.sampled_from(["", "fp8", "int4-g128"]),
    kv_dtype=st.sampled_from(["", "fp8"]),
    calibration=st.sampled_from(["auto", "none", "textbook"]),
    cycle_overhead=st.sampled_from(["0 s", "200 us"]),
)


@given(choices)
def test_an_address_shows_the_same_page_again(chosen):
    found, notes = from_address(to_address(chosen))
    assert found == chosen
    assert notes == []


def test_what_is_as_at_first_is_not_in_the_address():
    assert to_address(Choices()) == {}
    assert to_address(Choices(batch=8)) == {"batch": "8"}


def test_a_model_of_ones_own_travels_in_the_address():
    chosen = Choices(target="mine", config=CONFIG)
    address = to_address(chosen)
    found, notes = from_address(address)
    assert notes == []
    assert found.target == "mine"
    assert json.loads(found.config) == json.loads(CONFIG)
    assert found.model() == uploaded_model(CONFIG.encode(), "mine")
    assert len(urlencode(address)) < 2000


@pytest.mark.parametrize(
    ("name", "written", "part"),
    [
        ("target", "/etc/passwd", "unknown model"),
        ("target", "llama-9", "unknown model"),
        ("hardware", "/tmp/profile.toml", "unknown device"),  # noqa: S108 - a name, no file is made
        ("drafters", "independent:/etc/hostname", "unknown model"),
        ("drafters", "eagle3:config.json", "unknown model"),
        ("drafters", "quantized:/etc/hostname", "unknown"),
        ("hardware", "", "choose a device"),
        ("drafters", "eagle9", "unknown drafter"),
        ("calibration", "mine.toml", "unknown calibration"),
        ("weight_dtype", "fp7", "unknown"),
        ("batch", "0", "within 1.."),
        ("batch", "many", "within 1.."),
        ("context", "-1", "within 0.."),
        ("draft_length", "1" * 40, "within 1.."),
        ("config", "!!", "holds no model"),
        ("config", base64.urlsafe_b64encode(zlib.compress(b"[]")).decode(), "not an object"),
        ("expert_parallel", "0", "within 1.."),
        ("verify_length", "65", "within 0.."),
        ("routing", "zipf", "cannot read the expert routing"),
        ("nonsense", "1", "unknown choice"),
    ],
)
def test_what_an_address_may_not_say_is_refused_and_the_rest_holds(name, written, part):
    found, notes = from_address({name: written, "kv_dtype": "fp8"})
    assert len(notes) == 1
    assert part in notes[0]
    assert found == Choices(kv_dtype="fp8")


def test_a_config_that_unpacks_without_end_is_cut_off():
    bomb = base64.urlsafe_b64encode(zlib.compress(b" " * (20 * LARGEST_CONFIG), 9)).decode()
    assert len(bomb) < 50_000
    found, notes = from_address({"config": bomb})
    assert found == Choices()
    assert "more than a model" in notes[0]


@pytest.mark.parametrize(
    ("content", "part"),
    [
        (b"", "empty"),
        (b"\x89PNG\r\n\x1a\n", "no text file"),
        (b"{", "not JSON"),
        (b"[1]", "not an object"),
        (b"{}", "model_type"),
        (b'{"model_type": "resnet"}', "resnet"),
        (b" " * (LARGEST_CONFIG + 1), "too many"),
    ],
)
def test_a_file_that_is_no_config_is_refused_by_name(content, part):
    with pytest.raises(RooflinesError, match=part) as refused:
        uploaded_model(content, "config.json")
    assert "config.json" in str(refused.value) or "resnet" in str(refused.value)


@pytest.mark.parametrize(
    "chosen",
    [
        Choices(
            target="llama-3.1-8b",
            drafters=("ngram", "eagle3"),
            acceptance=("ngram=0.3", "eagle3=0.7"),
            tensor_parallel=1,
            draft_length=9,
            verify_length=3,
            batch=8,
            kv_dtype="fp8",
            calibration="textbook",
            cycle_overhead="100 us",
        ),
        Choices(
            target="gpt-oss-20b",
            drafters=("ngram",),
            acceptance=("0.3",),
            tensor_parallel=2,
            expert_parallel=4,
            routing="correlated:0.2",
        ),
    ],
    ids=["dense", "experts"],
)
def test_the_command_answers_the_question_of_the_page(chosen):
    command = chosen.command("h100-sxm5-80gb")
    result = CliRunner().invoke(main, [*command[1:], "--format=json"])
    assert result.exit_code == 0, result.stderr
    asked = json.loads(result.stdout)["question"]
    wanted = chosen.question("h100-sxm5-80gb")
    given = {name: tuple(value) if isinstance(value, list) else value for name, value in asked.items()}
    if isinstance(given["acceptance"], str):  # one for all drafters
        given["acceptance"] = (given["acceptance"],)
    assert given == {name: getattr(wanted, name) for name in asked}
