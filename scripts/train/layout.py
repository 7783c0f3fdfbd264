"""The layout net, a part of the vision graph: which region a cell belongs to, and after which one that comes.

A U over the page's cells, dense like FCOS (Tian et al. 2019): a cell says the kind of its region, how far the region's sides are, and how far those
of the region before it in reading order. The decoder gets all that with its visual tokens, so that the trunk need only find the next region and copy.
"""
import torch
from torch import nn
from torch.nn import functional

from .vision import CELL_HEIGHT, CELL_WIDTH
from .vocabulary import KINDS

# Classes: none, then the kinds. Distances are in cells' sides; the own ones are said by their logarithm, within these bounds.
CLASSES = 1 + len(KINDS)
LEAST_LOG, MOST_LOG = -3.0, 5.5
# Channels of the net's output: classes, own box, the box before.
CHANNELS = CLASSES + 4 + 4
LEVELS = (72, 96, 128, 128)


class Block(nn.Module):
    """Convolution, group norm, ReLU; with `residual` around two of them."""

    def __init__(self, inputs: int, outputs: int, stride: int = 1):
        super().__init__()
        self.convolution = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.norm = nn.GroupNorm(8, outputs)

    def forward(self, x):
        return functional.relu(self.norm(self.convolution(x)))


class Residual(nn.Module):
    def __init__(self, channels: int):
        super().__init__()
        self.first, self.second = Block(channels, channels), Block(channels, channels)

    def forward(self, x):
        return x + self.second(self.first(x))


class LayoutNet(nn.Module):
    """Ink `[1, 1, H, W]`, sides whole cells -> `[1, CHANNELS, H/16, W/16]`: class probabilities, then both boxes (x0, y0, x1, y1) in px."""

    def __init__(self):
        super().__init__()
        first, *deeper = LEVELS
        self.stem = nn.Sequential(Block(2, 24, 2), Block(24, 48, 2), Block(48, first, 2), Residual(first))
        self.down = nn.ModuleList(
            nn.Sequential(Block(a, b, 2), Residual(b), *([Residual(b)] if i else [])) for i, (a, b) in enumerate(zip(LEVELS, deeper, strict=False))
        )
        self.across = nn.ModuleList(nn.Conv2d(b, a, 1) for a, b in zip(LEVELS, deeper, strict=False))
        self.up = nn.ModuleList(Residual(a) for a in LEVELS[:-1])
        self.head = nn.Sequential(Block(first, first), nn.Conv2d(first, CHANNELS, 1))

    def raw(self, ink):
        """Class logits, logarithms of the own box's distances, distances of the one before."""
        # Thin rules must not fade.
        half = torch.cat([functional.avg_pool2d(ink, 2), functional.max_pool2d(ink, 2)], 1)
        levels = [self.stem(half)]
        for down in self.down:
            levels.append(down(levels[-1]))
        x = levels.pop()
        for across, up in zip(reversed(self.across), reversed(self.up), strict=True):
            below = levels.pop()
            wide = across(x).repeat_interleave(2, 2).repeat_interleave(2, 3)
            x = up(below + wide[:, :, : below.shape[2], : below.shape[3]])
        return self.head(x).split((CLASSES, 4, 4), 1)

    def forward(self, ink):
        logits, own, before = self.raw(ink)
        distances = own.clamp(LEAST_LOG, MOST_LOG).exp()
        left, upper, right, lower = distances.unbind(1)
        row = torch.arange(ink.shape[2] // CELL_HEIGHT)[:, None] + 0.5
        column = torch.arange(ink.shape[3] // CELL_WIDTH)[None] + 0.5
        x0, y0, x1, y1 = before.unbind(1)
        boxes = [column - left, row - upper, column + right, row + lower, column + x0, row + y0, column + x1, row + y1]
        sizes = (CELL_WIDTH, CELL_HEIGHT) * 4
        return torch.cat([logits.softmax(1), torch.stack([value * size for value, size in zip(boxes, sizes, strict=True)], 1)], 1)
