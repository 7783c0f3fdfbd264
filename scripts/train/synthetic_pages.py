"""Stage 5: synthetic pages with exact truth. `python -m scripts.train.synthetic_pages`

Writes data/synthetic/<seed>.png (grey), .npy (rows code, x0, y0, x1, y1, region in px, content order) and .json (regions in reading order).
Resumable: the seed is the name, and a page depends on nothing else.
"""
import json
import random

import numpy as np
import pypdfium2
import typst
from PIL import Image

from .page_characters import page_characters, scale_to_x_height
from .settings import FONTS, SETTINGS, SYNTHETIC_PAGES
from .typst_document import TypstDocument

FEWEST_LETTERS = 40


def make_page(seed: int, fonts) -> bool:
    """Writes the page of this seed; False if it has too little text."""
    random_ = random.Random(seed)
    document = TypstDocument(random_)
    pdf = typst.compile(document.source().encode(), font_paths=fonts)
    page = pypdfium2.PdfDocument(pdf)[0]
    characters = page_characters(page, with_region=True)
    scale = scale_to_x_height(characters, random_.uniform(*SETTINGS["synthetic_pages"]["x_height"]), FEWEST_LETTERS)
    if scale is None:
        return False
    characters[:, 1:5] *= scale
    target = SYNTHETIC_PAGES / f"{seed:08d}"
    Image.fromarray(page.render(scale=scale, grayscale=True).to_numpy().squeeze()).save(f"{target}.png")
    target.with_suffix(".json").write_text(json.dumps(document.regions))
    # Last, because other stages take a page as complete when this is there.
    np.save(f"{target}.npy", characters.astype(np.float32))
    return True


def main():
    SYNTHETIC_PAGES.mkdir(parents=True, exist_ok=True)
    fonts = typst.Fonts(font_paths=[str(FONTS)])
    made = refused = 0
    for seed in range(SETTINGS["synthetic_pages"]["pages"]):
        if (SYNTHETIC_PAGES / f"{seed:08d}.npy").exists():
            continue
        try:
            made += make_page(seed, fonts)
        except (RuntimeError, ValueError) as error:
            refused += 1
            if refused < 4:
                print(seed, str(error)[:200], flush=True)
        if seed % 100 == 0:
            print(seed, made, flush=True)
    print("done", made, "refused", refused)


if __name__ == "__main__":
    main()
