"""Stage 6: trains the vision graph by itself. `python -m scripts.train.train_vision RUN --minutes 120 [--start WEIGHTS]`

Crops of real and synthetic pages, made to look scanned; dense glyph targets. Writes runs/RUN/{log.jsonl, state.pt, vision.safetensors}
every few minutes and goes on from state.pt if it is there; the learning rate falls to nearly nothing at the end of the minutes.
"""
import random

import numpy as np
import torch
from PIL import Image
from safetensors.torch import load_file

from .degrade import degrade, tilt
from .glyph_targets import bilinear_masses, mass_loss
from .loading import floats, load_vocabulary, new_vision
from .page_characters import SPACE
from .page_samples import page_paths
from .read_glyphs import error_rates, held_out_pages
from .run import TrainingRun, arguments
from .settings import SETTINGS
from .vision import SLOT_WIDTH
from .vocabulary import Vocabulary

OPTIONS = SETTINGS["vision"]
MOST_ENTRIES = 6000
FEWEST_CHARACTERS = 40
WARM_UP_STEPS = 60


class Crops(torch.utils.data.IterableDataset):
    """Endless crops (ink `[1, h, w]`, entries `[K, 3]`: slot, class, mass)."""

    def __init__(self, vocabulary: Vocabulary, seed: int):
        self.seed = seed
        self.class_of = np.full(0x110000, vocabulary.unknown + 1, np.int64)
        for token, code in enumerate(vocabulary.characters):
            self.class_of[code] = token + 1

    def __iter__(self):
        random_, noise = random.Random(self.seed), np.random.default_rng(self.seed)
        while True:
            # Read anew from time to time: other stages may still be adding pages.
            real, synthetic = page_paths(test=False)
            for _ in range(1000):
                page = random_.choice(synthetic if synthetic and random_.random() < OPTIONS["synthetic_share"] else real)
                characters = np.load(f"{page}.npy")
                characters = characters[(characters[:, 0] > SPACE) & (characters[:, 0] < 0x110000)]
                if len(characters) < FEWEST_CHARACTERS:
                    continue
                picture = Image.open(f"{page}.png").convert("L")
                for _ in range(3):
                    yield self.crop(picture, characters, random_, noise)

    def crop(self, picture, characters, random_, noise):
        height, width = OPTIONS["crop"]
        centres = np.stack([characters[:, 1] + characters[:, 3], characters[:, 2] + characters[:, 4]], 1) / 2
        # Most of the time the fullest of a few places: empty paper teaches little.
        places = []
        for _ in range(random_.choice((1, 4, 4))):
            left, top = random_.randint(0, max(0, picture.width - width)), random_.randint(0, max(0, picture.height - height))
            near = centres - (left, top)
            places.append((int(((near >= 0) & (near < (width, height))).all(1).sum()), left, top))
        _, left, top = max(places)
        near = centres - (left, top)
        canvas = Image.new("L", (width, height), 255)
        canvas.paste(picture.crop((left, top, min(picture.width, left + width), min(picture.height, top + height))), (0, 0))
        if random_.random() < 0.15:
            canvas, near = tilt(canvas, near, random_)
        inside = ((near >= 0) & (near < (width, height))).all(1)
        classes = self.class_of[characters[inside, 0].astype(int)]
        index, row, column, mass = bilinear_masses(near[inside, 0], near[inside, 1], height, width)
        entries = np.zeros((MOST_ENTRIES, 3), np.float32)
        count = min(MOST_ENTRIES, len(index))
        entries[:count] = np.stack([row * (width // SLOT_WIDTH) + column, classes[index], mass], 1)[:count]
        return torch.from_numpy(1 - degrade(canvas, random_, noise))[None], torch.from_numpy(entries)


def check(run: TrainingRun, vocabulary: Vocabulary):
    """Held-out error rates of reading without a decoder."""
    run.model.eval()
    pages = held_out_pages(24)
    run.log(held_out=error_rates(run.model, vocabulary, pages, False), scanned=error_rates(run.model, vocabulary, pages, True))
    run.model.train()


def train(run: TrainingRun, vocabulary: Vocabulary, minutes: float):
    crops = torch.utils.data.DataLoader(Crops(vocabulary, OPTIONS["seed"] + run.step), batch_size=OPTIONS["batch"])
    losses = []
    run.begin(minutes)
    for ink, entries in crops:
        rate = run.advance(OPTIONS["learning_rate"], WARM_UP_STEPS, 0.02)
        loss = mass_loss(run.model, run.model.trunk(ink), entries, OPTIONS["background_weight"])
        run.optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(run.model.parameters(), 2.0)
        run.optimiser.step()
        losses.append(loss.item())
        if run.step % 50 == 0:
            run.log(loss=round(float(np.mean(losses)), 4), rate=round(rate, 6))
            losses = []
        if run.tend(lambda: check(run, vocabulary)):
            return


def main():
    options = arguments("train_vision", 120).parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(OPTIONS["seed"])
    vocabulary = load_vocabulary()
    vision = new_vision(vocabulary)
    optimiser = torch.optim.AdamW(vision.parameters(), lr=OPTIONS["learning_rate"], weight_decay=1e-3)
    run = TrainingRun(options.run, "vision", vision, optimiser)
    if not run.resume() and options.start:
        vision.load_state_dict(floats(load_file(options.start)))
    vision.train()
    train(run, vocabulary, options.minutes)


if __name__ == "__main__":
    main()
