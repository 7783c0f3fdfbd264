"""Free-running reading of held-out regions with true boxes: what the decoder is for. `python -m scripts.train.read_regions FOLDER [PAGES]`

FOLDER holds decoder.safetensors and layout.safetensors. All branches of a page are decoded together, greedily; the error
rate is the edit distance to the text layer over its length, spaces counted, on as much of a region as was decoded. Pages apart whose text layer
says what can be read on them (`borne_out`).
"""
import argparse
import random
from pathlib import Path

import torch
from rapidfuzz.distance import Levenshtein

from .layout import LayoutNet
from .loading import load_layout, load_reader, load_vocabulary
from .page_samples import Sample, SampleMaker, page_paths, seen_path, seen_paths
from .positions import branch_start
from .reader import Reader, tree_mask
from .vocabulary import Vocabulary


# Share of a page's characters that the vision graph reads as the text layer says.
BORNE_OUT = 0.9


def spoken(vocabulary: Vocabulary, tokens: list[int]) -> str:
    """Tokens of a branch -> text, line ends as spaces."""
    text = ""
    for token in tokens:
        if token < vocabulary.unknown:
            text += chr(vocabulary.characters[token])
        elif token == vocabulary.unknown:
            text += "\ufffd"
        elif token != vocabulary.end and token not in vocabulary.pitch:
            text += " "
    return " ".join(text.split())


class BranchReader:
    """Decodes branches of one sample greedily, as rows of one batch, with cached keys and values."""

    def __init__(self, reader: Reader, sample: Sample):
        self.reader, self.sample, self.vocabulary = reader, sample, reader.vocabulary
        self.count, self.trunk = len(sample.visual_xy), sample.tokens[: sample.trunk_length]

    def prefix(self, visual):
        """Keys and values of visual tokens and trunk, per layer `[kv_heads, V + T, D]`."""
        sample, reader, count = self.sample, self.reader, self.count
        length = sample.trunk_length
        places = torch.cat([torch.zeros(count, 1), sample.visual_xy.flip(-1)], 1)
        positions = torch.cat([places, sample.positions[:length]])
        x = torch.cat([visual, reader.embed(self.trunk, sample.positions[:length])])
        zeros = torch.zeros(length, dtype=torch.int64)
        mask = tree_mask(count, zeros, zeros, length)
        kept = []
        reader.run(x, positions, mask, count, kept)
        return kept

    @torch.no_grad()
    def read(self, visual, most: int) -> list[list[int]]:
        reader, vocabulary, shape = self.reader, self.vocabulary, self.reader.shape
        forks = [fork for fork, _ in self.sample.branches]
        prefix, trunk = self.prefix(visual), self.trunk.tolist()
        states = [branch_start(vocabulary, trunk, fork) for fork in forks]
        rows = [[vocabulary.child] for _ in forks]
        own = [(torch.zeros(len(forks), shape.kv_heads, 0, shape.head_dim),) * 2 for _ in range(shape.layers)]
        hidden_trunk = torch.zeros(len(forks), 1, 1, self.count + len(trunk))
        for row, fork in enumerate(forks):
            hidden_trunk[row, ..., self.count + fork :] = -1e9
        for step in range(most):
            places = [(fork + 1.0 + step, *state.feed(row[-1])) for fork, state, row in zip(forks, states, rows, strict=True)]
            positions = torch.tensor(places)
            x = reader.embed(torch.tensor([row[-1] for row in rows]), positions)
            mask = torch.cat([hidden_trunk, torch.zeros(len(forks), 1, 1, step + 1)], -1)
            x, own = self.step(x, positions, prefix, own, mask)
            for row, token in zip(rows, reader.logits(reader.norm(x)).argmax(-1).tolist(), strict=True):
                row.append(token if row[-1] != vocabulary.end else vocabulary.end)
            if all(row[-1] == vocabulary.end for row in rows):
                break
        return [row[1:] for row in rows]

    def step(self, x, positions, prefix, own, mask):
        """One token of every row: `x [R, hidden]` -> the same after all layers, and the grown own keys and values."""
        reader, shape = self.reader, self.reader.shape
        angle = positions @ reader.rotary
        grown = []
        for layer, (keys, values), (own_keys, own_values) in zip(reader.layers, prefix, own, strict=True):
            query, key, value = layer.project(x, angle.cos(), angle.sin())
            own_keys, own_values = torch.cat([own_keys, key[:, :, None]], 2), torch.cat([own_values, value[:, :, None]], 2)
            grown.append((own_keys, own_values))
            query = query.unflatten(1, (shape.kv_heads, -1)) * shape.head_dim**-0.5
            scores = torch.cat([query @ keys.transpose(1, 2), query @ own_keys.transpose(2, 3)], -1)
            weights = (scores + mask).softmax(-1)
            split = keys.shape[1]
            mixed = weights[..., :split] @ values + weights[..., split:] @ own_values
            x = layer.feed(x + layer.output(mixed.flatten(1)))
        return x, grown


def error_rate(reader: Reader, samples: list[Sample], most: int = 150, show: int = 0) -> dict:
    """Free-running error rate over the regions of `samples`, and how many of them read with fewer than a fifth wrong."""
    errors = total = regions = good = 0
    for sample in samples:
        with torch.no_grad():
            visual = reader.visual(sample.classes, sample.facts, sample.layout, sample.visual_xy)
        for tokens, (_, truth) in zip(BranchReader(reader, sample).read(visual, most), sample.branches, strict=True):
            read = spoken(reader.vocabulary, tokens)
            # A region that was cut is compared with as much of the truth.
            if reader.vocabulary.end not in tokens:
                truth = truth[: len(read)]
            wrong = Levenshtein.distance(truth, read)
            errors, total, regions = errors + min(wrong, len(truth)), total + len(truth), regions + 1
            good += wrong < 0.2 * len(truth)
            if show > 0:
                show -= 1
                print(f"true  {truth[:160]}\nread  {read[:160]}\n")
    return {"regions": regions, "characters": total, "free": round(errors / max(1, total), 4), "well_read": round(good / max(1, regions), 3)}


def held_out_samples(vocabulary: Vocabulary, layout: LayoutNet, count: int) -> list[Sample]:
    """Plain samples of held-out pages, half of them synthetic if there are any; as the vision graph sees them where `vision_reads` was run."""
    seen = seen_paths(test=True)
    real, synthetic = seen if all(len(paths) > count for paths in seen) else page_paths(test=True)
    random_ = random.Random(5)
    random_.shuffle(real)
    random_.shuffle(synthetic)
    maker, samples = SampleMaker(vocabulary, layout, random_, training=False), []
    for pair in zip(real, synthetic or real[len(real) // 2 :], strict=False):
        made = [maker.make(path, seen_path(path).exists()) for path in pair]
        samples += [sample for sample in made if sample is not None and sample.branches]
        if len(samples) >= count:
            break
    return samples[:count]


def main():
    parser = argparse.ArgumentParser(prog="python -m scripts.train.read_regions")
    parser.add_argument("folder", type=Path)
    parser.add_argument("pages", type=int, nargs="?", default=10)
    parser.add_argument("--show", type=int, default=0, help="print so many regions")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    vocabulary = load_vocabulary()
    layout = load_layout(arguments.folder / "layout.safetensors")
    reader = load_reader(vocabulary, arguments.folder / "decoder.safetensors")
    samples = held_out_samples(vocabulary, layout, arguments.pages)
    print("all", len(samples), error_rate(reader, samples, show=arguments.show))
    samples = [sample for sample in samples if sample.borne_out >= BORNE_OUT]
    print("borne out", len(samples), error_rate(reader, samples))


if __name__ == "__main__":
    main()
