"""Vision graphs of models that read a page at about its own size: those of Qwen2.5-VL and Qwen3-VL.

`patches [N, 3, p, p]`, `places [N, 2]` (row, column) -> `features [G, N / merge^2, hidden]`. With windows: `windows [W, S]` (patches of each window,
-1 where there is none) and `windows_back [N]` (where each patch stands there). With learnt places: `learnt_places [N, 4]` and
`learnt_weights [N, 4]`. The page is one still picture, so the two moments that the published patch weights read are added up.
"""
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional

from .checkpoint import Checkpoint, Refused, fill
from .decoder import HIDDEN_SCORE, RmsNorm, rotate

EPSILON = 1e-6


@dataclass(frozen=True)
class NativeShape:
    patch: int
    merge: int
    hidden: int
    layers: int
    heads: int
    feed_forward: int
    output: int
    # Side of a window in patches (0: none), and the layers without windows.
    window: int = 0
    whole_layers: tuple[int, ...] = ()
    # Side of the square of learnt places; 0: none.
    place_side: int = 0
    # Layers after which features for the decoder's first layers are taken.
    deep_layers: tuple[int, ...] = ()
    # Gated feed-forward and RMSNorm (Qwen2.5-VL), or a plain one and LayerNorm (Qwen3-VL).
    gated: bool = False
    theta: float = 10000.0


class Gated(nn.Module):
    def __init__(self, width: int, inner: int):
        super().__init__()
        self.gate, self.up, self.down = nn.Linear(width, inner), nn.Linear(width, inner), nn.Linear(inner, width)

    def forward(self, x):
        return self.down(functional.silu(self.gate(x)) * self.up(x))


class Plain(nn.Module):
    def __init__(self, width: int, inner: int):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(width, inner), nn.Linear(inner, width)

    def forward(self, x):
        return self.fc2(functional.gelu(self.fc1(x), approximate="tanh"))


def norm(shape: NativeShape, width: int) -> nn.Module:
    return RmsNorm(width, EPSILON) if shape.gated else nn.LayerNorm(width, EPSILON)


class NativeLayer(nn.Module):
    def __init__(self, shape: NativeShape):
        super().__init__()
        self.heads = shape.heads
        self.norm1, self.norm2 = norm(shape, shape.hidden), norm(shape, shape.hidden)
        self.qkv = nn.Linear(shape.hidden, 3 * shape.hidden)
        self.proj = nn.Linear(shape.hidden, shape.hidden)
        self.feed = (Gated if shape.gated else Plain)(shape.hidden, shape.feed_forward)

    def forward(self, x, cosine, sine, windows):
        queries, keys, values = self.qkv(self.norm1(x)).unflatten(-1, (3, self.heads, -1)).permute(1, 2, 0, 3)
        queries = rotate(queries, cosine, sine) * queries.shape[-1] ** -0.5
        keys = rotate(keys, cosine, sine)
        mixed = self.whole(queries, keys, values) if windows is None else self.windowed(queries, keys, values, *windows)
        x = x + self.proj(mixed)
        return x + self.feed(self.norm2(x))

    def whole(self, queries, keys, values):
        """Every patch sees every patch. A head at a time: scores of one are `N x N` numbers."""
        mixed = [(queries[head] @ keys[head].transpose(0, 1)).softmax(-1) @ values[head] for head in range(self.heads)]
        return torch.cat(mixed, -1)

    def windowed(self, queries, keys, values, windows, back):
        hidden = (windows < 0).float().unsqueeze(1) * HIDDEN_SCORE
        queries, keys, values = (part[:, windows.clamp(min=0)] for part in (queries, keys, values))
        mixed = (queries @ keys.transpose(2, 3) + hidden).softmax(-1) @ values
        return mixed.flatten(1, 2)[:, back].transpose(0, 1).flatten(1)


class Merger(nn.Module):
    """Patches of a block -> a feature. The norm is over a patch, or over the block."""

    def __init__(self, shape: NativeShape, over_block: bool):
        super().__init__()
        self.block, self.over_block = shape.merge**2, over_block
        width = shape.hidden * self.block
        self.norm = norm(shape, width if over_block else shape.hidden)
        self.fc1, self.fc2 = nn.Linear(width, width), nn.Linear(width, shape.output)

    def forward(self, x):
        blocks = lambda x: x.unflatten(0, (-1, self.block)).flatten(1)  # noqa: E731
        x = self.norm(blocks(x)) if self.over_block else blocks(self.norm(x))
        return self.fc2(functional.gelu(self.fc1(x)))


class NativeVision(nn.Module):
    def __init__(self, shape: NativeShape):
        super().__init__()
        self.shape = shape
        self.patches = nn.Linear(3 * shape.patch**2, shape.hidden, bias=not shape.gated)
        self.learnt = nn.Parameter(torch.zeros(shape.place_side**2, shape.hidden)) if shape.place_side else None
        self.layers = nn.ModuleList([NativeLayer(shape) for _ in range(shape.layers)])
        self.merger = Merger(shape, over_block=False)
        self.deep = nn.ModuleList([Merger(shape, over_block=True) for _ in shape.deep_layers])
        # Rows of the rotary matrix: row and column of a patch, a quarter of the head's dimensions each.
        quarter = shape.hidden // shape.heads // 4
        frequencies = 1.0 / (shape.theta ** (torch.arange(quarter).float() / quarter))
        self.register_buffer("rotary", torch.block_diag(frequencies[None], frequencies[None]))

    @property
    def groups(self) -> int:
        return 1 + len(self.deep)

    def example(self) -> tuple[dict, dict]:
        """Inputs to export with, and their free axes."""
        shape, count = self.shape, 3 * self.shape.merge**2
        inputs = {"patches": torch.zeros(count, 3, shape.patch, shape.patch), "places": torch.zeros(count, 2, dtype=torch.int64)}
        if shape.window:
            inputs |= {"windows": torch.arange(2 * shape.window**2).reshape(2, -1) % count, "windows_back": torch.arange(count)}
        if shape.place_side:
            inputs |= {"learnt_places": torch.zeros(count, 4, dtype=torch.int64), "learnt_weights": torch.ones(count, 4)}
        return inputs, {name: {0: "W" if name == "windows" else "N"} for name in inputs}

    def forward(self, patches, places, *further):
        shape = self.shape
        further = list(further)
        windows = (further.pop(0), further.pop(0)) if shape.window else None
        x = self.patches(patches.flatten(1))
        if self.learnt is not None:
            indices, weights = further
            x = x + (self.learnt[indices] * weights.unsqueeze(-1)).sum(1)
        angles = places.float() @ self.rotary
        cosine, sine = angles.cos(), angles.sin()
        deep = []
        for index, layer in enumerate(self.layers):
            x = layer(x, cosine, sine, None if index in shape.whole_layers else windows)
            if index in shape.deep_layers:
                deep.append(self.deep[len(deep)](x))
        return torch.stack([self.merger(x), *deep])


def load(checkpoint: Checkpoint, shape: NativeShape, stem: str, names: dict[str, str], layer_names: dict[str, str]) -> NativeVision:
    """`names` and `layer_names` (with `{}` for the layer's number): ours -> the checkpoint's, below `stem`."""
    if (shape.hidden // shape.heads) % 4:
        raise Refused(f"config.json: vision heads of {shape.hidden // shape.heads} numbers cannot be rotated by row and column")
    module = NativeVision(shape)
    tensors = {ours: checkpoint.take(stem + theirs) for ours, theirs in names.items()}
    # [hidden, 3, moments, p, p]: both moments are the one picture.
    tensors["patches.weight"] = tensors["patches.weight"].sum(2).flatten(1)
    for index in range(shape.layers):
        tensors |= {f"layers.{index}.{ours}": checkpoint.take(stem + theirs.format(index)) for ours, theirs in layer_names.items()}
    fill(module, tensors)
    return module.eval()
