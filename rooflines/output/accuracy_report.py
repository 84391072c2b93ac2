"""Writes the report of accuracy: words, tables and figures, all made from the tables of measured kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from rooflines.output.figures.accuracy import (
    coverage_figure,
    error_figure,
    predicted_figure,
    residual_figure,
    verify_models_figure,
)
from rooflines.output.figures.style import figure_style, save_figure
from rooflines.output.tables import render
from rooflines.output.validation_tables import percent, readable_verdicts
from rooflines.studies.accuracy import MODELS, Accuracy, kernel_verdicts, study_accuracy
from rooflines.studies.accuracy_targets import Target, targets
from rooflines.validation.judge import EVERYWHERE, Verdict, verdicts
from rooflines.validation.judge_tables import left_out_columns, verdict_columns

_DIGITS: Final = 3  # of fractions: a tenth of a percent
_HEAD: Final = """# How accurate predicted times are

Made by `rooflines report accuracy` from tables of measured kernels ({files}).
An error is |predicted / measured - 1|; a group is one device, engine, version, kernel, class and dtype, and
its error is the median over its rows. *Out of sample* means that the constants were fitted on other shapes
(of products: weights; of attention: heads; of experts: sizes and number; of all-reduces: messages) of the
same device and stack, and that the ends of the interval come from other shapes too. *In sample* rows are
those that the shipped constants were fitted to: layers are sums of such products. *Plain* is the roofline of
the datasheet: no efficiency, no floor, hard maximum.
"""
_TRIED: Final = """What was tried for each class, and what was not:

- Products: hard maximum, sum, smooth maximum with fixed and fitted sharpness, rows padded to tiles, waves of
  tiles from a menu; the form of each class is the one that held-out shapes preferred (docs/calibration.md).
- Prefill attention: a smooth maximum, a share saturating in the prompt or in the work of the device, whole
  waves, rows padded to 128. A sum with a serial loop, and the bytes of keys and values before they are
  quantised, served best.
- Experts: a smaller saturation up to one position per expert, as narrow tiles have it, took a point off at no
  constant more. Rows padded to 16, 64 and 128, waves of tiles, bandwidth by the experts in flight, a share of
  the peak by their width, and sharpness of 1 to 10 did not help. Tables have one to three layers a stack, so
  a shape held out is a model never seen. The largest errors are SGLang's 16-bit layers: on H200 that of 8
  experts of 14336 has a table of tuned tiles (E=8,N=14336,device_name=NVIDIA_H200.json among the configs of
  fused_moe in vLLM and SGLang) and that of 128 of 1536 has none, and takes twice as long; on B200 and GB200
  neither has one, and their times part by a factor of 3 to 9 beyond 512 tokens. One tuned layer is not
  enough to fit or to judge a constant by.
- Faulty rows: TensorRT-LLM's nvfp4 layer of Qwen3-235B takes 1.7 times as long on B200 as on GB200 under both
  routings, where no other shape that two devices of one silicon share is more than 1.34 times beyond what
  their datasheets allow. Such rows are left out by name.
- All-reduces: custom kernels go from one stage to two at 256 or 512 KiB (csrc/custom_all_reduce.cuh of vLLM),
  and leave messages of 8 to 64 MiB and more, by engine, to NCCL; NCCL takes the faster of a quick protocol
  with half of the bandwidth and one for large messages with a latency of its own. With that one latency,
  errors above 2 MiB went from 19 to 9 % (NCCL), 14 to 9 % (SGLang) and 15 to 11 % (TensorRT-LLM); vLLM's stay
  at 20 %: it has a third kernel there, over symmetric memory. A latency for each hop, or a bandwidth of its
  own for large messages, did not help further.
- Verify attention: no public table has several new positions over a long cache, so a verify pass of up to 32
  query rows per kv head is taken as equal to decode (as kernels of one new position and as many rows are),
  and anything wider is not measured.
- Intervals: the 5 and 95 % quantiles of other shapes hold 84 % of the rows of a shape (75 to 89 % by group).
  Student's factor for the number of shapes gave 92 % (81 to 99), an effective number of shapes out of the
  correlation within them 88 % (78 to 93). What is taken, the widening that shapes left out in turn need,
  gives 90 % (85 to 95) in every group. It is told by the shapes there are: with half of them fitted to
  (5 to 7 a group) and the other half judged, coverage is 93 % with a spread of 5 points between groups, of
  which half lie within 85 to 95 %.
"""


def write_accuracy(folder: Path, data: Path) -> list[Path]:
    """Write the report.

    Args:
        folder: of the report; it is made.
        data: folder with tables of measured kernels.

    Returns:
        The files.

    Raises:
        CannotTellError: no file of `data` is a table of kernels.
    """
    found = study_accuracy(data)
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, columns in _tables(found).items():
        path = folder / f"{name}.csv"
        path.write_text(render(_rounded(columns), "csv") + "\n", encoding="utf-8")
        written.append(path)
    path = folder / "accuracy.md"
    path.write_text(accuracy_text(found) + "\n", encoding="utf-8")
    written.append(path)
    kernels = kernel_verdicts(found)
    with figure_style():
        for name, figure in (
            ("predicted", predicted_figure(found.kernels)),
            ("errors", error_figure(kernels)),
            ("residuals", residual_figure(found.kernels)),
            ("coverage", coverage_figure(kernels)),
            ("verify_models", verify_models_figure(found.verify_models, MODELS)),
        ):
            path = folder / f"{name}.svg"
            save_figure(figure, path)
            written.append(path)
    return written


def _tables(found: Accuracy) -> dict[str, dict[str, list[Any]]]:
    made = targets(found)
    return {
        "targets": {
            "target": [one.what for one in made],
            "asked": [one.asked for one in made],
            "reached": [one.reached for one in made],
            "plain": [one.plain for one in made],
            "worst_group": [one.worst for one in made],
            "groups": [one.groups for one in made],
            "over_groups": [one.over for one in made],
            "standing": [one.standing for one in made],
            "met": [one.met for one in made],
        },
        "kernels": verdict_columns(kernel_verdicts(found)),
        "layers": verdict_columns(verdicts(found.layers)),
        "transferred": verdict_columns(verdicts(found.transferred)),
        "verify_models": found.verify_models,
        "left_out": left_out_columns(found.left_out),
    }


def _rounded(columns: Mapping[str, Sequence[Any]]) -> dict[str, list[Any]]:
    return {
        name: [round(value, _DIGITS) if isinstance(value, float) else value for value in values]
        for name, values in columns.items()
    }


def accuracy_text(found: Accuracy) -> str:
    """The report in Markdown."""
    made = targets(found)
    reached = sum(one.met is True for one in made)
    told = sum(one.met is not None for one in made)
    parts = [
        _HEAD.format(files=", ".join(f"`{name}`" for name in found.files)),
        f"{reached} of {told} targets are met.\n",
        render(_target_columns(made), "markdown"),
        "",
        _TRIED,
        "## Figures\n",
        *(
            f"![{title}]({name}.svg)\n"
            for name, title in (
                ("predicted", "Predicted against measured, held out by shape, beside the plain roofline"),
                ("errors", "Error by device and region: filled with constants, hollow the plain roofline"),
                ("residuals", "Residuals by size"),
                ("coverage", "Coverage of the 90 % intervals by group"),
                (
                    "verify_models",
                    "Models of a verify pass: the table and the additive one had the layer measured",
                ),
            )
        ),
        "## Kernels, held out by shape\n",
        "Region by region in [kernels.csv](kernels.csv).\n",
        render(readable_verdicts(_whole(kernel_verdicts(found))), "markdown"),
        "\n## Layers and verify premiums, by the shipped calibrations\n",
        render(readable_verdicts(verdicts(found.layers)), "markdown"),
        "\n## 16-bit products of each device, by the medians of the other devices\n",
        render(readable_verdicts(verdicts(found.transferred)), "markdown"),
        "\n## Rows left out\n",
        render(_reasons(found), "markdown"),
    ]
    return "\n".join(parts).rstrip()


def _whole(found: Sequence[Verdict]) -> list[Verdict]:
    """Verdicts over all regions; of a group with one region, that one."""
    regions: dict[str, int] = {}
    for one in found:
        regions[str(one.group)] = regions.get(str(one.group), 0) + 1
    return [one for one in found if one.region == EVERYWHERE or regions[str(one.group)] == 1]


def _target_columns(made: Sequence[Target]) -> dict[str, list[Any]]:
    return {
        "target": [one.what for one in made],
        "asked": [_asked(one) for one in made],
        "reached": [percent(one.reached) for one in made],
        "plain": [percent(one.plain) for one in made],
        "worst group": [percent(one.worst) for one in made],
        "groups": [one.groups for one in made],
        "over groups": [one.over for one in made],
        "standing": [one.standing for one in made],
        "met": ["" if one.met is None else "yes" if one.met else "no" for one in made],
    }


def _asked(one: Target) -> str:
    return f"{'at least' if 'coverage' in one.what else 'at most'} {percent(one.asked)}"


def _reasons(found: Accuracy) -> dict[str, list[Any]]:
    """Rows left out, by class and reason."""
    counted: dict[tuple[str, str], int] = {}
    for one in found.left_out:
        key = one.group.operator.replace("_", " "), one.reason
        counted[key] = counted.get(key, 0) + one.rows
    return {
        "class": [operator for operator, _ in counted],
        "rows": list(counted.values()),
        "reason": [reason for _, reason in counted],
    }
