from __future__ import annotations

import pytest

from rooflines.errors import ConfigError, UnsupportedArchitectureError
from rooflines.models.config_view import MOST_ELEMENTS, ConfigView


def view(**data) -> ConfigView:
    return ConfigView(data, "model")


class TestSizes:
    def test_the_first_spelling_that_is_given_counts(self):
        assert view(n_embd=768).size("hidden_size", "n_embd") == 768
        assert view(n_embd=768, hidden_size=768).size("hidden_size", "n_embd") == 768
        assert view(hidden_size=None, n_embd=768).size("hidden_size", "n_embd") == 768

    def test_spellings_that_disagree_are_refused(self):
        with pytest.raises(ConfigError, match="hidden_size 1 and n_embd 2 contradict each other"):
            view(n_embd=2, hidden_size=1).size("hidden_size", "n_embd")

    @pytest.mark.parametrize(
        "value", ["128", True, False, 0, -1, 1.5, 128.0, [1], {}, MOST_ELEMENTS + 1, 10**40, float("inf")]
    )
    def test_only_positive_whole_numbers_are_sizes(self, value):
        with pytest.raises(ConfigError, match=r"hidden_size is .* must be a whole number from 1"):
            view(hidden_size=value).size("hidden_size")

    def test_missing_and_null_are_told_apart_in_words(self):
        with pytest.raises(ConfigError, match="hidden_size or n_embd is missing"):
            view().size("hidden_size", "n_embd")
        with pytest.raises(ConfigError, match="hidden_size is null"):
            view(hidden_size=None).size("hidden_size")

    def test_missing_and_null_are_told_apart_in_code(self):
        assert view().missing("q_lora_rank")
        assert not view(q_lora_rank=None).missing("q_lora_rank")
        assert not view(q_lora_rank=None).has("q_lora_rank")

    def test_counts_may_be_zero(self):
        assert view(experts=0).count("experts") == 0
        assert view(experts=None).count("experts", default=3) == 3
        with pytest.raises(ConfigError, match="missing"):
            view().count("experts")
        with pytest.raises(ConfigError, match="from 0"):
            view(experts=-1).count("experts", default=0)


class TestOtherValues:
    def test_flags(self):
        assert view(tied=True).flag("tied", default=False)
        assert view(tied=None).flag("tied", default=True)
        for value in (1, 0, "true", []):
            with pytest.raises(ConfigError, match="true or false"):
                view(tied=value).flag("tied", default=True)

    def test_numbers(self):
        assert view(mult=2.625).number("mult") == 2.625
        for value in (0, -1.0, float("nan"), float("inf"), "2", True, None):
            with pytest.raises(ConfigError, match="mult"):
                view(mult=value).number("mult")
        with pytest.raises(ConfigError, match="missing"):
            view().number("mult")

    def test_texts(self):
        assert view(kind="x").text("kind") == "x"
        assert view().text("kind", "y") == "y"
        with pytest.raises(ConfigError, match="missing"):
            view().text("kind")
        with pytest.raises(ConfigError, match="a string"):
            view(kind=3).text("kind", "y")


class TestLists:
    def test_one_number_serves_all_layers(self):
        assert view(width=5).sizes("width", length=3) == (5, 5, 5)
        assert view(width=[5, 6, 7]).sizes("width", length=3) == (5, 6, 7)

    def test_null_and_zero_in_a_list_mean_none_only_where_that_is_allowed(self):
        assert view(heads=[8, None, 0]).sizes("heads", length=3, nothing=True) == (8, 0, 0)
        for entry in (None, 0, False, "8", -1, 1.5):
            with pytest.raises(ConfigError, match="entry"):
                view(heads=[8, entry]).sizes("heads", length=2)
        with pytest.raises(ConfigError, match="entry False"):
            view(heads=[8, False]).sizes("heads", length=2, nothing=True)

    def test_a_list_needs_one_entry_a_layer(self):
        with pytest.raises(ConfigError, match="2 entries for 3 layers"):
            view(width=[5, 6]).sizes("width", length=3)

    def test_words(self):
        allowed = {"full": 1, "window": 2}
        assert view(types=["full", "window"]).choices("types", 2, allowed) == (1, 2)
        with pytest.raises(UnsupportedArchitectureError, match="types has 'conv', which is not modelled"):
            view(types=["full", "conv"]).choices("types", 2, allowed)
        for value in ("full", None, 3, {"a": 1}):
            with pytest.raises(ConfigError, match="types"):
                view(types=value).choices("types", 2, allowed)


class TestLevelsAndReading:
    def test_messages_name_the_way(self):
        outer = view(text_config={"hidden_size": "x"})
        with pytest.raises(ConfigError, match=r"text_config\.hidden_size is 'x'"):
            outer.level("text_config").size("hidden_size")
        for value in (None, 3, [1], "x"):
            with pytest.raises(ConfigError, match="text_config"):
                view(text_config=value).level("text_config")

    def test_what_was_not_read_is_known(self):
        seen = view(hidden_size=8, extra=1, more=2, _name_or_path="x")
        seen.size("hidden_size")
        assert seen.unread() == ("extra", "more")
        seen.disregard("more")
        assert seen.unread() == ("extra",)

    def test_refusals(self):
        for value in (None, False, 0, [], "", {}):
            view(chunk=value).refuse("chunk")
        with pytest.raises(UnsupportedArchitectureError, match="chunk = 8 is not modelled: why"):
            view(chunk=8).refuse("chunk", "why")

    def test_long_values_are_cut_in_messages(self):
        with pytest.raises(ConfigError) as caught:
            view(hidden_size=list(range(1000))).size("hidden_size")
        assert len(str(caught.value)) < 200
