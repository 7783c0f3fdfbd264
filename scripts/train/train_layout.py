"""Stage 6c: trains the layout net. `python -m scripts.train.train_layout RUN --minutes 60 [--start WEIGHTS]`

Whole pages with trusted labels, a part of them made to look scanned. Writes runs/RUN/{log.jsonl, state.pt, layout.safetensors} and goes on from
state.pt. The log's `layout_f1` is that of `regions_of`, which reads regions off the maps without a decoder.
"""
import argparse
import math
import random
import time
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from safetensors.torch import load_file
from torch.nn import functional

from .degrade import degrade
from .layout import CLASSES, LEAST_LOG, LayoutNet
from .loading import load_what_fits
from .page_samples import INK_THRESHOLD, SLACK, Page, load_page, page_paths, region_cells
from .run import TrainingRun
from .settings import SETTINGS
from .vision import CELL_HEIGHT, CELL_WIDTH, page_ink
from .vocabulary import KINDS

OPTIONS = SETTINGS["layout"]
SAVE_SECONDS, CHECK_SECONDS, LOG_STEPS, WARM_UP_STEPS = 240, 900, 100, 100
SIZES = torch.tensor([CELL_WIDTH, CELL_HEIGHT] * 2)
IGNORED = -100
CHECKED_PAGES = 80
# Where the region before lies is the hardest to say, and matters least.
BEFORE_WEIGHT = 0.3


def inked(ink) -> np.ndarray:
    """Ink `[1, 1, H, W]` -> which cells the decoder is shown, `[h, w]` bool."""
    return (functional.max_pool2d(ink, (CELL_HEIGHT, CELL_WIDTH))[0, 0] > INK_THRESHOLD).numpy()


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
            move(page, random_.randrange(CELL_WIDTH), random_.randrange(CELL_HEIGHT))
            grey = degrade(page.picture, random_, noise) if random_.random() < OPTIONS["scanned_share"] else grey_of(page)
            ink = page_ink(grey)
            yield ink, *map(torch.from_numpy, targets(page, inked(ink)))


def grey_of(page: Page) -> np.ndarray:
    return np.asarray(page.picture, np.float32) / 255


def move(page: Page, right: int, down: int):
    """Moves the page's picture and regions."""
    canvas = Image.new("L", (page.picture.width + right, page.picture.height + down), 255)
    canvas.paste(page.picture, (right, down))
    page.picture = canvas
    for region in page.regions:
        region.box = [value + (right, down)[i % 2] for i, value in enumerate(region.box)]


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


def overlap(boxes: np.ndarray, box: np.ndarray) -> np.ndarray:
    """Intersection over union of `boxes [N, 4]` and `box`."""
    sides = np.minimum(boxes[:, 2:], box[2:]) - np.maximum(boxes[:, :2], box[:2])
    shared = sides.clip(0).prod(1)
    return shared / ((boxes[:, 2:] - boxes[:, :2]).clip(0).prod(1) + (box[2:] - box[:2]).prod() - shared)


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
    """Of the regions of `paths` at an overlap of 0.5, with their kind and without; and the share of cells whose kind is right."""
    found = true = matched = placed = right = cells = 0
    for path in paths:
        page = load_page(path)
        if not page.labelled:
            continue
        ink = page_ink(grey_of(page))
        grid = inked(ink)
        with torch.no_grad():
            maps = net(ink)[0].numpy()
        classes = targets(page, grid)[0]
        right, cells = right + (maps[:CLASSES].argmax(0) == classes)[grid].sum(), cells + grid.sum()
        regions = regions_of(maps, grid)
        truth = [(region.kind, np.array(region.box)) for region in page.regions]
        found, true = found + len(regions), true + len(truth)
        for with_kind in (True, False):
            taken = set()
            for kind, box in regions:
                hits = [j for j, (k, t) in enumerate(truth) if j not in taken and (k == kind or not with_kind) and overlap(t[None], box)[0] >= 0.5]
                taken.update(hits[:1])
            matched, placed = (matched + len(taken), placed) if with_kind else (matched, placed + len(taken))
    share = lambda part, whole: round(float(part / max(1, whole)), 4)  # noqa: E731
    return {"layout_f1": share(2 * matched, found + true), "without_kind": share(2 * placed, found + true), "cells_right": share(right, cells)}


def check(run: TrainingRun):
    run.model.eval()
    real, synthetic = page_paths(test=True)
    run.log(held_out={"real": f1(run.model, real[:CHECKED_PAGES]), "synthetic": f1(run.model, synthetic[: CHECKED_PAGES // 2])})
    run.model.train()


def train(run: TrainingRun, minutes: float):
    pages = torch.utils.data.DataLoader(Pages(OPTIONS["seed"] + run.step), batch_size=None)
    clock, saved, checked, facts = time.process_time() - run.seconds, time.time(), run.seconds, {}
    for number, page in enumerate(pages, 1):
        parts = losses(run.model, *page)
        (sum(parts.values()) / OPTIONS["accumulate"]).backward()
        for name, value in parts.items():
            facts.setdefault(name, []).append(float(value.detach()))
        if number % OPTIONS["accumulate"]:
            continue
        run.seconds = time.process_time() - clock
        done = min(1.0, run.seconds / (minutes * 60))
        run.step += 1
        run.set_rate(OPTIONS["learning_rate"] * min(1, run.step / WARM_UP_STEPS) * (0.03 + 0.97 * 0.5 * (1 + math.cos(math.pi * done))))
        torch.nn.utils.clip_grad_norm_(run.model.parameters(), 2.0)
        run.optimiser.step()
        run.optimiser.zero_grad()
        if run.step % LOG_STEPS == 0:
            run.log(**{name: round(float(np.mean(values)), 4) for name, values in facts.items()})
            facts = {}
        if time.time() - saved > SAVE_SECONDS or done == 1:
            run.save()
            saved = time.time()
        if run.seconds - checked > CHECK_SECONDS or done == 1:
            check(run)
            checked = run.seconds
        if done == 1:
            return


def main():
    parser = argparse.ArgumentParser(prog="python -m scripts.train.train_layout")
    parser.add_argument("run")
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--start", type=Path)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(OPTIONS["seed"])
    net = LayoutNet()
    optimiser = torch.optim.AdamW(net.parameters(), lr=OPTIONS["learning_rate"], betas=(0.9, 0.98), weight_decay=0.02)
    run = TrainingRun(arguments.run, "layout", net, optimiser)
    if not run.resume() and arguments.start:
        load_what_fits(net, load_file(arguments.start))
    train(run, arguments.minutes)


if __name__ == "__main__":
    main()
