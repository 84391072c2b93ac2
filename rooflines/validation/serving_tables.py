"""Tables of serving benchmarks: one row a configuration, with time per token and time to first token.

The columns are those of AIConfigurator's `silicon_sample.csv` (https://github.com/ai-dynamo/aiconfigurator):
system, backend, model_path, gemm_quant_mode, tp_size, moe_ep_size, attention_dp_size, isl, osl, concurrency,
batch_size, silicon_ttft_ms, silicon_tpot_ms, origin_file.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from rooflines.costs.setting import Parallelism
from rooflines.errors import FileFormatError, RooflinesError
from rooflines.hardware.profile import HardwareProfile
from rooflines.models.readers import read_model
from rooflines.models.spec import ModelSpec
from rooflines.validation.kernel_tables.cells import LINE, read_cells
from rooflines.validation.kernel_tables.names import find_device, format_of
from rooflines.validation.serving_settings import Settings, from_inferencemax, settings_of

_TEXTS: Final = ("system", "backend", "backend_version", "model_path", "gemm_quant_mode", "origin_file")
_NUMBERS: Final = (
    "tp_size",
    "moe_ep_size",
    "attention_dp_size",
    "isl",
    "osl",
    "concurrency",
    "batch_size",
    "silicon_ttft_ms",
    "silicon_tpot_ms",
)
_TIMES: Final = ("silicon_ttft_ms", "silicon_tpot_ms")
# Counts and milliseconds beyond it are a slip.
_LARGEST: Final = 1e9
_NEEDED: Final = ("system", "model_path", "tp_size", "isl", "osl", "silicon_ttft_ms", "silicon_tpot_ms")
# HGX and DGX boards link eight devices; larger groups in these tables are racks whose split into prefill and
# decode is not recorded.
_LINKED: Final = 8
# InferenceMAX's Blackwell servers run with an fp8 cache (70b_fp4_b200_docker.sh, dsr1_fp4_b200.sh); commands
# for Hopper in its README pass no such flag, and what two H100 held of long requests shows that it was off.
# Checkpoints that NVIDIA quantised for TensorRT-LLM ask for it (kv_cache_quant_algo in hf_quant_config.json).
_EIGHT_BITS: Final = ("fp8", "nvfp4")
_QUANTISED: Final = re.compile(r"-FP8$", re.IGNORECASE)
# InferenceMAX runs DeepSeek-R1 on TensorRT-LLM with drafted tokens and without (dsr1-fp8-b200-trt and
# dsr1-fp8-b200-trt-mtp in .github/configs/nvidia-master.yaml of https://github.com/SemiAnalysisAI/InferenceX).
# Tables hold both, some for one configuration, up to 1.8 times apart.
_WITH_MTP: Final = "DeepSeek-R1"
_BLACKWELL: Final = "Blackwell"


@dataclass(frozen=True, slots=True)
class ServingRow:
    """A benchmark run.

    Attributes:
        file: name of the table.
        line: of the row in it.
        texts: its words.
        numbers: its numbers; NaN where the cell is empty.
        fault: why its numbers cannot be used; empty where they can.
    """

    file: str
    line: int
    texts: Mapping[str, str]
    numbers: Mapping[str, float]
    fault: str = ""

    @property
    def sequences(self) -> float:
        """Requests in the system at once, over all devices."""
        given = self.numbers["concurrency"]
        return self.numbers["batch_size"] if math.isnan(given) else given

    @property
    def tpot_s(self) -> float:
        """Measured time per output token (s)."""
        return self.numbers["silicon_tpot_ms"] / 1e3

    @property
    def ttft_s(self) -> float:
        """Measured time to first token (s)."""
        return self.numbers["silicon_ttft_ms"] / 1e3

    @property
    def source(self) -> tuple[str, str, str, str, str]:
        """Rows with the same origin, system, backend, model and format are judged together."""
        words = ("origin_file", "system", "backend", "model_path", "gemm_quant_mode")
        texts = [self.texts[word] for word in words]
        return texts[0], texts[1], texts[2], texts[3], texts[4]


@dataclass(frozen=True, slots=True)
class ServedAs:
    """What a row ran, in words of this package.

    Attributes:
        device: profile id.
        model: the model.
        weights: format of linear layers; None for the checkpoint's.
        kv: format of cached keys and values; None for the checkpoint's.
        parallelism: over how many devices.
        prompt: tokens in.
        output: tokens out.
        sequences: requests at once, of one batch (a group of devices that shares experts has several).
        at_most: sequences that one batch holds at most.
        settings: what the table does not say.
    """

    device: str
    model: ModelSpec
    weights: str | None
    kv: str | None
    parallelism: Parallelism
    prompt: int
    output: int
    sequences: float
    at_most: int
    settings: Settings

    @property
    def mean_output(self) -> float:
        """Mean tokens out."""
        return self.output * (1.0 + self.settings.shortest) / 2.0


def read_serving(path: Path) -> list[ServingRow]:
    """Read a table of serving benchmarks.

    Raises:
        FileFormatError: not a table, or a missing column.
    """
    table = read_cells(path)
    missing = [name for name in _NEEDED if name not in table.columns]
    if not {"concurrency", "batch_size"} & set(table.columns):
        missing.append("concurrency")
    if missing:
        raise FileFormatError(f"table {path} has no column {', '.join(missing)}: is it a serving benchmark?")
    return [_row(path.name, cells) for cells in table.to_dict("records")]


def _row(file: str, cells: Mapping[Any, Any]) -> ServingRow:
    numbers, faults = {}, []
    for name in _NUMBERS:
        numbers[name], fault = _number(name, str(cells.get(name, "")))
        faults += [fault] if fault else []
    texts = {name: str(cells.get(name, "")) for name in _TEXTS}
    return ServingRow(file, int(cells[LINE]), texts, numbers, next(iter(faults), ""))


def _number(name: str, cell: str) -> tuple[float, str]:
    """A cell as a number (NaN where it is empty), and what is wrong with it, if anything is."""
    try:
        value = float(cell or "nan")
    except ValueError:
        return math.nan, f"{name} {cell!r} is no number"
    if math.isnan(value):
        return value, f"{name} is not stated" if name in _NEEDED else ""
    if value < 0 or (value == 0 and name in _NEEDED) or value > _LARGEST:
        return value, f"{name} {cell} lies outside what can be: above 0, at most {_LARGEST:g}"
    if value % 1.0 and name not in _TIMES:
        return value, f"{name} {cell} is not a whole number"
    return value, ""


def served_as(row: ServingRow) -> ServedAs | str:
    """What a row ran, or why it is left out."""
    if row.fault:
        return row.fault
    device = _device(row.texts["system"])
    if isinstance(device, str):
        return device
    mode = row.texts["gemm_quant_mode"]
    if mode and format_of(mode) is None:
        return f"format {mode!r} is not known"
    tensor = int(row.numbers["tp_size"])
    expert = int(_or(row.numbers["moe_ep_size"], 1.0)) or 1
    replicas = int(_or(row.numbers["attention_dp_size"], 1.0)) or 1
    if tensor > _LINKED:
        return "more devices in a group than a board links: a rack whose split into pools is not recorded"
    if row.texts["backend"] == "trtllm" and _WITH_MTP in row.texts["model_path"]:
        return "run with or without the model's own drafts (MTP), which the table does not tell"
    if replicas > 1 and (tensor * replicas != expert):
        return "degrees that contradict each other: attention groups do not fill the experts' devices"
    sequences = row.sequences / replicas
    if not sequences >= 1:
        return "neither concurrency nor batch size"
    try:
        # A checkpoint quantised by others has the shapes of the original; its format is a column of its own.
        model = _model(_QUANTISED.sub("", row.texts["model_path"]))
        parallelism = Parallelism(tensor, expert)
    except RooflinesError as error:
        return str(error)
    held = row.numbers["batch_size"]
    at_most = int(sequences if math.isnan(held) else max(held, 1.0))
    prompt, output = int(row.numbers["isl"]), int(row.numbers["osl"])
    return ServedAs(
        device.id,
        model,
        _weights(row, model),
        _kv(row, device.architecture or ""),
        parallelism,
        prompt,
        output,
        sequences,
        at_most,
        settings_of(row.texts, model, tensor, (prompt, output), at_most),
    )


@cache
def _device(name: str) -> HardwareProfile | str:
    return find_device(name)


@cache
def _model(name: str) -> ModelSpec:
    return read_model(name)


def _or(value: float, default: float) -> float:
    return default if math.isnan(value) else value


def _weights(row: ServingRow, model: ModelSpec) -> str | None:
    """The format of linear layers; a checkpoint that is quantised already is served as it is."""
    mode = row.texts["gemm_quant_mode"]
    # gpt-oss ships as MXFP4 and DeepSeek as block-wise fp8; the tables call the first nvfp4.
    if not mode or "gpt-oss" in model.name or (mode.startswith("fp8") and "deepseek" in model.name):
        return None
    found = format_of(mode)
    return None if found is None else found.name


def _kv(row: ServingRow, architecture: str) -> str | None:
    words = row.texts
    if words["gemm_quant_mode"] not in _EIGHT_BITS:
        return None
    if words["backend"] == "trtllm":
        return "fp8"
    return "fp8" if _BLACKWELL in architecture and from_inferencemax(words) else None
