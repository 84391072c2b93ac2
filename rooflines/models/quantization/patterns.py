"""Lists of module names as checkpoints write them: plain names, globs (``*``) and regexes (``re:``).

Checkpoints of one model spell the way to a layer differently (``model.layers.3``,
``model.language_model.layers.3``, ``language_model.model.layers.3``); names are compared from the layer on.
A name stands for the module and everything in it: ``model.layers.*.self_attn`` covers ``q_proj`` there.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, Literal

from rooflines.errors import ConfigError

# How a plain name matches: as a run of whole components (transformers: ``gate`` is not ``gate_proj``), or
# anywhere in the path (AutoAWQ: ``layers.0.`` and ``self_attn`` are substrings).
PlainNames = Literal["components", "substrings"]

_WAY_TO_TEXT: Final = re.compile(
    r"^(?:(?:model|language_model|text_model|llm|transformer|gpt_neox|decoder|backbone)\.)+(?=.)"
)
# A pattern without a digit cannot tell one digit from another: one answer then serves many layers.
_DIGIT: Final = re.compile(r"[0-9]")
# A name or a beginning of names that lies in one layer: container, number, and the rest.
_IN_LAYER: Final = re.compile(r"(?:[A-Za-z_]+\.)*?(?P<number>\d+)(?:\..*|$)")
_OPENING: Final = re.compile(r"(?:[A-Za-z_]+\.)*(?P<number>\d+)")
_SINGLE_EXPERT: Final = re.compile(r"experts\\?\.[0-9\[(]")
_GLOB: Final = re.compile(r"[*?]")


@lru_cache(maxsize=8192)
def canonical(path: str) -> str:
    """A module path without the wrappers around the text model: ``layers.3.self_attn.q_proj``."""
    return _WAY_TO_TEXT.sub("", path)


@dataclass(frozen=True, slots=True)
class Patterns:
    """A list of module names, ready to be asked about many modules.

    Attributes:
        names: plain names without a number: runs of whole components anywhere in a path.
        numbered: plain names with a number, canonical: a module or what contains it.
        starts: beginnings of names (globs whose only star is the last character), canonical.
        substrings: texts to find anywhere in a path.
        regexes: everything else.
        single_experts: whether some pattern tells the experts of a layer apart.
        by_layer: of the numbered names and beginnings, those that lie in one layer, by its number.
        openings: numbers that beginnings end in: ``layers.1*`` covers layers 1 and 10 to 19.
        across_layers: whether something else may tell layers apart.
    """

    names: frozenset[str] = frozenset()
    numbered: frozenset[str] = frozenset()
    starts: tuple[str, ...] = ()
    substrings: tuple[str, ...] = ()
    regexes: tuple[re.Pattern[str], ...] = ()
    single_experts: bool = False
    by_layer: Mapping[int, frozenset[str]] = field(default_factory=dict)
    openings: tuple[str, ...] = ()
    across_layers: bool = False

    @classmethod
    def read(cls, entries: Iterable[str], where: str, plain: PlainNames = "components") -> Patterns:
        """Sort the entries of an exclusion or target list.

        Args:
            entries: as the checkpoint lists them.
            where: the key, for messages.
            plain: what an entry without ``*`` and ``re:`` means.

        Raises:
            ConfigError: an entry is empty or no valid regex.
        """
        names: set[str] = set()
        numbered: set[str] = set()
        starts, substrings, regexes = [], [], []
        single_experts = False
        for entry in entries:
            if not entry.strip("."):
                raise ConfigError(f"{where}: an empty module name says nothing; remove it")
            single_experts = single_experts or _SINGLE_EXPERT.search(entry) is not None
            if entry.startswith("re:"):
                regexes.append(_compile(entry.removeprefix("re:"), entry, where))
            elif _GLOB.search(entry):
                start = entry[:-1]
                if entry.endswith("*") and not _GLOB.search(start) and canonical(start):
                    starts.append(canonical(start))
                else:
                    regexes.append(_compile(_glob_regex(entry), entry, where))
            elif plain == "substrings":
                substrings.append(canonical(entry))
            else:
                name = canonical(entry.strip("."))
                (numbered if _DIGIT.search(name) else names).add(name)
        openings = tuple(found["number"] for start in starts if (found := _OPENING.fullmatch(start)))
        closed = [start for start in starts if _DIGIT.search(start) and not _OPENING.fullmatch(start)]
        placed = _place([*numbered, *closed])
        elsewhere = (*substrings, *(regex.pattern for regex in regexes))
        return cls(
            names=frozenset(names),
            numbered=frozenset(numbered),
            starts=tuple(starts),
            substrings=tuple(substrings),
            regexes=tuple(regexes),
            single_experts=single_experts,
            by_layer=placed or {},
            openings=openings,
            across_layers=placed is None or any(_DIGIT.search(text) for text in elsewhere),
        )

    @property
    def empty(self) -> bool:
        """Whether nothing is listed."""
        return not (self.names or self.numbered or self.starts or self.substrings or self.regexes)

    def of_layer(self, index: int) -> Hashable:
        """What the list says of one layer and not of others; the number itself where that is not known."""
        if self.across_layers:
            return index
        number = str(index)
        openings = tuple(opening for opening in self.openings if number.startswith(opening))
        # A regex without a digit can still count them ("layers..mlp" has one).
        return self.by_layer.get(index), openings, len(number) if self.regexes else 0

    def match(self, path: str) -> bool:
        """Whether the list covers the module at `path` (``model.layers.3.self_attn.q_proj``)."""
        if self.empty:
            return False
        plain = canonical(path)
        if self.starts and plain.startswith(self.starts):
            return True
        if self.names and not self.names.isdisjoint(_runs(_DIGIT.sub("0", plain))):
            return True
        if self.numbered and not self.numbered.isdisjoint(_ancestors(plain)):
            return True
        if any(text in plain for text in self.substrings):
            return True
        return any(_regex_matches(regex, path) for regex in self.regexes)


def _compile(pattern: str, entry: str, where: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as mistake:
        raise ConfigError(f"{where}: {entry!r} is no valid regular expression ({mistake})") from None


def _glob_regex(glob: str) -> str:
    """A glob as a regex that also covers what lies below the named module."""
    body = "".join({"*": ".*", "?": "."}.get(character, re.escape(character)) for character in glob)
    return rf"{body}(?:\..*)?\Z"


@lru_cache(maxsize=4096)
def _runs(path: str) -> frozenset[str]:
    """All runs of whole components of a path."""
    parts = path.split(".")
    count = len(parts)
    return frozenset(
        ".".join(parts[first:last]) for first in range(count) for last in range(first + 1, count + 1)
    )


def _place(texts: Iterable[str]) -> dict[int, frozenset[str]] | None:
    """Texts by the layer they lie in, without its number; None where one lies in no single layer."""
    found: dict[int, set[str]] = {}
    for text in texts:
        match = _IN_LAYER.fullmatch(text)
        if match is None:
            return None
        rest = f"{text[: match.start('number')]}*{text[match.end('number') :]}"
        found.setdefault(int(match["number"]), set()).add(rest)
    return {number: frozenset(rests) for number, rests in found.items()}


def _ancestors(path: str) -> Iterator[str]:
    """The path and what contains it, from the inside out."""
    while path:
        yield path
        path = path.rpartition(".")[0]


def _regex_matches(regex: re.Pattern[str], path: str) -> bool:
    if not _DIGIT.search(regex.pattern):
        path = _DIGIT.sub("0", path)
    return _regex_matches_spelling(regex, path)


@lru_cache(maxsize=8192)
def _regex_matches_spelling(regex: re.Pattern[str], path: str) -> bool:
    """Match from the beginning (as compressed-tensors and GPTQModel do), under each spelling of the path."""
    plain = canonical(path)
    spellings = {path, f"model.{plain}"}
    if "language_model" in regex.pattern:
        spellings |= {f"model.language_model.{plain}", f"language_model.model.{plain}"}
    return any(regex.match(spelling) for spelling in spellings)
