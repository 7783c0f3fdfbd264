"""Stage 6b: what the vision graph says of pages, for the decoder to learn from. `python -m scripts.train.vision_masses FOLDER [--pages 400]`

FOLDER holds vision.safetensors. Writes data/.../<page>.masses.npz: `place [N, 3]` (slot's row and column, character) and `mass [N]`, from the page as it
is (no shift). Resumable; held-out pages first, then real and synthetic ones by turns.
"""
import argparse
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from .loading import load_vision, load_vocabulary
from .page_samples import page_paths, seen_path
from .vision import Vision, glyph_probabilities, page_ink

# Smaller masses are noise, and would make the files large.
LEAST_MASS = 0.02


@torch.no_grad()
def masses(vision: Vision, path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Of the page at `path`: places `[N, 3]` and masses `[N]`."""
    grey = np.asarray(Image.open(path.with_suffix(".png")).convert("L"), np.float32) / 255
    glyphs = glyph_probabilities(vision(page_ink(grey)))[0]
    character, row, column = torch.nonzero(glyphs > LEAST_MASS, as_tuple=True)
    place = torch.stack([row, column, character], 1).to(torch.int16)
    return place.numpy(), glyphs[character, row, column].half().numpy()


def main():
    parser = argparse.ArgumentParser(prog="python -m scripts.train.vision_masses")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--pages", type=int, default=400)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    vision = load_vision(load_vocabulary(), arguments.folder / "vision.safetensors")
    held_out = [path for pair in zip(*page_paths(test=True), strict=False) for path in pair][: arguments.pages // 10]
    others = [path for pair in zip(*page_paths(test=False), strict=False) for path in pair]
    for path in [*held_out, *others][: arguments.pages]:
        target = seen_path(path)
        if not target.exists():
            place, mass = masses(vision, path)
            np.savez_compressed(target, place=place, mass=mass)


if __name__ == "__main__":
    main()
