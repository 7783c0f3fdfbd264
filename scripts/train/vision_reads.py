"""Stage 6b: what the vision graph reads on pages, for the decoder to learn from. `python -m scripts.train.vision_reads FOLDER [--pages 400]`

FOLDER holds vision.safetensors. Writes data/.../<page>.glyphs.npz: `found [N, 4]` (x, y, character, mass), px of the page as it is. Resumable;
held-out pages first, then real and synthetic ones by turns.
"""
import argparse
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from .loading import load_vision, load_vocabulary
from .page_samples import page_paths, seen_path
from .read_glyphs import read_characters


def main():
    parser = argparse.ArgumentParser(prog="python -m scripts.train.vision_reads")
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
            grey = np.asarray(Image.open(path.with_suffix(".png")).convert("L"), np.float32) / 255
            np.savez_compressed(target, found=read_characters(vision, grey).astype(np.float32))


if __name__ == "__main__":
    main()
