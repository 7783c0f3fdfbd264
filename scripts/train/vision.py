"""The vision graph: a small convolutional net that says which character has its centre where."""
import numpy as np
import torch
from torch import nn
from torch.nn import functional

from .settings import SETTINGS

# A visual token is a cell of this many px of the raster: 2 x 4 glyph slots (8 px high, 4 px wide).
CELL_WIDTH, CELL_HEIGHT = 16, 16
SLOT_HEIGHT, SLOT_WIDTH = 8, 4
INK_THRESHOLD = 0.25


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
    """Ink `[B, 1, H, W]` in 0..1 (1 = ink) -> glyph logits `[B, glyphs + 1, H/8, W/4]` (class 0 = none)."""

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
        logits = self.head(self.trunk(ink))
        batch, _, height, width = logits.shape
        # Two slots a feature position, left and right.
        logits = logits.view(batch, 2, self.glyphs + 1, height, width).permute(0, 2, 3, 4, 1)
        return logits.reshape(batch, self.glyphs + 1, height, width * 2)


def page_ink(grey: np.ndarray) -> torch.Tensor:
    """Grey `[h, w]` 0..1 -> ink `[1, 1, H, W]`, padded at the right and below to whole cells."""
    height, width = grey.shape
    ink = np.zeros((-(-height // CELL_HEIGHT) * CELL_HEIGHT, -(-width // CELL_WIDTH) * CELL_WIDTH), np.float32)
    ink[:height, :width] = 1 - grey
    return torch.from_numpy(ink)[None, None]


def inked(ink) -> np.ndarray:
    """Ink `[1, 1, H, W]` -> the cells with ink `[h, w]` bool: those that the decoder is shown."""
    return (functional.max_pool2d(ink, (CELL_HEIGHT, CELL_WIDTH))[0, 0] > INK_THRESHOLD).numpy()


def glyph_probabilities(logits):
    """Glyph logits `[B, glyphs + 1, h, w]` -> the glyphs' probabilities `[B, glyphs, h, w]`, put right: the net learns with "none" weighted down
    (`background_weight`), and sees too much. Without this letters are read double. Lines are read better off the plain ones (`read_lines`)."""
    probabilities = logits.softmax(1)
    none = probabilities[:, :1]
    return probabilities[:, 1:] / (none / SETTINGS["vision"]["background_weight"] + 1 - none)
