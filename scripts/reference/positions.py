"""Writes the fixture of the rule `grounded-steps`: `python -m scripts.reference.positions fixtures/reference/steps.json`

A vocabulary of 95 characters with random widths, a trunk, and a branch that the training code writes for two short paragraphs of words
with given boxes, once as it should be and once with planted mistakes; with the positions of all tokens.
"""
import argparse
import json
import random
from pathlib import Path

import numpy as np

from scripts.train.page_characters import LINE_END, SPACE
from scripts.train.page_samples import BranchWriter, split_lines
from scripts.train.positions import branch_positions, branch_start, trunk_positions
from scripts.train.vocabulary import KINDS, STRUCTURE, Vocabulary

# Lines of words at their left edges, px; top and height; width of a mean character. The far word, the small step back and the last
# line lie out of reach of a step.
LINES = [
    (126.0, 14.0, 5.1, [(64.0, "Steps"), (101.0, "and"), (128.0, "gaps,"), (410.0, "far")]),
    (143.0, 14.0, 5.3, [(61.0, "are"), (80.0, "small"), (103.0, "overlapping")]),
    (420.0, 11.0, 0.0, [(90.0, "i")]),
    (434.0, 20.0, 9.0, [(40.0, "Wide"), (120.0, "\N{SNOWMAN}?")]),
]
BOX = [61.0, 122.0, 431.0, 455.0]


def page_characters(vocabulary: Vocabulary) -> np.ndarray:
    """Rows (code, x0, y0, x1, y1) as the stage `real_pages` writes them."""
    rows = []
    for top, height, pitch, words in LINES:
        for left, text in words:
            x = left
            for c in text:
                width = pitch * vocabulary.advance(vocabulary.character(ord(c)))
                rows.append((ord(c), x, top, x + width, top + height))
                x += width
            rows.append((SPACE, 0, 0, 0, 0))
        rows.append((LINE_END, 0, 0, 0, 0))
    return np.array(rows)


def word_boxes(characters: np.ndarray) -> list:
    """(text, x0, y0, x1, y1) of every word."""
    words, current = [], []
    for row in characters:
        if row[0] in (SPACE, LINE_END):
            if current:
                box = (current[0][1], current[0][2], current[-1][3], current[0][4])
                words.append(["".join(chr(int(r[0])) for r in current), *map(float, box)])
            current = []
        else:
            current.append(row)
    return words


def main():
    parser = argparse.ArgumentParser(prog="python -m scripts.reference.positions")
    parser.add_argument("out", type=Path)
    path = parser.parse_args().out
    random_ = random.Random(3)
    codes = [*range(ord("!"), ord("~") + 1), ord("é")]
    vocabulary = Vocabulary(codes, [round(random_.uniform(0.4, 1.8), 3) for _ in range(len(codes) + 1)])
    numbers = (vocabulary.x, vocabulary.y, vocabulary.x, vocabulary.y)
    trunk = [vocabulary.begin, vocabulary.kind("text"), *(n.token(v) for n, v in zip(numbers, BOX, strict=True)), vocabulary.fork, vocabulary.end]
    characters = page_characters(vocabulary)
    tokens_of = np.array([vocabulary.character(int(code)) for code in characters[:, 0]])
    branches = []
    for mistakes in (0.0, 0.3):
        writer = BranchWriter(vocabulary, branch_start(vocabulary, trunk, 6), mistakes, random_)
        for line in split_lines(list(range(len(characters))), characters):
            writer.line(line, characters, tokens_of)
        fed = [vocabulary.child, *writer.fed, vocabulary.end]
        branches.append({"tokens": fed, "positions": branch_positions(vocabulary, trunk, 6, fed)})
    ranges = {name: getattr(vocabulary, name) for name in ("x", "y", "pitch", "gap", "down")}
    fixture = {
        "tokens": {name: getattr(vocabulary, name) for name in STRUCTURE}
        | {name: {"first": r.first, "count": r.count, "bin": r.bin, "offset": r.offset} for name, r in ranges.items()},
        "kinds": {kind: vocabulary.kind(kind) for kind in KINDS}, "vocabulary": vocabulary.size, "advance": vocabulary.advances,
        "box": BOX, "words": word_boxes(characters), "trunk": trunk, "trunk_positions": trunk_positions(vocabulary, trunk),
        "fork": 6, "branches": branches,
    }  # fmt: skip
    path.write_text(json.dumps(fixture) + "\n")


if __name__ == "__main__":
    main()
