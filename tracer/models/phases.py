"""The phases of a model: prefill, decode, forward, and those of nested models that these do not reach."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch._subclasses.fake_tensor import unset_fake_temporarily

from tracer.models.build import one_line
from tracer.models.errors import TooManyCalls, TraceFailure
from tracer.models.inputs import (
    MAX_CANDIDATES,
    Inputs,
    Shape,
    candidates,
    find,
    integers,
    main_inputs,
    parameters_of,
)
from tracer.models.record import Recorder
from tracer.models.repair import repairs
from tracer.models.values import Values

_CACHE = ("cache", "past_key_values", "cache_params")
"""Names that transformers gives to a forward's cache."""

_REPAIRS = 6
"""So often what an error says leads to other inputs, as long as each lead further."""

_REPAIR_CALLS = 20_000
"""Calls that all these attempts of a phase may make: about 20 seconds."""


@dataclass(frozen=True)
class _Attempt:
    """A forward pass with some inputs, and what it raised."""

    made: Inputs
    recorder: Recorder
    error: Exception | None = None


class _Stopped(Exception):
    """A forward pass makes too many calls; no other inputs are tried."""

    def __init__(self, error: TooManyCalls, recorder: Recorder) -> None:
        super().__init__()
        self.error, self.recorder = error, recorder


class PhaseRunner:
    """Runs the phases of one built model and records them."""

    def __init__(
        self,
        name: str,
        model: Any,
        values: Values,
        dtype: torch.dtype,
        batch: int,
        seq_len: int,
        max_cache_len: int,
    ) -> None:
        self.name, self.model, self.values, self.dtype = name, model, values, dtype
        self.batch, self.seq_len, self.max_cache_len = batch, seq_len, max_cache_len
        self.recorder = Recorder(self.values)
        self.failures: list[TraceFailure] = []
        self.done: list[str] = []
        self.available: list[str] = []
        self._names = {id(module): path for path, module in model.named_modules()}
        self._entered: set[int] = set()
        values.parameters.clear()  # Their initialisation is no use.

    def run(self, wanted: tuple[str, ...] | None) -> None:
        """Run the phases that are wanted (all if None)."""
        parameters = parameters_of(self.model)
        cache = next((name for name in _CACHE if name in parameters), None)
        generates = bool(self.model.can_generate()) and cache is not None
        first = "prefill" if generates else "forward"
        self.available = [first, "decode"] if generates else [first]
        # What the first phase reaches decides which nested models are phases, whatever is wanted.
        inputs = self._forward(first, self.model, record=wanted is None or first in wanted)
        if generates and cache is not None and inputs is not None and (wanted is None or "decode" in wanted):
            self._decode(inputs, cache)
        for path, module in self._nested_models():
            self.available.append(path)
            if wanted is None or path in wanted:
                self._forward(path, module)

    def unreached(self) -> tuple[str, ...]:
        """The outermost modules with parameters of which no phase uses any."""
        found: list[str] = []
        for path, module in self.model.named_modules():
            parameters = {id(parameter) for parameter in module.parameters()}
            inside = any(path.startswith(f"{outer}.") for outer in found)
            if path and parameters and not parameters & self.values.parameters and not inside:
                found.append(path)
        return tuple(found)

    def _nested_models(self) -> list[tuple[str, Any]]:
        """Models inside of this one that no phase so far has entered."""
        from transformers import PreTrainedModel

        found: list[tuple[str, Any]] = []
        for path, module in self.model.named_modules():
            nested = any(path.startswith(f"{outer}.") for outer, _ in found)
            if (
                isinstance(module, PreTrainedModel)
                and path
                and not nested
                and id(module) not in self._entered
            ):
                found.append((path, module))
        # A model whose own forward was never entered but whose inner model was, is only a wrapper.
        return [
            (path, m) for path, m in found if not any(id(inner) in self._entered for inner in m.modules())
        ]

    def _forward(self, phase: str, model: Any, *, record: bool = True) -> Inputs | None:
        """Record one forward pass of `model` with the first inputs that it accepts."""
        best: _Attempt | None = None
        tries = list(candidates(model, batch=self.batch, seq_len=self.seq_len))
        # Some models have no cache that fits their own default configuration.
        options: list[dict[str, Any]] = [{}, {"use_cache": False}]
        try:
            for extra, made in itertools.product(options, tries):
                attempt = self._attempt(phase, model, made, extra)
                if attempt.error is None:
                    return self._succeeded(phase, attempt, record)
                # Inputs that are guessed besides the main ones tell most only where they lead further.
                if best is None or attempt.recorder.reached > best.recorder.reached:
                    best = attempt
            if best is not None and (repaired := self._repaired(phase, model, best)) is not None:
                return self._succeeded(phase, repaired, record)
        except _Stopped as stopped:
            self._failed(phase, stopped.error, stopped.recorder)
            return None
        partial = best.recorder if best is not None and record else Recorder(self.values)
        self._failed(phase, best.error if best is not None else None, partial)
        return None

    def _attempt(
        self, phase: str, model: Any, made: Inputs, extra: dict[str, Any], limit: int | None = None
    ) -> _Attempt:
        recorder = Recorder(self.values, limit)
        try:
            tensors = self._tensors(made)
            with self._recording(recorder, phase):
                model(**tensors, **extra)
        except TooManyCalls as error:
            raise _Stopped(error, recorder) from error
        except Exception as error:
            return _Attempt(made, recorder, error)
        return _Attempt(made, recorder)

    def _succeeded(self, phase: str, attempt: _Attempt, record: bool) -> Inputs:
        if record:
            self.recorder.merge(attempt.recorder)
            self.done.append(phase)
        return attempt.made

    def _repaired(self, phase: str, model: Any, start: _Attempt) -> _Attempt | None:
        """An attempt that succeeds, by following what the errors of the one before say; else None, and
        nothing counts as reached by the way."""
        entered, parameters = set(self._entered), set(self.values.parameters)
        best, tried, left = start, [start.made], _REPAIR_CALLS
        for _ in range(_REPAIRS):
            assert best.error is not None
            further: _Attempt | None = None
            proposed = repairs(best.made, best.error, model, batch=self.batch, seq_len=self.seq_len)
            for made in itertools.islice(proposed, MAX_CANDIDATES):
                if made in tried or left <= 0:
                    continue
                tried.append(made)
                self._entered, self.values.parameters = set(entered), set(parameters)
                try:
                    attempt = self._attempt(phase, model, made, {}, left)
                except _Stopped as stopped:
                    left -= stopped.recorder.seen
                    continue
                left -= attempt.recorder.seen
                if attempt.error is None:
                    return attempt
                if attempt.recorder.seen > (further or best).recorder.seen:
                    further = attempt
            if further is None:
                break
            best = further
        self._entered, self.values.parameters = entered, parameters
        return None

    def _failed(self, phase: str, error: Exception | None, partial: Recorder) -> None:
        self.recorder.merge(partial)
        failure = TraceFailure(
            model=self.name, phase=phase, detail=one_line(error) if error else "it takes no inputs"
        )
        failure.__cause__ = error
        self.failures.append(failure)

    def _tensors(self, made: Inputs) -> dict[str, torch.Tensor]:
        vocabulary = find(self.model.config, "vocab_size")
        longest = max(
            (max(shape[1:]) for kind, shape in made.values() if kind == "float" and len(shape) > 1),
            default=self.seq_len,
        )
        tensors = {}
        for name, (kind, shape) in made.items():
            if kind == "int":
                with unset_fake_temporarily():
                    real = integers(name, shape, vocabulary if type(vocabulary) is int else 1000, longest)
                tensors[name] = self.values.follow(real)
            else:
                tensors[name] = torch.empty(shape, dtype=self.dtype)
        return tensors

    def _decode(self, inputs: Inputs, cache: str) -> None:
        """Record one step against a static cache, or against the model's own where it takes no static one."""
        error: Exception | None = None
        best = Recorder(self.values)
        for make in (self._static_cache, lambda: None):
            recorder = Recorder(self.values)
            try:
                self._step(recorder, inputs, cache, make())
            except Exception as raised:
                error = error or raised
                if recorder.total > best.total:
                    best = recorder
                continue
            self.recorder.merge(recorder)
            self.done.append("decode")
            return
        self._failed("decode", error, best)

    def _static_cache(self) -> Any:
        from transformers import StaticCache

        with self.values:
            return StaticCache(config=self.model.config, max_cache_len=self.max_cache_len)

    def _step(self, recorder: Recorder, inputs: Inputs, cache_name: str, cache: Any) -> None:
        from transformers import EncoderDecoderCache, StaticCache

        model = self.model
        two_sided = bool(model.config.is_encoder_decoder)
        token_name = (
            "decoder_input_ids" if two_sided and "decoder_input_ids" in inputs else main_inputs(model)[0]
        )
        # As many rows as the prompt has: several for every sequence where there are codebooks.
        token: Inputs = {token_name: ("int", (*inputs.get(token_name, ("int", (self.batch, 1)))[1][:-1], 1))}
        # A static cache starts with one token; the model's own is filled by a whole prefill.
        warm = {**inputs, **token} if cache is not None else inputs
        kept = (
            {}
            if two_sided
            else {k: v for k, v in inputs.items() if k != token_name and k not in main_inputs(model)}
        )
        warm_tensors, tensors = self._tensors(warm), self._tensors({**kept, **token})
        with self._recording(recorder, "decode"):
            recorder.paused = True
            extra: dict[str, Any] = {}
            if cache is not None:
                if two_sided:
                    source = next(shape for name, (_, shape) in inputs.items() if name != token_name)
                    length = self._encoder_length(inputs, source)
                    with self.values:
                        cross = StaticCache(config=model.config, max_cache_len=length)
                    cache = EncoderDecoderCache(cache, cross)
                self._record_setup(recorder, cache)
                extra[cache_name] = cache
            with _outputs_of(model.get_encoder() if two_sided else None) as encoded:
                output = model(**warm_tensors, **extra, use_cache=True)
            extra[cache_name] = cache if cache is not None else self._own_cache(output)
            if two_sided:
                extra["encoder_outputs"] = _encoder_outputs(encoded, output)
            recorder.paused = False
            model(**tensors, **extra, use_cache=True)

    def _encoder_length(self, inputs: Inputs, source: Shape) -> int:
        output = self.model.get_encoder()(
            **self._tensors({k: v for k, v in inputs.items() if not k.startswith("decoder_")})
        )
        return int(output[0].shape[1]) if output is not None else source[-1]

    @staticmethod
    def _own_cache(output: Any) -> Any:
        found = next((output[name] for name in _CACHE if name in output and output[name] is not None), None)
        if found is None:
            raise ValueError("the model returns no cache")
        return found

    @staticmethod
    def _record_setup(recorder: Recorder, cache: Any) -> None:
        """Have the allocation of the cache recorded although the step that causes it is not."""

        def recorded(initialise: Callable[..., Any]) -> Callable[..., Any]:
            def wrapper(*args: Any, **kwargs: Any) -> Any:
                recorder.paused = False
                try:
                    return initialise(*args, **kwargs)
                finally:
                    recorder.paused = True

            return wrapper

        for part in (
            (cache.self_attention_cache, cache.cross_attention_cache)
            if hasattr(cache, "cross_attention_cache")
            else (cache,)
        ):
            for layer in part.layers:
                layer.lazy_initialization = recorded(layer.lazy_initialization)

    @contextlib.contextmanager
    def _recording(self, recorder: Recorder, phase: str) -> Iterator[None]:
        recorder.phase = phase
        recorder.module_names = self._names

        def enter(module: torch.nn.Module, _: Any) -> None:
            self._entered.add(id(module))
            recorder.enter_module(module)

        def leave(*_: Any) -> None:
            recorder.leave_module()

        hooks = torch.nn.modules.module
        before = hooks.register_module_forward_pre_hook(enter)
        after = hooks.register_module_forward_hook(leave, always_call=True)
        try:
            with recorder:
                yield
        finally:
            before.remove()
            after.remove()


@contextlib.contextmanager
def _outputs_of(module: torch.nn.Module | None) -> Iterator[list[Any]]:
    """Every output of the module's forward pass while this is active."""
    found: list[Any] = []
    if module is None:
        yield found
        return
    hook = module.register_forward_hook(lambda _module, _inputs, output: found.append(output))
    try:
        yield found
    finally:
        hook.remove()


def _encoder_outputs(encoded: list[Any], output: Any) -> Any:
    """What a decoder step is given of its encoder: its whole output, as generation does.

    Some encoders return more than the hidden state (a mask that fits it, say), and their decoders read that.
    """
    from transformers.modeling_outputs import BaseModelOutput
    from transformers.utils import ModelOutput

    whole = next((found for found in reversed(encoded) if isinstance(found, ModelOutput)), None)
    return whole or BaseModelOutput(last_hidden_state=output.encoder_last_hidden_state)
