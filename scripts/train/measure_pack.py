"""What a pack reads by itself, through the program. `python -m scripts.train.measure_pack PACK PROGRAM [PAGES]`

Converts held-out pages as pictures, half of them real, half synthetic, with `--drafts none --accept lossless`: nothing but the pack's graphs. With
`--drafts layout` the layout network says where the regions are, in `trust`, and the pack reads them.
Prints by source: character error rate over the page's text in the order of its regions (spaces count once), the share of pages that loop or
stay empty, F1 of regions at an overlap (IoU) of 0.5 with their type, and the share of pairs of matched regions in the right order. Real pages
count for the layout only where their labels passed the checks. `latin`: the same of the pages that are in Latin script.
"""
import argparse
import json
import shutil
import subprocess
import tempfile
import unicodedata
from pathlib import Path

from rapidfuzz.distance import Levenshtein

from .page_samples import Page, load_page, page_paths

# This project's names of element types -> the kinds of the labels.
KINDS = {"paragraph": "text", "list_item": "list", "heading": "heading", "title": "title"}
LEAST_OVERLAP = 0.5
# Share of a page's letters.
LEAST_LATIN = 0.95


def truth_text(page: Page) -> str:
    regions = ("".join(chr(int(page.characters[i, 0])) for i in region.characters) for region in page.regions)
    return " ".join(" ".join(regions).split())


def in_latin(page: Page) -> bool:
    letters = [c for c in truth_text(page) if c.isalpha()]
    return sum(unicodedata.name(c, "").startswith("LATIN") for c in letters) >= LEAST_LATIN * len(letters)


def overlap(a: list[float], b: list[float]) -> float:
    """Intersection over union."""
    width, height = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    if width <= 0 or height <= 0:
        return 0.0
    area = lambda r: (r[2] - r[0]) * (r[3] - r[1])  # noqa: E731
    return width * height / (area(a) + area(b) - width * height)


def match(found: list[tuple[str, list[float]]], true: list[tuple[str, list[float]]]) -> list[tuple[int, int]]:
    """Pairs (found, true) of one type that overlap, best first, each region once."""
    pairs = [(overlap(f[1], t[1]), i, j) for i, f in enumerate(found) for j, t in enumerate(true) if f[0] == t[0]]
    taken, out = set(), []
    for value, i, j in sorted(pairs, reverse=True):
        if value >= LEAST_OVERLAP and ("f", i) not in taken and ("t", j) not in taken:
            taken |= {("f", i), ("t", j)}
            out.append((i, j))
    return out


def in_order(pairs: list[tuple[int, int]]) -> tuple[int, int]:
    """How many pairs of matched regions follow each other as they should, and how many there are."""
    right = total = 0
    for n, (i, j) in enumerate(pairs):
        for k, m in pairs[:n]:
            right, total = right + ((i < k) == (j < m)), total + 1
    return right, total


class Tally:
    def __init__(self):
        self.pages = self.stuck = self.errors = self.characters = 0
        self.found = self.true = self.matched = self.right = self.pairs = 0

    def add(self, page: Page, read: dict):
        elements = [e for e in read["elements"] if e["type"] not in ("header", "footer", "page_number")]
        text = " ".join(" ".join(e.get("text") or "" for e in read["elements"]).split())
        truth = truth_text(page)
        self.pages += 1
        self.stuck += not text or any(e.get("stop") in ("loop", "budget") for e in elements)
        self.errors += min(len(truth), Levenshtein.distance(truth, text))
        self.characters += len(truth)
        if not page.labelled:
            return
        scale = page.picture.width / read["width"]
        found = [(KINDS.get(e["type"], e["type"]), [v * scale for v in e["bbox"]]) for e in read["elements"]]
        true = [(region.kind, region.box) for region in page.regions]
        pairs = match(found, true)
        right, total = in_order(pairs)
        self.found, self.true, self.matched = self.found + len(found), self.true + len(true), self.matched + len(pairs)
        self.right, self.pairs = self.right + right, self.pairs + total

    def figures(self) -> dict:
        share = lambda part, whole: round(part / whole, 4) if whole else None  # noqa: E731
        return {
            "pages": self.pages, "character_error_rate": share(self.errors, self.characters), "stuck_or_empty": share(self.stuck, self.pages),
            "layout_f1": share(2 * self.matched, self.found + self.true), "in_order": share(self.right, self.pairs),
        }  # fmt: skip


def convert(program: Path, pack: Path, drafts: str, paths: list[Path], work: Path) -> dict[str, dict]:
    """Pages as the program reads them, by name."""
    pictures = work / "in"
    pictures.mkdir()
    for path in paths:
        shutil.copy(path.with_suffix(".png"), pictures)
    accept = "lossless" if drafts == "none" else "trust"
    options = ["--model", str(pack), "--drafts", drafts, "--accept", accept, "-f", "json", "--jobs", "1", "-q"]
    subprocess.run([program, "convert", pictures, "-o", work / "out", *options], check=False)
    read = {}
    for path in paths:
        page = work / "out" / path.name / "page-0001.json"
        if page.exists():
            read[path.name] = json.loads(page.read_text())["page"]
    return read


def main():
    parser = argparse.ArgumentParser(prog="python -m scripts.train.measure_pack")
    parser.add_argument("pack", type=Path)
    parser.add_argument("program", type=Path)
    parser.add_argument("pages", type=int, nargs="?", default=20)
    parser.add_argument("--drafts", choices=("none", "layout"), default="none")
    arguments = parser.parse_args()
    for source, paths in zip(("real", "synthetic"), page_paths(test=True), strict=True):
        paths, tally, latin = paths[: arguments.pages // 2], Tally(), Tally()
        with tempfile.TemporaryDirectory() as work:
            read = convert(arguments.program.resolve(), arguments.pack, arguments.drafts, paths, Path(work))
        for path in paths:
            page = load_page(path)
            for own in (tally, latin) if in_latin(page) else (tally,):
                own.add(page, read.get(path.name, {"elements": [], "width": page.picture.width}))
        print(json.dumps({"source": source, **tally.figures(), "latin": latin.figures()}), flush=True)


if __name__ == "__main__":
    main()
