"""Vision graphs of models that cut a page into square tiles: InternViT and SigLIP, with their projectors.

`pixels [T, 3, S, S]` -> `features [1, T x K, hidden]`: tiles do not see one another, so the program may run a few at a time.
"""
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional

from .checkpoint import Checkpoint, Refused, fill

ACTIVATIONS = {"gelu": "none", "gelu_pytorch_tanh": "tanh"}


@dataclass(frozen=True)
class TileShape:
    tile: int
    patch: int
    hidden: int
    layers: int
    heads: int
    feed_forward: int
    epsilon: float
    activation: str
    # Patches a side that become one feature.
    shuffle: int
    output: int
    # A class token before the patches, and scales on each layer's branches (InternViT); a norm after the last layer (SigLIP).
    class_token: bool
    final_norm: bool
    # Norm, linear, GELU, linear (InternVL), or a single linear map (Idefics3).
    deep_projector: bool

    @property
    def features_per_tile(self) -> int:
        return (self.tile // self.patch // self.shuffle) ** 2

    def check(self):
        if self.activation not in ACTIVATIONS:
            raise Refused(f"config.json: vision activation `{self.activation}` is not known; known: {', '.join(ACTIVATIONS)}")
        if self.tile % (self.patch * self.shuffle):
            raise Refused(f"config.json: tiles of {self.tile} px are no whole number of features of {self.patch * self.shuffle} px")


class TileLayer(nn.Module):
    def __init__(self, shape: TileShape):
        super().__init__()
        self.heads, self.approximate = shape.heads, ACTIVATIONS[shape.activation]
        self.norm1 = nn.LayerNorm(shape.hidden, shape.epsilon)
        self.qkv = nn.Linear(shape.hidden, 3 * shape.hidden)
        self.proj = nn.Linear(shape.hidden, shape.hidden)
        self.norm2 = nn.LayerNorm(shape.hidden, shape.epsilon)
        self.fc1 = nn.Linear(shape.hidden, shape.feed_forward)
        self.fc2 = nn.Linear(shape.feed_forward, shape.hidden)

    def forward(self, x):
        queries, keys, values = self.qkv(self.norm1(x)).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        weights = (queries * queries.shape[-1] ** -0.5 @ keys.transpose(2, 3)).softmax(-1)
        x = x + self.proj((weights @ values).transpose(1, 2).flatten(2))
        return x + self.fc2(functional.gelu(self.fc1(self.norm2(x)), approximate=self.approximate))


class TileVision(nn.Module):
    def __init__(self, shape: TileShape):
        super().__init__()
        self.shape = shape
        self.patches = nn.Conv2d(3, shape.hidden, shape.patch, shape.patch)
        self.places = nn.Parameter(torch.zeros((shape.tile // shape.patch) ** 2 + shape.class_token, shape.hidden))
        self.class_token = nn.Parameter(torch.zeros(1, 1, shape.hidden)) if shape.class_token else None
        self.layers = nn.ModuleList([TileLayer(shape) for _ in range(shape.layers)])
        self.norm = nn.LayerNorm(shape.hidden, shape.epsilon) if shape.final_norm else nn.Identity()
        width = shape.hidden * shape.shuffle**2
        if shape.deep_projector:
            self.projector = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, shape.output), nn.GELU(), nn.Linear(shape.output, shape.output))
        else:
            self.projector = nn.Linear(width, shape.output, bias=False)

    def example(self) -> tuple[dict, dict]:
        """Inputs to export with, and their free axes."""
        return {"pixels": torch.zeros(2, 3, self.shape.tile, self.shape.tile)}, {"pixels": {0: "T"}}

    def forward(self, pixels):
        shape = self.shape
        x = self.patches(pixels).flatten(2).transpose(1, 2)
        if self.class_token is not None:
            x = torch.cat([self.class_token.expand(x.shape[0], -1, -1), x], 1)
        x = x + self.places
        for layer in self.layers:
            x = layer(x)
        x = self.norm(x)
        side, group = shape.tile // shape.patch, shape.shuffle
        x = x[:, 1:] if shape.class_token else x
        # Features row by row; a feature's channels: row of the patch within it, column, channel.
        x = x.unflatten(1, (side // group, group, side // group, group)).permute(0, 1, 3, 2, 4, 5).flatten(3).flatten(0, 2)
        return self.projector(x).unsqueeze(0)


def load(checkpoint: Checkpoint, shape: TileShape, names: dict[str, str], layer_names: dict[str, str]) -> TileVision:
    """`names`: ours -> the checkpoint's; `layer_names` with `{}` for the layer's number. `qkv` may be one tensor or three (`name|name|name`);
    a branch's scale (`scale1`, `scale2`) is folded into the linear map before it."""
    shape.check()
    module = TileVision(shape)
    tensors = {ours: checkpoint.take(theirs) for ours, theirs in names.items()}
    tensors["places"] = tensors["places"].reshape(-1, shape.hidden)
    if tensors["places"].shape != module.places.shape:
        raise Refused(f"{tensors['places'].shape[0]} positions in the checkpoint, {module.places.shape[0]} in tiles of {shape.tile} px")
    for index in range(shape.layers):
        of = {}
        for ours, theirs in layer_names.items():
            parts = [checkpoint.take(part.format(index)) for part in theirs.split("|")]
            of[ours] = torch.cat(parts) if len(parts) > 1 else parts[0]
        for scale, linear in (("scale1", "proj"), ("scale2", "fc2")):
            if scale in of:
                factor = of.pop(scale)
                of[f"{linear}.weight"] = of[f"{linear}.weight"] * factor[:, None]
                of[f"{linear}.bias"] = of[f"{linear}.bias"] * factor
        tensors |= {f"layers.{index}.{ours}": tensor for ours, tensor in of.items()}
    fill(module, tensors)
    return module.eval()
