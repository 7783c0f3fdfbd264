"""What the trunk writes of held-out pages by itself, and how near that is to the labels. `python -m scripts.train.read_layout FOLDER [PAGES]`

FOLDER holds decoder.safetensors and layout.safetensors. Of labelled whole pages, as the vision graph sees them where `vision_reads` was run: F1 of regions at an
overlap (IoU) of 0.5 with their kind and without, the share of pairs of matched regions in the right order, and the share of pages that end. The
program's elements are finer than regions (paragraphs, list items), and their boxes are those of the words: `measure_pack` cannot tell.
"""
import argparse
import json
from pathlib import Path

import torch

from .loading import load_layout, load_reader, load_vocabulary
from .layout_score import LayoutTally, share
from .page_samples import MOST_TRUNK_TOKENS, Sample, SampleMaker, load_page, page_paths, seen_path, whole_pages
from .positions import trunk_positions
from .read_regions import BranchReader
from .reader import Reader
from .vocabulary import Vocabulary


@torch.no_grad()
def read_trunk(reader: Reader, sample: Sample) -> list[int]:
    """Trunk tokens, decoded greedily with cached keys and values."""
    vocabulary, shape, count = reader.vocabulary, reader.shape, len(sample.visual_xy)
    visual = reader.visual(sample.classes, sample.facts, sample.layout, sample.visual_xy)
    places = torch.cat([torch.zeros(count, 1), sample.visual_xy.flip(-1)], 1)
    prefix, steps = [], BranchReader(reader, sample)
    reader.run(visual, places, torch.ones(0, count, dtype=torch.bool), count, prefix)
    own = [(torch.zeros(1, shape.kv_heads, 0, shape.head_dim),) * 2 for _ in range(shape.layers)]
    tokens = [vocabulary.begin]
    while tokens[-1] != vocabulary.end and len(tokens) < MOST_TRUNK_TOKENS:
        positions = torch.tensor([trunk_positions(vocabulary, tokens)[-1]])
        x = reader.embed(torch.tensor(tokens[-1:]), positions)
        x, own = steps.step(x, positions, prefix, own, torch.zeros(1, 1, 1, count + len(tokens)))
        tokens.append(int(reader.logits(reader.norm(x)).argmax(-1)))
    return tokens


def regions_in(vocabulary: Vocabulary, tokens: list[int]) -> list[tuple[str, list[float]]]:
    """(kind, box) of each region that a trunk tells completely."""
    numbers = (vocabulary.x, vocabulary.y, vocabulary.x, vocabulary.y)
    found = []
    for at in range(len(tokens) - 4):
        kind, places = vocabulary.kind_of(tokens[at]), tokens[at + 1 : at + 5]
        if kind and all(token in number for token, number in zip(places, numbers, strict=True)):
            found.append((kind, [number.value(token) for token, number in zip(places, numbers, strict=True)]))
    return found


def figures(reader: Reader, maker: SampleMaker, paths: list[Path], count: int) -> dict:
    pages, ended, tally = 0, 0, LayoutTally()
    for path in paths:
        page = load_page(path)
        sample = maker.make(path, seen_path(path).exists()) if page.labelled and page.regions else None
        if sample is None:
            continue
        tokens = read_trunk(reader, sample)
        tally.add(regions_in(reader.vocabulary, tokens), [(region.kind, region.box) for region in page.regions])
        pages, ended = pages + 1, ended + (tokens[-1] == reader.vocabulary.end)
        if pages == count:
            break
    return {"pages": pages, **tally.figures(), "ended": share(ended, pages)}


def main():
    parser = argparse.ArgumentParser(prog="python -m scripts.train.read_layout")
    parser.add_argument("folder", type=Path)
    parser.add_argument("pages", type=int, nargs="?", default=20)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    vocabulary = load_vocabulary()
    reader, layout = load_reader(vocabulary, arguments.folder / "decoder.safetensors"), load_layout(arguments.folder / "layout.safetensors")
    maker = whole_pages(vocabulary, layout)
    for source, paths in zip(("real", "synthetic"), page_paths(test=True), strict=True):
        print(json.dumps({"source": source, **figures(reader, maker, paths, arguments.pages // 2)}), flush=True)


if __name__ == "__main__":
    main()
