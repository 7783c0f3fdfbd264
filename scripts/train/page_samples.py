"""Pages as samples for the decoder: visual tokens from the text layer's boxes, a trunk, and some of its branches.

No picture goes through the vision graph here. The glyph masses are made from the true characters, with the graph's kinds of mistakes; or, for pages that
`vision_masses` was run on, they are the graph's own.
"""
import json
import random
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from .glyph_targets import bilinear_masses
from .page_characters import LINE_END, SPACE
from .positions import branch_positions, branch_start, trunk_positions
from .settings import REAL_PAGES, SETTINGS, SYNTHETIC_PAGES, is_test
from .text_blocks import text_blocks
from .vision import CELL_HEIGHT, CELL_WIDTH, SLOT_HEIGHT, SLOT_WIDTH, SLOTS
from .vocabulary import Vocabulary

OPTIONS = SETTINGS["decoder"]
INK_THRESHOLD = 0.25
MOST_TRUNK_TOKENS = 420
IGNORED = -100
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


@dataclass
class Sample:
    """Shapes: V visual tokens, N masses, T text tokens (trunk, then branches)."""

    visual_xy: torch.Tensor  # [V, 2] cell centres
    masses: torch.Tensor  # [N, 3] slot, character, mass
    tokens: torch.Tensor  # [T]
    labels: torch.Tensor  # [T], IGNORED where there is nothing to learn
    positions: torch.Tensor  # [T, 3]
    segment: torch.Tensor  # [T] 0 in the trunk, else the branch's number
    visible: torch.Tensor  # [T] trunk tokens that a branch sees
    current_cell: torch.Tensor  # [T] visual token that the fed token was read from, or -1
    next_cell: torch.Tensor  # [T] visual token of the token to come, or -1
    trunk_length: int
    branches: list[tuple[int, str]]  # fork and true text of each branch
    cells: np.ndarray  # [V, 2] row, column
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
    which the following tokens correct it. `sources`: the character that a token was read from, or -1.
    """

    def __init__(self, vocabulary: Vocabulary, state, mistakes: float, random_):
        self.vocabulary, self.state, self.mistakes, self.random_ = vocabulary, state, mistakes, random_
        self.fed, self.labels, self.sources = [], [], []

    def put(self, token: int, source: int = -1):
        fed = token
        if self.mistakes and self.random_.random() < self.mistakes:
            fed = self.mistaken(token)
        self.labels.append(token)
        self.fed.append(fed)
        self.sources.append(source)
        self.state.feed(fed)

    def mistaken(self, token: int) -> int:
        vocabulary = self.vocabulary
        if token < vocabulary.unknown:
            return self.random_.randrange(vocabulary.unknown) if self.random_.random() < 0.3 else token
        for numbers in (vocabulary.gap, vocabulary.down, vocabulary.x, vocabulary.y, vocabulary.pitch):
            if token in numbers:
                return min(numbers.end - 1, max(numbers.first, token + self.random_.choice((-2, -1, -1, 1, 1, 2))))
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
            for i in word:
                self.put(int(codes[i]), i)


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
    if region.kind in ("figure", "formula"):
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


def slot_masses(row, column, codes, mass, token_at: np.ndarray) -> np.ndarray:
    """Masses at slots of the page -> `[N, 3]` (slot of the shown cells, character, mass)."""
    cell = token_at[row * SLOT_HEIGHT // CELL_HEIGHT, column * SLOT_WIDTH // CELL_WIDTH]
    columns, rows = CELL_WIDTH // SLOT_WIDTH, CELL_HEIGHT // SLOT_HEIGHT
    slot = cell * SLOTS + (row % rows) * columns + column % columns
    inside = cell >= 0
    return np.stack([slot[inside], codes[inside], mass[inside]], 1)


@dataclass
class Trunk:
    """A layout as tokens: as the model reads them back, and as it should have said them; the visual token that each is read from, or -1."""

    fed: list[int]
    said: list[int]
    cells: list[int]
    forks: list[tuple[int, Region]]

    def put(self, token: int, cell: int, fed: int | None = None):
        self.fed.append(token if fed is None else fed)
        self.said.append(token)
        self.cells.append(cell)


def evidence(box: list[float], token_at: np.ndarray) -> tuple[int, int, int, int, int]:
    """Visual tokens that show where a region starts, and its left, upper, right and lower side; -1 where it has no ink."""
    rows = slice(max(0, int(box[1] // CELL_HEIGHT)), int(box[3] // CELL_HEIGHT) + 1)
    columns = slice(max(0, int(box[0] // CELL_WIDTH)), int(box[2] // CELL_WIDTH) + 1)
    inside = token_at[rows, columns]
    row, column = np.nonzero(inside >= 0)
    if not len(row):
        return (-1,) * 5
    tokens = inside[row, column]
    # `nonzero` goes row by row: the first is the upper left one. Among equal sides the upper, or left one is taken.
    return tuple(int(tokens[i]) for i in (0, column.argmin(), 0, column.argmax(), len(row) - 1))


class SampleMaker:
    """Makes samples of pages. `training`: with noise, mistakes and jittered boxes; else plain."""

    def __init__(self, vocabulary: Vocabulary, random_: random.Random, training: bool):
        self.vocabulary, self.random_, self.training = vocabulary, random_, training
        self.noise = np.random.default_rng(random_.randrange(1 << 30))

    def choose(self, page: Page, height: int) -> tuple[float, float]:
        """The band of the page to show: rows from .. to, px."""
        random_ = self.random_
        if random_.random() > OPTIONS["band_share"]:
            return -1.0, height + 1.0
        readable = [r for r in page.regions if r.kind != "figure" and len(r.characters) > 20]
        if not readable:
            return -1.0, height + 1.0
        anchor = random_.choice(readable)
        margin = random_.choice((20, 60, 150))
        return anchor.box[1] - random_.uniform(4, margin), anchor.box[3] + random_.uniform(4, margin)

    def make(self, path: Path) -> Sample | None:
        page = load_page(path)
        random_ = self.random_
        seen = path.with_suffix(".masses.npz") if random_.random() < OPTIONS["seen_share"] else None
        seen = np.load(seen) if seen is not None and seen.exists() else None
        shift = (random_.randrange(CELL_WIDTH), random_.randrange(CELL_HEIGHT)) if self.training and seen is None else (0, 0)
        width = -(-(page.picture.width + shift[0]) // CELL_WIDTH) * CELL_WIDTH
        height = -(-(page.picture.height + shift[1]) // CELL_HEIGHT) * CELL_HEIGHT
        canvas = Image.new("L", (width, height), 255)
        canvas.paste(page.picture, shift)
        page.characters[page.is_glyph, 1:5] += (*shift, *shift)
        for region in page.regions:
            region.box = [v + shift[i % 2] for i, v in enumerate(region.box)]
        ink = 1 - np.asarray(canvas, np.float32) / 255
        grid = ink.reshape(height // CELL_HEIGHT, CELL_HEIGHT, width // CELL_WIDTH, CELL_WIDTH).max((1, 3)) > INK_THRESHOLD
        regions = self.show_band(page, grid, height)
        cells = np.argwhere(grid)
        if not regions or not 10 < len(cells) <= OPTIONS["most_visual_tokens"]:
            return None
        return self.assemble(page, regions, grid, cells, width, height, path.stem, seen)

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

    def assemble(self, page, regions, grid, cells, width, height, name, seen) -> Sample | None:
        vocabulary, random_, characters = self.vocabulary, self.random_, page.characters
        codes = np.array([vocabulary.character(int(code)) for code in characters[:, 0]])
        if self.training and seen is None and random_.random() < 0.15:
            codes = self.shuffled_alphabet(codes)
        token_at = np.full(grid.shape, -1)
        token_at[cells[:, 0], cells[:, 1]] = np.arange(len(cells))
        x, y = (characters[:, 1] + characters[:, 3]) / 2, (characters[:, 2] + characters[:, 4]) / 2
        shown = np.nonzero(page.is_glyph & (x > 0) & (x < width) & (y > 0) & (y < height))[0]
        cell_of = np.full(len(characters) + 1, -1)
        cell_of[shown] = token_at[(y[shown] // CELL_HEIGHT).astype(int), (x[shown] // CELL_WIDTH).astype(int)]
        if seen is None:
            masses = self.masses(x[shown], y[shown], codes[shown], token_at, width, height)
        else:
            masses = slot_masses(*seen["place"].T.astype(np.int64), seen["mass"].astype(np.float64), token_at)
        # Boxes from a layout model are not tight; where they are jittered, there is nothing to learn for the trunk.
        jitter = 3.5 if self.training and random_.random() < (OPTIONS["jitter_share"] if page.labelled else 0.7) else 0.0
        trunk = self.trunk(regions, token_at, jitter)
        if len(trunk.fed) > MOST_TRUNK_TOKENS:
            return None
        return self.join(page, codes, cells, cell_of, masses, trunk, page.labelled and jitter == 0, name)

    def trunk(self, regions: list[Region], token_at: np.ndarray, jitter: float) -> Trunk:
        """The layout as tokens. Mistakes are planted in coordinates that are learnt: the next region is where the page shows it, whatever was
        said of the last one."""
        vocabulary, random_ = self.vocabulary, self.random_
        mistakes = random_.choice((0.0, 0.05, 0.15)) if self.training and not jitter else 0.0
        trunk = Trunk([vocabulary.begin], [vocabulary.begin], [-1], [])
        numbers = (vocabulary.x, vocabulary.y, vocabulary.x, vocabulary.y)
        for region in regions:
            first, *sides = evidence(region.box, token_at)
            trunk.put(vocabulary.kind(region.kind), first)
            for number, value, cell in zip(numbers, region.box, sides, strict=True):
                token = number.token(value + random_.gauss(0, jitter))
                off = random_.choice((-3, -2, -1, -1, 1, 1, 2, 3)) if random_.random() < mistakes else 0
                trunk.put(token, cell, min(number.end - 1, max(number.first, token + off)))
            if region.kind != "figure":
                trunk.forks.append((len(trunk.fed), region))
                trunk.put(vocabulary.fork, -1)
        trunk.put(vocabulary.end, -1)
        return trunk

    def masses(self, x, y, codes, token_at, width, height) -> np.ndarray:
        """What the vision graph would say, with its kinds of mistakes: missed, doubled and wrong characters, too little mass."""
        rate = self.random_.choice((0, 0.02, 0.04, 0.08)) if self.training else 0.0
        keep = self.noise.random(len(x)) >= rate / 2
        again = np.nonzero(self.noise.random(len(x)) < rate / 2)[0]
        index = np.concatenate([np.nonzero(keep)[0], again])
        x, y, codes = x[index], y[index], codes[index].copy()
        x[len(x) - len(again) :] += self.noise.normal(0, 3, len(again))
        wrong = self.noise.random(len(codes)) < rate / 2
        codes[wrong] = self.noise.integers(0, self.vocabulary.glyphs, wrong.sum())
        strength = self.noise.uniform(0.7, 1, len(codes)) if self.training else np.ones(len(codes))
        which, row, column, mass = bilinear_masses(x, y, height, width, 0.04)
        return slot_masses(row, column, codes[which], mass * strength[which], token_at)

    def join(self, page, codes, cells, cell_of, masses, layout: Trunk, learn_trunk, name) -> Sample | None:
        """Trunk and as many branches as fit, in one sequence."""
        vocabulary, random_, trunk, forks = self.vocabulary, self.random_, layout.fed, layout.forks
        tokens, positions = list(trunk), trunk_positions(vocabulary, trunk)
        labels = [*layout.said[1:], IGNORED] if learn_trunk else [IGNORED] * len(trunk)
        segment, visible = [0] * len(trunk), [0] * len(trunk)
        current, following = ([*layout.cells], [*layout.cells[1:], -1]) if learn_trunk else ([-1] * len(trunk), [-1] * len(trunk))
        branches = []
        random_.shuffle(forks)
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
            read = [int(cell_of[source]) for source in writer.sources]
            current += [-1, *read]
            following += [*read, -1]
            text = "".join(chr(int(page.characters[i, 0])) for i in region.characters)
            branches.append((fork, " ".join(text.split())))
            segment += [len(branches)] * len(branch)
            visible += [fork] * len(branch)
        # Samples that cost much and teach little are not worth their time.
        if sum(label != IGNORED for label in labels) < OPTIONS["least_label_share"] * len(cells):
            return None
        xy = (cells[:, ::-1] + 0.5) * (CELL_WIDTH, CELL_HEIGHT)
        whole = lambda values: torch.tensor(values, dtype=torch.int64)  # noqa: E731
        return Sample(
            visual_xy=torch.from_numpy(xy).float(), masses=torch.from_numpy(masses).float(), tokens=whole(tokens), labels=whole(labels),
            positions=torch.tensor(positions), segment=whole(segment), visible=whole(visible), current_cell=whole(current),
            next_cell=whole(following), trunk_length=len(trunk), branches=branches, cells=cells, name=name,
        )  # fmt: skip


def page_paths(test: bool) -> tuple[list[Path], list[Path]]:
    """Real and synthetic pages, held out or not."""
    found = []
    for folder in (REAL_PAGES, SYNTHETIC_PAGES):
        found.append([path.with_suffix("") for path in sorted(folder.glob("*.npy")) if is_test(path.stem) == test])
    return found[0], found[1]


class Samples(torch.utils.data.IterableDataset):
    """Endless training samples."""

    def __init__(self, vocabulary: Vocabulary, seed: int):
        self.vocabulary, self.seed = vocabulary, seed

    def __iter__(self):
        random_ = random.Random(self.seed)
        maker = SampleMaker(self.vocabulary, random_, training=True)
        while True:
            # Read anew from time to time: other stages may still be adding pages.
            real, synthetic = page_paths(test=False)
            for _ in range(300):
                share = OPTIONS["synthetic_share"] if synthetic else 0.0
                sample = maker.make(random_.choice(synthetic if random_.random() < share else real))
                if sample is not None:
                    yield sample
