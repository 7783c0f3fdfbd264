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

from .layout_score import LayoutTally, share
from .page_samples import Page, load_page, page_paths

# This project's names of element types -> the kinds of the labels.
KINDS = {"paragraph": "text", "list_item": "list", "heading": "heading", "title": "title"}
# Share of a page's letters.
LEAST_LATIN = 0.95


def truth_text(page: Page) -> str:
    regions = ("".join(chr(int(page.characters[i, 0])) for i in region.characters) for region in page.regions)
    return " ".join(" ".join(regions).split())


def in_latin(page: Page) -> bool:
    letters = [c for c in truth_text(page) if c.isalpha()]
    return sum(unicodedata.name(c, "").startswith("LATIN") for c in letters) >= LEAST_LATIN * len(letters)


class Tally:
    def __init__(self):
        self.pages = self.stuck = self.errors = self.characters = 0
        self.layout = LayoutTally()

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
        self.layout.add(found, true)

    def figures(self) -> dict:
        return {
            "pages": self.pages, "character_error_rate": share(self.errors, self.characters), "stuck_or_empty": share(self.stuck, self.pages),
            **self.layout.figures(),
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
