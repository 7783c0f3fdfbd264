"""The nano pack: vision, prefill and decode graphs, tokenizer and manifest, from the weights that `scripts/train` leaves."""
import hashlib
import json
import re
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import nn

from scripts.train.layout import LayoutNet
from scripts.train.loading import load_layout, load_reader, load_vision, load_vocabulary
from scripts.train.reader import Reader
from scripts.train.settings import SETTINGS
from scripts.train.vision import CELL_HEIGHT, CELL_WIDTH, INK_THRESHOLD, Vision
from scripts.train.vocabulary import KINDS, STRUCTURE, Vocabulary

from .decoder import DecoderShape, Prefill, tsp_layer
from .graphs import write_decode_graph, write_graph, write_lower_prefill, write_upper_prefill
from .mtp import MultiTokenHead, head_of, write_mtp_graph

GRAPHS = {"vision": "vision.onnx", "prefill": "prefill.onnx", "prefill_upper": "prefill_upper.onnx", "decode": "decode.onnx"}
MTP = {"mtp": "mtp.onnx"}


class VisionGraph(nn.Module):
    """Ink -> the layout net's map as features, glyph probabilities."""

    def __init__(self, vision: Vision, layout: LayoutNet):
        super().__init__()
        self.vision, self.layout = vision, layout

    def forward(self, ink):
        return self.layout(ink), self.vision(ink).softmax(1)


class PrefillGraph(nn.Module):
    """The layout net's map; cells (row, column), classes, facts and positions of the visual tokens -> the lower layers' part of the page prefix."""

    def __init__(self, reader: Reader):
        super().__init__()
        self.reader = reader
        layers = range(tsp_layer(reader.shape.layers) + 1)
        self.prefill = Prefill(reader.folded(), layers, together=layers[-1:])

    def forward(self, features, cells, classes, facts, positions):
        told = features[0].flatten(1).T[cells[:, 0] * features.shape[3] + cells[:, 1]]
        visual = self.reader.visual(classes, facts, told, positions[0].flip(-1)[:, :2])
        return self.prefill(visual, positions)


def write_graphs(vision: Vision, layout: LayoutNet, reader: Reader, head: MultiTokenHead | None, out: Path):
    ink = torch.zeros(1, 1, 64, 96)
    page = {2: "H", 3: "W"}
    maps = {"features": {2: "H16", 3: "W16"}, "glyphs": {2: "H8", 3: "W4"}}
    write_graph(VisionGraph(vision, layout), {"ink": ink}, ["features", "glyphs"], {"ink": page, **maps}, out / GRAPHS["vision"])
    features, _ = VisionGraph(vision, layout)(ink)
    inputs = {
        "features": features.detach(), "cells": torch.tensor([[0, 0], [0, 1], [1, 2], [2, 0], [3, 1]]), "classes": torch.arange(15).view(5, 3),
        "facts": torch.rand(5, 3), "positions": torch.rand(1, 5, 3),
    }  # fmt: skip
    dynamic = {"features": maps["features"], "cells": {0: "V"}, "classes": {0: "V"}, "facts": {0: "V"}, "positions": {1: "V"}}
    first_upper = tsp_layer(reader.shape.layers) + 1
    decoder, upper = reader.folded(), range(first_upper, reader.shape.layers)
    write_lower_prefill(PrefillGraph(reader), inputs, dynamic, range(first_upper), out / GRAPHS["prefill"])
    write_upper_prefill(Prefill(decoder, upper, together=()), decoder.shape, upper, out / GRAPHS["prefill_upper"])
    write_decode_graph(decoder, out / GRAPHS["decode"], reader.focal_layers, saliency=True)
    if head:
        write_mtp_graph(decoder, head, out / MTP["mtp"])


def write_tokenizer(vocabulary: Vocabulary, path: Path):
    """An ordinary `tokenizers` file: one token a character, special names as plain entries; numbers have no text."""
    words = {chr(code) if not 0xD800 <= code < 0xE000 else f"<surrogate {code:04x}>": i for i, code in enumerate(vocabulary.characters)}
    words |= {"<unk>": vocabulary.unknown}
    words |= {f"<{name}>": getattr(vocabulary, name) for name in STRUCTURE[1:]}
    words |= {f"<{kind}>": vocabulary.kind(kind) for kind in KINDS}
    assert len(set(words.values())) == vocabulary.x.first, "every token below the numbers has a name"
    split = {"type": "Split", "pattern": {"Regex": "[\\s\\S]"}, "behavior": "Isolated", "invert": False}
    tokenizer = {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None, "pre_tokenizer": split,
        "post_processor": None, "decoder": None, "model": {"type": "WordLevel", "vocab": words, "unk_token": "<unk>"},
    }  # fmt: skip
    path.write_text(json.dumps(tokenizer, ensure_ascii=False, indent=1) + "\n")


def kinds(vocabulary: Vocabulary) -> list[dict]:
    also = {"text": ["reference", "other"], "figure": ["chart"]}
    entries = []
    for kind in KINDS:
        entry = {"id": vocabulary.kind(kind), "kind": kind}
        if kind in also:
            entry["also"] = also[kind]
        if kind == "figure":
            entry["forks"] = False
        entries.append(entry)
    return entries


def manifest(vocabulary: Vocabulary, shape: DecoderShape, focal_layers, graphs: dict, files: dict, about: dict) -> dict:
    tokens = {name: getattr(vocabulary, name) for name in STRUCTURE}
    for name in ("x", "y", "pitch", "gap", "down"):
        numbers = getattr(vocabulary, name)
        tokens[name] = {"first": numbers.first, "count": numbers.count, "bin": numbers.bin}
        if numbers.offset:
            tokens[name]["offset"] = numbers.offset
    # Every draft stands: see models/nano/README.md for what was measured.
    stands = {"own_confidence": 0.0, "model_probability": 0.0, "override_probability": 2.0, "coordinate_bins": 0}
    return {
        "schema": "docparse.pack/1", "name": "nano", "licence": "Apache-2.0", "source": "scripts/train of this repository",
        "about": about, "files": files, "graphs": graphs, "tokenizer": "tokenizer.json",
        "dims": {
            "layers": shape.layers, "heads": shape.heads, "kv_heads": shape.kv_heads, "head_dim": shape.head_dim,
            "hidden": shape.hidden, "vocabulary": shape.vocabulary, "position_parts": shape.position_parts,
        },
        "preprocessing": {
            "family": "fixed-grid", "cell_width": CELL_WIDTH, "cell_height": CELL_HEIGHT, "ink_threshold": INK_THRESHOLD, "x_height": 8.5,
            "x_height_share": 0.43, "default_dpi": 136.0, "max_side": 1914, "max_cells": 4096,
            "characters": {"none_weight": SETTINGS["vision"]["background_weight"]},
        },
        "tokens": tokens,
        "protocol": {
            "position_rule": "grounded-steps", "advance": vocabulary.advances, "prefill_attention": "bidirectional-visual", "trunk_prompt": ["begin"],
            "trunk_end": ["end"], "branch_end": ["end"], "fork_visible": False, "region": "kind-x0-y0-x1-y1",
            "content": {"default": "grounded-steps"}, "kinds": kinds(vocabulary), "no_content": [],
        },
        "decode": {"buckets": [1, 8, 32, 128, 512], "max_tokens": 2000, "max_trunk_tokens": 1600, "reads_undrafted": False},
        "acceptance": {"mode": "trust", "default": stands, "classes": {}},
        "extras": {
            "focal_layers": list(focal_layers), "tsp_layer": tsp_layer(shape.layers), "saliency": True,
            # By scripts.train.read_lines: the strictest gate that keeps most lines and reads them as well as the OCR network.
            "glyph_lines": {"least_mass": 0.95, "most_left_over": 0.6, "least_characters": 4},
        },
    }  # fmt: skip


def load_head(folder: Path, shape: DecoderShape) -> MultiTokenHead | None:
    """From mtp.safetensors of a folder, if it is there."""
    path = folder / "mtp.safetensors"
    if not path.exists():
        return None
    head = head_of(shape)
    head.load_state_dict(load_file(path))
    return head.eval()


def load_models(folder: Path) -> tuple[Vision, LayoutNet, Reader]:
    """From vision, layout and decoder.safetensors, characters.json and advances.json of a folder."""
    vocabulary = load_vocabulary(folder)
    vision, layout = load_vision(vocabulary, folder / "vision.safetensors"), load_layout(folder / "layout.safetensors")
    return vision, layout, load_reader(vocabulary, folder / "decoder.safetensors")


def export(weights: Path, out: Path, about: dict):
    """Writes the whole pack to `out`, but for its licence and model card."""
    out.mkdir(parents=True, exist_ok=True)
    vision, layout, reader = load_models(weights)
    head = load_head(weights, reader.shape)
    graphs = GRAPHS | (MTP if head else {})
    write_graphs(vision, layout, reader, head, out)
    write_tokenizer(reader.vocabulary, out / "tokenizer.json")
    names = ["tokenizer.json", *graphs.values()]
    files = {name: hashlib.sha256((out / name).read_bytes()).hexdigest() for name in names}
    text = json.dumps(manifest(reader.vocabulary, reader.shape, reader.focal_layers, graphs, files, about), indent=2)
    # Lists of numbers on one line.
    text = re.sub(r"\[\s+([-\d.,\s]+?)\s+\]", lambda match: "[" + " ".join(match[1].split()) + "]", text)
    (out / "docparse.json").write_text(text + "\n")
