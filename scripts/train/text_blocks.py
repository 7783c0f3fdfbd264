"""Text blocks of a page from the geometry of its lines alone: regions for reading where no layout labels can be trusted."""
import numpy as np

from .page_characters import LINE_END, SPACE


def page_lines(characters: np.ndarray) -> list[tuple[int, int, list[float]]]:
    """(first character, end, box) of the text layer's lines, tilted ones left out."""
    lines, start = [], 0
    for end in range(len(characters) + 1):
        if end < len(characters) and characters[end, 0] != LINE_END:
            continue
        glyphs = characters[start:end][characters[start:end, 0] != SPACE]
        if len(glyphs):
            box = [glyphs[:, 1].min(), glyphs[:, 2].min(), glyphs[:, 3].max(), glyphs[:, 4].max()]
            if box[3] - box[1] <= 6 * max(np.median(glyphs[:, 4] - glyphs[:, 2]), 3):
                lines.append((start, end, [float(v) for v in box]))
        start = end + 1
    return lines


def follows(box: list[float], last: list[float], block: list[float]) -> bool:
    """Is the line at `box` the next one of the block whose last line is at `last`?"""
    height, gap = last[3] - last[1], box[1] - last[3]
    overlap = min(box[2], block[2]) - max(box[0], block[0])
    close = -0.3 * height < gap < 0.9 * max(height, 6)
    return close and overlap > 0.3 * min(box[2] - box[0], last[2] - last[0]) and abs(box[3] - box[1] - height) < 0.6 * height


def text_blocks(characters: np.ndarray) -> list[tuple[list[float], list[int]]]:
    """Boxes and character indices of the page's text blocks, in content order."""
    blocks, last = [], None
    for start, end, box in page_lines(characters):
        if blocks and start - blocks[-1][1][-1] <= 2 and follows(box, last, blocks[-1][0]):
            whole = blocks[-1][0]
            blocks[-1][1].extend(range(blocks[-1][1][-1] + 1, end))
            whole[:] = [min(whole[0], box[0]), min(whole[1], box[1]), max(whole[2], box[2]), max(whole[3], box[3])]
        else:
            blocks.append((list(box), list(range(start, end))))
        last = box
    return blocks
