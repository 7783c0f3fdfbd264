"""Reads characters off the vision graph without a decoder, and their error rate on held-out pages.

`python -m scripts.train.read_glyphs WEIGHTS [PAGES] [--scanned]`: spaces are left out; characters are compared line by line with the PDF's
text layer. `--scanned` degrades the pages first, always in the same way.
"""
import argparse
import heapq
import random
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from PIL import Image
from rapidfuzz.distance import Levenshtein

from .degrade import degrade
from .loading import load_vision, load_vocabulary
from .page_characters import LINE_END, SPACE
from .settings import REAL_PAGES, is_test
from .vision import SLOT_HEIGHT, SLOT_WIDTH, Vision, glyph_probabilities, page_ink
from .vocabulary import Vocabulary

# Smaller masses are left out.
NOTHING = 0.004


class Taking(NamedTuple):
    """What a character is."""

    # Mass of its class and of all classes that it needs in its window.
    least_class: float
    least: float
    # Characters whose centres are nearer than that along both axes, slots, are one, which the net gave too much mass.
    same_place: float


# Pages: little mass is enough, because the net spreads narrow characters thin. Lines: `read_lines` tells doubles by their widths.
PAGE, LINE = Taking(0.1, 0.2, 0.75), Taking(0.25, 0.5, 0.0)


def glyph_masses(vision: Vision, grey: np.ndarray) -> np.ndarray:
    """Grey page 0..1 -> mass of every character in every slot `[glyphs, rows, columns]`."""
    with torch.no_grad():
        return glyph_probabilities(vision(page_ink(grey)))[0].numpy()


def take(window: np.ndarray, class_: int, mass: float):
    """Takes a character off `window [glyphs, 2, 2]` in place: a unit of mass in all, spread as its own class is, which gives what it has."""
    wanted = window[class_] / mass
    own = np.minimum(window[class_], wanted)
    window[class_] -= own
    others = window.sum(0)
    window *= 1 - np.minimum(1, (wanted - own) / np.maximum(others, 1e-6))


def read_characters(vision: Vision, grey: np.ndarray) -> np.ndarray:
    """Grey page 0..1 -> rows (x, y, character, mass), px."""
    return take_characters(glyph_masses(vision, grey))


def take_characters(masses: np.ndarray, rule: Taking = PAGE, with_left: bool = False):
    """Masses `[glyphs, rows, columns]` -> rows (x, y, character, mass), px.

    A character's mass lies on the four slots around its centre: take the 2 x 2 window with most mass of one class, read its centre of mass,
    take one unit off, go on. Where the net wavers between classes, the unit is taken off all of them. What is found where a character is already
    is no other one. `with_left`: and the most mass that a window holds at the end.
    """
    padded = np.pad(np.where(masses > NOTHING, masses, 0), ((0, 0), (1, 1), (1, 1)))
    windows = padded[:, :-1, :-1] + padded[:, 1:, :-1] + padded[:, :-1, 1:] + padded[:, 1:, 1:]
    heap = [(-float(windows[tuple(at)]), *map(int, at)) for at in np.argwhere(windows > rule.least_class)]
    heapq.heapify(heap)
    found, places = [], {}
    while heap:
        known, class_, row, column = heapq.heappop(heap)
        window = padded[:, row : row + 2, column : column + 2]
        own = window[class_]
        mass = float(own.sum())
        if mass <= rule.least_class or window.sum() <= rule.least:
            continue
        if mass < -known - 1e-4:
            heapq.heappush(heap, (-mass, class_, row, column))
            continue
        x, y = column + (own[:, 1].sum() - own[:, 0].sum()) / mass / 2, row + (own[1].sum() - own[0].sum()) / mass / 2
        near = [place for i in (-1, 0, 1) for j in (-1, 0, 1) for place in places.get((int(x) + i, int(y) + j), ())]
        if not any(max(abs(x - a), abs(y - b)) < rule.same_place for a, b in near):
            found.append((x * SLOT_WIDTH, y * SLOT_HEIGHT, class_, min(1.0, mass)))
            places.setdefault((int(x), int(y)), []).append((x, y))
        take(window, class_, mass)
        left = float(window[class_].sum())
        if left > rule.least_class:
            heapq.heappush(heap, (-left, class_, row, column))
    rows = np.array(found).reshape(-1, 4)
    left = padded.sum(0)
    return (rows, float((left[:-1, :-1] + left[1:, :-1] + left[:-1, 1:] + left[1:, 1:]).max())) if with_left else rows


def text_lines(characters: np.ndarray) -> list[np.ndarray]:
    """The text layer's lines, spaces left out."""
    lines, current = [], []
    for row in characters:
        if row[0] == LINE_END:
            if current:
                lines.append(np.array(current))
            current = []
        elif row[0] != SPACE:
            current.append(row)
    return lines + ([np.array(current)] if current else [])


def page_errors(characters: np.ndarray, found: np.ndarray, vocabulary: Vocabulary) -> tuple[int, int]:
    """Edit distance and number of true characters of a page's lines."""
    errors = total = 0
    for line in text_lines(characters):
        top, bottom = np.percentile(line[:, 2], 10) - 1, np.percentile(line[:, 4], 90) + 1
        if len(line) < 4 or bottom - top > 4 * np.median(line[:, 4] - line[:, 2]):
            continue
        inside = (found[:, 0] > line[:, 1].min() - 3) & (found[:, 0] < line[:, 3].max() + 3) & (found[:, 1] > top) & (found[:, 1] < bottom)
        read = found[inside]
        read = read[np.argsort(read[:, 0])][:, 2].astype(int).tolist()
        truth = [vocabulary.character(int(code)) for code in line[np.argsort(line[:, 1] + line[:, 3]), 0]]
        errors += Levenshtein.distance(truth, read)
        total += len(truth)
    return errors, total


def held_out_pages(count: int) -> list[Path]:
    names = sorted(path.stem for path in REAL_PAGES.glob("*.npy") if is_test(path.stem))
    random.Random(4).shuffle(names)
    return [REAL_PAGES / name for name in names[:count]]


def error_rates(vision: Vision, vocabulary: Vocabulary, pages: list[Path], scanned: bool) -> dict:
    """Mean over all characters, and the median page's."""
    rates, errors, total = [], 0, 0
    for i, page in enumerate(pages):
        picture = Image.open(page.with_suffix(".png")).convert("L")
        grey = degrade(picture, random.Random(i), np.random.default_rng(i)) if scanned else np.asarray(picture, np.float32) / 255
        wrong, count = page_errors(np.load(page.with_suffix(".npy")), read_characters(vision, grey), vocabulary)
        errors, total = errors + wrong, total + count
        if count > 100:
            rates.append(wrong / count)
    return {"characters": total, "mean": round(errors / max(1, total), 4), "median_page": round(float(np.median(rates)), 4)}


def main():
    parser = argparse.ArgumentParser(prog="python -m scripts.train.read_glyphs")
    parser.add_argument("weights", type=Path)
    parser.add_argument("pages", type=int, nargs="?", default=30)
    parser.add_argument("--scanned", action="store_true")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    vocabulary = load_vocabulary()
    vision = load_vision(vocabulary, arguments.weights)
    print(error_rates(vision, vocabulary, held_out_pages(arguments.pages), arguments.scanned))


if __name__ == "__main__":
    main()
