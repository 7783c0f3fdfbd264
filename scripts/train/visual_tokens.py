"""The decoder's visual tokens: one for every character that the vision graph reads off the page, and one for every block of ink without characters.

A token knows its character and how sure that is, its place, the next characters on its line and how far they are, and what the layout net says of its
cell. So a text token need only find one of them and copy; and it can be found by the character before it, where the place is not quite known.
`src/vision/visual_tokens.rs` does the same.
"""
from dataclasses import dataclass

import numpy as np

from .vision import CELL_HEIGHT, CELL_WIDTH

# How far up or down the centre of a neighbour on the same line may be, and how far away at most; px.
SAME_LINE, MOST_GAP = 8.0, 80.0
# Blocks of so many cells each way tell of ink without characters, if none is nearer to them than so many px.
BLOCK_CELLS, BLOCK_MARGIN = 2, 12.0


@dataclass
class VisualTokens:
    """Of V tokens; those of characters first, by rows of cells and then from left to right."""

    xy: np.ndarray  # [V, 2] px
    classes: np.ndarray  # [V, 3] the vision graph's class of the token, of the one on its left and on its right; 0 = no character
    facts: np.ndarray  # [V, 3] mass, distance to the character on the left and on the right (px, MOST_GAP where there is none)

    def cells(self, grid: np.ndarray) -> np.ndarray:
        """Row and column of each token's cell `[V, 2]`."""
        cells = (self.xy[:, ::-1] / (CELL_HEIGHT, CELL_WIDTH)).astype(np.int64)
        return cells.clip(0, np.array(grid.shape) - 1)


def neighbours(xy: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The next centre on the left and on the right of each, as far as both are on one line: index `[N, 2]` or -1, distance `[N, 2]`."""
    who, gaps = np.full((len(xy), 2), -1), np.full((len(xy), 2), MOST_GAP)
    order = np.argsort(xy[:, 1], kind="stable")
    heights, across = xy[order, 1], xy[order, 0]
    first, last = np.searchsorted(heights, xy[:, 1] - SAME_LINE), np.searchsorted(heights, xy[:, 1] + SAME_LINE)
    for index, x in enumerate(xy[:, 0]):
        away = across[first[index] : last[index]] - x
        for side, distance in enumerate((-away, away)):
            distance = np.where(distance > 0, distance, MOST_GAP)
            nearest = int(distance.argmin())
            if distance[nearest] < MOST_GAP:
                who[index, side], gaps[index, side] = order[first[index] + nearest], distance[nearest]
    return who, gaps


def blocks_without(xy: np.ndarray, grid: np.ndarray) -> np.ndarray:
    """Centres `[N, 2]` (x, y) of the blocks with ink and without a character of `xy` in or near them."""
    size = np.array([CELL_WIDTH, CELL_HEIGHT]) * BLOCK_CELLS
    rows, columns = -(-grid.shape[0] // BLOCK_CELLS), -(-grid.shape[1] // BLOCK_CELLS)
    padded = np.zeros((rows * BLOCK_CELLS, columns * BLOCK_CELLS), bool)
    padded[: grid.shape[0], : grid.shape[1]] = grid
    ink = padded.reshape(rows, BLOCK_CELLS, columns, BLOCK_CELLS).any((1, 3))
    first, last = np.floor((xy - BLOCK_MARGIN) / size).astype(int), np.floor((xy + BLOCK_MARGIN) / size).astype(int)
    for (x0, y0), (x1, y1) in zip(first, last, strict=True):
        ink[max(0, y0) : y1 + 1, max(0, x0) : x1 + 1] = False
    return (np.argwhere(ink)[:, ::-1] + 0.5) * size


def visual_tokens(found: np.ndarray, grid: np.ndarray) -> VisualTokens:
    """`found [N, 4]` (x, y, character, mass), px, as `take_characters` gives them; `grid [h, w]`: the cells with ink."""
    found = found[np.lexsort((found[:, 0], found[:, 1] // CELL_HEIGHT))]
    blocks = blocks_without(found[:, :2], grid)
    who, gaps = neighbours(found[:, :2])
    own = found[:, 2].astype(np.int64) + 1
    classes = np.concatenate([own[:, None], np.append(own, 0)[who]], 1)
    blank = np.tile([0.0, MOST_GAP, MOST_GAP], (len(blocks), 1))
    return VisualTokens(
        np.concatenate([found[:, :2], blocks]), np.concatenate([classes, np.zeros((len(blocks), 3), np.int64)]),
        np.concatenate([np.concatenate([found[:, 3:], gaps], 1), blank]),
    )  # fmt: skip
