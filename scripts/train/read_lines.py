"""Single lines by the vision graph alone, as the `glyph` drafter reads them, against the OCR network that it would spare.

`python -m scripts.train.read_lines FOLDER [PAGES] [--scanned]`: FOLDER holds vision.safetensors and characters.json. Lines of held-out pages
with characters of the alphabet only; spaces are left out. Prints both error rates, CPU seconds a line, and for several gates
(`glyph_lines` of the manifest) the share of lines kept and both error rates on them: a gate pays where the first is not above the second.
"""
import argparse
import random
import time
from pathlib import Path

import numpy as np
import onnxruntime
import torch
from PIL import Image
from rapidfuzz.distance import Levenshtein

from .degrade import degrade
from .loading import load_vision, load_vocabulary
from .read_glyphs import LINE, held_out_pages, take_characters, text_lines
from .settings import ROOT
from .vision import CELL_WIDTH

# As src/drafts/glyphs.rs has them: height of a line and margins of its strip, px.
LINE_HEIGHT, ABOVE, BESIDE = 28, 6, 8
DOUBLED, DOUBLED_WEAK, WEAK, NOTHING = 0.45, 0.65, 0.7, 0.004
LINES_A_PAGE = 6
# Share of a line's height that a detected box has around it.
GROWN = 0.28
RECOGNITION = ROOT / "models" / "third-party" / "PP-OCRv6_rec_small.onnx"
RECOGNITION_HEIGHT, RECOGNITION_STEP = 48, 8


class Recogniser:
    def __init__(self):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self.session = onnxruntime.InferenceSession(str(RECOGNITION), options, providers=["CPUExecutionProvider"])
        self.alphabet = ["", *self.session.get_modelmeta().custom_metadata_map["character"].split("\n"), " "]

    def read(self, crop: Image.Image) -> str:
        width = max(RECOGNITION_HEIGHT, -(-crop.width * RECOGNITION_HEIGHT // (crop.height * RECOGNITION_STEP)) * RECOGNITION_STEP)
        grey = np.asarray(crop.resize((width, RECOGNITION_HEIGHT), Image.BILINEAR), np.float32) / 127.5 - 1
        name = self.session.get_inputs()[0].name
        classes = self.session.run(None, {name: np.repeat(grey[None, None], 3, 1)})[0][0].argmax(1)
        new = np.concatenate([[True], classes[1:] != classes[:-1]]) & (classes != 0)
        return "".join(self.alphabet[c] for c in classes[new]).replace(" ", "")


class LineReader:
    def __init__(self, folder: Path):
        self.vocabulary = load_vocabulary(folder)
        self.vision = load_vision(self.vocabulary, folder / "vision.safetensors")
        self.advances = np.array(self.vocabulary.advances)

    def read(self, crop: Image.Image) -> tuple[np.ndarray, float]:
        """Rows (x, y, character, mass) in order, and the most mass that a window still holds without them."""
        width = max(1, round(crop.width * LINE_HEIGHT / crop.height))
        grey = np.asarray(crop.resize((width, LINE_HEIGHT), Image.BOX if crop.height > LINE_HEIGHT else Image.BILINEAR), np.float32) / 255
        strip = np.zeros((LINE_HEIGHT + 2 * ABOVE, -(-(width + 2 * BESIDE) // CELL_WIDTH) * CELL_WIDTH), np.float32)
        strip[ABOVE : ABOVE + LINE_HEIGHT, BESIDE : BESIDE + width] = (np.percentile(grey, 75) - grey).clip(0)
        with torch.no_grad():
            masses = self.vision(torch.from_numpy(strip)[None, None])[0].softmax(0)[1:].sum(1, keepdim=True).numpy()
        masses[masses <= NOTHING] = 0
        found, left = take_characters(masses, LINE, with_left=True)
        return self.without_doubles(found[np.argsort(found[:, 0])]), left

    def without_doubles(self, found: np.ndarray) -> np.ndarray:
        """Of characters that stand too near for their widths the surer one."""
        pitch = None
        while len(found) > 2:
            advances = self.advances[found[:, 2].astype(int)]
            steps = np.diff(found[:, 0]) / ((advances[1:] + advances[:-1]) / 2)
            pitch = np.median(steps) if pitch is None else pitch
            weaker = np.minimum(found[1:, 3], found[:-1, 3])
            slack = steps - np.where(weaker < WEAK, DOUBLED_WEAK, DOUBLED) * pitch
            nearest = int(slack.argmin())
            if slack[nearest] > 0:
                break
            found = np.delete(found, nearest if found[nearest, 3] < found[nearest + 1, 3] else nearest + 1, 0)
        return found


def crops(page: Path, vocabulary, scanned: bool, number: int):
    """(text without spaces, crop as the detection would make it) of some lines of a page."""
    picture = Image.open(page.with_suffix(".png")).convert("L")
    if scanned:
        picture = Image.fromarray((degrade(picture, random.Random(number), np.random.default_rng(number)) * 255).astype(np.uint8))
    lines = [line for line in text_lines(np.load(page.with_suffix(".npy"))) if len(line) >= 4]
    random.Random(number).shuffle(lines)
    for line in lines[:LINES_A_PAGE]:
        left, right = line[:, 1].min(), line[:, 3].max()
        top, bottom = np.percentile(line[:, 2], 5), np.percentile(line[:, 4], 95)
        known = all(vocabulary.character(int(code)) != vocabulary.unknown for code in line[:, 0])
        if known and 5 <= bottom - top <= 40 and right - left > bottom - top:
            grown = GROWN * (bottom - top)
            yield "".join(chr(int(code)) for code in line[:, 0]), picture.crop((left - grown, top - grown, right + grown + 1, bottom + grown + 1))


def rates(lines: list[tuple]) -> dict:
    characters = max(1, sum(len(line[0]) for line in lines))
    return {"lines": len(lines), **{name: round(sum(Levenshtein.distance(line[0], line[i]) for line in lines) / characters, 4) for name, i in (("glyph", 1), ("ocr", 2))}}


def main():
    parser = argparse.ArgumentParser(prog="python -m scripts.train.read_lines")
    parser.add_argument("folder", type=Path)
    parser.add_argument("pages", type=int, nargs="?", default=30)
    parser.add_argument("--scanned", action="store_true")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    reader, recogniser, lines, seconds = LineReader(arguments.folder), Recogniser(), [], [0.0, 0.0]
    names = [chr(code) for code in reader.vocabulary.characters] + ["\ufffd"]
    for number, page in enumerate(held_out_pages(arguments.pages)):
        for truth, crop in crops(page, reader.vocabulary, arguments.scanned, number):
            start = time.process_time()
            found, left = reader.read(crop)
            middle = time.process_time()
            other = recogniser.read(crop)
            seconds = [seconds[0] + middle - start, seconds[1] + time.process_time() - middle]
            read = "".join(names[int(token)] for token in found[:, 2])
            least = float(np.percentile(found[:, 3], 10)) if len(found) else 0.0
            # A text layer that neither bears out says something else than the picture.
            if min(Levenshtein.distance(truth, text) for text in (read, other)) < 0.3 * len(truth):
                lines.append((truth, read, other, least, left))
    print({**rates(lines), "seconds_glyph": round(seconds[0] / len(lines), 3), "seconds_ocr": round(seconds[1] / len(lines), 3)})
    for least in (0.5, 0.8, 0.95):
        for left_over in (0.9, 0.7, 0.6, 0.5, 0.4):
            print({"least_mass": least, "most_left_over": left_over, **rates([line for line in lines if line[3] >= least and line[4] <= left_over])})


if __name__ == "__main__":
    main()
