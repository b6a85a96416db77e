"""Build a model on fake tensors from its configuration."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from typing import Any

import torch
from torch._subclasses.fake_tensor import DataDependentOutputException, DynamicOutputShapeException

from tracer.models.config import ModelConfig
from tracer.models.errors import BadOption, BuildFailure, MalformedConfig, MissingPackage
from tracer.models.truncate import truncate


def native_config(config: ModelConfig, layers: int | None = None) -> Any:
    """transformers' configuration object, truncated to `layers` layers if given.

    Raises:
        MalformedConfig: transformers refuses the configuration.
    """
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    if layers is not None and layers < 1:
        raise BadOption(option="layers", value=layers, detail="at least one layer is needed")
    data = {key: value for key, value in config.data.items() if key != "auto_map"}
    try:
        native = CONFIG_MAPPING[data["model_type"]].from_dict(data)
    except Exception as error:
        raise MalformedConfig(model=config.name, detail=one_line(error)) from error
    if layers is not None:
        truncate(native, layers)
    return native


_AUTO_CLASSES = (
    "MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING",
    "MODEL_FOR_SPEECH_SEQ_2_SEQ_MAPPING",
    "MODEL_FOR_MULTIMODAL_LM_MAPPING",
    "MODEL_FOR_MASKED_LM_MAPPING",
    "MODEL_FOR_CAUSAL_LM_MAPPING",
    "MODEL_FOR_IMAGE_CLASSIFICATION_MAPPING",
    "MODEL_FOR_OBJECT_DETECTION_MAPPING",
    "MODEL_FOR_SEMANTIC_SEGMENTATION_MAPPING",
    "MODEL_FOR_DEPTH_ESTIMATION_MAPPING",
    "MODEL_FOR_CTC_MAPPING",
    "MODEL_FOR_AUDIO_CLASSIFICATION_MAPPING",
    "MODEL_MAPPING",
    "MODEL_FOR_PRETRAINING_MAPPING",
)
"""transformers' registries, in the order to try for a configuration without architectures."""

LONGEST = 200
"""Characters of an exception that are quoted."""

MORE_LAYERS = 2
"""So many layers are added to those asked for where a model cannot be built with fewer."""

_UNKNOWN_VALUES = (DataDependentOutputException, DynamicOutputShapeException)


def model_class(native: Any, name: str) -> type:
    """The class that a configuration means: its `architectures`, else the first registry that knows it."""
    import transformers
    from transformers.models.auto import modeling_auto

    for architecture in native.architectures or ():
        found = getattr(transformers, str(architecture), None)
        if isinstance(found, type) and issubclass(found, transformers.PreTrainedModel):
            return found
    every = [key for key in sorted(vars(modeling_auto)) if re.fullmatch(r"MODEL_FOR_\w+_MAPPING", key)]
    registered = []
    for mapping in (*_AUTO_CLASSES, *every):
        found = getattr(modeling_auto, mapping).get(type(native), None)
        if found is not None:
            registered.append(found[0] if isinstance(found, tuple) else found)
    if registered:
        # A class of another configuration wants a part of this one: the decoder's, say.
        own = [cls for cls in registered if issubclass(type(native), cls.config_class or object)]
        return (own or registered)[0]
    found = _unregistered(native)
    if found is None:
        detail = f"transformers has no model for {type(native).__name__}"
        raise BuildFailure(
            model=name, detail=detail, way_out="the model that this is a part of, or another model_type"
        )
    return found


def _unregistered(native: Any) -> type | None:
    """A model class that states this configuration as its own: parts of larger models are in no registry."""
    from transformers import PreTrainedModel

    try:
        module = importlib.import_module(type(native).__module__.replace(".configuration_", ".modeling_"))
    except ImportError:
        return None
    fitting = [
        cls
        for cls in vars(module).values()
        if isinstance(cls, type)
        and issubclass(cls, PreTrainedModel)
        and cls.config_class is type(native)
        and "forward" in vars(cls)
    ]
    # The outermost is defined last.
    return fitting[-1] if fitting else None


def build(config: ModelConfig, *, dtype: torch.dtype, layers: int | None = None) -> tuple[Any, int | None]:
    """The model in evaluation mode, and the layers that it has of those asked for.

    Must be called under a FakeTensorMode, which holds its weights.

    Attention is written out (`eager`), experts are batched: both keep every operation visible, and none
    depends on values. A model that does not build on fake tensors is built on `accelerate`'s empty weights
    and moved over; one that does not build with so few layers has a few more (some tie one layer's weights
    to another's).

    Raises:
        MalformedConfig: transformers refuses the configuration.
        MissingPackage: transformers wants a package that is not installed.
        BuildFailure: transformers could not construct the model.
    """
    failure: BuildFailure | None = None
    for count in [layers] if layers is None else range(layers, layers + MORE_LAYERS + 1):
        try:
            return _build(config, dtype, count), count
        except BuildFailure as error:
            failure = failure or error
    assert failure is not None
    if failure.__cause__ is None:
        raise failure
    raise BuildFailure(
        model=config.name, detail=failure.fields["detail"], way_out=_way_out(config, dtype, layers)
    ) from failure.__cause__


def _way_out(config: ModelConfig, dtype: torch.dtype, layers: int | None) -> str:
    """What to try where a model does not build, and what of it is known to help."""
    if layers is not None:
        try:
            _build(config, dtype, None)
        except BuildFailure:
            pass
        else:
            return "no --layers, or more of them; with all its layers it builds"
    if config.source == "model_type":
        return (
            "the config.json of a published model: what transformers assumes for this model_type is no model"
        )
    return "a configuration that suits the pinned transformers release"


def _build(config: ModelConfig, dtype: torch.dtype, layers: int | None) -> Any:
    native = native_config(config, layers)
    try:
        model = _construct(native, config.name, dtype)
    except BuildFailure:
        raise
    except Exception as error:
        try:
            model = _construct_empty(native_config(config, layers), config.name, dtype)
        except Exception as other:
            # What fake tensors cannot do says nothing about the configuration.
            cause = other if isinstance(error, _UNKNOWN_VALUES) else error
            kind = MissingPackage if isinstance(cause, ImportError) else BuildFailure
            raise kind(model=config.name, detail=one_line(cause)) from cause
    return model.eval()


def _construct(native: Any, name: str, dtype: torch.dtype) -> Any:
    cls: Any = model_class(native, name)
    model = cls._from_config(native, dtype=dtype, attn_implementation="eager")
    if model._can_set_experts_implementation():
        model.set_experts_implementation("batched_mm")
    _keep_in_float32(model, dtype)
    return model


def _keep_in_float32(model: Any, dtype: torch.dtype) -> None:
    # What the class asks to be loaded in float32; other parameters stay as they are declared, as in loading.
    kept = _kept_in_float32(model, dtype)
    if kept is not None:
        _recast(model, lambda name: torch.float32 if kept.search(name) else None)


def _kept_in_float32(model: Any, dtype: torch.dtype) -> re.Pattern[str] | None:
    plan = model._get_dtype_plan(dtype)
    return re.compile("|".join(pattern.replace("*", ".*") for pattern in plan)) if plan else None


def unify(model: Any, dtype: torch.dtype) -> bool:
    """Cast the parameters that are declared in another floating dtype, as `model.half()` does.

    Those that the class asks for in float32 stay. Returns whether there were any.
    """
    kept = _kept_in_float32(model, dtype)
    return _recast(model, lambda name: None if kept is not None and kept.search(name) else dtype)


def _recast(model: Any, wanted: Callable[[str], torch.dtype | None]) -> bool:
    """Give every floating parameter the dtype that is wanted by its name (None: its own)."""
    made: dict[int, torch.nn.Parameter] = {}
    for path, module in model.named_modules():
        for name, parameter in list(module.named_parameters(path, recurse=False)):
            dtype = wanted(name)
            if dtype is None or not parameter.is_floating_point() or parameter.dtype == dtype:
                continue
            if id(parameter) not in made:
                made[id(parameter)] = torch.nn.Parameter(parameter.to(dtype), requires_grad=False)
            setattr(module, name.rpartition(".")[2], made[id(parameter)])
    return bool(made)


def _construct_empty(native: Any, name: str, dtype: torch.dtype) -> Any:
    from accelerate import init_empty_weights
    from torch._subclasses.fake_tensor import unset_fake_temporarily

    with unset_fake_temporarily(), init_empty_weights(include_buffers=True):
        model = _construct(native, name, dtype)
    return model.to_empty(device="cpu")


def one_line(error: BaseException) -> str:
    """An exception as one line: its first one, and the next after a colon; whole sentences, if it is long.

    What follows in the text of an exception of PyTorch are C++ frames, of transformers lists of all it knows.
    """
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    count = next((n for n, line in enumerate(lines, 1) if not line.endswith(":")), len(lines))
    text = " ".join([f"{type(error).__name__}:", *lines[:count]])
    text = " ".join(re.sub(r"<class '(?:\w+\.)*(\w+)'>", r"\1", text).split())
    if len(text) <= LONGEST:
        return text
    sentences = text[:LONGEST].rfind(". ")
    return text[: sentences + 1] if sentences > 0 else f"{text[:LONGEST].rpartition(' ')[0]} ..."
