"""Stage 4: lines of prose for the synthetic pages, from the real pages' text. `python -m scripts.train.prose`"""
import random

import numpy as np

from .settings import PROSE, REAL_PAGES, SETTINGS, is_test


def is_prose(line: str) -> bool:
    letters, words = line.replace(" ", ""), line.split()
    mostly_letters = sum(c.isalpha() for c in line) > 0.75 * len(letters)
    return 5 <= len(words) <= 25 and mostly_letters and all(ord(c) < 0x180 for c in line)


def main():
    options = SETTINGS["prose"]
    pages = sorted(path for path in REAL_PAGES.glob("*.npy") if not is_test(path.stem))
    random.Random(0).shuffle(pages)
    lines = []
    for path in pages[: options["files"]]:
        text = "".join(chr(code) if code < 0xD800 else " " for code in np.load(path)[:, 0].astype(int))
        lines += [line.strip() for line in text.split("\n") if is_prose(line.strip())]
    random.Random(1).shuffle(lines)
    PROSE.write_text("\n".join(lines[: options["lines"]]))
    print(len(lines), "lines")


if __name__ == "__main__":
    main()
