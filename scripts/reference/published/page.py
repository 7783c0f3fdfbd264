"""The page that the references look at: a formula, so that the program's tests make the same one."""
import numpy as np
from PIL import Image


def page(width: int, height: int) -> np.ndarray:
    """`[height, width, 3]`, 0..255: slanted ramps with dark blocks."""
    y, x = np.mgrid[0:height, 0:width]
    ramps = [(x * (3 + c) + y * (2 + 2 * c) + 40 * c) % 256 for c in range(3)]
    dark = ((x // 9 + y // 13) % 3 == 0)[..., None]
    return np.where(dark, 20, np.stack(ramps, -1)).astype(np.uint8)


def picture(width: int, height: int) -> Image.Image:
    return Image.fromarray(page(width, height))
