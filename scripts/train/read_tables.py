"""Free-running reading of held-out synthetic tables with true boxes. `python -m scripts.train.read_tables FOLDER [TABLES]`

FOLDER holds decoder.safetensors and layout.safetensors. TEDS (Zhong et al. 2020) of the structure: 1 - tree edit distance / nodes of the larger tree,
of trees table - rows - cells, as rows are matched in order; and the share of tables whose rows and cells are all right.
"""
import argparse
import json
from pathlib import Path

import torch

from .layout_score import share
from .loading import load_layout, load_reader, load_vocabulary
from .page_samples import load_page, page_paths, seen_path, whole_pages
from .read_regions import BranchReader
from .vocabulary import Vocabulary

MOST_TOKENS = 800


def rows_of(vocabulary: Vocabulary, tokens: list[int]) -> list[int]:
    """How many cells each row has."""
    rows = []
    for token in tokens:
        if token == vocabulary.row:
            rows.append(0)
        elif token == vocabulary.cell and rows:
            rows[-1] += 1
    return rows


def structure_score(read: list[int], true: list[int]) -> float:
    """TEDS of tables with so many cells in each row."""
    costs = [[0] * (len(true) + 1) for _ in range(len(read) + 1)]
    for i in range(len(read) + 1):
        for j in range(len(true) + 1):
            ways = [costs[i - 1][j] + 1 + read[i - 1]] if i else []
            ways += [costs[i][j - 1] + 1 + true[j - 1]] if j else []
            ways += [costs[i - 1][j - 1] + abs(read[i - 1] - true[j - 1])] if i and j else []
            costs[i][j] = min(ways, default=0)
    nodes = [1 + len(rows) + sum(rows) for rows in (read, true)]
    return 1 - costs[-1][-1] / max(nodes)


def main():
    parser = argparse.ArgumentParser(prog="python -m scripts.train.read_tables")
    parser.add_argument("folder", type=Path)
    parser.add_argument("tables", type=int, nargs="?", default=30)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    vocabulary = load_vocabulary()
    reader, layout = load_reader(vocabulary, arguments.folder / "decoder.safetensors"), load_layout(arguments.folder / "layout.safetensors")
    maker, scores, right = whole_pages(vocabulary, layout, most_branch_tokens=3000), [], 0
    for path in page_paths(test=True)[1]:
        if not any(region.rows for region in load_page(path).regions):
            continue
        sample = maker.make(path, seen_path(path).exists())
        if sample is None:
            continue
        tables = [i for i in range(len(sample.branches)) if vocabulary.row in sample.labels[sample.segment == i + 1]]
        true = [rows_of(vocabulary, sample.labels[sample.segment == i + 1].tolist()) for i in tables]
        sample.branches = [sample.branches[i] for i in tables]
        if not tables:
            continue
        visual = reader.visual(sample.classes, sample.facts, sample.layout, sample.visual_xy)
        for tokens, rows in zip(BranchReader(reader, sample).read(visual, MOST_TOKENS), true, strict=True):
            read = rows_of(vocabulary, tokens)
            scores.append(structure_score(read, rows))
            right += read == rows
        if len(scores) >= arguments.tables:
            break
    print(json.dumps({"tables": len(scores), "structure_teds": share(sum(scores), len(scores)), "all_right": share(right, len(scores))}))


if __name__ == "__main__":
    with torch.no_grad():
        main()
