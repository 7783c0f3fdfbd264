"""Pages as samples for the decoder: visual tokens, a trunk, and some of its branches.

No picture goes through the vision graph here. What it would read is made from the text layer's characters, with its kinds of mistakes; or, for pages that
`vision_reads` was run on, it is what it did read.
"""
import json
import random
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from .layout import CLASSES, LayoutNet
from .loading import load_layout
from .page_characters import LINE_END, SPACE
from .positions import branch_positions, branch_start, trunk_positions
from .settings import REAL_PAGES, SETTINGS, SYNTHETIC_PAGES, is_test
from .text_blocks import text_blocks
from .vision import CELL_HEIGHT, CELL_WIDTH, inked, page_ink
from .visual_tokens import VisualTokens, visual_tokens
from .vocabulary import Vocabulary

OPTIONS = SETTINGS["decoder"]
# How far outside its region's box the centre of an inked cell may lie, px.
SLACK = 6
MOST_TRUNK_TOKENS = 420
IGNORED = -100
# A character was read from the visual token of its class, or another one, whose centre is as near as that (x, y), px.
NEAR = (4.0, 6.0)
# Share of pitches that are misread where mistakes are planted, and by how many bins.
PITCH_MISTAKES, PITCH_BINS = 0.6, 3.0
# Where mistakes are planted: characters doubled or left out, against other mistakes.
STRAY_SHARE = 0.4
# Kinds that head and end the reading order.
FIRST, LAST = ("header",), ("footer", "page_number")


@dataclass
class Region:
    kind: str
    box: list[float]
    characters: list[int]
    rows: list[list[str]] | None = None
    latex: str | None = None


@dataclass
class Page:
    picture: Image.Image
    characters: np.ndarray
    regions: list[Region]
    is_glyph: np.ndarray
    labelled: bool
    # What the vision graph read `[N, 4]` (x, y, character, mass), if that is known.
    read: np.ndarray | None = None

    def move(self, right: int, down: int):
        """Moves what is on the page."""
        canvas = Image.new("L", (self.picture.width + right, self.picture.height + down), 255)
        canvas.paste(self.picture, (right, down))
        self.picture = canvas
        self.characters[self.is_glyph, 1:5] += (right, down, right, down)
        if self.read is not None:
            self.read[:, :2] += (right, down)
        for region in self.regions:
            region.box = [value + (right, down)[i % 2] for i, value in enumerate(region.box)]

    def centres(self) -> tuple[np.ndarray, np.ndarray]:
        """x and y of the characters, px."""
        return (self.characters[:, 1] + self.characters[:, 3]) / 2, (self.characters[:, 2] + self.characters[:, 4]) / 2

    def grey(self) -> np.ndarray:
        """`[h, w]` 0..1."""
        return np.asarray(self.picture, np.float32) / 255


@dataclass
class Sample:
    """Shapes: V visual tokens, T text tokens (trunk, then branches)."""

    visual_xy: torch.Tensor  # [V, 2] centres, px
    classes: torch.Tensor  # [V, 3], as in VisualTokens
    facts: torch.Tensor  # [V, 3]
    layout: torch.Tensor  # [V, CHANNELS] of the layout net
    visual_region: torch.Tensor  # [V] region that a visual token lies in, by number in the trunk, or -1
    tokens: torch.Tensor  # [T]
    labels: torch.Tensor  # [T], IGNORED where there is nothing to learn
    positions: torch.Tensor  # [T, 3]
    segment: torch.Tensor  # [T] 0 in the trunk, else the branch's number
    visible: torch.Tensor  # [T] trunk tokens that a branch sees
    current_visual: torch.Tensor  # [T] visual token that the fed token was read from, or -1
    next_visual: torch.Tensor  # [T] visual token of the token to come, or -1
    current_region: torch.Tensor  # [T] region that a trunk token tells of, or -1
    next_region: torch.Tensor  # [T] region that the token to come tells of, or -1
    trunk_length: int
    branches: list[tuple[int, str]]  # fork and true text of each branch
    borne_out: float  # share of its characters that the visual tokens bear out
    name: str


def load_page(path: Path) -> Page:
    """Regions are the labelled ones, or text blocks where there are no labels that can be trusted."""
    labels = path.with_suffix(".json")
    described = json.loads(labels.read_text()) if labels.exists() else {"ok": False}
    characters = np.load(path.with_suffix(".npy")).astype(np.float64)
    is_glyph = (characters[:, 0] != SPACE) & (characters[:, 0] != LINE_END)
    labelled = True
    if path.parent == REAL_PAGES and not described["ok"]:
        labelled = False
        regions = [Region("text", box, inside) for box, inside in text_blocks(characters)]
    elif path.parent == REAL_PAGES:
        regions = [Region(entry["kind"], entry["box"], entry["characters"]) for entry in described["regions"]]
    else:
        # Figures are bracketed by two marks of 1 pt, which nobody can read.
        is_glyph &= ~((characters[:, 0] == 0xA7) & (characters[:, 4] - characters[:, 2] < 3))
        regions = synthetic_regions(described, characters)
    regions = [*(r for r in regions if r.kind in FIRST), *(r for r in regions if r.kind not in FIRST + LAST), *(r for r in regions if r.kind in LAST)]
    return Page(Image.open(path.with_suffix(".png")).convert("L"), characters, regions, is_glyph, labelled)


def synthetic_regions(described: list[dict], characters: np.ndarray) -> list[Region]:
    members, current = {}, -1
    for i, owner in enumerate(characters[:, 5].astype(int)):
        current = owner if owner >= 0 else current
        members.setdefault(current, []).append(i)
    regions = []
    for entry in described:
        inside = members.get(entry["id"], [])
        own = characters[[i for i in inside if characters[i, 0] not in (SPACE, LINE_END)]]
        if len(own):
            box = [own[:, 1].min(), own[:, 2].min(), own[:, 3].max(), own[:, 4].max()]
            regions.append(Region(entry["kind"], box, inside, entry.get("rows"), entry.get("latex")))
    return regions


def split_lines(inside: list[int], characters: np.ndarray) -> list[list[int]]:
    """Characters of a region -> lines; a jump down or far to the left starts a line, too."""
    lines, current = [], []
    for i in inside:
        code = int(characters[i, 0])
        if code == LINE_END:
            lines.append(current)
            current = []
            continue
        last = next((j for j in reversed(current) if characters[j, 0] != SPACE), None)
        if code != SPACE and last is not None:
            below = characters[i, 2] > characters[last, 4] + 1
            if below or characters[i, 1] < characters[last, 1] - 12:
                lines.append(current)
                current = []
        if code != SPACE or current:
            current.append(i)
    lines.append(current)
    return [line for line in lines if any(characters[i, 0] != SPACE for i in line)]


def split_words(line: list[int], characters: np.ndarray) -> list[list[int]]:
    words = [[]]
    for i in line:
        if characters[i, 0] == SPACE:
            words.append([])
        else:
            words[-1].append(i)
    return [word for word in words if word]


class BranchWriter:
    """Writes a region's content as tokens, the way a reader should, from a state that may have gone astray.

    `fed` are the tokens as the model reads them back, `labels` what it should have said; they differ where a mistake is planted, after
    which the following tokens correct it. `sources`: the character that a label is read from, or -1; `passed`: the last one that was read, of the
    fed tokens.
    """

    def __init__(self, vocabulary: Vocabulary, state, mistakes: float, random_):
        self.vocabulary, self.state, self.mistakes, self.random_ = vocabulary, state, mistakes, random_
        self.fed, self.labels, self.sources, self.passed = [], [], [], []

    def put(self, token: int, source: int = -1):
        fed = token
        if self.mistakes and token in self.vocabulary.pitch and self.random_.random() < PITCH_MISTAKES:
            # Nobody can tell it to the bin, and all places in the line depend on it.
            fed = self.vocabulary.pitch.moved(token, round(self.random_.gauss(0, PITCH_BINS)))
        elif self.mistakes and self.random_.random() < self.mistakes:
            fed = self.mistaken(token)
        self.append(token, fed, source, source)

    def append(self, label: int, fed: int, source: int, passed: int):
        self.labels.append(label)
        self.fed.append(fed)
        self.sources.append(source)
        self.passed.append(passed)
        self.state.feed(fed)

    def word(self, word: list[int], codes: np.ndarray):
        """Now and then one character is written twice, or left out: from then on the place is wrong, until the next word."""
        at = 0
        while at < len(word):
            code, off = int(codes[word[at]]), self.mistakes and self.random_.random() < self.mistakes * STRAY_SHARE
            if off and at + 1 < len(word) and self.random_.random() < 0.5:
                self.append(code, int(codes[word[at + 1]]), word[at], word[at + 1])
                at += 2
                continue
            if off and at:
                again = word[at - 1]
                self.append(code, int(codes[again]), word[at], again)
            self.put(code, word[at])
            at += 1

    def mistaken(self, token: int) -> int:
        vocabulary = self.vocabulary
        if token < vocabulary.unknown:
            return self.random_.randrange(vocabulary.unknown) if self.random_.random() < 0.3 else token
        for numbers in (vocabulary.gap, vocabulary.down, vocabulary.x, vocabulary.y, vocabulary.pitch):
            if token in numbers:
                return numbers.moved(token, self.random_.choice((-2, -1, -1, 1, 1, 2)))
        return token

    def line(self, line: list[int], characters: np.ndarray, codes: np.ndarray):
        vocabulary, state = self.vocabulary, self.state
        words = split_words(line, characters)
        glyphs = [i for word in words for i in word]
        centre = float(np.median((characters[glyphs, 2] + characters[glyphs, 4]) / 2))
        width = sum(characters[word, 3].max() - characters[word[0], 1] for word in words)
        advance = sum(vocabulary.advance(int(codes[i])) for i in glyphs)
        step = centre - state.y
        self.put(vocabulary.down.token(step) if vocabulary.down.spans(step) else vocabulary.y.token(centre), glyphs[0])
        self.put(vocabulary.pitch.token(width / advance))
        for word in words:
            left = characters[word[0], 1]
            gap = left - state.right_edge
            self.put(vocabulary.gap.token(gap) if vocabulary.gap.spans(gap) else vocabulary.x.token(left), word[0])
            self.word(word, codes)


def cell_texts(region: Region, page: Page) -> list[list[list[int]]] | None:
    """Characters of each cell of a table with known rows; None if the text layer does not have the cells' text in order."""
    glyphs = [i for i in region.characters if page.characters[i, 0] not in (SPACE, LINE_END)]
    wanted = "".join(c for row in region.rows for cell in row for c in cell if not c.isspace())
    if wanted != "".join(chr(int(page.characters[i, 0])) for i in glyphs):
        return None
    place = {i: n for n, i in enumerate(region.characters)}
    rows, start = [], 0
    for row in region.rows:
        cells = []
        for cell in row:
            count = sum(not c.isspace() for c in cell)
            inside = glyphs[start : start + count]
            cells.append(region.characters[place[inside[0]] : place[inside[-1]] + 1] if inside else [])
            start += count
        rows.append(cells)
    return rows


def write_content(writer: BranchWriter, region: Region, page: Page, codes: np.ndarray) -> bool:
    """Writes the region's tokens; False if its content is unknown."""
    vocabulary = writer.vocabulary
    # Of a real page's table nobody knows the rows; written as mere lines it would teach that rows do not matter.
    if region.kind in ("figure", "formula") or (region.kind == "table" and region.rows is None and page.labelled):
        return False
    if region.rows is not None:
        rows = cell_texts(region, page)
        if rows is None:
            return False
        for row in rows:
            writer.put(vocabulary.row)
            for cell in row:
                writer.put(vocabulary.cell)
                for line in split_lines(cell, page.characters):
                    writer.line(line, page.characters, codes)
        return True
    for line in split_lines(region.characters, page.characters):
        writer.line(line, page.characters, codes)
    return bool(writer.fed)


@dataclass
class Trunk:
    """A layout as tokens: as the model reads them back, and as it should have said them; the region that each tells of, or -1."""

    fed: list[int]
    said: list[int]
    regions: list[int]
    forks: list[tuple[int, Region]]

    def put(self, token: int, region: int, fed: int | None = None):
        self.fed.append(token if fed is None else fed)
        self.said.append(token)
        self.regions.append(region)


def region_of(boxes: list[list[float]], x, y) -> np.ndarray:
    """The smallest of the `boxes` that each point lies in, by number; else -1. `x` and `y` px, of one shape."""
    owner, size = np.full(x.shape, -1), np.full(x.shape, np.inf)
    for number, (x0, y0, x1, y1) in enumerate(boxes):
        area = (x1 - x0) * (y1 - y0)
        inside = (x > x0 - SLACK) & (x < x1 + SLACK) & (y > y0 - SLACK) & (y < y1 + SLACK) & (area < size)
        owner[inside], size[inside] = number, area
    return owner


def region_cells(boxes: list[list[float]], grid: np.ndarray) -> np.ndarray:
    """`region_of` of the cells' centres where `grid [h, w]` has ink; else -1."""
    y, x = np.mgrid[: grid.shape[0], : grid.shape[1]] + 0.5
    return np.where(grid, region_of(boxes, x * CELL_WIDTH, y * CELL_HEIGHT), -1)


class SampleMaker:
    """Makes samples of pages. `training`: with noise, mistakes and jittered boxes; else plain."""

    def __init__(self, vocabulary: Vocabulary, layout: LayoutNet, random_: random.Random, training: bool):
        self.vocabulary, self.layout, self.random_, self.training = vocabulary, layout, random_, training
        self.noise = np.random.default_rng(random_.randrange(1 << 30))

    def choose(self, page: Page, height: int) -> tuple[float, float]:
        """The band of the page to show: rows from .. to, px."""
        random_ = self.random_
        if random_.random() > OPTIONS["band_share"]:
            return -1.0, height + 1.0
        readable = [r for r in page.regions if r.kind != "figure" and len(r.characters) > 20]
        if not readable:
            return -1.0, height + 1.0
        tables = [r for r in readable if r.rows is not None]
        anchor = random_.choice(tables if tables and random_.random() < OPTIONS["tables_first_share"] else readable)
        margin = random_.choice((60, 150, 400))
        return anchor.box[1] - random_.uniform(4, margin), anchor.box[3] + random_.uniform(4, margin)

    def make(self, path: Path, seen: bool) -> Sample | None:
        """`seen`: as the vision graph reads the page, which `vision_reads` has written down."""
        page = load_page(path)
        random_ = self.random_
        if seen:
            page.read = np.load(seen_path(path))["found"].astype(np.float64)
        if self.training:
            page.move(random_.randrange(CELL_WIDTH), random_.randrange(CELL_HEIGHT))
        ink = page_ink(page.grey())
        grid = inked(ink)
        regions = self.show_band(page, grid, ink.shape[2])
        if not regions or not grid.any():
            return None
        return self.assemble(page, regions, ink, grid, path.stem)

    @torch.no_grad()
    def look(self, ink: torch.Tensor, grid: np.ndarray, cells: np.ndarray) -> torch.Tensor:
        """What the layout net says of `cells [V, 2]`, shown only the rows of `grid` from the first with ink to the last of them `[V, CHANNELS]`."""
        rows = np.nonzero(grid.any(1))[0]
        first, end = int(rows[0]), int(rows[-1]) + 1
        shown = ink * torch.from_numpy(grid.repeat(CELL_HEIGHT, 0).repeat(CELL_WIDTH, 1))
        # A margin, as pages have; blank cells count as unseen only where a band was cut out.
        first, end = max(0, first - 2), min(len(grid), end + 2)
        maps = self.layout(shown[:, :, first * CELL_HEIGHT : end * CELL_HEIGHT])[0]
        maps[[CLASSES + 1, CLASSES + 3, CLASSES + 5, CLASSES + 7]] += first * CELL_HEIGHT
        return maps[:, torch.from_numpy((cells[:, 0] - first).clip(0, end - first - 1)), torch.from_numpy(cells[:, 1])].T

    def show_band(self, page: Page, grid: np.ndarray, height: int) -> list[Region]:
        """Blanks the cells outside a band, and those of regions that reach out of it; returns the regions inside."""
        top, bottom = self.choose(page, height)
        centres = (np.arange(len(grid)) + 0.5) * CELL_HEIGHT
        grid[(centres < top) | (centres > bottom)] = False
        kept = []
        for region in page.regions:
            x0, y0, x1, y1 = region.box
            if y0 >= top and y1 <= bottom:
                kept.append(region)
            else:
                rows = slice(max(0, int(y0 // CELL_HEIGHT)), int(y1 // CELL_HEIGHT) + 1)
                grid[rows, max(0, int(x0 // CELL_WIDTH)) : int(x1 // CELL_WIDTH) + 1] = False
        return kept

    def shuffled_alphabet(self, codes: np.ndarray) -> np.ndarray:
        """The page with its small letters permuted: text that no language model can guess."""
        letters = [self.vocabulary.token_of[ord(c)] for c in "abcdefghijklmnopqrstuvwxyz"]
        table = np.arange(self.vocabulary.glyphs)
        table[letters] = self.random_.sample(letters, len(letters))
        return table[codes]

    def assemble(self, page: Page, regions, ink, grid, name) -> Sample | None:
        vocabulary, random_, characters = self.vocabulary, self.random_, page.characters
        codes = np.array([vocabulary.character(int(code)) for code in characters[:, 0]])
        if self.training and page.read is None and random_.random() < 0.15:
            codes = self.shuffled_alphabet(codes)
        seen = visual_tokens(self.made(page, codes) if page.read is None else page.read, grid)
        # Only what stands on the shown part of the page.
        cells = seen.cells(grid)
        shown = grid[cells[:, 0], cells[:, 1]] | (seen.classes[:, 0] == 0)
        seen, cells = VisualTokens(seen.xy[shown], seen.classes[shown], seen.facts[shown]), cells[shown]
        if not 10 < len(cells) <= OPTIONS["most_visual_tokens"]:
            return None
        # Boxes from a layout model are not tight; where they are jittered, there is nothing to learn for the trunk.
        jitter = 3.5 if self.training and random_.random() < (OPTIONS["jitter_share"] if page.labelled else 0.7) else 0.0
        trunk = self.trunk(regions, jitter)
        if len(trunk.fed) > MOST_TRUNK_TOKENS:
            return None
        region = region_of([region.box for region in regions], *seen.xy.T)
        read_at = read_from(page, codes, seen)
        share = borne_out(regions, page, codes, seen, read_at)
        if self.training and share < OPTIONS["least_borne_out"]:
            return None
        shows = {
            "borne_out": share, "visual_xy": torch.from_numpy(seen.xy).float(), "classes": torch.from_numpy(seen.classes), "facts": torch.from_numpy(seen.facts).float(),
            "layout": self.look(ink, grid, cells), "visual_region": torch.from_numpy(region), "name": name,
        }  # fmt: skip
        return self.join(page, codes, read_at, shows, trunk, page.labelled and jitter == 0)

    def trunk(self, regions: list[Region], jitter: float) -> Trunk:
        """The layout as tokens. Mistakes are planted in coordinates that are learnt: the next region is where the page shows it, whatever was
        said of the last one."""
        vocabulary, random_ = self.vocabulary, self.random_
        mistakes = random_.choice((0.0, 0.05, 0.15)) if self.training and not jitter else 0.0
        trunk = Trunk([vocabulary.begin], [vocabulary.begin], [-1], [])
        numbers = (vocabulary.x, vocabulary.y, vocabulary.x, vocabulary.y)
        for index, region in enumerate(regions):
            trunk.put(vocabulary.kind(region.kind), index)
            for number, value in zip(numbers, region.box, strict=True):
                token = number.token(value + random_.gauss(0, jitter))
                off = random_.choice((-3, -2, -1, -1, 1, 1, 2, 3)) if random_.random() < mistakes else 0
                trunk.put(token, index, number.moved(token, off))
            if region.kind != "figure":
                trunk.forks.append((len(trunk.fed), region))
                trunk.put(vocabulary.fork, -1)
        trunk.put(vocabulary.end, -1)
        return trunk

    def made(self, page: Page, codes) -> np.ndarray:
        """What the vision graph would read `[N, 4]` (x, y, character, mass), with its kinds of mistakes: missed, doubled and wrong characters."""
        rate = self.random_.choice((0, 0.02, 0.04, 0.08)) if self.training else 0.0
        x, y = page.centres()
        inside = page.is_glyph & (x > 0) & (x < page.picture.width) & (y > 0) & (y < page.picture.height)
        x, y, codes = x[inside], y[inside], codes[inside]
        keep = self.noise.random(len(x)) >= rate / 2
        again = np.nonzero(self.noise.random(len(x)) < rate / 2)[0]
        index = np.concatenate([np.nonzero(keep)[0], again])
        x, y, codes = x[index], y[index], codes[index].copy()
        x[len(x) - len(again) :] += self.noise.choice((-1, 1), len(again)) * self.noise.uniform(3, 7, len(again))
        wrong = self.noise.random(len(codes)) < rate / 2
        codes[wrong] = self.noise.integers(0, self.vocabulary.glyphs, wrong.sum())
        mass = np.ones(len(codes))
        if self.training:
            x, y, mass = x + self.noise.normal(0, 0.5, len(x)), y + self.noise.normal(0, 0.7, len(y)), self.noise.uniform(0.7, 1, len(codes))
        return np.stack([x, y, codes, mass], 1)

    def join(self, page, codes, read_at, shows: dict, told: Trunk, learn_trunk) -> Sample | None:
        """Trunk and as many branches as fit, in one sequence. `shows`: what the sample shows of the page."""
        vocabulary, random_, trunk, forks = self.vocabulary, self.random_, told.fed, told.forks
        tokens, positions = list(trunk), trunk_positions(vocabulary, trunk)
        labels = [*told.said[1:], IGNORED] if learn_trunk else [IGNORED] * len(trunk)
        segment, visible = [0] * len(trunk), [0] * len(trunk)
        current, following = [-1] * len(trunk), [-1] * len(trunk)
        branches = []
        random_.shuffle(forks)
        # Tables are rare.
        if self.training and random_.random() < OPTIONS["tables_first_share"]:
            forks.sort(key=lambda fork: fork[1].rows is None)
        left = OPTIONS["most_branch_tokens"]
        for fork, region in forks:
            mistakes = random_.choice((0.0, 0.05, 0.15)) if self.training else 0.0
            writer = BranchWriter(vocabulary, branch_start(vocabulary, trunk, fork), mistakes, random_)
            if len(region.characters) > left or not write_content(writer, region, page, codes) or len(writer.fed) + 1 > left:
                continue
            left -= len(writer.fed) + 1
            branch = [vocabulary.child, *writer.fed]
            tokens += branch
            positions += branch_positions(vocabulary, trunk, fork, branch)
            labels += [*writer.labels, vocabulary.end]
            current += [-1, *(int(read_at[source]) for source in writer.passed)]
            following += [*(int(read_at[source]) for source in writer.sources), -1]
            text = "".join(chr(int(page.characters[i, 0])) for i in region.characters)
            branches.append((fork, " ".join(text.split())))
            segment += [len(branches)] * len(branch)
            visible += [fork] * len(branch)
        # Samples that cost much and teach little are not worth their time.
        if sum(label != IGNORED for label in labels) < OPTIONS["least_label_share"] * len(shows["classes"]):
            return None
        about = (told.regions if learn_trunk else [-1] * len(trunk)) + [-1] * (len(tokens) - len(trunk))
        whole = lambda values: torch.tensor(values, dtype=torch.int64)  # noqa: E731
        return Sample(
            tokens=whole(tokens), labels=whole(labels), positions=torch.tensor(positions),
            segment=whole(segment), visible=whole(visible), current_visual=whole(current), next_visual=whole(following),
            current_region=whole(about), next_region=whole([*about[1:], -1]), trunk_length=len(trunk), branches=branches, **shows,
        )  # fmt: skip


def whole_pages(vocabulary: Vocabulary, layout: LayoutNet, **options) -> SampleMaker:
    """Makes plain samples of whole pages, whatever they teach; `options` as in the settings."""
    OPTIONS.update(band_share=0.0, least_label_share=0.0, **options)
    return SampleMaker(vocabulary, layout, random.Random(5), training=False)


def read_from(page: Page, codes, seen: VisualTokens) -> np.ndarray:
    """The visual token that each character of the page was read from `[N + 1]`, or -1: the nearest one of its class, else of any."""
    out = np.full(len(page.characters) + 1, -1)
    order = np.argsort(seen.xy[:, 1], kind="stable")
    heights = seen.xy[order, 1]
    x, y = page.centres()
    first, last = np.searchsorted(heights, y - NEAR[1]), np.searchsorted(heights, y + NEAR[1])
    for index in np.nonzero(page.is_glyph)[0]:
        near = order[first[index] : last[index]]
        away = np.abs(seen.xy[near, 0] - x[index])
        near, away = near[away < NEAR[0]], away[away < NEAR[0]]
        if len(near):
            out[index] = near[np.argmin(away + 100.0 * (seen.classes[near, 0] != codes[index] + 1))]
    return out


def borne_out(regions: list[Region], page: Page, codes, seen: VisualTokens, read_at: np.ndarray) -> float:
    """Share of the regions' characters that the page shows as the text layer says. Some layers say what nobody can see, and would teach to invent."""
    inside = np.array([i for region in regions for i in region.characters if page.is_glyph[i]], int)
    right = (read_at[inside] >= 0) & (seen.classes[read_at[inside], 0] == codes[inside] + 1)
    return float(right.mean()) if len(inside) else 0.0


def page_paths(test: bool) -> tuple[list[Path], list[Path]]:
    """Real and synthetic pages, held out or not."""
    found = []
    for folder in (REAL_PAGES, SYNTHETIC_PAGES):
        found.append([path.with_suffix("") for path in sorted(folder.glob("*.npy")) if is_test(path.stem) == test])
    return found[0], found[1]


def seen_path(path: Path) -> Path:
    """Where `vision_reads` writes what the vision graph reads on a page."""
    return path.with_suffix(".glyphs.npz")


def seen_paths(test: bool) -> list[list[Path]]:
    """Those of `page_paths` that `vision_reads` was run on."""
    return [[path for path in paths if seen_path(path).exists()] for paths in page_paths(test)]


class Samples(torch.utils.data.IterableDataset):
    """Endless training samples. `layout`: weights of the layout net."""

    def __init__(self, vocabulary: Vocabulary, layout: Path, seed: int):
        self.vocabulary, self.layout, self.seed = vocabulary, layout, seed

    def __iter__(self):
        random_ = random.Random(self.seed)
        while True:
            # Read anew from time to time: other stages may still be adding pages, and learning.
            maker = SampleMaker(self.vocabulary, load_layout(self.layout), random_, training=True)
            pages, seen_pages = page_paths(test=False), seen_paths(test=False)
            for _ in range(300):
                seen = random_.random() < OPTIONS["seen_share"] and all(seen_pages)
                real, synthetic = seen_pages if seen else pages
                share = OPTIONS["synthetic_share"] if synthetic else 0.0
                sample = maker.make(random_.choice(synthetic if random_.random() < share else real), seen)
                if sample is not None:
                    yield sample
