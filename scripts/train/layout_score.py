"""How near found regions are to true ones: overlap, pairs that belong together, and the counts that F1 and order are made of."""
import numpy as np

# Least intersection over union of a found and a true region that are the same.
LEAST_OVERLAP = 0.5

Regions = list[tuple[str, list[float]]]  # (kind, box) each


def share(part, whole) -> float | None:
    return round(float(part / whole), 4) if whole else None


def overlap(boxes: np.ndarray, box) -> np.ndarray:
    """Intersection over union of `boxes [N, 4]` and `box`."""
    box = np.asarray(box)
    sides = np.minimum(boxes[:, 2:], box[2:]) - np.maximum(boxes[:, :2], box[:2])
    shared = sides.clip(0).prod(1)
    return shared / ((boxes[:, 2:] - boxes[:, :2]).clip(0).prod(1) + (box[2:] - box[:2]).prod() - shared)


def match(found: Regions, true: Regions) -> list[tuple[int, int]]:
    """Pairs (found, true) of one kind that overlap, best first, each region once."""
    boxes = np.array([box for _, box in true]).reshape(-1, 4)
    pairs = [(value, i, j) for i, (kind, box) in enumerate(found) for j, value in enumerate(overlap(boxes, box)) if kind == true[j][0]]
    taken, out = set(), []
    for value, i, j in sorted(pairs, reverse=True):
        if value >= LEAST_OVERLAP and ("f", i) not in taken and ("t", j) not in taken:
            taken |= {("f", i), ("t", j)}
            out.append((i, j))
    return out


def in_order(pairs: list[tuple[int, int]]) -> tuple[int, int]:
    """How many pairs of matched regions follow each other as they should, and how many there are."""
    right = total = 0
    for n, (i, j) in enumerate(pairs):
        for k, m in pairs[:n]:
            right, total = right + ((i < k) == (j < m)), total + 1
    return right, total


class LayoutTally:
    """Regions found and true, matched with their kind (and their pairs in order), and without it."""

    def __init__(self):
        self.found = self.true = self.matched = self.placed = self.right = self.pairs = 0

    def add(self, found: Regions, true: Regions):
        pairs = match(found, true)
        right, total = in_order(pairs)
        self.found, self.true, self.matched = self.found + len(found), self.true + len(true), self.matched + len(pairs)
        self.placed += len(match([("", box) for _, box in found], [("", box) for _, box in true]))
        self.right, self.pairs = self.right + right, self.pairs + total

    def figures(self) -> dict:
        regions = self.found + self.true
        return {
            "layout_f1": share(2 * self.matched, regions), "without_kind": share(2 * self.placed, regions),
            "in_order": share(self.right, self.pairs),
        }  # fmt: skip
