from __future__ import annotations

import pytest
from pydantic import Field, ValidationError, field_validator, model_validator

from rooflines.errors import ConfigError, FileFormatError
from rooflines.facts import Fact


class Door(Fact):
    width: int
    height: float = 2.0
    label: str | None = None

    @field_validator("width")
    @classmethod
    def _wide_enough(cls, width: int) -> int:
        if width < 1:
            raise ValueError("must be at least 1")
        return width

    @model_validator(mode="after")
    def _in_proportion(self) -> Door:
        if self.width > 3 * self.height:
            raise ValueError(f"width {self.width} is more than three times height {self.height:g}")
        return self


class House(Fact):
    doors: dict[str, Door] = Field(default_factory=dict)


def test_good_data_is_read():
    assert Door.read({"width": 3}, "door.toml") == Door(width=3, height=2.0, label=None)


def test_a_fact_is_frozen_and_can_be_a_key():
    door = Door(width=3)
    with pytest.raises(ValidationError, match="frozen"):
        door.width = 4
    assert {door: "front"}[Door(width=3)] == "front"


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ({}, "door.toml: width: Field required"),
        ({"width": 3, "widht": 3}, "door.toml: widht: unknown field; did you mean 'width'? (given 3)"),
        ({"width": 3, "colour": "red"}, "door.toml: colour: unknown field (given 'red')"),
        ({"width": 9, "height": 1.0}, "door.toml: width 9 is more than three times height 1"),
        ({"width": "3"}, "width: Input should be a valid integer (given '3')"),
        ({"width": 3.5}, "width: Input should be a valid integer"),
        ({"width": True}, "width: Input should be a valid integer (given True)"),
        ({"width": 3, "label": 7}, "label: Input should be a valid string (given 7)"),
        ({"width": 0}, "door.toml: width: must be at least 1 (given 0)"),
        ([1, 2], "door.toml: value: Input should be a valid dictionary"),
    ],
)
def test_a_mistake_is_one_line_with_file_field_rule_and_what_was_given(data, says):
    with pytest.raises(FileFormatError) as caught:
        Door.read(data, "door.toml")
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_rule_about_the_whole_is_told_without_repeating_the_whole():
    with pytest.raises(FileFormatError) as caught:
        Door.read({"width": 9, "height": 1.0}, "door.toml")
    assert str(caught.value) == "door.toml: width 9 is more than three times height 1"


def test_what_the_rule_says_already_is_not_said_twice():
    with pytest.raises(FileFormatError) as caught:
        House.read({"doors": {"front": {"width": 3, "label": 7}}}, "house.toml")
    assert str(caught.value).count("7") == 1


def test_a_nested_field_is_named_by_its_path():
    with pytest.raises(FileFormatError, match=r"^house\.toml: doors\.front\.width: Field required$"):
        House.read({"doors": {"front": {}}}, "house.toml")


def test_several_mistakes_are_told_together_but_not_endlessly():
    with pytest.raises(FileFormatError) as caught:
        Door.read({f"wrong{number}": number for number in range(6)} | {"width": 1}, "door.toml")
    assert str(caught.value).count("unknown field") == 3
    assert str(caught.value).endswith("; and 3 more")


def test_a_long_value_is_cut_short():
    with pytest.raises(FileFormatError) as caught:
        Door.read({"width": "x" * 1000}, "door.toml")
    assert len(str(caught.value)) < 150
    assert "..." in str(caught.value)


def test_the_caller_chooses_the_error():
    with pytest.raises(ConfigError, match=r"^config\.json: width"):
        Door.read({}, "config.json", ConfigError)
