"""The characters of a PDF page with their boxes, from pdfium's text layer."""
import ctypes

import numpy as np
import pypdfium2.raw as pdfium

LINE_END, SPACE = 10, 32
# pdfium gives a hyphen at a line's end one of these codes.
LINE_HYPHENS, HYPHEN = (0x2, 0xAD, 0xFFFE), ord("-")
# Letters without ascenders or descenders: their median height is the page's x-height.
X_HEIGHT_LETTERS = frozenset(ord(c) for c in "acemnorsuvwxz")
MOST_SCALE = 4.0


def page_characters(page, with_region: bool = False) -> np.ndarray:
    """Rows (code, x0, y0, x1, y1[, region]) in content order, points, y down. Spaces and line ends have no box (zeros) and region -1.

    `region` is the number that the synthetic pages hide in the low three bits of each channel of the fill colour.
    """
    text = page.get_textpage()
    height = page.get_height()
    left, right, bottom, top = (ctypes.c_double() for _ in range(4))
    red, green, blue, alpha = (ctypes.c_uint() for _ in range(4))
    rows = []
    for i in range(pdfium.FPDFText_CountChars(text.raw)):
        code = pdfium.FPDFText_GetUnicode(text.raw, i)
        code = HYPHEN if code in LINE_HYPHENS else code
        if code in (10, 13):
            if rows and rows[-1][0] != LINE_END:
                rows.append((LINE_END, 0, 0, 0, 0, -1))
            continue
        if code in (32, 0xA0) or pdfium.FPDFText_IsGenerated(text.raw, i) == 1:
            if code in (32, 0xA0) and rows and rows[-1][0] not in (LINE_END, SPACE):
                rows.append((SPACE, 0, 0, 0, 0, -1))
            continue
        pdfium.FPDFText_GetCharBox(text.raw, i, left, right, bottom, top)
        region = -1
        if with_region:
            pdfium.FPDFText_GetFillColor(text.raw, i, red, green, blue, alpha)
            region = (red.value & 7) | ((green.value & 7) << 3) | ((blue.value & 7) << 6)
        rows.append((code, left.value, height - top.value, right.value, height - bottom.value, region))
    table = np.array(rows, np.float64).reshape(-1, 6)
    return table if with_region else table[:, :5]


def scale_to_x_height(characters: np.ndarray, wanted: float, fewest: int) -> float | None:
    """Pixels per point at which the median x-height is `wanted` px; None where the page has too few small letters or tiny ones."""
    heights = [row[4] - row[2] for row in characters if int(row[0]) in X_HEIGHT_LETTERS]
    if len(heights) < fewest:
        return None
    x_height = float(np.median(heights))
    if not 2 < x_height < 12:
        return None
    scale = wanted / x_height
    return scale if scale <= MOST_SCALE else None
