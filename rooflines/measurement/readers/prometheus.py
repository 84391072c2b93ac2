"""Prometheus text of vLLM and SGLang servers: counters differenced, positions kept.

Format: https://prometheus.io/docs/instrumenting/exposition_formats/. vLLM exports counters since the start of
the server (vllm/v1/spec_decode/metrics.py, 0.33.0), so that two scrapes are needed to see one run; SGLang
exports gauges of the last interval (srt/observability/metrics_collector.py, 0.5.23), of which a difference
means nothing.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Final, TypeAlias

from rooflines.engines.vllm import ACCEPTED_PER_POSITION, ACCEPTED_TOKENS, DRAFT_TOKENS, DRAFTS
from rooflines.errors import FileFormatError, InputError
from rooflines.measurement.readers.results import AcceptanceRecord, Imported, Source

Labels: TypeAlias = Mapping[str, str]
# model -> name -> position (-1 for none) -> value
Counters: TypeAlias = dict[str, dict[str, dict[int, float]]]

_SAMPLE: Final = re.compile(
    r"(?P<name>[A-Za-z_:][\w:]*)(?:\{(?P<labels>.*)\})?\s+(?P<value>\S+)(?:\s+-?\d+)?"
)
_PREFIXES: Final = ("vllm:spec_decode_", "sglang:spec_")
_LABEL: Final = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_V0: Final = "vllm:spec_decode_draft_acceptance_rate"
_SGLANG_LENGTH: Final = "sglang:spec_accept_length"
_SGLANG_WIDTH: Final = "sglang:spec_num_draft_tokens"


def read_metrics(source: Source) -> Imported:
    """Acceptance from ``/metrics``, by model; of one run where an earlier scrape is given.

    Raises:
        FileFormatError: no counters of speculation, or those of vLLM's V0 engine.
        InputError: the earlier scrape is later, or the server was started anew in between.
    """
    now = _scrape(source.text)
    if any(_V0 in names for names in now.values()):
        raise FileFormatError(
            f"{source.where} has {_V0}, a gauge of vLLM's V0 engine (before 0.9), which is not known"
        )
    if any(_SGLANG_LENGTH in names for names in now.values()):
        return _sglang(now, source)
    if source.before is not None:
        now = _difference(now, _scrape(source.before))
    records = [record for model, names in now.items() if (record := _vllm(model, names)) is not None]
    if not records:
        if source.before is not None and any(DRAFTS in names for names in now.values()):
            raise FileFormatError(
                f"{source.where} counts no drafts since the earlier scrape: are both the same?"
            )
        raise FileFormatError(
            f"{source.where} counts no drafts: neither {DRAFTS}_total of vLLM nor {_SGLANG_LENGTH} of SGLang"
        )
    whole = "since the server was started: give the scrape from before the run to see the run alone"
    return Imported(
        source=f"vLLM /metrics, {source.where}",
        acceptance=tuple(records),
        notes=() if source.before is not None else (whole,),
    )


def _scrape(text: str) -> Counters:
    """Every sample about speculation, summed over engines (replicas) of a model."""
    found: Counters = {}
    for line in text.splitlines():
        match = _SAMPLE.fullmatch(line.strip())
        if match is None or not match["name"].startswith(_PREFIXES):
            continue
        labels = dict(_LABEL.findall(match["labels"] or ""))
        name, written = match["name"].removesuffix("_total"), match["value"]
        position = labels.get("position", "-1")
        try:
            value, place = float(written), int(position)
        except ValueError:
            raise FileFormatError(f"metrics: {name} has position {position} and value {written}") from None
        if not math.isfinite(value) or value < 0:
            raise FileFormatError(f"metrics: {name} is {written}, which counts nothing")
        cells = found.setdefault(labels.get("model_name", "all"), {}).setdefault(name, {})
        cells[place] = cells.get(place, 0.0) + value
    return found


def _difference(now: Counters, before: Counters) -> Counters:
    changed: Counters = {}
    for model, names in now.items():
        earlier = before.get(model, {})
        for name, cells in names.items():
            for position, value in cells.items():
                rise = value - earlier.get(name, {}).get(position, 0.0)
                if rise < 0:
                    raise InputError(
                        f"{name} falls by {-rise:g} from the earlier scrape to the later: swapped, or "
                        "was the server started anew in between?"
                    )
                changed.setdefault(model, {}).setdefault(name, {})[position] = rise
    return changed


def _vllm(model: str, names: Mapping[str, Mapping[int, float]]) -> AcceptanceRecord | None:
    cycles = names.get(DRAFTS, {}).get(-1, 0.0)
    if cycles <= 0:
        return None
    tau = 1.0 + names.get(ACCEPTED_TOKENS, {}).get(-1, 0.0) / cycles
    places = names.get(ACCEPTED_PER_POSITION, {})
    if places:
        return AcceptanceRecord(
            label=model,
            definition="survival",
            values=tuple(places[place] / cycles for place in sorted(places)),
            draft_length=len(places),
            cycles=round(cycles),
            tokens_per_cycle=tau,
            meaning=f"{ACCEPTED_PER_POSITION}_total / {DRAFTS}_total: survival",
        )
    return AcceptanceRecord.of_length(
        tau,
        label=model,
        draft_length=max(1, round(names.get(DRAFT_TOKENS, {}).get(-1, cycles) / cycles)),
        cycles=round(cycles),
        meaning=f"1 + {ACCEPTED_TOKENS}_total / {DRAFTS}_total, at the mean draft length",
    )


def _sglang(now: Counters, source: Source) -> Imported:
    records = []
    for model, names in now.items():
        lengths = names.get(_SGLANG_LENGTH, {})
        if not lengths or lengths[-1] <= 0:
            continue
        width = names.get(_SGLANG_WIDTH, {}).get(-1, 0.0)
        draft_length = source.draft_length or int(width) - 1
        if draft_length < 1:
            raise FileFormatError(
                f"{source.where} has no {_SGLANG_WIDTH}: state the draft length, num_draft_tokens - 1"
            )
        records.append(
            AcceptanceRecord.of_length(
                lengths[-1],
                label=model,
                draft_length=draft_length,
                cycles=None,
                meaning=f"{_SGLANG_LENGTH}: bonus included, of the last interval",
            )
        )
    if not records:
        raise FileFormatError(f"{source.where}: {_SGLANG_LENGTH} is 0, so nothing was decoded lately")
    return Imported(
        source=f"SGLang /metrics, {source.where}",
        acceptance=tuple(records),
        notes=("gauges of the last interval only; the log has every interval",),
    )
