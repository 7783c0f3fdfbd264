"""Stage 6c: trains the layout net. `python -m scripts.train.train_layout RUN --minutes 60 [--start WEIGHTS]`

Whole pages with trusted labels, a part of them made to look scanned. Writes runs/RUN/{log.jsonl, state.pt, layout.safetensors} and goes on from
state.pt. The log's `layout_f1` is that of `regions_of`, which reads regions off the maps without a decoder.
"""
import math
import random
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file
from torch.nn import functional

from .degrade import degrade
from .layout import CLASSES, LEAST_LOG, LayoutNet
from .layout_score import LayoutTally, overlap, share
from .loading import load_what_fits
from .page_samples import SLACK, Page, load_page, page_paths, region_cells
from .run import TrainingRun, arguments, mean_facts
from .settings import SETTINGS
from .vision import CELL_HEIGHT, CELL_WIDTH, inked, page_ink
from .vocabulary import KINDS

OPTIONS = SETTINGS["layout"]
LOG_STEPS, WARM_UP_STEPS = 100, 100
SIZES = torch.tensor([CELL_WIDTH, CELL_HEIGHT] * 2)
IGNORED = -100
CHECKED_PAGES = 80
# Where the region before lies is the hardest to say, and matters least.
BEFORE_WEIGHT = 0.3


def targets(page: Page, grid: np.ndarray):
    """Of the cells `grid [h, w]`: class (IGNORED without ink), own and previous region's box `[h, w, 4]` px, weight."""
    owner = region_cells([region.box for region in page.regions], grid)
    own, last = np.array([region.box for region in page.regions]), np.array([[0.0] * 4, *(region.box for region in page.regions[:-1])])
    kinds = np.array([1 + KINDS.index(region.kind) for region in page.regions])
    classes = np.where(grid, np.where(owner >= 0, kinds[owner], 0), IGNORED)
    # Small regions count as much as large ones, nearly.
    counts = np.bincount(owner[owner >= 0], minlength=len(kinds)).clip(1)
    weight = np.where(owner >= 0, 1 / counts[owner] ** OPTIONS["size_power"], grid * OPTIONS["background_weight"] / max(1.0, grid.sum()) ** 0.5)
    boxes, before = own[owner], last[owner]
    return classes, boxes, before, weight


class Pages(torch.utils.data.IterableDataset):
    """Endless training pages: ink, and `targets` as tensors."""

    def __init__(self, seed: int):
        self.seed = seed

    def __iter__(self):
        random_, noise = random.Random(self.seed), np.random.default_rng(self.seed)
        real, synthetic = page_paths(test=False)
        while True:
            path = random_.choice(synthetic if random_.random() < OPTIONS["synthetic_share"] else real)
            page = load_page(path)
            if not page.labelled or not page.regions:
                continue
            page.move(random_.randrange(CELL_WIDTH), random_.randrange(CELL_HEIGHT))
            grey = degrade(page.picture, random_, noise) if random_.random() < OPTIONS["scanned_share"] else page.grey()
            ink = page_ink(grey)
            yield ink, *map(torch.from_numpy, targets(page, inked(ink)))


def losses(net: LayoutNet, ink, classes, boxes, before, weight) -> dict:
    """Losses of class, own box and previous box, each a weighted mean over cells."""
    logits, own, previous = (part[0].permute(1, 2, 0) for part in net.raw(ink))
    shown = classes != IGNORED
    class_loss = functional.cross_entropy(logits[shown], classes[shown], reduction="none")
    weight_shown = weight[shown].float()
    inside = classes > 0
    row, column = torch.nonzero(inside, as_tuple=True)
    centre = torch.stack([column, row, column, row], 1) + 0.5
    sides = boxes[inside].float() / SIZES - centre
    distances = (sides * torch.tensor([-1.0, -1.0, 1.0, 1.0])).clamp(min=math.exp(LEAST_LOG))
    weight_inside = weight[inside].float()
    weight_inside = weight_inside / weight_inside.sum().clamp(min=1e-6)
    said = own[inside].clamp(LEAST_LOG - 1, 6)
    own_loss = functional.smooth_l1_loss(said, distances.log(), reduction="none", beta=0.3).mean(1) + overlap_loss(said.exp(), distances)
    wanted = before[inside].float() / SIZES - centre
    previous_loss = ((previous[inside] - wanted).abs() / (2 + 0.1 * wanted.abs())).mean(1)
    return {
        "class": (class_loss * weight_shown).sum() / weight_shown.sum(),
        "own": (own_loss * weight_inside).sum(), "before": BEFORE_WEIGHT * (previous_loss * weight_inside).sum(),
    }  # fmt: skip


def overlap_loss(said, true):
    """1 - intersection over union of boxes around one point, given by distances `[N, 4]` (left, upper, right, lower)."""
    area = lambda d: (d[:, 0] + d[:, 2]) * (d[:, 1] + d[:, 3])  # noqa: E731
    shared = area(torch.minimum(said, true))
    return 1 - shared / (area(said) + area(true) - shared)


def regions_of(maps: np.ndarray, grid: np.ndarray) -> list[tuple[str, np.ndarray]]:
    """Regions off the net's output `[CHANNELS, h, w]`: boxes that many inked cells agree on, those with most of them first."""
    cells = np.argwhere(grid)
    rows = maps[:, cells[:, 0], cells[:, 1]].T
    kinds, boxes = rows[:, 1:CLASSES], rows[:, CLASSES : CLASSES + 4]
    free = kinds.sum(1) > 0.5
    found = []
    while free.any():
        # The cell whose box most others share speaks for its region.
        votes = [(overlap(boxes[free], boxes[i]) > 0.6).sum() for i in np.nonzero(free)[0]]
        best = np.nonzero(free)[0][int(np.argmax(votes))]
        agree = free & (overlap(boxes, boxes[best]) > 0.6)
        box = np.median(boxes[agree], 0)
        found.append((KINDS[int(kinds[agree].mean(0).argmax())], box))
        centres = (cells[:, ::-1] + 0.5) * (CELL_WIDTH, CELL_HEIGHT)
        within = ((centres > box[:2] - SLACK) & (centres < box[2:] + SLACK)).all(1)
        free &= ~(agree | within)
    return found


def f1(net: LayoutNet, paths: list[Path]) -> dict:
    """Of the regions of `paths` with their kind and without, and the share of cells whose kind is right."""
    right, cells, tally = 0, 0, LayoutTally()
    for path in paths:
        page = load_page(path)
        if not page.labelled:
            continue
        ink = page_ink(page.grey())
        grid = inked(ink)
        with torch.no_grad():
            maps = net(ink)[0].numpy()
        classes = targets(page, grid)[0]
        right, cells = right + (maps[:CLASSES].argmax(0) == classes)[grid].sum(), cells + grid.sum()
        tally.add(regions_of(maps, grid), [(region.kind, region.box) for region in page.regions])
    # Regions are found by size, not in order.
    figures = tally.figures()
    del figures["in_order"]
    return {**figures, "cells_right": share(right, cells)}


def check(run: TrainingRun):
    run.model.eval()
    real, synthetic = page_paths(test=True)
    run.log(held_out={"real": f1(run.model, real[:CHECKED_PAGES]), "synthetic": f1(run.model, synthetic[: CHECKED_PAGES // 2])})
    run.model.train()


def train(run: TrainingRun, minutes: float):
    pages = torch.utils.data.DataLoader(Pages(OPTIONS["seed"] + run.step), batch_size=None)
    facts = {}
    run.begin(minutes)
    for number, page in enumerate(pages, 1):
        parts = losses(run.model, *page)
        (sum(parts.values()) / OPTIONS["accumulate"]).backward()
        for name, value in parts.items():
            facts.setdefault(name, []).append(float(value.detach()))
        if number % OPTIONS["accumulate"]:
            continue
        run.advance(OPTIONS["learning_rate"], WARM_UP_STEPS, 0.03)
        torch.nn.utils.clip_grad_norm_(run.model.parameters(), 2.0)
        run.optimiser.step()
        run.optimiser.zero_grad()
        if run.step % LOG_STEPS == 0:
            run.log(**mean_facts(facts))
            facts = {}
        if run.tend(lambda: check(run)):
            return


def main():
    options = arguments("train_layout", 60).parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(OPTIONS["seed"])
    net = LayoutNet()
    optimiser = torch.optim.AdamW(net.parameters(), lr=OPTIONS["learning_rate"], betas=(0.9, 0.98), weight_decay=0.02)
    run = TrainingRun(options.run, "layout", net, optimiser)
    if not run.resume() and options.start:
        load_what_fits(net, load_file(options.start))
    train(run, options.minutes)


if __name__ == "__main__":
    main()
