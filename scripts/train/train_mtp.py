"""Stage 7b: trains the multi-token head on a decoder that stays as it is. `python -m scripts.train.train_mtp RUN --decoder WEIGHTS [--minutes 15]`

The decoder runs over teacher-forced samples; from each of its hidden states the head drafts the tokens that follow the next one, fed with the
true ones. The loss of depth k counts 0.8^(k-1), and depths join one after another over the first half of the time, as in P-MTP's curriculum.
Writes runs/RUN/{log.jsonl, state.pt, mtp.safetensors}; `--data` is the folder with the alphabet that the decoder was trained with.
"""
import argparse
import math
import time
from pathlib import Path

import torch
from torch.nn import functional

from scripts.export.mtp import DRAFTS, MultiTokenHead, head_of

from .loading import load_layout, load_reader, load_vocabulary
from .page_samples import IGNORED, Sample, Samples
from .read_regions import held_out_samples
from .reader import Reader, tree_mask
from .run import TrainingRun
from .settings import SETTINGS, VOCABULARY

# The head learns from text: bands have more of it for what they cost.
SAMPLES = {"band_share": 0.95, "most_visual_tokens": 1200, "most_branch_tokens": 700, "least_label_share": 0.4}
LEARNING_RATE, ACCUMULATE, LOG_STEPS, SAVE_SECONDS, DEPTH_WEIGHT = 2e-3, 4, 50, 120, 0.8


@torch.no_grad()
def states(reader: Reader, sample: Sample):
    """Hidden states of the text tokens `[T, H]`."""
    count = len(sample.visual_xy)
    visual = reader.visual(sample.classes, sample.facts, sample.layout, sample.visual_xy)
    text = reader.embed(sample.tokens, sample.positions)
    places = torch.cat([torch.zeros(count, 1), sample.visual_xy.flip(-1)], 1)
    mask = tree_mask(count, sample.segment, sample.visible, sample.trunk_length)
    hidden, _ = reader.run(torch.cat([visual, text]), torch.cat([places, sample.positions]), mask, count)
    return hidden


def depths(reader: Reader, head: MultiTokenHead, sample: Sample, most: int):
    """For each depth: the places that still follow the truth, and what the head says there: `(kept [N], logits [N, vocabulary], labels [N])`."""
    hidden, labels, length = states(reader, sample), sample.labels, len(sample.labels)
    place = torch.nonzero(labels != IGNORED)[:, 0]
    hidden, start = hidden[place], place
    for depth in range(1, most + 1):
        following = start + depth
        inside = following < length
        at = following.clamp(max=length - 1)
        # The true token was fed, in the same stream, and there is one after it.
        inside &= (sample.segment[at] == sample.segment[start]) & (sample.tokens[at] == labels[at - 1]) & (labels[at] != IGNORED)
        hidden, start, at = hidden[inside], start[inside], at[inside]
        if not len(start):
            return
        with torch.no_grad():
            embedding = reader.embed_tokens(sample.tokens[at])
        hidden = head(hidden, embedding)
        yield start, reader.logits(hidden), labels[at]


def loss_of(reader: Reader, head: MultiTokenHead, sample: Sample, most: int):
    total, weight = torch.zeros(()), 0.0
    for depth, (_, logits, labels) in enumerate(depths(reader, head, sample, most)):
        total = total + DEPTH_WEIGHT**depth * functional.cross_entropy(logits, labels)
        weight += DEPTH_WEIGHT**depth
    return total / max(weight, 1e-9)


@torch.no_grad()
def accepted(reader: Reader, head: MultiTokenHead, samples: list[Sample]) -> dict:
    """Drafts that would be accepted on held-out pages, mean over places, and the share that is right at each depth."""
    right, asked, leading, places = [0] * DRAFTS, [0] * DRAFTS, 0, 0
    for sample in samples:
        good = torch.ones(len(sample.labels), dtype=torch.bool)
        for depth, (start, logits, labels) in enumerate(depths(reader, head, sample, DRAFTS)):
            same = logits.argmax(-1) == labels
            right[depth] += int(same.sum())
            asked[depth] += len(same)
            still = torch.zeros_like(good)
            still[start] = same
            good &= still
            leading += int(good.sum())
        places += int((sample.labels != IGNORED).sum())
    return {"accepted": round(leading / max(1, places), 3), "right": [round(r / max(1, a), 3) for r, a in zip(right, asked, strict=True)]}


def train(run: TrainingRun, reader: Reader, layout: Path, head: MultiTokenHead, minutes: float):
    samples = torch.utils.data.DataLoader(Samples(reader.vocabulary, layout, SETTINGS["decoder"]["seed"] + 1000 + run.step), batch_size=None)
    held_out = held_out_samples(reader.vocabulary, load_layout(layout), 16)
    clock, saved, losses = time.process_time() - run.seconds, time.time(), []
    for number, sample in enumerate(samples, 1):
        done = min(1.0, (time.process_time() - clock) / (minutes * 60))
        loss = loss_of(reader, head, sample, min(DRAFTS, 1 + int(done * 2 * DRAFTS)))
        (loss / ACCUMULATE).backward()
        losses.append(float(loss.detach()))
        if number % ACCUMULATE:
            continue
        run.seconds = time.process_time() - clock
        run.step += 1
        run.set_rate(LEARNING_RATE * min(1, run.step / 30) * (0.03 + 0.97 * 0.5 * (1 + math.cos(math.pi * done))))
        torch.nn.utils.clip_grad_norm_(head.parameters(), 1.0)
        run.optimiser.step()
        run.optimiser.zero_grad()
        if run.step % LOG_STEPS == 0:
            run.log(loss=round(sum(losses) / len(losses), 4))
            losses = []
        if time.time() - saved > SAVE_SECONDS or done == 1:
            run.save()
            saved = time.time()
        if done == 1:
            run.log(held_out=accepted(reader, head, held_out))
            return


def main():
    parser = argparse.ArgumentParser(prog="python -m scripts.train.train_mtp")
    parser.add_argument("run")
    parser.add_argument("--decoder", type=Path, required=True, help="decoder.safetensors")
    parser.add_argument("--layout", type=Path, required=True, help="layout.safetensors")
    parser.add_argument("--data", type=Path, default=VOCABULARY, help="folder of characters.json and advances.json")
    parser.add_argument("--minutes", type=float, default=15)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(SETTINGS["decoder"]["seed"])
    SETTINGS["decoder"].update(SAMPLES)
    reader = load_reader(load_vocabulary(arguments.data), arguments.decoder).requires_grad_(False)
    head = head_of(reader.shape)
    run = TrainingRun(arguments.run, "mtp", head, torch.optim.AdamW(head.parameters(), lr=LEARNING_RATE, weight_decay=0.01))
    run.resume()
    train(run, reader, arguments.layout, head, arguments.minutes)


if __name__ == "__main__":
    main()
