"""Inputs for a model, made from its main inputs, its forward's signature and its configuration.

No table of models: a parameter's annotation says whether it holds integers, the configuration says which
sizes there are (images, spectrograms, raw audio, hidden states), and `candidates` lists the combinations to
try, the likeliest first.
"""

from __future__ import annotations

import inspect
import itertools
import re
from collections.abc import Iterator
from typing import Any

import torch

from tracer.models.documented import documented, evaluate

MAX_CANDIDATES = 48
_RATE = 16_000
"""Samples of one second of speech; what every raw-audio model of transformers expects."""
_IMAGE = 224
_FRAMES = 100
"""Frames of one second of a spectrogram."""

PATCHES = 16
"""Patches of an image that is given as patches; a square number, for they form a grid."""

_GRID = 4
"""Rows and columns of that grid."""

Shape = tuple[int, ...]
Guess = tuple[str, Shape]
"""`"int"` or `"float"`, and a shape."""
Inputs = dict[str, Guess]


def parameters_of(model: Any) -> dict[str, inspect.Parameter]:
    """Named parameters of the model's forward."""
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return {name: p for name, p in inspect.signature(model.forward).parameters.items() if p.kind in kinds}


def main_inputs(model: Any) -> tuple[str, ...]:
    """Names of the inputs that the model calls its main ones and that its forward takes."""
    named = model.main_input_name
    names = tuple(named) if isinstance(named, (list, tuple)) else (named,)
    parameters = parameters_of(model)
    found = tuple(name for name in names if name in parameters)
    required = tuple(
        name for name, p in parameters.items() if p.default is inspect.Parameter.empty and name not in found
    )
    return found + required or tuple(itertools.islice(parameters, 1))


_INTEGERS = (
    "_ids",
    "_thw",
    "_index",
    "_mask",
    "_idx",
    "_lens",
    "_lengths",
    "_sizes",
    "_shapes",
    "_hw",
    "_hws",
)


def holds_integers(name: str, parameter: inspect.Parameter | None) -> bool:
    """Whether a parameter wants integers: by its annotation, else by what `_ids`, `_mask` ... mean."""
    annotation = str(parameter.annotation) if parameter is not None else ""
    if "LongTensor" in annotation or "IntTensor" in annotation or "BoolTensor" in annotation:
        return True
    return "FloatTensor" not in annotation and name.endswith(_INTEGERS)


def candidates(model: Any, *, batch: int, seq_len: int) -> Iterator[Inputs]:
    """Sets of inputs to try, as `{name: ("int" | "float", shape)}`; the forward pass decides."""
    parameters = parameters_of(model)
    names = main_inputs(model)
    extra: tuple[str, ...] = ()
    if getattr(model.config, "is_encoder_decoder", False):
        # What the decoder is given: tokens, or the future of each series of which the past is given.
        future = (name.replace("past_", "future_", 1) for name in names if name.startswith("past_"))
        extra = tuple(name for name in ("decoder_input_ids", *future) if name in parameters)
    wanted = tuple(dict.fromkeys(names + extra))
    tensors = [
        name
        for name, p in parameters.items()
        if "Tensor" in str(p.annotation)
        and name not in wanted
        and not name.startswith(("label", "past_", "head_mask"))
    ]
    sets: list[tuple[str, ...]] = [wanted, names] if extra else [names]
    sets += [(*wanted, name) for name in tensors]
    sets += [(*wanted, a, b) for a, b in itertools.combinations(tensors[:6], 2)]
    seen = set()
    count = 0
    for chosen in sets:
        options = [
            list(shapes(model, name, parameters.get(name), batch=batch, seq_len=seq_len)) for name in chosen
        ]
        for combination in itertools.product(*options):
            made = dict(zip(chosen, combination, strict=True))
            key = tuple(made.items())
            if key not in seen:
                seen.add(key)
                yield made
                count += 1
                if count == MAX_CANDIDATES:
                    return


def shapes(
    model: Any, name: str, parameter: inspect.Parameter | None, *, batch: int, seq_len: int
) -> Iterator[Guess]:
    """Kinds and shapes that a parameter may want, the likeliest first; what is documented comes second."""
    guesses = _guesses(model.config, name, parameter, batch=batch, seq_len=seq_len)
    yield from itertools.islice(guesses, 1)
    if shape := _documented(model, name, batch=batch, seq_len=seq_len):
        yield "int" if holds_integers(name, parameter) else "float", shape
    yield from guesses


def _documented(model: Any, name: str, *, batch: int, seq_len: int) -> Shape | None:
    """The shape that the model's documentation states, if every extent in it is known."""
    texts = documented(model, name)
    if texts is None:
        return None
    bins = any(_BINS_NAME.search(text) for text in texts)
    length = _frames(model.config) if bins else seq_len
    sizes = (
        evaluate(text, lambda word: named_size(model.config, word, batch=batch, seq_len=length))
        for text in texts
    )
    found = tuple(size for size in sizes if size is not None and size > 0)
    return found if len(found) == len(texts) else None


def named_size(config: Any, name: str, *, batch: int, seq_len: int) -> int | None:
    """The extent that documentation or code calls `name`, if it is known."""
    if re.fullmatch(r"batch(_size)?|bsz", name):
        return batch
    if re.fullmatch(r"num_(images|videos|audios|clips|chunks)", name):
        return 1
    if "channels" in name:
        return _channels(config)
    if (patch := _size(find(config, "patch_size"))) and re.fullmatch(r"patch_(size|height|width)", name):
        return patch[name == "patch_width"]
    if re.fullmatch(r"(image|frame)_size|(image_|frame_)?(height|width)|[HW]", name):
        return _image(config)[name.endswith(("width", "W"))]
    if size := _first(config, name):
        return size
    if _BINS_NAME.search(name):
        return _bins(config)
    if "patch" in name:
        return PATCHES
    return seq_len if re.search(r"seq|len|token|time|frame", name) else None


def _guesses(
    config: Any, name: str, parameter: inspect.Parameter | None, *, batch: int, seq_len: int
) -> Iterator[Guess]:
    if name.startswith(("past_", "future_")):
        yield from _series(config, name, batch)
    if holds_integers(name, parameter):
        if name.endswith("_thw"):
            yield "int", (1, 3)
        if name.endswith(("_sizes", "_shapes", "_hw", "_hws")):
            yield from (("int", (batch, 2)), ("int", (1, 2)))
        if name.endswith(("_lens", "_lengths", "_length")):
            yield "int", (batch,)
        yield "int", (batch, seq_len)
        if codebooks := _first(config, "num_codebooks"):
            yield "int", (batch * codebooks, seq_len)
        return
    image, channels = _image(config), _channels(config)
    images = [
        (batch, channels, *image),
        (batch, _first(config, "num_frames", "frames_per_clip") or 8, channels, *image),
    ]
    bins, length = _bins(config), _frames(config)
    spectra = [(batch, bins, length), (batch, length, bins), (batch, 1, length, bins)] if bins else []
    hidden = _first(config, "hidden_size", "d_model", "embed_dim", "dim", "width")
    states = [(batch, seq_len, hidden), (seq_len, hidden)] if hidden else []
    patch = _size(find(config, "patch_size"))
    flat = channels * patch[0] * patch[1] * (_first(config, "temporal_patch_size") or 1) if patch else None
    patches = [(PATCHES, flat), (batch, PATCHES, flat)] if flat else []
    patches += [(PATCHES, channels, *patch), (batch, PATCHES, channels, *patch)] if patch else []
    series = _first(config, "context_length", "seq_length", "prediction_length")
    inputs = _first(config, "num_input_channels", "input_size", "num_time_features")
    times = ([(batch, series, inputs)] if inputs else []) + [(batch, series)] if series else []
    raw = [(batch, _RATE), (batch, 1, _RATE)]
    # A name that says images puts them first; otherwise what the configuration is specific about comes first.
    visual = "pixel" in name or "image" in name
    ordered = [images, patches, states] if visual else [times, spectra, raw, states, patches, images]
    for shape in itertools.chain(*ordered, [(batch, seq_len)]):
        yield "float", shape
    yield "int", (batch, seq_len)


def _image(config: Any) -> tuple[int, int]:
    return _size(find(config, "image_size")) or (_IMAGE, _IMAGE)


def _channels(config: Any) -> int:
    return _first(config, "num_channels", "in_channels", "in_chans", "num_image_channels") or 3


_BINS_NAME = re.compile(r"feature_(dim|size)|mel_bins|n_mels")


def _bins(config: Any) -> int | None:
    """Numbers in a frame of a spectrogram."""
    names = ("num_mel_bins", "feature_size", "input_feat_per_channel", "input_dim", "n_mels", "num_features")
    return _first(config, *names)


def _frames(config: Any) -> int:
    positions = _first(config, "max_source_positions")
    return 2 * positions if positions else _first(config, "max_length", "nb_max_frames") or _FRAMES


def _series(config: Any, name: str, batch: int) -> Iterator[tuple[str, Shape]]:
    """What a time series model calls `past_values`, `future_time_features`, `past_observed_mask` ..."""
    length = _first(config, "context_length", "seq_length")
    # Of the past there is more than is looked at: the largest lag reaches back from its first value.
    lags = [lag for lag in find(config, "lags_sequence") or () if type(lag) is int]
    length = length + max(lags, default=0) if length else None
    if name.startswith("future_"):
        length = _first(config, "prediction_length")
    if length is None:
        return
    kind = "int" if name.endswith("_mask") else "float"
    width = _first(config, "num_time_features" if name.endswith("_time_features") else "input_size")
    if width and (width > 1 or name.endswith("_time_features")):
        yield kind, (batch, length, width)
    yield kind, (batch, length)


def find(config: Any, name: str) -> Any:
    """An attribute of a configuration, or of the first nested one that has it."""
    value = getattr(config, name, None)
    if value is not None:
        return value
    for key in getattr(config, "sub_configs", ()):
        part = getattr(config, key, None)
        if part is not None and (value := find(part, name)) is not None:
            return value
    return None


def _first(config: Any, *names: str) -> int | None:
    for name in names:
        value = find(config, name)
        if type(value) is int and value > 0:
            return value
    return None


def _size(value: Any) -> tuple[int, int] | None:
    if isinstance(value, dict):
        value = [value.get("height"), value.get("width")]
    if type(value) is int and value > 0:
        return value, value
    if isinstance(value, (list, tuple)) and len(value) >= 2 and all(type(n) is int for n in value[-2:]):
        return int(value[-2]), int(value[-1])
    return None


def integers(name: str, shape: Shape, vocabulary: int, longest: int = 1) -> torch.Tensor:
    """Values of an integer input: ones for masks, a small grid for `_thw` and sizes, token ids otherwise.

    `longest` is what lengths are: that of the sequences that they are lengths of.
    """
    if name.endswith(("_mask", "_masks")):
        return torch.ones(shape, dtype=torch.int64)
    if name.endswith("_thw"):
        return torch.tensor([[1, _GRID, _GRID]] * shape[0], dtype=torch.int64)
    if name.endswith(("_sizes", "_shapes", "_hw", "_hws")) and shape[-1:] == (2,):
        return torch.full(shape, _GRID, dtype=torch.int64)
    if name.endswith(("_lens", "_lengths", "_length")):
        return torch.full(shape, longest, dtype=torch.int64)
    if name.endswith("position_ids") and shape[-1:] == (2,):
        places = torch.arange(shape[-2])
        return torch.stack([places // _GRID, places % _GRID], -1).expand(shape).contiguous()
    return (
        (torch.arange(shape[-1]) % max(vocabulary - 3, 1) + min(3, vocabulary - 1)).expand(shape).contiguous()
    )
