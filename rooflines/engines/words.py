"""How an engine's vocabulary is written down: the words that it prints and the settings that it takes.

Two engines that print "accept rate", or take a "number of draft tokens", seldom count the same things. Every
difference is stated once, here and in the module of the engine, with the file and the version that it was
read from; readers of results and writers of settings both use it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rooflines.errors import InputError


@dataclass(frozen=True, slots=True)
class Word:
    """A word that an engine prints.

    Attributes:
        word: as it is printed.
        meaning: what is counted, in our names.
        definition: the definition of acceptance that it is (`rooflines.speculation.definitions`); empty where
            it is none.
        source: file and version that say so.
    """

    word: str
    meaning: str
    definition: str
    source: str


@dataclass(frozen=True, slots=True)
class Method:
    """How an engine calls a family of drafters, and what its number of tokens counts.

    Attributes:
        name: the engine's name of the method.
        setting: the setting that fixes how much is drafted.
        anchor: what the setting counts beyond the drafted tokens: 1 where the target's own last token (the
            root of a tree, the anchor of a block) is included, 0 where it is not.
        needs_model: whether the drafter's checkpoint is named apart from the target's.
    """

    name: str
    setting: str
    anchor: int = 0
    needs_model: bool = True

    def setting_value(self, draft_length: int) -> int:
        """The number to write for a draft length."""
        return draft_length + self.anchor

    def draft_length(self, setting_value: int) -> int:
        """The draft length that a setting stands for.

        Raises:
            InputError: the setting leaves nothing to draft.
        """
        length = setting_value - self.anchor
        if length < 1:
            raise InputError(
                f"{self.setting} is {setting_value}, which drafts nothing: it counts the drafted tokens"
                f"{' and one more' if self.anchor else ''}, so give {1 + self.anchor} or more"
            )
        return length


@dataclass(frozen=True, slots=True)
class Engine:
    """An engine's vocabulary.

    Attributes:
        name: as `--emit` and `import` write it.
        title: as people write it.
        version: the release whose sources were read.
        words: what it prints about acceptance.
        methods: family of drafters -> how the engine calls it; families that it cannot run are missing.
        schedule: how draft lengths by batch are set, in one line; empty where they cannot be.
    """

    name: str
    title: str
    version: str
    words: tuple[Word, ...]
    methods: Mapping[str, Method]
    schedule: str

    def method(self, family: str) -> Method:
        """How the engine calls a family of drafters.

        Raises:
            InputError: the engine cannot run it.
        """
        if family not in self.methods:
            raise InputError(
                f"{self.title} {self.version} has no setting for drafters of kind {family!r}: it runs "
                f"{', '.join(self.methods)}"
            )
        return self.methods[family]
