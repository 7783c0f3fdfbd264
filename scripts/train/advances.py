"""Stage 5: how wide each character is, relative to the mean one. `python -m scripts.train.advances`

From the real pages: the distance from a character's left edge to the next one's in the same word, over the mean of the word's, averaged
over words in proportional type. Writes data/alphabet/advances.json, a number per character of the alphabet ("unknown" last).
"""
import json

import numpy as np

from .page_characters import LINE_END, SPACE
from .settings import REAL_PAGES, VOCABULARY, is_test
from .vocabulary import Vocabulary

PAGES, FEWEST = 1500, 30
# Words whose steps vary less than this are monospaced.
MONOSPACED = 0.12


def words(characters: np.ndarray):
    """Runs of at least six characters on one line without a space."""
    start = 0
    for i in range(len(characters) + 1):
        if i == len(characters) or characters[i, 0] in (LINE_END, SPACE):
            if i - start >= 6:
                yield characters[start:i]
            start = i + 1


def main():
    vocabulary = Vocabulary(json.loads((VOCABULARY / "characters.json").read_text()))
    total, count = np.zeros(vocabulary.glyphs), np.zeros(vocabulary.glyphs)
    pages = [path for path in sorted(REAL_PAGES.glob("*.npy")) if not is_test(path.stem)][:PAGES]
    for path in pages:
        for word in words(np.load(path)):
            steps = np.diff(word[:, 1])
            if steps.min() <= 0 or steps.max() > 4 * steps.mean() or steps.std() < MONOSPACED * steps.mean():
                continue
            for code, step in zip(word[:-1, 0], steps / steps.mean(), strict=True):
                token = vocabulary.character(int(code))
                total[token] += step
                count[token] += 1
    advances = np.where(count >= FEWEST, total / np.maximum(1, count), 1.0)
    (VOCABULARY / "advances.json").write_text(json.dumps([round(float(value), 3) for value in advances]))
    print({chr(code): round(float(value), 2) for code, value in zip(vocabulary.characters[:94], advances, strict=False)})


if __name__ == "__main__":
    main()
