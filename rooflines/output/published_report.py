"""Writes the report of published speedups: words, tables and figures, all made from tables of speedups."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from rooflines.engines.host import HOST_TIMES
from rooflines.output.figures.published import speedups_figure
from rooflines.output.figures.style import figure_style, save_figure
from rooflines.output.published_tables import (
    acceptance_text,
    impossible_columns,
    percent,
    readable_verdicts,
    speedups_words,
)
from rooflines.output.tables import render
from rooflines.studies.serve import make_machine
from rooflines.validation.published.acceptance import acceptance_columns, validate_acceptance
from rooflines.validation.published.judge import (
    EVERY_SOURCE,
    LOSS,
    LOSSES_FORESEEN,
    PREDICTED_LOSS,
    TARGETS,
    SpeedupValidation,
    predicted_columns,
    unused_columns,
    validate_speedups,
    verdict_columns,
)
from rooflines.validation.published.predict import ASSUMPTIONS

_SPEEDUPS: Final = ("published_speedups.csv", "field_speedups.csv")
_ACCEPTANCE: Final = ("acceptance_profiles.csv", "golden_acceptance_length.csv")
_HEAD: Final = """# Published speedups against predictions

Made by `rooflines report published`. Every row that states enough is predicted from facts alone: device,
model, drafter, acceptance and batch. Nothing is fitted to a row or to its source: time that an engine's host
takes comes from other sources, listed below, and is left out where there are none. An error is
|predicted / measured - 1|, *sign* the share of rows on the right side of 1, *in 90 %* the share inside the
interval; *device time alone* has neither the host's time nor prompts.
"""
_MISSES: Final = """Where predictions miss, and why:

- **EAGLE-3 in vLLM 0.10.1** (specdecodebench2026, 10 to 20 % high): between its draft steps the host rebuilds
  attention metadata, and a profile shows a quarter of the decode time idle for it
  (<https://github.com/vllm-project/vllm/issues/49488>). No other source gives the time, so it is left out.
- **Trees of 60 in SGLang with FlashInfer** (dflash2026, table 5, 13 to 20 % high): this backend waits for the
  device where it plans a pass (<https://github.com/sgl-project/sglang/pull/9588>), and builds a mask for
  every tree; how long either takes is not published.
- **Experts on a B200 at 256 to 512 positions** (dflash2026, table 3, Qwen3-Coder-30B-A3B, 18 to 23 % high):
  the measured cycle is more than twice a plain step that already reads two thirds of the same experts, which
  neither traffic nor arithmetic explains. Kernels that were not tuned for these layers on a new device would:
  AIConfigurator's layers of 128 experts in SGLang take 1.1 to 1.5 times as long at 256 tokens as at 128.
- **How much alike positions choose experts** (specbundle2026): measured models lie between 0.21 and 0.45, and
  one figure serves all here. Ling-flash-2.0 (up to 28 % low) would take more, Kimi-K2 (up to 11 % high) less.
- **Plain steps of models with experts** (specbundle2026, Qwen3-Next, Ling, Kimi-K2): by the throughputs that
  the source prints they take 15 to 20 % longer than predicted, cycles less so, and thus cycle costs come out
  high. Its batches are also emptier than stated while the last requests of a run end.
- **Recurrent layers with blocks** (dflash2026, table 11, Qwen3.5-27B, 24 % high; Qwen3.5-4B and 35B-A3B are
  met): after each cycle SGLang copies the states of accepted positions, which is priced, and waits for the
  device meanwhile (<https://github.com/sgl-project/sglang/pull/12892>); how long is not published.
- **Fewer devices than were used** (specbundle2026, 70B, up to 13 % high): the source does not say over how
  many it ran; its plain speed suggests four where two hold the model.
- **SGLang in field reports** (Qwen3-30B-A3B over 2 and 4 devices, up to 51 % high): plain steps are met
  within a tenth, but 1 to 5 ms of a cycle are missing beside the 2 ms of host time that was measured over
  eight devices. At 32 sequences, the one loss that is not foreseen, the clients saturate, as the report says.
- **vLLM in April 2025** (field reports, 20 to 31 % high): the drafter was launched kernel by kernel until
  <https://github.com/vllm-project/vllm/pull/17211> put it into graphs.
- **Transformers** (host-bound): every pass is launched kernel by kernel, so the host sets the time of all of
  them. Its time by layer differs between machines by a factor of two and is read off two sources only.
- **MTP in llama.cpp on other devices**: its matrix-vector kernels cost more a row, by how much depends on the
  device, and the cost by row of one device only is published beside these reports.
"""


def write_published(folder: Path, data: Path) -> list[Path]:
    """Write the report.

    Args:
        folder: of the report; it is made.
        data: folder with ``speedups/`` and ``acceptance/``.

    Raises:
        FileFormatError: a table is missing.
    """
    folder.mkdir(parents=True, exist_ok=True)
    found = validate_speedups([data / "speedups" / name for name in _SPEEDUPS], make_machine)
    accepted = validate_acceptance([data / "acceptance" / name for name in _ACCEPTANCE])
    texts = {
        "published.md": _page(found) + "\n\n## Acceptance\n\n" + acceptance_text(accepted, "markdown"),
        "sources.csv": render(verdict_columns(found.verdicts), "csv"),
        "rows.csv": render(predicted_columns(found.predicted), "csv"),
        "left_out.csv": render(unused_columns(found.unused), "csv"),
        "acceptance.csv": render(acceptance_columns(accepted.judged), "csv"),
    }
    for name, text in texts.items():
        (folder / name).write_text(text + "\n", encoding="utf-8")
    return [*(folder / name for name in texts), *_figures(found, folder)]


def _figures(found: SpeedupValidation, folder: Path) -> list[Path]:
    written = []
    with figure_style():
        for tier in TARGETS:
            rows = [one for one in found.predicted if one.claim.known.tier == tier]
            if rows:
                path = folder / f"{tier.replace(' ', '_')}.svg"
                save_figure(speedups_figure(rows, tier.capitalize()), path)
                written.append(path)
    return written


def _page(found: SpeedupValidation) -> str:
    parts = [
        _HEAD,
        speedups_words(found),
        render(_targets(found), "markdown", "What was asked, and what was reached"),
        *(f"![{tier}]({tier.replace(' ', '_')}.svg)" for tier in TARGETS),
        render(readable_verdicts(found.verdicts), "markdown", "Errors by source"),
        "Assumed where a source is silent, for all its rows:\n\n"
        + "\n".join(f"- {one}" for one in ASSUMPTIONS),
        render(_hosts(), "markdown", "Host time of engines, each used for rows of other sources only"),
        _MISSES,
        render(
            impossible_columns(found), "markdown", "Impossible rows: the speedup exceeds the tokens per cycle"
        ),
        render(unused_columns(found.unused), "markdown", "Rows left out"),
    ]
    return "\n\n".join(part.strip() for part in parts)


def _targets(found: SpeedupValidation) -> dict[str, list[object]]:
    columns: dict[str, list[object]] = {"tier": [], "what": [], "asked": [], "reached": [], "met": []}
    for verdict in found.verdicts:
        if verdict.source != EVERY_SOURCE:
            continue
        for name, limit in TARGETS.get(verdict.tier, {}).items():
            value = getattr(verdict, name)
            least = name == "rank_correlation"
            met = value is not None and (value >= limit if least else value <= limit)
            shown = f">= {limit:g}" if least else f"<= {percent(limit)}"
            reached = f"{value:.2f}" if least else percent(value)
            for column, cell in zip(
                columns.values(), (verdict.tier, name.replace("_", " "), shown, reached, met), strict=True
            ):
                column.append(cell)
        if verdict.losses and verdict.tier in TARGETS:
            share = verdict.losses_predicted / verdict.losses
            what = f"losses below {LOSS:g} predicted below {PREDICTED_LOSS:g}"
            found_share = (verdict.tier, what, f">= {percent(LOSSES_FORESEEN)}", percent(share))
            for column, cell in zip(columns.values(), (*found_share, share >= LOSSES_FORESEEN), strict=True):
                column.append(cell)
    return columns


def _hosts() -> dict[str, list[object]]:
    return {
        "engine": [one.engine for one in HOST_TIMES],
        "drafters": [", ".join(one.kinds) or "any" for one in HOST_TIMES],
        "device": [one.device or "not stated" for one in HOST_TIMES],
        "devices": [one.ranks for one in HOST_TIMES],
        "plain step (ms)": [1e3 * one.time.plain_s for one in HOST_TIMES],
        "cycle (ms)": [1e3 * one.time.cycle_s for one in HOST_TIMES],
        "and a sequence (ms)": [1e3 * one.time.sequence_s for one in HOST_TIMES],
        "layer (ms)": [1e3 * one.time.layer_s for one in HOST_TIMES],
        "basis": [one.basis for one in HOST_TIMES],
        "source": [one.source for one in HOST_TIMES],
    }
