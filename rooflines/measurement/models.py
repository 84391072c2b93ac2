"""Models to measure: real weights from a folder, a GGUF file or a hub, or random weights of any config."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rooflines.errors import FileFormatError, InputError, UnknownNameError
from rooflines.models.catalogue import load_preset

if TYPE_CHECKING:
    from rooflines.measurement.runner import Runner

DTYPES: Final = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}
_NEEDED: Final = ("torch", "transformers")


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A model that is ready to run.

    Attributes:
        name: as it was asked for, without the folders on this machine.
        config: its config.json as text.
        weights: ``sha256:...`` of the files of weights, ``hub`` with the revision, or ``random`` with
            the seed.
        dtype: of weights and arithmetic.
        runner: what runs it.
        folder: where its tokenizer may lie, or the name on the hub; None with random weights.
    """

    name: str
    config: str
    weights: str
    dtype: str
    runner: Runner
    folder: str | None


def cache_folder() -> Path:
    """Where models that a make target fetched are kept: ``$XDG_CACHE_HOME/rooflines``."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rooflines"


def smollm2_folder() -> Path:
    """The small real model that ``make smollm2`` fetches."""
    return cache_folder() / "SmolLM2-135M-Instruct"


def require_torch() -> None:
    """Say how to install what measuring needs.

    Raises:
        InputError: torch or transformers is missing.
    """
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        raise InputError(
            f"measuring needs {' and '.join(missing)}: install them with pip install 'rooflines[measure]'"
        )


def load_model(
    source: str, dtype: str = "bf16", device: str = "cpu", seed: int = 0, *, lean: bool = True
) -> LoadedModel:
    """Load or make a model and put it into the leanest runner that computes it.

    Args:
        source: a folder with weights, a GGUF file, ``organisation/name`` on the Hugging Face hub; or, for
            random weights, a config.json or a preset.
        dtype: of weights and arithmetic: ``fp32``, ``bf16``, ``fp16``.
        device: as torch calls it.
        seed: of random weights.
        lean: False runs transformers' own forward pass whatever the model is.

    Raises:
        InputError: torch is not installed, or the dtype or device is unknown.
        UnknownNameError: no file and no preset of that name.
        FileFormatError: transformers cannot load it.
    """
    require_torch()
    if dtype not in DTYPES:
        raise UnknownNameError("dtype", dtype, DTYPES, f"(known: {', '.join(DTYPES)})")
    import torch

    _check_device(device)
    torch.manual_seed(seed)
    path = Path(source).expanduser()
    with _quiet():
        if path.is_file() and path.suffix == ".gguf":
            model, weights = _pretrained(str(path.parent), dtype, gguf_file=path.name), _digest([path])
            folder = str(path.parent)
        elif path.is_dir() and (files := _weight_files(path)):
            model, weights, folder = _pretrained(str(path), dtype), _digest(files), str(path)
        elif path.exists() or "/" not in source:
            model, weights, folder = _random(source, path, dtype, device), f"random, seed {seed}", None
        else:
            model, folder = _pretrained(source, dtype), source
            weights = f"hub {getattr(model.config, '_commit_hash', None) or source}"
    config = _config_text(model, path, source, dtype)
    name = path.name if path.exists() else source  # a folder on this machine says nothing elsewhere
    return LoadedModel(name, config, weights, dtype, _runner(model, device, lean=lean), folder)


def load_tokenizer(folder: str) -> Any:  # noqa: ANN401 - a tokenizer of transformers
    """The tokenizer beside a model's weights.

    Raises:
        FileFormatError: transformers finds none.
    """
    require_torch()
    from transformers import AutoTokenizer

    try:
        return AutoTokenizer.from_pretrained(folder)
    except (OSError, ValueError, ImportError) as error:
        raise FileFormatError(f"no tokenizer in {folder}: {_first_line(error)}") from None


def convert_gguf(file: Path, folder: Path) -> None:
    """Turn a GGUF file once into a folder of safetensors, config and tokenizer: later loads are fast.

    Weights are kept in fp32, which every GGUF format fits into.

    Raises:
        InputError: torch is not installed.
        FileFormatError: transformers cannot load it.
    """
    require_torch()
    from transformers import AutoModelForCausalLM, AutoTokenizer

    with _quiet():
        loaded = _pretrained(str(file.parent), "fp32", gguf_file=file.name)
        config = loaded.config
        del config.quantization_config  # dequantised by now; with it, transformers refuses to save
        plain = AutoModelForCausalLM.from_config(config, dtype=loaded.dtype)
        plain.load_state_dict(loaded.state_dict())
        tokenizer = AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name)
        draft = folder.with_name(folder.name + ".draft")
        plain.save_pretrained(draft)
        tokenizer.save_pretrained(draft)
        draft.replace(folder)  # a folder that is there is whole


def _runner(model: Any, device: str, *, lean: bool) -> Runner:  # noqa: ANN401 - a model of transformers
    from rooflines.measurement.llama import is_llama_like, llama_runner
    from rooflines.measurement.transformers_runner import TransformersRunner

    model = model.to(device).eval()
    if lean and is_llama_like(model.config):
        return llama_runner(model)
    return TransformersRunner(model)


def _pretrained(source: str, dtype: str, **more: str) -> Any:  # noqa: ANN401 - a model of transformers
    from transformers import AutoModelForCausalLM

    try:
        return AutoModelForCausalLM.from_pretrained(source, dtype=DTYPES[dtype], **more)
    except (OSError, ValueError, KeyError, ImportError) as error:
        raise FileFormatError(f"transformers cannot load {source}: {_first_line(error)}") from None


def _random(source: str, path: Path, dtype: str, device: str) -> Any:  # noqa: ANN401 - a model of transformers
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    facts = _config_facts(source, path)
    try:
        config = AutoConfig.for_model(**facts)
        with torch.device(device):
            return AutoModelForCausalLM.from_config(config, dtype=DTYPES[dtype])
    except (OSError, ValueError, KeyError, TypeError, ImportError) as error:
        raise FileFormatError(f"transformers cannot build {source}: {_first_line(error)}") from None


def _config_facts(source: str, path: Path) -> dict[str, Any]:
    file = path / "config.json" if path.is_dir() else path
    if not path.exists():
        return load_preset(source)
    try:
        facts = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not JSON"
        raise FileFormatError(f"{file} cannot be read: {reason}") from None
    if not isinstance(facts, dict) or "model_type" not in facts:
        raise FileFormatError(f"{file} is no config.json of Hugging Face: it has no model_type")
    return facts


def _weight_files(folder: Path) -> list[Path]:
    return sorted([*folder.glob("*.safetensors"), *folder.glob("pytorch_model*.bin")])


def _digest(files: list[Path]) -> str:
    digest = hashlib.sha256()
    for file in files:
        with file.open("rb") as stream:
            digest.update(hashlib.file_digest(stream, "sha256").digest())
    return f"sha256:{digest.hexdigest()}"


def _config_text(model: Any, path: Path, source: str, dtype: str) -> str:  # noqa: ANN401 - of transformers
    """The config as its author wrote it where there is one, with the dtype that was loaded."""
    written = path.is_dir() or path.suffix == ".json" or "/" not in source
    facts = _config_facts(source, path) if written else model.config.to_diff_dict()
    dropped = ("torch_dtype",) if written else ("torch_dtype", "quantization_config")  # a GGUF is dequantised
    kept = {key: value for key, value in facts.items() if key not in dropped}
    return json.dumps({**kept, "dtype": DTYPES[dtype]})


def _check_device(device: str) -> None:
    import torch

    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise InputError(
            f"device {device!r}: {_first_line(error)}; use cpu, or cuda where there is one"
        ) from None


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n", 1)[0]


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep transformers' progress bars and remarks off the terminal."""
    from transformers.utils import logging

    level = logging.get_verbosity()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        logging.enable_progress_bar()
