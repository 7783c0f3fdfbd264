"""The vision graph: a small convolutional net that says which character has its centre where."""
import numpy as np
import torch
from torch import nn
from torch.nn import functional

# A visual token is a cell of this many px of the raster: 2 x 2 feature positions (stride 8), 2 x 4 glyph slots (8 px high, 4 px wide).
CELL_WIDTH, CELL_HEIGHT = 16, 16
FEATURE_STRIDE, SLOT_HEIGHT, SLOT_WIDTH = 8, 8, 4
SLOTS = (CELL_HEIGHT // SLOT_HEIGHT) * (CELL_WIDTH // SLOT_WIDTH)
FEATURE_POSITIONS = (CELL_HEIGHT // FEATURE_STRIDE) * (CELL_WIDTH // FEATURE_STRIDE)


def convolution(inputs: int, outputs: int, stride: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True)
    )


class Residual(nn.Module):
    def __init__(self, channels: int, dilation: int = 1):
        super().__init__()
        self.first = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.first_norm = nn.BatchNorm2d(channels)
        self.second = nn.Conv2d(channels, channels, 3, padding=dilation, dilation=dilation, bias=False)
        self.second_norm = nn.BatchNorm2d(channels)

    def forward(self, x):
        inner = functional.relu(self.first_norm(self.first(x)), inplace=True)
        return functional.relu(x + self.second_norm(self.second(inner)), inplace=True)


class Vision(nn.Module):
    """Ink `[B, 1, H, W]` in 0..1 (1 = ink) -> features `[B, C, H/8, W/8]`, glyph logits `[B, glyphs + 1, H/8, W/4]` (class 0 = none)."""

    def __init__(self, glyphs: int, channels=(16, 32, 96), blocks: int = 5):
        super().__init__()
        first, second, last = channels
        self.glyphs = glyphs
        self.stem = nn.Sequential(convolution(1, first, 2), convolution(first, second, 2), Residual(second))
        self.down = convolution(second, last, 2)
        self.body = nn.Sequential(*[Residual(last, 1 + i % 2) for i in range(blocks)])
        self.head = nn.Conv2d(last, 2 * (glyphs + 1), 1)

    def trunk(self, ink):
        return self.body(self.down(self.stem(ink)))

    def slot_logits(self, features, slots):
        """Logits `[N, glyphs + 1]` of `slots`, counted over batch, rows and columns: all left ones first, then all right ones."""
        rows = features.permute(0, 2, 3, 1).flatten(0, 2)
        weight, bias = self.head.weight.view(2, self.glyphs + 1, -1), self.head.bias.view(2, -1)
        sides = [rows[slots[slots % 2 == side] // 2] @ weight[side].T + bias[side] for side in (0, 1)]
        return torch.cat(sides)

    def forward(self, ink):
        features = self.trunk(ink)
        logits = self.head(features)
        batch, _, height, width = logits.shape
        # Two slots a feature position, left and right.
        logits = logits.view(batch, 2, self.glyphs + 1, height, width).permute(0, 2, 3, 4, 1)
        return features, logits.reshape(batch, self.glyphs + 1, height, width * 2)


def page_ink(grey: np.ndarray) -> torch.Tensor:
    """Grey `[h, w]` 0..1 -> ink `[1, 1, H, W]`, padded at the right and below to whole cells."""
    height, width = grey.shape
    ink = np.zeros((-(-height // CELL_HEIGHT) * CELL_HEIGHT, -(-width // CELL_WIDTH) * CELL_WIDTH), np.float32)
    ink[:height, :width] = 1 - grey
    return torch.from_numpy(ink)[None, None]


def true_none(none, background_weight: float):
    """The probability of "no character here", given that of a net that was trained with the background weighted down."""
    odds = none / background_weight
    return odds / (odds + 1 - none)
