"""What a file of measurements holds: raw samples, and everything that made them.

A file is JSON of one of four kinds, written once and never changed (`rooflines.measurement.files`). All begin
with the same header: machine, versions, inputs, and whether the numbers can be trusted. Times are raw, in
seconds. `cpu_s` is CPU time of the measuring thread (what others do to the machine hardly shows in it),
`wall_s` the time that passed, `device_s` the time between events on a GPU, empty without one.
`Sample.seconds` is the clock to use.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field, JsonValue, model_validator

from rooflines.facts import Fact

SCHEMA_VERSION: Final = 1

Count = Annotated[int, Field(ge=0)]
Positive = Annotated[int, Field(ge=1)]
Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1)]


class CacheLevel(Fact):
    """One level of a processor's caches.

    Attributes:
        level: 1, 2, 3.
        size_bytes: of one instance.
    """

    level: Positive
    size_bytes: Positive


class MachineFacts(Fact):
    """Where it was measured.

    Attributes:
        device: what computed, as the system calls it ("AMD EPYC", "NVIDIA H100 80GB HBM3").
        kind: whether that is a processor or a GPU.
        cpu: the host's processor.
        cores: logical cores that the process may use.
        threads: threads that computed.
        memory_bytes: of the device.
        caches: data caches of the device; empty where the system does not say.
        system: operating system and kernel.
    """

    device: str
    kind: Literal["cpu", "gpu"]
    cpu: str
    cores: Positive
    threads: Positive
    memory_bytes: Positive
    caches: tuple[CacheLevel, ...]
    system: str


class Inputs(Fact):
    """What was measured.

    Attributes:
        model: as it was named; None where no model is measured.
        config: its config.json as text, which `rooflines.models.readers` reads; None without a model.
        weights: ``sha256:...`` of the files, or ``random`` with the seed.
        dtype: of weights and arithmetic.
        runner: what ran the forward pass: ``static-llama`` (ours) or ``transformers``.
        seed: of random weights, tokens and choices.
        options: what else the command was given, by the names of its options.
    """

    model: str | None = None
    config: str | None = None
    weights: str | None = None
    dtype: str | None = None
    runner: str | None = None
    seed: int = 0
    options: dict[str, JsonValue] = Field(default_factory=dict)


class Stability(Fact):
    """Whether the machine held still.

    Attributes:
        run_delay_share: time the process waited for a core / time that passed; None where the system
            does not count it.
        iqr_share: interquartile range of a case that was repeated throughout / its median.
        stable: whether the numbers can be relied on.
        advice: what it rests on and what to do; one sentence.
    """

    run_delay_share: Share | None
    iqr_share: Annotated[float, Field(ge=0)]
    stable: bool
    advice: str


class Sample(Fact):
    """One thing that was timed several times; raw times in the order they were taken.

    Attributes:
        case: ``step`` (a pass of the whole model with logits of every new position: decode, verify),
            ``prefill`` (with those of the last position only), ``head`` (last norm and output projection
            alone), ``draft`` (a pass of the int4 copy), ``empty`` (the host's work of a pass whose arithmetic
            costs next to nothing), ``plain`` (a pass of one position beside a speculative cycle).
        batch: sequences B.
        new_positions: new positions per sequence n.
        context: positions per sequence that were cached before, S.
        depth: layers that ran.
        cpu_s: CPU time of the measuring thread (s).
        wall_s: time that passed (s).
        device_s: time between two events on the GPU (s); empty on a CPU.
    """

    case: str
    batch: Positive
    new_positions: Positive
    context: Count
    depth: Count
    cpu_s: tuple[Seconds, ...]
    wall_s: tuple[Seconds, ...]
    device_s: tuple[Seconds, ...] = ()

    @model_validator(mode="after")
    def _equally_long(self) -> Sample:
        lengths = {len(self.cpu_s), len(self.wall_s)} | ({len(self.device_s)} if self.device_s else set())
        if len(lengths) > 1 or not self.cpu_s:
            raise ValueError("cpu_s, wall_s (and device_s) need one time each per repetition, at least one")
        return self

    @property
    def seconds(self) -> tuple[float, ...]:
        """The times to use (s): between events on a GPU, of the thread on a CPU."""
        return self.device_s or self.cpu_s


class ProbeSample(Fact):
    """One probe of the machine, timed several times.

    Attributes:
        quantity: ``read``, ``copy`` (bytes / time), ``gemm`` (FLOP / time), ``launch`` (time).
        dtype: of the elements.
        shape: of the operands (elements of a stream; m, k, n of a product).
        moved_bytes: bytes read and written by one repetition.
        flops: FLOPs of one repetition.
        cpu_s: CPU time of the measuring thread (s).
        wall_s: time that passed (s).
        device_s: time between two events on the GPU (s); empty on a CPU.
    """

    quantity: Literal["read", "copy", "gemm", "launch"]
    dtype: str
    shape: tuple[Positive, ...]
    moved_bytes: Annotated[float, Field(ge=0)]
    flops: Annotated[float, Field(ge=0)]
    cpu_s: tuple[Seconds, ...]
    wall_s: tuple[Seconds, ...]
    device_s: tuple[Seconds, ...] = ()

    @property
    def seconds(self) -> tuple[float, ...]:
        """The times to use (s): between events on a GPU, of the thread on a CPU."""
        return self.device_s or self.cpu_s


class Cycle(Fact):
    """One cycle of speculation; times on the clock that `Sample.seconds` prefers.

    Attributes:
        draft_s: drafting (s).
        verify_s: the target's pass over what was drafted (s).
        other_s: accepting, sampling, rolling back (s).
        wall_s: time that passed, all of it (s).
        drafted: tokens proposed.
        accepted: of these, kept.
        emitted: tokens the sequence grew by, the target's own included.
        verify_width: positions of the target's pass.
        context: positions cached before the target's pass.
    """

    draft_s: Seconds
    verify_s: Seconds
    other_s: Seconds
    wall_s: Seconds
    drafted: Count
    accepted: Count
    emitted: Positive
    verify_width: Positive
    context: Count

    @model_validator(mode="after")
    def _counts_fit(self) -> Cycle:
        if self.accepted > self.drafted or self.emitted > self.accepted + 1:
            raise ValueError(
                f"{self.drafted} drafted, {self.accepted} accepted, {self.emitted} emitted do not fit: "
                "accepted is at most drafted, emitted at most accepted + 1"
            )
        return self


class Divergence(Fact):
    """A token that plain decoding, given the same tokens before, would have chosen otherwise.

    Attributes:
        index: of the token in the answer, from 0.
        gap: by how much the plain decoder's best logit exceeds that of the token that was emitted.
        resolution: distance between neighbouring numbers of the arithmetic's format at the best logit; a gap
            of a few of them is a tie that passes of different widths round differently.
    """

    index: Count
    gap: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    resolution: Annotated[float, Field(gt=0, allow_inf_nan=False)]


class SpeculationRun(Fact):
    """One prompt decoded speculatively, with plain decoding of the same tokens in between.

    Attributes:
        drafter: its family: ``prompt-lookup``, ``int4``, ``early-exit``, ``independent``, ``forced``.
        parameters: of the drafter.
        prompt: which one.
        prompt_kind: of what sort it is (``chat``, ``copying``, ``code``).
        draft_length: most tokens proposed per cycle, gamma.
        temperature: 0 is greedy.
        forced_acceptance: probability with which each drafted token was kept by decree; None if it
            was earned.
        cycles: in order.
        plain_s: seconds of plain decoding, one a token, interleaved with the cycles.
        plain_wall_s: the same as time that passed.
        samples: components timed in between: the target's pass of one position (``plain``) and of the width
            just verified (``step``), and what the drafter does over and over (``draft``, its new_positions
            being the tokens it yields). Files of earlier versions have no ``plain``.
        divergences: tokens of the answer that plain decoding, given the same ones before, would have chosen
            otherwise; empty where the two agree throughout, and where tokens are sampled or forced.
    """

    drafter: str
    parameters: dict[str, JsonValue]
    prompt: str
    prompt_kind: str
    draft_length: Positive
    temperature: Annotated[float, Field(ge=0)]
    forced_acceptance: Share | None
    cycles: Annotated[tuple[Cycle, ...], Field(min_length=1)]
    plain_s: Annotated[tuple[Seconds, ...], Field(min_length=1)]
    plain_wall_s: tuple[Seconds, ...]
    samples: tuple[Sample, ...]
    divergences: tuple[Divergence, ...] = ()


class Step(Fact):
    """One cell of a table T(batch, new positions, context).

    Attributes:
        batch: sequences B.
        new_positions: new positions per sequence n.
        context: positions per sequence cached before, S.
        seconds: every time that is known, or one average (s).
    """

    batch: Positive
    new_positions: Positive
    context: Count
    seconds: Annotated[tuple[Seconds, ...], Field(min_length=1)]


class Header(Fact):
    """What every kind of file begins with.

    Attributes:
        schema_version: of this module.
        created: when, ISO 8601 with the zone.
        rooflines: version that wrote it.
        versions: of what ran: python, torch, transformers, ...
        inputs: what.
    """

    schema_version: Literal[1] = SCHEMA_VERSION
    created: str
    rooflines: str
    versions: dict[str, str]
    inputs: Inputs


class MeasuredFile(Header):
    """What we measured, and so know where and how well.

    Attributes:
        machine: where.
        stability: whether the machine held still.
    """

    machine: MachineFacts
    stability: Stability


class MachineFile(MeasuredFile):
    """Probes of the machine."""

    kind: Literal["machine"] = "machine"
    samples: Annotated[tuple[ProbeSample, ...], Field(min_length=1)]


class DecodeFile(MeasuredFile):
    """Times of passes of a model."""

    kind: Literal["decode"] = "decode"
    samples: Annotated[tuple[Sample, ...], Field(min_length=1)]


class SpeculationFile(MeasuredFile):
    """Runs of the speculative loop."""

    kind: Literal["speculation"] = "speculation"
    runs: Annotated[tuple[SpeculationRun, ...], Field(min_length=1)]


class StepsFile(Header):
    """A table of step times that another tool measured.

    Attributes:
        machine: where, as far as the tool says all of it; else None, and what it does say is in the inputs.
        stability: whether the machine held still; None where the tool does not say.
        source: the tool, its version and its file.
        notes: what to know about these times, such as cells that were left out.
        steps: the cells.
    """

    kind: Literal["steps"] = "steps"
    machine: MachineFacts | None = None
    stability: Stability | None = None
    source: str
    notes: tuple[str, ...] = ()
    steps: Annotated[tuple[Step, ...], Field(min_length=1)]
