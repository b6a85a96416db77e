"""Run a model's phases on fake tensors and record its ops."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.distributions import Distribution

from tracer.models.build import build, unify
from tracer.models.config import ModelConfig
from tracer.models.errors import BadOption, TraceFailure, UnknownPhase
from tracer.models.phases import PhaseRunner
from tracer.models.quiet import quiet
from tracer.models.record import RecordedOp
from tracer.models.values import Values


@contextlib.contextmanager
def _unvalidated() -> Iterator[None]:
    """Have no probability distribution check its parameters: of those that a model has, none is known."""
    before = Distribution._validate_args
    Distribution.set_default_validate_args(False)
    try:
        yield
    finally:
        Distribution.set_default_validate_args(before)


@dataclass(frozen=True)
class Trace:
    """What a model asks of PyTorch.

    `ops` are in order of first occurrence. `phases` are those that were run. `failures` name the phases that
    stopped before their end; what they did up to there is in `ops`. `unreached` are modules of which no
    phase uses a parameter, where all were run to their end. `adapted` says, a clause each, in what the model
    differs from the one that was asked for.
    """

    model: str
    ops: tuple[RecordedOp, ...]
    phases: tuple[str, ...]
    failures: tuple[TraceFailure, ...] = ()
    unreached: tuple[str, ...] = ()
    adapted: tuple[str, ...] = ()


def trace(
    config: ModelConfig,
    *,
    dtype: torch.dtype = torch.float16,
    seq_len: int = 12,
    batch: int = 1,
    max_cache_len: int = 2048,
    phases: Sequence[str] | None = None,
    layers: int | None = None,
) -> Trace:
    """Every op of the model's phases.

    Models that generate have `prefill` (`seq_len` tokens, or an encoder's input and `seq_len` decoder tokens)
    and `decode` (one token against a static cache of `max_cache_len` entries; setting the cache up counts).
    Others have `forward`. A nested model that none of these reach (the vision tower of a language model, say)
    is a phase of its own, named after its module. `phases` selects among them; None means all.

    Raises:
        BadOption: a size is not positive.
        UnknownPhase: the model has no phase of a name in `phases`.
        MalformedConfig, BuildFailure: see `build`.
        TraceFailure: no phase recorded anything.
    """
    for option, value in (("seq_len", seq_len), ("batch", batch), ("max_cache_len", max_cache_len)):
        if value < 1:
            raise BadOption(option=option, value=value, detail="it must be positive")
    fake_mode = FakeTensorMode(allow_non_fake_inputs=True)
    values = Values(fake_mode)
    with quiet(), _unvalidated(), torch.random.fork_rng(devices=[]), torch.no_grad(), fake_mode:
        torch.manual_seed(0)
        with values:
            model, built = build(config, dtype=dtype, layers=layers)
        adapted = [] if built == layers else [f"it has {built} layers, for it does not build with {layers}"]
        wanted = tuple(phases) if phases is not None else None
        runner = PhaseRunner(config.name, model, values, dtype, batch, seq_len, max_cache_len)
        runner.run(wanted)
        if runner.failures and unify(model, dtype):
            # Loading leaves them so, and the model may not run then in any dtype but theirs.
            other = PhaseRunner(config.name, model, values, dtype, batch, seq_len, max_cache_len)
            other.run(wanted)
            if len(other.failures) < len(runner.failures):
                runner = other
                name = str(dtype).removeprefix("torch.")
                adapted.append(f"its parameters are all {name}, for it does not run with others")
    if unknown := [phase for phase in phases or () if phase not in runner.available]:
        raise UnknownPhase(model=config.name, phase=unknown[0], known=", ".join(runner.available))
    if not runner.recorder.ops:
        detail = "it makes no calls"
        raise (
            runner.failures[0]
            if runner.failures
            else TraceFailure(model=config.name, phase=", ".join(runner.done), detail=detail)
        )
    unreached = runner.unreached() if phases is None and not runner.failures else ()
    return Trace(
        config.name,
        runner.recorder.ops,
        tuple(runner.done),
        tuple(runner.failures),
        unreached,
        tuple(adapted),
    )
