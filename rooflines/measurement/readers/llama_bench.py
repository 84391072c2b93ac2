"""llama.cpp's benchmarks: ``llama-bench -o json`` and ``llama-batched-bench`` become tables of step times.

``llama-bench -p n -d S`` evaluates n tokens of one sequence after S cached ones: T(n) of a verify pass, but
with logits of the last position only, where a verify pass needs all n (tools/llama-bench/llama-bench.cpp,
`test_prompt` over `llama_batch_get_one`). ``-n g`` decodes g tokens one by one, as plain decoding does: where
both time a step of one token, ``-n`` is taken and ``-p 1``, one cold pass, left out; no average of the two is
a time of anything. Its JSON repeats every setting in every record, and counts time in nanoseconds.

``llama-batched-bench`` decodes TG tokens of B sequences after PP of prompt each
(tools/batched-bench/batched-bench.cpp); it prints sums, in seconds.
"""

from __future__ import annotations

import re
from typing import Final

from rooflines.errors import FileFormatError
from rooflines.measurement.readers.files import Record, number, records_of, require
from rooflines.measurement.readers.results import Imported, Source
from rooflines.measurement.schema import Step

_TOOL: Final = "llama-bench (known: builds that write n_depth and samples_ns)"
_FIELDS: Final = (
    "build_commit",
    "build_number",
    "model_type",
    "n_prompt",
    "n_gen",
    "n_depth",
    "n_ubatch",
    "n_threads",
    "samples_ns",
)
_SETTINGS: Final = (
    "cpu_info",
    "gpu_info",
    "backends",
    "model_filename",
    "model_type",
    "model_size",
    "model_n_params",
    "n_batch",
    "n_ubatch",
    "n_threads",
    "n_gpu_layers",
    "type_k",
    "type_v",
    "flash_attn",
)
_HEAD: Final = "logits of the last position only: a verify pass also pays the output projection of the others"
_ROW: Final = re.compile(r"\|" + r"\s*(\d+(?:\.\d+)?)\s*\|" * 10)
_COLUMNS: Final = ("pp", "tg", "pl", "n_kv", "t_pp", "speed_pp", "t_tg", "speed_tg", "t", "speed")
_UBATCH: Final = re.compile(r"n_ubatch = (\d+)")
_SHARED: Final = re.compile(r"is_pp_shared = (\d+)")


def read_llama_bench(source: Source) -> Imported:
    """``llama-bench -o json``.

    Raises:
        FileFormatError: fields of every known version are missing, several models in one file, or no test
            that is a single pass.
    """
    records = records_of(source.text, source.where)
    for record in records:
        require(record, _FIELDS, source.where, _TOOL)
    first = records[0]
    differing = [key for key in _SETTINGS if any(record.get(key) != first.get(key) for record in records)]
    if differing:
        raise FileFormatError(
            f"{source.where} mixes runs that differ in {', '.join(differing)}: import one setting at a time"
        )
    steps, notes = [], [_HEAD]
    decoded = {record["n_depth"] for record in records if record["n_gen"] and not record["n_prompt"]}
    for record in records:
        step = _step(record, source.where)
        if not isinstance(step, str) and record["n_prompt"] == 1 and record["n_depth"] in decoded:
            step = _cold(step)
        if isinstance(step, str):
            notes.append(step)
        else:
            steps.append(step)
    if not steps:
        raise FileFormatError(f"{source.where} holds no test of a single pass: {'; '.join(notes[1:])}")
    build = f"{first['build_number']} ({first['build_commit']})"
    return Imported(
        source=f"llama-bench, build {build}, {source.where}",
        versions={"llama.cpp": build},
        created=str(first.get("test_time", "")),
        settings={key: first[key] for key in _SETTINGS if key in first},
        steps=tuple(steps),
        notes=tuple(notes),
    )


def _cold(step: Step) -> str:
    """Why ``-p 1`` does not stand for a decode step where ``-n`` was timed at the same depth."""
    mean_ms = 1e3 * sum(step.seconds) / len(step.seconds)
    return (
        f"left out: -p 1 after {step.context} tokens, a single pass of {mean_ms:.4g} ms, since -n times the "
        "steps that plain decoding takes"
    )


def _step(record: Record, where: str) -> Step | str:
    """One test as a cell of T(n), or why it is none."""
    prompt, generated, depth, width = (
        int(number(record, key, where)) for key in ("n_prompt", "n_gen", "n_depth", "n_ubatch")
    )
    samples = record["samples_ns"]
    if not isinstance(samples, list) or not samples:
        raise FileFormatError(f"{where}: samples_ns is {samples!r}, which is no list of times")
    seconds = [number({"samples_ns": value}, "samples_ns", where) / 1e9 for value in samples]
    if prompt and generated:
        return f"left out: {prompt} prompt tokens and {generated} generated ones in one time"
    if prompt > width:
        return f"left out: {prompt} tokens do not fit one pass of {width} (n_ubatch)"
    if generated:
        # The context grows by one a token; the middle one stands for all.
        return Step(
            batch=1,
            new_positions=1,
            context=depth + generated // 2,
            seconds=tuple(time / generated for time in seconds),
        )
    return Step(batch=1, new_positions=prompt, context=depth, seconds=tuple(seconds))


def read_batched_bench(source: Source) -> Imported:
    """``llama-batched-bench``: JSON lines (``--output-format jsonl``) or the table that it prints.

    Raises:
        FileFormatError: neither, or fields missing.
    """
    rows = _json_rows(source) if source.text.lstrip().startswith("{") else _table_rows(source)
    steps, notes = [], []
    for row in rows:
        prompt, generated, sequences = (int(number(row, key, source.where)) for key in ("pp", "tg", "pl"))
        shared = bool(row.get("is_pp_shared"))
        if shared:
            notes.append(f"the {prompt} prompt tokens are shared by {sequences} sequences, and read once")
        if generated:
            steps.append(
                Step(
                    batch=sequences,
                    new_positions=1,
                    context=prompt + generated // 2,
                    seconds=(number(row, "t_tg", source.where) / generated,),
                )
            )
        tokens = prompt * (1 if shared else sequences)
        if prompt and tokens <= number(row, "n_ubatch", source.where):
            steps.append(
                Step(
                    batch=1 if shared else sequences,
                    new_positions=prompt,
                    context=0,
                    seconds=(number(row, "t_pp", source.where),),
                )
            )
    if not steps:
        raise FileFormatError(f"{source.where} holds no test of llama-batched-bench with generated tokens")
    return Imported(
        source=f"llama-batched-bench, {source.where}",
        settings={"n_ubatch": rows[0]["n_ubatch"]},
        steps=tuple(steps),
        notes=("one time a cell, without spread", *dict.fromkeys(notes)),
    )


def _json_rows(source: Source) -> list[Record]:
    lines = "\n".join(line for line in source.text.splitlines() if line.startswith("{"))
    rows = records_of(lines, source.where)
    for row in rows:
        require(row, ("pp", "tg", "pl", "t_pp", "t_tg", "n_ubatch"), source.where, "llama-batched-bench")
    return rows


def _table_rows(source: Source) -> list[Record]:
    width, shared = _UBATCH.search(source.text), _SHARED.search(source.text)
    rows: list[Record] = [
        {
            **dict(zip(_COLUMNS, map(float, match.groups()), strict=True)),
            "n_ubatch": int(width[1]) if width else 0,
            "is_pp_shared": int(shared[1]) if shared else 0,
        }
        for match in map(_ROW.match, source.text.splitlines())
        if match is not None
    ]
    if not rows:
        raise FileFormatError(
            f"{source.where} is neither the table of llama-batched-bench nor its JSON lines"
        )
    return rows
