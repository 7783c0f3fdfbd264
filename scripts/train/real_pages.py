"""Stage 2: pages of real PDFs as grey pictures with their characters. `python -m scripts.train.real_pages`

Writes data/real/<hash>.png (grey) and .npy (rows code, x0, y0, x1, y1 in px, content order). Resumable: files that were read are
listed in data/real/done.txt.
"""
import hashlib
import os
import random

import numpy as np
import pypdfium2
from PIL import Image

from .page_characters import page_characters, scale_to_x_height
from .settings import DOCUMENTS, REAL_PAGES, SETTINGS

FEWEST_CHARACTERS, FEWEST_LETTERS = 150, 60


def take_pages(path, name: str, random_: random.Random) -> int:
    """Pages taken from the PDF at `path`; `name` is its path inside the documents folder."""
    options = SETTINGS["real_pages"]
    document = pypdfium2.PdfDocument(path)
    numbers = list(range(len(document)))
    random_.shuffle(numbers)
    taken = 0
    for number in numbers[: options["pages_per_file"]]:
        page = document[number]
        width, height = page.get_size()
        if not (200 < width < 1000 and 200 < height < 1200) or page.get_rotation():
            continue
        characters = page_characters(page)
        if len(characters) < FEWEST_CHARACTERS:
            continue
        scale = scale_to_x_height(characters, random_.uniform(*options["x_height"]), FEWEST_LETTERS)
        if scale is None:
            continue
        raster = page.render(scale=scale, grayscale=True).to_numpy().squeeze()
        characters[:, 1:] *= scale
        target = REAL_PAGES / hashlib.md5(f"{name}#{number}".encode()).hexdigest()[:12]
        np.save(f"{target}.npy", characters.astype(np.float32))
        Image.fromarray(raster).save(f"{target}.png")
        taken += 1
    return taken


def main():
    REAL_PAGES.mkdir(parents=True, exist_ok=True)
    options = SETTINGS["real_pages"]
    listed = REAL_PAGES / "done.txt"
    done = set(listed.read_text().split("\n")) if listed.exists() else set()
    pages = len(list(REAL_PAGES.glob("*.png")))
    names = sorted(
        os.path.relpath(os.path.join(folder, file), DOCUMENTS)
        for folder, _, files in os.walk(DOCUMENTS)
        for file in files
        if file.endswith(".pdf")
    )
    random.Random(1).shuffle(names)
    with open(listed, "a") as log:
        for i, name in enumerate(names):
            if pages >= options["most_pages"]:
                break
            if name in done:
                continue
            seed = int(hashlib.md5(name.encode()).hexdigest()[:8], 16) + options["seed"]
            try:
                pages += take_pages(DOCUMENTS / name, name, random.Random(seed))
            except pypdfium2.PdfiumError as error:
                print(name, error, flush=True)
            log.write(name + "\n")
            log.flush()
            if i % 200 == 0:
                print(f"{i} of {len(names)} files, {pages} pages", flush=True)
    print("done", pages, flush=True)


if __name__ == "__main__":
    main()
