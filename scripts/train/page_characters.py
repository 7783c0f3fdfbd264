"""The characters of a PDF page with their boxes, from pdfium's text layer."""
import ctypes
import unicodedata

import numpy as np
import pypdfium2.raw as pdfium

from .alphabet import canonical

LINE_END, SPACE = 10, 32
# pdfium gives a hyphen at a line's end one of these codes.
LINE_HYPHENS, HYPHEN = (0x2, 0xAD, 0xFFFE), ord("-")
# Letters without ascenders or descenders: their median height is the page's x-height.
X_HEIGHT_LETTERS = frozenset(ord(c) for c in "acemnorsuvwxz" "авгежзиклмностхчшъыьэюя" "αεικνοπστυω")
MOST_SCALE = 4.0
VARIATION_SELECTORS = range(0xFE00, 0xFE10)
# Spacing accents, as TeX's old encodings have them, and the combining ones, which stand for themselves.
COMBINING = {
    ord("`"): 0x300, ord("´"): 0x301, ord("^"): 0x302, ord("~"): 0x303, ord("¯"): 0x304, ord("˘"): 0x306, ord("˙"): 0x307, ord("¨"): 0x308,
    ord("˚"): 0x30A, ord("”"): 0x30B, ord("ˇ"): 0x30C, ord("¸"): 0x327, ord("˛"): 0x328, **{code: code for code in range(0x300, 0x330)},
}  # fmt: skip
BASE_OF = {ord("ı"): "i"}


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
    table = printed(np.array(rows, np.float64).reshape(-1, 6))
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


def printed(rows: np.ndarray) -> np.ndarray:
    """The rows of a page with each printed character once and in a place of its own.

    pdfium gives a character beyond the basic plane as two halves, an accent that TeX set over a letter as a character of its own, and all
    letters of a ligature the ligature's box. Characters that print alike are one (`alphabet.canonical`).
    """
    rows = joined_halves(rows)
    rows[:, 0] = [canonical(int(code)) for code in rows[:, 0]]
    rows = rows[~np.isin(rows[:, 0], VARIATION_SELECTORS)]
    split_ligatures(rows)
    return composed_accents(rows)


def joined_halves(rows: np.ndarray) -> np.ndarray:
    """UTF-16 surrogate pairs as one code point; a half without the other is dropped."""
    codes = rows[:, 0].astype(int)
    high, low = (codes >= 0xD800) & (codes < 0xDC00), (codes >= 0xDC00) & (codes < 0xE000)
    pair = np.nonzero(high[:-1] & low[1:])[0]
    rows[pair, 0] = 0x10000 + ((codes[pair] - 0xD800) << 10) + (codes[pair + 1] - 0xDC00)
    kept = ~(high | low)
    kept[pair] = True
    return rows[kept]


def split_ligatures(rows: np.ndarray):
    """Neighbours that have one box share it from left to right, in place."""
    is_glyph = rows[:, 0] > SPACE
    same = np.zeros(len(rows) + 1, bool)
    same[1:-1] = (rows[1:, 1:5] == rows[:-1, 1:5]).all(1) & is_glyph[1:] & is_glyph[:-1]
    for start in np.nonzero(~same[:-1] & same[1:])[0]:
        end = start + 1
        while same[end]:
            end += 1
        left, right = rows[start, 1], rows[start, 3]
        edges = np.linspace(left, right, end - start + 1)
        rows[start:end, 1], rows[start:end, 3] = edges[:-1], edges[1:]


def composed_accents(rows: np.ndarray) -> np.ndarray:
    """An accent before or after the letter that it stands over or under becomes one with it, if there is such a letter."""
    codes = rows[:, 0].astype(int)
    kept = np.ones(len(rows), bool)
    for i in np.nonzero(np.isin(codes, list(COMBINING)))[0]:
        middle = (rows[i, 1] + rows[i, 3]) / 2
        for letter in (i + 1, i - 1):
            if not (0 <= letter < len(rows) and kept[letter] and rows[letter, 1] < middle < rows[letter, 3]):
                continue
            whole = unicodedata.normalize("NFC", BASE_OF.get(codes[letter], chr(codes[letter])) + chr(COMBINING[codes[i]]))
            if len(whole) == 1:
                rows[letter, 0] = ord(whole)
                rows[letter, [1, 2]] = np.minimum(rows[letter, [1, 2]], rows[i, [1, 2]])
                rows[letter, [3, 4]] = np.maximum(rows[letter, [3, 4]], rows[i, [3, 4]])
                kept[i] = False
                break
    return rows[kept]
