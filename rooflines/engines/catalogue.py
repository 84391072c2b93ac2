"""All engines whose words are known."""

from __future__ import annotations

from typing import Final

from rooflines.engines.llama_cpp import LLAMA_CPP
from rooflines.engines.sglang import SGLANG
from rooflines.engines.tensorrt_llm import TENSORRT_LLM
from rooflines.engines.transformers import TRANSFORMERS
from rooflines.engines.vllm import VLLM
from rooflines.engines.words import Engine
from rooflines.errors import UnknownNameError

ENGINES: Final[dict[str, Engine]] = {
    engine.name: engine for engine in (VLLM, SGLANG, TENSORRT_LLM, LLAMA_CPP, TRANSFORMERS)
}


def engine(name: str) -> Engine:
    """The engine of that name.

    Raises:
        UnknownNameError: none has it.
    """
    if name not in ENGINES:
        raise UnknownNameError("engine", name, ENGINES, f"(known: {', '.join(ENGINES)})")
    return ENGINES[name]
