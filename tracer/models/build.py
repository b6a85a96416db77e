"""Build a model on fake tensors from its configuration."""

from __future__ import annotations

import importlib
import re
from typing import Any

import torch

from tracer.models.config import ModelConfig
from tracer.models.errors import BadOption, BuildFailure, MalformedConfig
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
        raise BuildFailure(model=name, detail=f"transformers has no model for {type(native).__name__}")
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


def build(config: ModelConfig, *, dtype: torch.dtype, layers: int | None = None) -> Any:
    """The model in evaluation mode; must be called under a FakeTensorMode, which holds its weights.

    Attention is written out (`eager`), experts are batched: both keep every operation visible, and none
    depends on values. A model that does not build on fake tensors is built on `accelerate`'s empty weights
    and moved over.

    Raises:
        MalformedConfig: transformers refuses the configuration.
        BuildFailure: transformers could not construct the model.
    """
    native = native_config(config, layers)
    try:
        model = _construct(native, config.name, dtype)
    except BuildFailure:
        raise
    except Exception as error:
        try:
            model = _construct_empty(native_config(config, layers), config.name, dtype)
        except Exception:
            raise BuildFailure(model=config.name, detail=one_line(error)) from error
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
    plan = model._get_dtype_plan(dtype)
    if not plan:
        return
    kept = re.compile("|".join(pattern.replace("*", ".*") for pattern in plan))
    for path, module in model.named_modules():
        for name, parameter in module.named_parameters(path, recurse=False):
            if parameter.is_floating_point() and kept.search(name):
                wide = torch.nn.Parameter(parameter.to(torch.float32), requires_grad=False)
                setattr(module, name.rpartition(".")[2], wide)


def _construct_empty(native: Any, name: str, dtype: torch.dtype) -> Any:
    from accelerate import init_empty_weights
    from torch._subclasses.fake_tensor import unset_fake_temporarily

    with unset_fake_temporarily(), init_empty_weights(include_buffers=True):
        model = _construct(native, name, dtype)
    return model.to_empty(device="cpu")


def one_line(error: BaseException) -> str:
    """An exception as one line of at most 300 characters."""
    return " ".join(f"{type(error).__name__}: {error}".split())[:300]
