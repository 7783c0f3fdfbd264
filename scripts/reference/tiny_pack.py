"""Writes fixtures/packs/tiny: a pack with random weights, for tests of the runtime, and what it must compute.

`python -m scripts.reference.tiny_pack` in the repository's root. Weights are random but fixed by a seed. `expected.json` holds two branches
of one page, computed without any cache: each branch is one sequence (prefix, its visible trunk, its own tokens) in a plain decoder.
"""
import hashlib
import json
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional

from scripts.export.decoder import Decoder, DecoderShape, Prefill, rotate
from scripts.export.graphs import write_decode_graph, write_graph, write_lower_prefill, write_upper_prefill
from scripts.export.mtp import MultiTokenHead, head_of, write_mtp_graph

from .retention import propagated

FOLDER = Path(__file__).parents[2] / "fixtures/packs/tiny"
CELL_WIDTH, CELL_HEIGHT = 32, 16
GLYPHS = 3
GRAPHS = ("vision", "prefill", "prefill_upper", "decode", "mtp")
SHAPE = DecoderShape(vocabulary=224, hidden=16, layers=3, heads=2, kv_heads=1, head_dim=8, feed_forward=24, position_parts=3)
# The last layer that sees all visual tokens, layers that say where they look, drafts of the multi-token head, a rate of propagation.
TSP_LAYER, FOCAL_LAYERS, DRAFTS, TSP_RATE = 0, (0, 2), 3, 0.5
# Order, y and x turn a pair of dimensions each; the last pair stays.
ROTARY = torch.tensor([[0.7, 0.0, 0.0, 0.0], [0.0, 0.03, 0.0, 0.0], [0.0, 0.0, 0.05, 0.0]])


class Vision(nn.Module):
    def forward(self, ink):
        slots = functional.avg_pool2d(ink, (8, 4))
        return functional.avg_pool2d(ink, 8), torch.cat([1 - slots, slots * 0.25, slots * 0.75], 1)


class PagePrefill(nn.Module):
    def __init__(self, decoder):
        super().__init__()
        self.feature = nn.Linear(8, SHAPE.hidden)
        self.glyph = nn.Linear(16 * GLYPHS, SHAPE.hidden)
        self.prefill = Prefill(decoder, range(TSP_LAYER + 1))

    def forward(self, features, glyphs, cells, positions):
        return self.prefill(self.embed(features, glyphs, cells), positions)

    def embed(self, features, glyphs, cells):
        row, column = cells[:, 0], cells[:, 1]
        blocks = features[0].unflatten(1, (-1, 2)).unflatten(3, (-1, 4)).permute(1, 3, 0, 2, 4)[row, column].flatten(1)
        slots = glyphs[0].unflatten(1, (-1, 2)).unflatten(3, (-1, 8)).permute(1, 3, 0, 2, 4)[row, column].flatten(1)
        return self.feature(blocks) + self.glyph(slots)


def plain_layers(decoder, layers, embeddings, positions, visual):
    """Layers over one sequence without a cache: `visual` rows see one another, later rows what is before them. Yields each layer's keys
    `[n, D]`, its attention `[heads, n, n]` and the hidden states after it."""
    length = embeddings.shape[0]
    row = torch.arange(length)
    sees = (row[None] <= row[:, None]) | ((row[None] < visual) & (row[:, None] >= 0))
    cosine, sine = (positions @ ROTARY).cos(), (positions @ ROTARY).sin()
    x = embeddings
    for layer in decoder.layers[layers.start : layers.stop]:
        normed = layer.attention_norm(x)
        queries = layer.query(normed).view(length, SHAPE.heads, SHAPE.head_dim)
        keys = layer.key(normed).view(length, 1, SHAPE.head_dim)
        queries = rotate(layer.query_norm(queries), cosine[:, None], sine[:, None])
        keys = rotate(layer.key_norm(keys), cosine[:, None], sine[:, None])[:, 0]
        scores = torch.einsum("qhd,kd->hqk", queries, keys) / SHAPE.head_dim**0.5
        weights = scores.masked_fill(~sees, -torch.inf).softmax(-1)
        x = layer.feed(x + layer.output(torch.einsum("hqk,kd->qhd", weights, layer.value(normed)).flatten(1)))
        yield keys, weights, x


def selection(decoder, visual, centres):
    """Token-selective propagation by the paper's formulas, all visual tokens as the window."""
    count = len(visual)
    lower = list(plain_layers(decoder, range(TSP_LAYER + 1), visual, centres, count))
    _, weights, hidden = lower[-1]
    saliency = weights.sum(1)
    kept = propagated(saliency, TSP_RATE, 0)
    upper = plain_layers(decoder, range(TSP_LAYER + 1, SHAPE.layers), hidden[kept], centres[kept], len(kept))
    return {"rate": TSP_RATE, "saliency": saliency.flatten().tolist(), "kept": kept, "keys": [keys.flatten().tolist() for keys, _, _ in upper]}


def drafts(decoder, head, hidden, token):
    """What the multi-token head says after `token`, one application at a time."""
    tokens = []
    for _ in range(DRAFTS):
        hidden = head(hidden, decoder.embedding(torch.tensor(token)))
        token = int(decoder.head(hidden).argmax())
        tokens.append(token)
    return tokens


def expected(decoder, page, head):
    """Two branches over a page with four cells of ink and a trunk of seven tokens."""
    height, width = 64, 96
    boxes = [(3, 2, 9, 12), (40, 20, 60, 30), (70, 36, 90, 44), (5, 50, 20, 60)]
    ink = torch.zeros(1, 1, height, width)
    for x0, y0, x1, y1 in boxes:
        ink[:, :, y0:y1, x0:x1] = 1
    kept = [(r, c) for r in range(height // 16) for c in range(width // 32) if ink[0, 0, r * 16 : r * 16 + 16, c * 32 : c * 32 + 32].max() > 0.25]
    cells = torch.tensor(kept)
    centres = torch.stack([torch.zeros(len(kept)), (cells[:, 0] + 0.5) * CELL_HEIGHT, (cells[:, 1] + 0.5) * CELL_WIDTH], 1)
    visual = page.embed(*Vision()(ink), cells)
    trunk = [105, 110, 123, 163, 128, 170, 104]
    trunk_positions = torch.tensor([[1 + i, 10.0 * i, 7.0 * i] for i in range(len(trunk))])
    branches = []
    for visible, tokens in ((3, [103, 40, 41, 42]), (6, [103, 50, 7, 9])):
        own = torch.tensor([[visible + 1 + i, 12.0 + i, 30.0 + 6 * i] for i in range(len(tokens))])
        embeddings = torch.cat([visual, decoder.embedding(torch.tensor(trunk[:visible] + tokens))])
        layers = list(plain_layers(decoder, range(SHAPE.layers), embeddings, torch.cat([centres, trunk_positions[:visible], own]), len(kept)))
        hidden = decoder.norm(layers[-1][2])
        logprob = decoder.head(hidden[-len(tokens) :]).log_softmax(-1)
        best = logprob.max(-1)
        drafted = [float(logprob[i, tokens[i + 1]]) for i in range(len(tokens) - 1)] + [0.0]
        branches.append({"visible": visible, "tokens": tokens, "positions": own.flatten().tolist(), "next_id": best.indices.tolist(),
                         "next_logprob": best.values.tolist(), "draft_logprob": drafted, "saliency": [weights[:, -1, : len(kept)].flatten().tolist() for _, weights, _ in layers],
                         "mtp": drafts(decoder, head, hidden[-1], int(best.indices[-1]))})  # fmt: skip
    return {"width": width, "height": height, "ink_boxes": boxes, "cells": kept, "trunk": trunk,
            "trunk_positions": trunk_positions.flatten().tolist(), "branches": branches,
            "tsp": selection(decoder, visual, centres)}  # fmt: skip


def tokenizer():
    vocabulary = {chr(33 + i): i for i in range(94)}
    vocabulary |= {"<unk>": 100, "<space>": 101, "<end>": 102, "<child>": 103, "<fork>": 104, "<begin>": 105, "<cell>": 106, "<row>": 107}
    split = {"type": "Split", "pattern": {"Regex": "[\\s\\S]"}, "behavior": "Isolated", "invert": False}
    model = {"type": "WordLevel", "vocab": vocabulary, "unk_token": "<unk>"}
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None, "pre_tokenizer": split,
            "post_processor": None, "decoder": None, "model": model}  # fmt: skip


def manifest(files):
    kinds = ["text", "title", "heading", "list", "table", "formula", "figure", "caption", "code", "header", "footer", "page_number", "footnote"]
    entries = [{"id": 110 + i, "kind": kind} for i, kind in enumerate(kinds)]
    entries[0]["also"] = ["reference", "other"]
    entries[6] |= {"also": ["chart"], "forks": False}
    names = ["unknown", "space", "end", "child", "fork", "begin", "cell", "row"]
    ranges = {"x": {"first": 123, "count": 40, "bin": 16.0}, "y": {"first": 163, "count": 40, "bin": 16.0}, "pitch": {"first": 203, "count": 20, "bin": 1.0}}
    return {
        "schema": "docparse.pack/1", "name": "tiny", "licence": "Apache-2.0", "source": "scripts/reference/tiny_pack.py: random weights",
        "files": files, "graphs": {name: f"{name}.onnx" for name in GRAPHS}, "tokenizer": "tokenizer.json",
        "dims": {"layers": SHAPE.layers, "heads": SHAPE.heads, "kv_heads": SHAPE.kv_heads, "head_dim": SHAPE.head_dim, "hidden": SHAPE.hidden,
                 "vocabulary": SHAPE.vocabulary, "position_parts": SHAPE.position_parts},
        "preprocessing": {"family": "fixed-grid", "cell_width": CELL_WIDTH, "cell_height": CELL_HEIGHT, "ink_threshold": 0.25, "x_height": 8.5,
                          "x_height_share": 0.43, "default_dpi": 136.0, "max_side": 624, "max_cells": 512},
        "tokens": {name: 100 + i for i, name in enumerate(names)} | ranges,
        "protocol": {"position_rule": "grounded-words", "prefill_attention": "bidirectional-visual", "trunk_prompt": ["begin"], "trunk_end": ["end"],
                     "branch_end": ["end"], "fork_visible": False, "region": "kind-x0-y0-x1-y1", "content": {"default": "grounded-words"}, "kinds": entries},
        "decode": {"buckets": [1, 8, 32], "max_tokens": 64, "max_trunk_tokens": 128},
        "acceptance": {"mode": "trust", "default": {"own_confidence": 0.9, "model_probability": 0.05, "override_probability": 0.9, "coordinate_bins": 3}},
        "extras": {"focal_layers": list(FOCAL_LAYERS), "tsp_layer": TSP_LAYER, "saliency": True},
    }  # fmt: skip


def write_json(path, value):
    path.write_text(json.dumps(value, indent=1) + "\n")


@torch.no_grad()
def main():
    FOLDER.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(7)
    decoder = Decoder(SHAPE, ROTARY)
    page = PagePrefill(decoder)
    head: MultiTokenHead = head_of(SHAPE)
    write_graph(Vision(), {"ink": torch.zeros(1, 1, 32, 64)}, ["features", "glyphs"],
                {"ink": {2: "H", 3: "W"}, "features": {2: "H8", 3: "W8"}, "glyphs": {2: "H8", 3: "W4"}}, FOLDER / "vision.onnx")  # fmt: skip
    features, glyphs = Vision()(torch.zeros(1, 1, 32, 64))
    inputs = {"features": features, "glyphs": glyphs, "cells": torch.tensor([[0, 0], [1, 1], [1, 0]]), "positions": torch.zeros(1, 3, 3)}
    dynamic = {"features": {2: "H8", 3: "W8"}, "glyphs": {2: "H8", 3: "W4"}, "cells": {0: "V"}, "positions": {1: "V"}}
    write_lower_prefill(page, inputs, dynamic, range(TSP_LAYER + 1), FOLDER / "prefill.onnx")
    upper = range(TSP_LAYER + 1, SHAPE.layers)
    write_upper_prefill(Prefill(decoder, upper), SHAPE, upper, FOLDER / "prefill_upper.onnx")
    write_decode_graph(decoder, FOLDER / "decode.onnx", FOCAL_LAYERS, saliency=True)
    write_mtp_graph(decoder, head, FOLDER / "mtp.onnx", DRAFTS)
    write_json(FOLDER / "tokenizer.json", tokenizer())
    names = ["tokenizer.json", *(f"{name}.onnx" for name in GRAPHS)]
    write_json(FOLDER / "docparse.json", manifest({name: hashlib.sha256((FOLDER / name).read_bytes()).hexdigest() for name in names}))
    write_json(FOLDER / "expected.json", expected(decoder, page, head))


if __name__ == "__main__":
    main()
