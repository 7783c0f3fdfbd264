"""Stage 4: the alphabet, the most frequent characters of the real pages. `python -m scripts.train.alphabet`

Writes data/characters.json (code points). It decides the token ids of the pack, so an alphabet that is there already is kept.
"""
import json
from collections import Counter

import numpy as np

from .page_characters import LINE_END, SPACE
from .settings import DATA, REAL_PAGES, is_test

SIZE = 190
ASCII = range(33, 127)


def main():
    target = DATA / "characters.json"
    if target.exists():
        print("kept", target)
        return
    counts = Counter()
    for path in REAL_PAGES.glob("*.npy"):
        if not is_test(path.stem):
            counts.update(np.load(path)[:, 0].astype(int).tolist())
    others = [code for code, _ in counts.most_common() if code not in ASCII and code not in (LINE_END, SPACE)]
    target.write_text(json.dumps([*ASCII, *others[: SIZE - len(ASCII)]]))


if __name__ == "__main__":
    main()
