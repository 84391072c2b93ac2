"""A check for its readers: a terminal, a pull request, a CI server, another program."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final
from xml.etree import ElementTree as ET

from rooflines.output.tables import Columns, render
from rooflines.validation.check import CaseCheck, Change, CheckReport
from rooflines.validation.check_layers import COMPOSITION, PARTS, ROOFLINE, Interval, Layer, Part

SCHEMA_VERSION: Final = 1
_WORDS: Final[Mapping[Part, str]] = {
    "tau": "tokens per cycle (tau)",
    "baseline": "plain decoding",
    "draft": "the draft",
    "verify": "the verify pass",
    "overhead": "the rest of the cycle",
}


def check_text(report: CheckReport, fmt: str = "text") -> str:
    """The verdict in words, what it rests on, the numbers, and what is at fault; as text or Markdown."""
    lines = [_answer(report), ""]
    lines += [f"- {note}" if fmt == "markdown" else note for note in report.notes]
    lines += [""] if report.notes else []
    lines.append(render(_readable_columns(report), fmt))
    told = [line for case in report.cases for line in _case_lines(case)]
    if told:
        lines += ["", *(f"- {line}" if fmt == "markdown" else line for line in told)]
    return "\n".join(lines)


def check_columns(report: CheckReport) -> Columns:
    """A row a case; differences are predicted over measured speedup - 1."""
    cases = report.cases
    columns: dict[str, Sequence[object]] = {
        "case": [case.name for case in cases],
        "cycles": [case.cycles for case in cases],
        "tokens_per_cycle": [case.tokens_per_cycle for case in cases],
        "measured": [case.measured.value for case in cases],
        "measured_low": [case.measured.low for case in cases],
        "measured_high": [case.measured.high for case in cases],
    }
    for name in (COMPOSITION, ROOFLINE):
        layers = [_layer(case, name) for case in cases]
        if any(layers):
            columns[name] = [layer and layer.predicted.value for layer in layers]
            columns[f"{name}_low"] = [layer and layer.predicted.low for layer in layers]
            columns[f"{name}_high"] = [layer and layer.predicted.high for layer in layers]
            columns[f"{name}_difference"] = [layer and _relative(layer.difference.value) for layer in layers]
    columns["leviathan"] = [case.leviathan for case in cases]
    if any(case.change for case in cases):
        columns["accepted"] = [case.change and case.change.accepted.value for case in cases]
    columns["verdict"] = [case.verdict for case in cases]
    columns["fault"] = [case.fault for case in cases]
    return columns


def _readable_columns(report: CheckReport) -> Columns:
    """The same in fewer columns, for people."""
    cases = report.cases
    columns: dict[str, Sequence[object]] = {
        "case": [case.name for case in cases],
        "cycles": [case.cycles for case in cases],
        "tau": [case.tokens_per_cycle for case in cases],
        "measured": [_with_interval(case.measured) for case in cases],
    }
    for name in (COMPOSITION, ROOFLINE):
        layers = [_layer(case, name) for case in cases]
        if any(layers):
            columns[name] = [layer and _with_interval(layer.predicted) for layer in layers]
            columns["+-" if name == COMPOSITION else "+- "] = [
                layer and f"{_relative(layer.difference.value):+.1%}" for layer in layers
            ]
    columns["Leviathan"] = [case.leviathan for case in cases]
    if any(case.change for case in cases):
        columns["accepted"] = [case.change and _with_interval(case.change.accepted) for case in cases]
    columns["verdict"] = [case.verdict for case in cases]
    columns["at fault"] = [case.fault for case in cases]
    return columns


def _with_interval(interval: Interval) -> str:
    return f"{interval.value:.2f} ({interval.low:.2f}-{interval.high:.2f})"


def check_document(report: CheckReport) -> dict[str, Any]:
    """The whole check as JSON values."""
    return {
        "schema_version": SCHEMA_VERSION,
        "source": report.source,
        "tolerance": report.tolerance,
        "verdict": report.verdict,
        "notes": list(report.notes),
        "cases": [_case_document(case) for case in report.cases],
    }


def junit_text(report: CheckReport) -> str:
    """JUnit XML: a test case a case; disagreeing is a failure, not being able to tell is a skip."""
    counts = {verdict: sum(case.verdict == verdict for case in report.cases) for verdict in _VERDICTS}
    suite = ET.Element(
        "testsuite",
        name=f"rooflines check {report.source}",
        tests=str(len(report.cases)),
        failures=str(counts["disagree"]),
        errors="0",
        skipped=str(counts["cannot tell"]),
    )
    for case in report.cases:
        element = ET.SubElement(suite, "testcase", classname=f"rooflines.{report.source}", name=case.name)
        text = "\n".join(_case_lines(case))
        if case.verdict == "disagree":
            ET.SubElement(element, "failure", message=_short(case)).text = text
        elif case.verdict == "cannot tell":
            ET.SubElement(element, "skipped", message=_short(case))
    ET.indent(suite)
    return ET.tostring(suite, encoding="unicode", xml_declaration=True)


def github_annotations(report: CheckReport) -> str:
    """Lines that GitHub Actions shows beside a run; nothing where all is well.

    https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands
    """
    lines = []
    for case in report.cases:
        level = {"disagree": "error", "cannot tell": "warning", "agree": ""}[case.verdict]
        if level:
            lines.append(f"::{level} title={_property(case.name)}::{_data(_short(case))}")
        lines += [
            f"::warning title={_property(f'{case.name}: {finding.rule}')}::{_data(finding.text)}"
            for finding in case.findings
            if finding.severity == "warning"
        ]
    return "\n".join(lines)


_VERDICTS: Final = ("agree", "disagree", "cannot tell")


def _answer(report: CheckReport) -> str:
    count = {verdict: [case for case in report.cases if case.verdict == verdict] for verdict in _VERDICTS}
    total, tolerance = len(report.cases), f"{100 * report.tolerance:.3g} %"
    if report.verdict == "agree":
        return f"AGREE: all {total} cases of {report.source} are predicted within {tolerance}."
    if report.verdict == "disagree":
        faults = sorted({_WORDS[case.fault] for case in count["disagree"] if case.fault})
        named = f" At fault: {', '.join(faults)}." if faults else ""
        return (
            f"DISAGREE: {len(count['disagree'])} of {total} cases of {report.source} differ by more than "
            f"{tolerance}.{named}"
        )
    return (
        f"CANNOT TELL: {len(count['cannot tell'])} of {total} cases of {report.source} are too noisy for a "
        f"tolerance of {tolerance}: measure more tokens, or on an idle machine."
    )


def _case_lines(case: CaseCheck) -> list[str]:
    """What is wrong with a case, one line each; nothing where nothing is."""
    lines = [
        f"{case.name}: {layer.name} {_difference(layer.difference)}: {_made_of(layer.causes)}"
        for layer in case.layers
        if layer.verdict != "agree"
    ]
    lines += [
        f"{case.name}: {finding.rule} ({finding.severity}): {finding.text}" for finding in case.findings
    ]
    change = case.change
    if change and (change.verdict != "agree" or change.faster):
        lines.append(f"{case.name}: {_changed(change)}")
    return lines


def _changed(change: Change) -> str:
    if change.faster:
        return f"faster than the accepted run ({change.accepted.value:.3g}x): accept this one anew"
    return f"accepted run {_difference(change.difference)}: {_made_of(change.causes)}"


def _short(case: CaseCheck) -> str:
    """A case in one sentence."""
    predicted = ", ".join(f"{layer.name} {layer.predicted.value:.3g}x" for layer in case.layers)
    fault = f"; at fault: {_WORDS[case.fault]}" if case.fault else ""
    seen = f"measured {case.measured.value:.3g}x ({case.measured.low:.3g}-{case.measured.high:.3g})"
    return f"{seen}, predicted {predicted or 'nothing'}: {case.verdict}{fault}"


def _difference(difference: Interval) -> str:
    low, high = _relative(difference.low), _relative(difference.high)
    return f"{_relative(difference.value):+.1%} of measured ({low:+.1%} to {high:+.1%})"


def _made_of(causes: Mapping[Part, float]) -> str:
    found = [(part, causes[part]) for part in PARTS if part in causes]
    return ", ".join(f"{_WORDS[part]} {_relative(cause):+.1%}" for part, cause in found)


def _relative(log: float) -> float:
    return math.expm1(log)


def _layer(case: CaseCheck, name: str) -> Layer | None:
    return next((layer for layer in case.layers if layer.name == name), None)


def _case_document(case: CaseCheck) -> dict[str, Any]:
    return {
        "name": case.name,
        "draft_length": case.draft_length,
        "cycles": case.cycles,
        "tokens_per_cycle": case.tokens_per_cycle,
        "measured": _interval(case.measured),
        "leviathan": case.leviathan,
        "layers": [
            {
                "name": layer.name,
                "predicted": _interval(layer.predicted),
                "log_difference": _interval(layer.difference),
                "causes": dict(layer.causes),
                "verdict": layer.verdict,
                "basis": layer.basis,
            }
            for layer in case.layers
        ],
        "findings": [
            {"rule": one.rule, "severity": one.severity, "part": one.part, "text": one.text}
            for one in case.findings
        ],
        "baseline": case.change
        and {
            "accepted": _interval(case.change.accepted),
            "log_difference": _interval(case.change.difference),
            "causes": dict(case.change.causes),
            "verdict": case.change.verdict,
        },
        "verdict": case.verdict,
        "fault": case.fault,
    }


def _interval(interval: Interval) -> dict[str, float]:
    return {"value": interval.value, "low": interval.low, "high": interval.high}


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
