"""From a model id to its configuration. Weights are never read, code from a repository never run."""

from __future__ import annotations

import difflib
import hashlib
import importlib.resources
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tracer.errors import HarvestError
from tracer.models.errors import (
    MalformedConfig,
    NetworkFailure,
    NoConfiguration,
    RemoteCode,
    UnknownModel,
)

CONFIG_NAME = "config.json"

_SHORT = 3
"""A name of so many letters is part of too many others to suggest those."""


@dataclass(frozen=True)
class ModelConfig:
    """A model's configuration and where it came from.

    `name` is the model's short name (no owner, no path), `data` the content of its config.json, `source` one
    of `path`, `preset`, `cache`, `hub`, `model_type`.
    """

    name: str
    data: dict[str, Any]
    source: str

    @property
    def safe_name(self) -> str:
        """`name` as one path component."""
        return safe_name(self.name)

    @property
    def digest(self) -> str:
        """Hexadecimal SHA-256 of the configuration's canonical JSON."""
        return hashlib.sha256(json.dumps(self.data, sort_keys=True).encode()).hexdigest()


def safe_name(name: str) -> str:
    """`name` as one portable path component of letters, digits, `.`, `_`, `-`: never empty, hidden, or long.

    Names that differ stay different: whatever had to be changed is followed by a digest of the original.
    """
    cleaned = re.sub(r"[^A-Za-z0-9._-]+", "_", name).lstrip(".-")[:100].rstrip(".")
    if cleaned and cleaned == name:
        return cleaned
    return f"{cleaned[:87] or 'model'}-{hashlib.sha256(name.encode(errors='surrogatepass')).hexdigest()[:12]}"


def resolve(model_id: str, *, offline: bool = False) -> ModelConfig:
    """The configuration that `model_id` names.

    Order: local path (a directory with config.json, or a JSON file), bundled preset, local Hub cache, Hub
    (unless `offline`), bare transformers `model_type` (the defaults that transformers ships).

    Raises:
        UnknownModel: nothing of that name is known (near matches are named).
        NoConfiguration: `model_id` is a path, and no configuration is there.
        MalformedConfig: the configuration is no JSON object with a `model_type` that transformers knows.
        RemoteCode: the configuration asks for code of its own.
        NetworkFailure: nothing else knows the Hub id, and the Hub could not or (`offline`) must not be asked.
    """
    found = _from_path(model_id) or _from_preset(model_id) or _from_hub(model_id, local=True)
    failure: HarvestError | None = _path_failure(model_id)
    if found is None and _is_hub_id(model_id):
        try:
            found = None if offline else _from_hub(model_id, local=False)
        except NetworkFailure as error:
            failure = failure or error
        if offline:
            failure = failure or _not_cached(model_id, "--offline", "leave out --offline")
    found = found or _from_model_type(model_id)
    if found is None:
        raise failure or UnknownModel(model=model_id, near=_near(model_id))
    return _checked(found, model_id)


def _not_cached(model_id: str, forbidden_by: str, way_out: str) -> NetworkFailure:
    detail = f"it is not in the local Hub cache, and {forbidden_by} forbids to ask the Hub"
    return NetworkFailure(model=model_id, detail=detail, or_else=f", or {way_out}")


def _path_failure(model_id: str) -> NoConfiguration | None:
    """Why the path that `model_id` must be, by its form or because it exists, leads to no configuration."""
    path = Path(model_id).expanduser()
    try:
        if path.is_dir():
            return NoConfiguration(model=model_id, detail=f"the directory has no {CONFIG_NAME}")
        if path.exists():
            return NoConfiguration(model=model_id, detail="the name of the file does not end in .json")
    except (OSError, ValueError):
        return None
    if path.is_absolute() or model_id.startswith(("./", "../", "~")) or path.suffix == ".json":
        return NoConfiguration(model=model_id, detail="no such file or directory")
    return None


def _from_path(model_id: str) -> ModelConfig | None:
    path = Path(model_id).expanduser()
    try:
        if path.is_dir() and (path / CONFIG_NAME).is_file():
            file, name = path / CONFIG_NAME, path.resolve().name
        elif path.is_file() and path.suffix == ".json":
            file = path
            name = path.resolve().parent.name if path.name == CONFIG_NAME else path.stem
        else:
            return None
        return ModelConfig(name, _load(file.read_text(encoding="utf-8"), model_id), "path")
    except (OSError, ValueError) as error:
        raise MalformedConfig(model=model_id, detail=str(error)) from error


def _load(text: str, model_id: str) -> dict[str, Any]:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise MalformedConfig(model=model_id, detail=f"no JSON ({error})") from error
    if not isinstance(data, dict):
        raise MalformedConfig(model=model_id, detail=f"a JSON object is needed, not {type(data).__name__}")
    return data


def presets() -> dict[str, tuple[str, ...]]:
    """Names of the bundled presets with their aliases."""
    return {name: tuple(data["aliases"]) for name, data in _preset_files().items()}


def _preset_files() -> dict[str, dict[str, Any]]:
    folder = importlib.resources.files("tracer.models") / "presets"
    files = sorted(
        (entry for entry in folder.iterdir() if entry.name.endswith(".json")), key=lambda entry: entry.name
    )
    return {
        entry.name.removesuffix(".json"): json.loads(entry.read_text(encoding="utf-8")) for entry in files
    }


def _from_preset(model_id: str) -> ModelConfig | None:
    wanted = model_id.lower()
    for name, data in _preset_files().items():
        if wanted in {name.lower(), *(alias.lower() for alias in data["aliases"])}:
            return ModelConfig(name, data["config"], "preset")
    return None


def _is_hub_id(model_id: str) -> bool:
    return re.fullmatch(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*", model_id) is not None


def _from_hub(model_id: str, *, local: bool) -> ModelConfig | None:
    from huggingface_hub import constants, hf_hub_download
    from huggingface_hub.errors import (
        EntryNotFoundError,
        GatedRepoError,
        HfHubHTTPError,
        HFValidationError,
        LocalEntryNotFoundError,
        RepositoryNotFoundError,
    )

    try:
        path = hf_hub_download(model_id, CONFIG_NAME, local_files_only=local, etag_timeout=10)
        text = Path(path).read_text(encoding="utf-8")
    except HFValidationError:
        return None
    except LocalEntryNotFoundError as error:
        if local:
            return None
        if constants.HF_HUB_OFFLINE:
            raise _not_cached(model_id, "HF_HUB_OFFLINE", "unset HF_HUB_OFFLINE") from error
        raise NetworkFailure(model=model_id, detail="the Hub cannot be reached") from error
    except GatedRepoError as error:
        detail = "the Hub gives it only to accounts that were granted access"
        raise NetworkFailure(
            model=model_id, detail=detail, or_else=", or log in with `hf auth login`"
        ) from error
    except RepositoryNotFoundError:
        return None
    except EntryNotFoundError as error:
        raise NoConfiguration(model=model_id, detail=f"the repository has no {CONFIG_NAME}") from error
    except (HfHubHTTPError, OSError, ValueError) as error:
        raise NetworkFailure(
            model=model_id, detail=str(error).splitlines()[0] if str(error) else type(error).__name__
        ) from error
    return ModelConfig(model_id.rpartition("/")[2], _load(text, model_id), "cache" if local else "hub")


def _from_model_type(model_id: str) -> ModelConfig | None:
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    return (
        ModelConfig(model_id, {"model_type": model_id}, "model_type") if model_id in CONFIG_MAPPING else None
    )


def _near(model_id: str) -> str:
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    if _is_hub_id(model_id):
        # Every owner's names resemble those of others; only a slip in the id of a preset is worth a word.
        names = {alias.lower(): alias for aliases in presets().values() for alias in aliases if "/" in alias}
        close = difflib.get_close_matches(model_id.lower(), names, n=1, cutoff=0.9)
    else:
        names = {name.lower(): name for name in (*presets(), *CONFIG_MAPPING.keys())}
        wanted = model_id.lower()
        close = difflib.get_close_matches(wanted, names, n=3, cutoff=0.7)
        if not close and len(wanted) > _SHORT:
            close = [name for name in names if wanted in name][:3]
    return f" (did you mean {', '.join(names[name] for name in close)}?)" if close else ""


def _checked(config: ModelConfig, model_id: str) -> ModelConfig:
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    remote = config.data.get("auto_map")
    model_type = config.data.get("model_type")
    known = isinstance(model_type, str) and model_type in CONFIG_MAPPING
    if remote and not known:
        classes = remote.values() if isinstance(remote, dict) else [remote]
        raise RemoteCode(model=model_id, classes=", ".join(sorted(str(entry) for entry in classes)))
    if not known:
        raise MalformedConfig(model=model_id, detail=f"transformers knows no model_type {model_type!r}")
    return config
