"""The peer of `docparse bench`: the same decoder weights in PyTorch, decoded the way `generate` of transformers does, branch by branch.

`python -m scripts.bench_peer REPORT --weights FOLDER -o FILE`: REPORT is what `docparse bench --json` wrote; its pages say how many visual tokens
and how long a trunk and branches each page has. `docparse bench --peer FILE` puts the figures beside its own.

One stream at a time, one token a step, a cache that grows by concatenation (as DynamicCache does), attention by
`scaled_dot_product_attention`. A branch starts from a cropped copy of the trunk's cache; the prefix is computed once a page and its time left
out, as in the bench. Tokens are forced, so both runtimes do the same work. CPU seconds of one thread.
"""
import argparse
import json
import time
from pathlib import Path

import numpy as np
import torch
from torch.nn import functional

from scripts.export.decoder import Decoder
from scripts.export.nano import load_models


class Cache:
    """Keys and values by layer, `[1, kv_heads, n, D]`."""

    def __init__(self, keys, values):
        self.keys, self.values = keys, values

    def cropped(self, length: int) -> "Cache":
        return Cache([k[:, :, :length].clone() for k in self.keys], [v[:, :, :length].clone() for v in self.values])

    def grow(self, layer: int, key, value):
        self.keys[layer] = torch.cat([self.keys[layer], key], 2)
        self.values[layer] = torch.cat([self.values[layer], value], 2)
        return self.keys[layer], self.values[layer]


def step(decoder: Decoder, cache: Cache, token: int, position) -> int:
    """Feeds one token; the model's choice for the next."""
    tokens, positions = torch.tensor([[token]]), position[None, None]
    x = decoder.embed(tokens, positions)
    cosine, sine = decoder.angles(positions)
    for index, layer in enumerate(decoder.layers):
        query, key, value = (part.transpose(1, 2) for part in layer.project(x, cosine, sine))
        keys, values = cache.grow(index, key, value)
        mixed = functional.scaled_dot_product_attention(query, keys, values, enable_gqa=True)
        x = layer.feed(x + layer.output(mixed.transpose(1, 2).flatten(2)))
    return int(decoder.head(decoder.norm(x))[0, -1].argmax())


def random_prefix(decoder: Decoder, length: int) -> Cache:
    shape = (1, decoder.shape.kv_heads, length, decoder.shape.head_dim)
    return Cache(*[[torch.randn(shape) for _ in decoder.layers] for _ in range(2)])


def decode_page(decoder: Decoder, page: dict) -> int:
    """The trunk, then every branch; tokens decoded."""
    random = np.random.default_rng(3)
    count = page["visual_tokens"]
    cache = random_prefix(decoder, count)
    tokens = random.integers(0, decoder.shape.vocabulary, 1 << 14).tolist()
    positions = torch.rand(1 << 14, decoder.shape.position_parts) * 500
    start = time.process_time()
    steps = 0
    for index in range(page["trunk_tokens"] - 1):
        step(decoder, cache, tokens[index], positions[index])
        steps += 1
    for branch in page["branches"]:
        own = cache.cropped(count + branch["visible"])
        for index in range(branch["tokens"]):
            step(decoder, own, tokens[index], positions[index])
            steps += 1
    return steps, time.process_time() - start


@torch.no_grad()
def main():
    parser = argparse.ArgumentParser(prog="python -m scripts.bench_peer")
    parser.add_argument("report", type=Path)
    parser.add_argument("--weights", type=Path, required=True, help="folder that scripts.train.collect wrote")
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--repetitions", type=int, default=3)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    pages = json.loads(arguments.report.read_text())["pages"]
    decoder = load_models(arguments.weights)[-1].folded()
    seconds = np.zeros((arguments.repetitions, len(pages)))
    steps = 0
    for repetition in range(arguments.repetitions):
        for index, page in enumerate(pages):
            taken, seconds[repetition, index] = decode_page(decoder, page)
            steps += taken
    figures = {
        "runtime": f"torch {torch.__version__}", "threads": 1, "seconds": "cpu", "repetitions": arguments.repetitions,
        "pages_per_s": float(np.median(len(pages) / seconds.sum(1))), "pages_per_s_spread": [float(v) for v in sorted(len(pages) / seconds.sum(1))][:: max(1, arguments.repetitions - 1)],
        "p50_s": float(np.median(np.median(seconds, 1))), "p95_s": float(np.median(np.quantile(seconds, 0.95, 1))),
        "steps_per_page": steps / arguments.repetitions / len(pages), "ms_per_step": float(1e3 * seconds.sum() / steps),
    }  # fmt: skip
    arguments.output.write_text(json.dumps(figures, indent=1) + "\n")
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
