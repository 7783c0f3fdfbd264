"""A Hugging Face checkpoint folder: its configuration files and its weights, each looked up by name and accounted for."""
import json
from pathlib import Path

import torch
from safetensors import safe_open


class Refused(Exception):
    """The checkpoint is not one that this exporter knows; the message says what it found and what it knows."""


class Checkpoint:
    """`config.json`, other JSON files, `tokenizer.json`, and the tensors of `*.safetensors` (one file or several)."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.config = self.json("config.json")
        if self.config is None:
            raise Refused(f"{folder}: no config.json; give the folder of a Hugging Face checkpoint")
        self.config = completed(self.config)
        self._files = {}
        paths = sorted(folder.glob("*.safetensors"))
        if not paths:
            raise Refused(f"{folder}: no *.safetensors; other weight formats are not read")
        for path in paths:
            with safe_open(path, "pt") as weights:
                self._files |= dict.fromkeys(weights.keys(), path)
        self._open = {}
        self._taken = set()

    def json(self, name: str):
        """A JSON file of the folder; None if it is not there."""
        path = self.folder / name
        return json.loads(path.read_text()) if path.exists() else None

    @property
    def names(self) -> list[str]:
        return list(self._files)

    def has(self, name: str) -> bool:
        return name in self._files

    def take(self, name: str) -> torch.Tensor:
        """The tensor called `name`, as float32."""
        if name not in self._files:
            near = [known for known in self._files if known.split(".")[-2:] == name.split(".")[-2:]][:3]
            raise Refused(f"{self.folder}: no tensor `{name}`" + (f"; similar: {', '.join(near)}" if near else ""))
        path = self._files[name]
        if path not in self._open:
            self._open[path] = safe_open(path, "pt").__enter__()
        self._taken.add(name)
        return self._open[path].get_tensor(name).float()

    def prefix(self, *choices: str) -> str:
        """The first of `choices` with which a tensor's name starts."""
        for choice in choices:
            if any(name.startswith(choice) for name in self._files):
                return choice
        raise Refused(f"{self.folder}: no tensors named {' or '.join(choice + '*' for choice in choices)}; found e.g. {self.names[:3]}")

    def leave(self, *prefixes: str):
        """These tensors are known and not needed."""
        self._taken |= {name for name in self._files if name.startswith(prefixes)}

    def untaken(self) -> list[str]:
        """Tensors that nobody asked for."""
        return sorted(set(self._files) - self._taken)


def completed(config: dict) -> dict:
    """The configuration with what it leaves to `transformers`; as it is, if `transformers` does not know the model."""
    from transformers import CONFIG_MAPPING

    kind = config.get("model_type")
    return CONFIG_MAPPING[kind].from_dict(config).to_dict() if kind in CONFIG_MAPPING else config


def fill(module: torch.nn.Module, tensors: dict[str, torch.Tensor]):
    """Sets every parameter of `module`; sizes must agree and none may be left out."""
    wanted = dict(module.named_parameters())
    assert set(wanted) == set(tensors), f"{set(wanted) ^ set(tensors)}"
    for name, parameter in wanted.items():
        if parameter.shape != tensors[name].shape:
            raise Refused(f"`{name}` has the shape {tuple(tensors[name].shape)}, expected {tuple(parameter.shape)}")
        owner, _, leaf = name.rpartition(".")
        setattr(module.get_submodule(owner), leaf, torch.nn.Parameter(tensors[name], requires_grad=False))
