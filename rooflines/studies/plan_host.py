"""The host time of a plan: a time per cycle, or what is known of an engine by its name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rooflines.engines.host import HOST_TIMES, HostTime, host_time
from rooflines.errors import InputError, UnitError
from rooflines.speculation.drafters.registry import kind_of
from rooflines.speculation.host import CycleHost
from rooflines.timing.deployment import Deployment
from rooflines.units import format_quantity, parse_quantity


@dataclass(frozen=True, slots=True)
class GivenHost:
    """What was given.

    Attributes:
        time: that it stands for.
        stated: the entry of the engine that was named; None for a time.
    """

    time: CycleHost
    stated: HostTime | None


def host_of(text: str, drafter: str, target: Deployment) -> GivenHost:
    """Host time as a question words it: ``1 ms`` per cycle, or an engine such as ``vllm``.

    Args:
        text: as typed.
        drafter: as a plan names it.
        target: as it is served; of several times of an engine, the one is taken that was measured most alike.

    Raises:
        InputError: neither a time nor an engine of which one is known.
    """
    known = sorted({one.engine for one in HOST_TIMES})
    if text.strip().lower() in known:
        stated = host_time(
            text.strip().lower(),
            kind=kind_of(drafter),
            device=target.machine.profile.id,
            ranks=target.parallelism.tensor,
        )
        if stated is not None:
            return GivenHost(stated.time, stated)
    try:
        return GivenHost(CycleHost(cycle_s=parse_quantity(text, "s")), None)
    except UnitError as error:
        raise InputError(f"host time per cycle: {error}, or name an engine: {', '.join(known)}") from None


def require_priced(hosts: Sequence[GivenHost], *, measured: bool) -> None:
    """Refuse an engine's host time beside measured steps, which hold it already.

    Raises:
        InputError: both were given.
    """
    named = [one.stated.engine for one in hosts if one.stated is not None]
    if named and measured:
        raise InputError(
            f"measured steps hold the host's time, which that of {named[0]} would count twice: give the time "
            "per cycle outside them, such as '100 us'"
        )


def host_words(hosts: Sequence[GivenHost]) -> list[str]:
    """What each entry of the named engine adds, with its source; none where no engine was named."""
    return [_words(one) for one in dict.fromkeys(one.stated for one in hosts) if one is not None]


def _words(one: HostTime) -> str:
    def each(seconds: float, of: str) -> str:
        return f"{format_quantity(seconds, 's')} a {of}"

    time = one.time
    if time.layer_s:
        parts = f"passes take {each(time.layer_s, 'layer')} and {format_quantity(time.pass_s, 's')} at least"
    else:
        sequence = f" and {format_quantity(time.sequence_s, 's')} a sequence" if time.sequence_s else ""
        parts = f"{each(time.plain_s, 'plain step')}, {each(time.cycle_s, 'cycle')}{sequence}"
    of = f" with {' or '.join(one.kinds)}" if one.kinds else ""
    return f"host of {one.engine}{of}: {parts} ({one.basis}: {one.note}; {one.source})"
