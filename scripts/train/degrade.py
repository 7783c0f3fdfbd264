"""Makes clean page pictures look scanned, photocopied or sent by fax. Positions of characters move by less than a pixel, but for `tilt`."""
import io

import numpy as np
from PIL import Image, ImageFilter


def tilt(picture: Image.Image, centres: np.ndarray, random_) -> tuple[Image.Image, np.ndarray]:
    """A small rotation, and the characters' centres `[n, 2]` (x, y) moved with it."""
    angle = random_.gauss(0, 0.6)
    radians = np.deg2rad(angle)
    cosine, sine = np.cos(radians), np.sin(radians)
    middle = np.array([picture.width / 2, picture.height / 2])
    # Image.rotate turns counter-clockwise on the screen, where y points down.
    moved = (centres - middle) @ np.array([[cosine, -sine], [sine, cosine]]) + middle
    return picture.rotate(angle, Image.BICUBIC, fillcolor=255), moved


def resample(picture: Image.Image, random_) -> Image.Image:
    """Through a coarser raster and back."""
    share = random_.uniform(0.5, 0.9)
    coarse = picture.resize((int(picture.width * share), int(picture.height * share)), Image.BILINEAR)
    return coarse.resize(picture.size, Image.BICUBIC)


def compress(picture: Image.Image, random_) -> Image.Image:
    buffer = io.BytesIO()
    picture.save(buffer, "JPEG", quality=random_.randint(15, 60))
    return Image.open(buffer).convert("L")


def strokes(picture: Image.Image, random_) -> Image.Image:
    """Thicker or thinner strokes, as toner has them; done at double size, so that they change by less than a pixel."""
    big = picture.resize((picture.width * 2, picture.height * 2), Image.BICUBIC)
    big = big.filter(ImageFilter.MinFilter(3) if random_.random() < 0.6 else ImageFilter.MaxFilter(3))
    return big.resize(picture.size, Image.BOX)


def shade(grey: np.ndarray, random_, noise) -> np.ndarray:
    """Uneven light or a grey, mottled background; `grey` is 0..1."""
    height, width = grey.shape
    corners = np.array([[random_.uniform(0.6, 1) for _ in range(2)] for _ in range(2)], np.float32)
    light = np.asarray(Image.fromarray(corners).resize((width, height), Image.BILINEAR))
    if random_.random() < 0.5:
        coarse = noise.normal(0, random_.uniform(0, 0.05), (height // 8 + 1, width // 8 + 1)).astype(np.float32)
        light = light + np.asarray(Image.fromarray(coarse).resize((width, height), Image.BICUBIC))
    return grey * light


def bilevel(grey: np.ndarray, random_) -> np.ndarray:
    """Black and white; half of the time from double resolution, which leaves grey edges after scaling down."""
    threshold = random_.uniform(0.4, 0.75)
    if random_.random() < 0.5:
        return (grey > threshold).astype(np.float32)
    height, width = grey.shape
    big = np.asarray(Image.fromarray(grey).resize((width * 2, height * 2), Image.BICUBIC))
    return (big > threshold).astype(np.float32).reshape(height, 2, width, 2).mean((1, 3), dtype=np.float32)


def degrade(picture: Image.Image, random_, noise) -> np.ndarray:
    """A random mixture of the above -> grey 0..1 `[h, w]`. About a third of the pictures stay almost clean."""
    harsh = random_.random() < 0.35
    more = 2.0 if harsh else 1.0
    if random_.random() < 0.1 * more:
        picture = strokes(picture, random_)
    if random_.random() < 0.2 * more:
        picture = picture.filter(ImageFilter.GaussianBlur(random_.uniform(0.3, 1.1)))
    if random_.random() < 0.1 * more:
        picture = resample(picture, random_)
    if random_.random() < 0.1 * more:
        picture = compress(picture, random_)
    grey = np.asarray(picture, np.float32) / 255
    if random_.random() < 0.15 * more:
        grey = shade(grey, random_, noise)
    if random_.random() < 0.3 * more:
        grey = np.clip(grey + noise.normal(0, random_.uniform(0, 0.1), grey.shape).astype(np.float32), 0, 1)
    if random_.random() < 0.3:
        grey = np.clip(grey, 0, 1) ** random_.uniform(0.6, 1.6)
    if random_.random() < 0.15:
        grey = 1 - (1 - grey) * random_.uniform(0.55, 1)
    if random_.random() < 0.05 * more:
        grey = bilevel(grey.astype(np.float32), random_)
    return np.clip(grey, 0, 1).astype(np.float32)
