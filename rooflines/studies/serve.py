"""From what people type to deployments: names become facts, texts become numbers."""

from __future__ import annotations

from pathlib import Path

from rooflines.costs.routing import DEFAULT_ROUTING, parse_routing
from rooflines.costs.setting import Parallelism, Precision
from rooflines.dtypes import number_format
from rooflines.errors import InputError
from rooflines.hardware.calibration_files import calibration_of, load_calibration
from rooflines.hardware.catalogue import load_hardware
from rooflines.models.readers import read_model
from rooflines.models.spec import ModelSpec
from rooflines.timing.deployment import Deployment
from rooflines.timing.machine import Machine, calibrated_machine, default_machine, textbook_machine
from rooflines.units import parse_quantity


def make_machine(hardware: str | Path, calibration: str = "auto", overhead: str = "0 s") -> Machine:
    """A device with the constants asked for.

    Args:
        hardware: profile id, alias or TOML file.
        calibration: ``auto`` (that of the device, else of its class, else the transferable defaults),
            ``none`` (transferable defaults), ``textbook``, or a calibration by name or TOML file.
        overhead: host time per pass, with its unit; ``0 s`` leaves that of the calibration.

    Raises:
        RooflinesError: an unknown device or calibration, or a quantity without a unit.
    """
    profile = load_hardware(hardware)
    overhead_s = parse_quantity(overhead, "s")
    if calibration == "textbook":
        return textbook_machine(profile, overhead_s)
    if calibration == "none":
        return default_machine(profile, overhead_s)
    found = calibration_of(profile) if calibration == "auto" else load_calibration(calibration)
    if found is None:
        return default_machine(profile, overhead_s)
    return calibrated_machine(profile, found, overhead_s or None)


def make_deployment(
    model: ModelSpec | str | Path,
    machine: Machine,
    *,
    weight_dtype: str | None = None,
    kv_dtype: str | None = None,
    tensor: int = 1,
    expert: int = 1,
    routing: str = DEFAULT_ROUTING,
    encoder_positions: int | None = None,
    among_others: bool = False,
) -> Deployment:
    """A model as it is served.

    Args:
        model: preset, config.json, folder or checkpoint; or one that was read already.
        machine: on what.
        weight_dtype: format of the linear layers; None keeps the checkpoint's.
        kv_dtype: format of cached keys and values; None keeps the checkpoint's.
        tensor: tensor-parallel degree.
        expert: expert-parallel degree, a multiple of `tensor`.
        routing: ``uniform``, ``powerlaw:A`` or ``correlated:RHO``: how many distinct experts a pass hits.
        encoder_positions: of an encoder-decoder, per sequence.
        among_others: whether routing and encoder positions are given for several models, which need not all
            have what they are about.

    Raises:
        RooflinesError: an unknown model or dtype, a degree that does not divide the heads, or what the model
            has no use for.
    """
    weights = number_format(weight_dtype).name if weight_dtype is not None else None
    kv = number_format(kv_dtype).name if kv_dtype is not None else None
    spec = model if isinstance(model, ModelSpec) else read_model(model)
    if expert > 1 and not spec.has_experts:
        raise InputError(
            f"{spec.name} has no routed experts, so that expert parallelism {expert} would leave devices "
            "idle: divide it by tensor parallelism"
        )
    if not among_others:
        _require_use(spec, routing, encoder_positions)
    return Deployment(
        spec,
        machine,
        Precision(weights, kv),
        Parallelism(tensor, expert),
        parse_routing(routing),
        encoder_positions,
    )


def _require_use(model: ModelSpec, routing: str, encoder_positions: int | None) -> None:
    """Refuse what says nothing of a model; the defaults of all questions are about any."""
    if routing not in (DEFAULT_ROUTING, "uniform") and not model.has_experts:
        raise InputError(f"{model.name} has no routed experts: leave out routing {routing!r}")
    if encoder_positions is not None and not model.has_encoder:
        raise InputError(
            f"{model.name} has no encoder: leave out its positions ({encoder_positions}); what is cached is "
            "the context"
        )
