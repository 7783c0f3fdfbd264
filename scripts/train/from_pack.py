"""Weights back from an exported nano pack: a start for training where only the repository is at hand. `python -m scripts.train.from_pack PACK FOLDER`

FOLDER gets vision, layout and decoder.safetensors, characters.json and advances.json. The weights say what the graphs say, but are not the ones that
they were exported from: batch norms lie folded in their convolutions, and of the tables for input and output only some split into the
parts that they were made of is found again. `python -m scripts.reference --weights FOLDER --pack PACK` checks them.
"""
import argparse
import json
from pathlib import Path

import numpy as np
import onnx
import torch
from onnx import numpy_helper
from safetensors.torch import save_file

from .layout import LayoutNet
from .loading import new_reader, new_vision
from .reader import CHARACTER_WIDTH, INPUT_SCALE, Reader
from .vision import Vision
from .vocabulary import Vocabulary

LAYER_PARTS = ("query", "key", "value", "output", "gate", "up", "down")


class Graph:
    """Initializers by name, and those of convolutions and matrix products in the order of the graph."""

    def __init__(self, path: Path):
        graph = onnx.load(str(path)).graph
        self.named = {entry.name: torch.from_numpy(numpy_helper.to_array(entry).copy()) for entry in graph.initializer}
        self.convolutions = [node.input[1:3] for node in graph.node if node.op_type == "Conv"]
        self.outputs = [node.output[0] for node in graph.node if node.op_type == "Conv"]
        self.reads = {entry: node for node in graph.node for entry in node.input}
        self.products = [node.input[1] for node in graph.node if node.op_type == "MatMul" and node.input[1] in self.named]


def vocabulary_of(pack: Path) -> Vocabulary:
    manifest = json.loads((pack / "docparse.json").read_text())
    words = json.loads((pack / "tokenizer.json").read_text())["model"]["vocab"]
    by_token = sorted((token, word) for word, token in words.items() if token < manifest["tokens"]["unknown"])
    codes = [int(word[11:-1], 16) if word.startswith("<surrogate ") else ord(word) for _, word in by_token]
    return Vocabulary(codes, manifest["protocol"]["advance"])


@torch.no_grad()
def vision_of(pack: Path, vocabulary: Vocabulary) -> Vision:
    """Norms become the identity with the convolution's bias; the head is as it was."""
    vision, graph = new_vision(vocabulary), Graph(pack / "vision.onnx")
    modules = [module for module in vision.modules() if isinstance(module, torch.nn.Conv2d) and module is not vision.head]
    norms = [module for module in vision.modules() if isinstance(module, torch.nn.BatchNorm2d)]
    own = [names for names in graph.convolutions if not names[0].startswith("layout.")]
    for convolution, norm, (weight, bias) in zip(modules, norms, own[:-1], strict=True):
        convolution.weight.copy_(graph.named[weight])
        norm.bias.copy_(graph.named[bias])
        norm.running_mean.zero_()
        norm.running_var.fill_(1 - norm.eps)
    weight, bias = own[-1]
    vision.head.weight.copy_(graph.named[weight])
    vision.head.bias.copy_(graph.named[bias])
    return vision.eval()


@torch.no_grad()
def layout_of(pack: Path) -> LayoutNet:
    """Convolutions have their names in the graph. A norm's scale and shift are the first tables that its convolution's output meets."""
    net, graph = LayoutNet(), Graph(pack / "vision.onnx")
    own = net.state_dict()
    for name, value in graph.named.items():
        if name.startswith("layout."):
            own[name.removeprefix("layout.")].copy_(value)
    for names, output in zip(graph.convolutions, graph.outputs, strict=True):
        if not names[0].endswith(".convolution.weight"):
            continue
        norm = names[0].removeprefix("layout.").removesuffix("convolution.weight") + "norm"
        for part in ("weight", "bias"):
            node = graph.reads[output]
            while node.op_type != ("Mul" if part == "weight" else "Add"):
                node = graph.reads[node.output[0]]
            table = next(name for name in node.input if name in graph.named)
            own[f"{norm}.{part}"].copy_(graph.named[table].flatten())
            output = node.output[0]
    return net.eval()


@torch.no_grad()
def reader_of(pack: Path, vocabulary: Vocabulary) -> Reader:
    reader, prefill, decode = new_reader(vocabulary), Graph(pack / "prefill.onnx"), Graph(pack / "decode.onnx")
    own = reader.state_dict()
    for name, value in prefill.named.items():
        if name.startswith("reader."):
            own[name.removeprefix("reader.")].copy_(value)
    # Tables that have lost their names: that of the codes, with a row for "none", and those of the first products.
    codes = (vocabulary.glyphs + 1, CHARACTER_WIDTH)
    own["character_codes"].copy_(next(value for value in prefill.named.values() if value.shape == codes)[1:])
    nameless = [name for name in prefill.products if not name.startswith("reader.")]
    for name, product in zip(("neighbours_seen", "facts", "layout"), nameless, strict=False):
        own[f"{name}.weight"].copy_(prefill.named[product].T)
    for name, value in decode.named.items():
        if name.startswith(("decoder.layers.", "decoder.norm.")):
            own[name.removeprefix("decoder.")].copy_(value)
    text_place, *layers, head = [decode.named[name].T for name in decode.products if not name.endswith("rotary")]
    own["text_place.weight"].copy_(text_place)
    for index, value in enumerate(layers):
        own[f"layers.{index // len(LAYER_PARTS)}.{LAYER_PARTS[index % len(LAYER_PARTS)]}.weight"].copy_(value)
    split_tables(reader, decode.named["decoder.embedding.weight"], head)
    return reader.eval()


def split_tables(reader: Reader, embedding, head):
    """`embedding` and `head` `[tokens, hidden]` -> token table, character codes' maps and place map that make them."""
    vocabulary, glyphs, codes = reader.vocabulary, reader.vocabulary.glyphs, reader.character_codes
    # As much of the output as the codes explain goes through them.
    out = least_squares(codes, head[:glyphs])
    table = head.clone()
    table[:glyphs] -= codes @ out
    rest = embedding - INPUT_SCALE * table
    half = reader.shape.hidden // 2
    inputs = torch.zeros(vocabulary.size, codes.shape[1] + 2 * half + 1)
    inputs[:glyphs, : codes.shape[1]] = codes
    for numbers, part in ((vocabulary.x, 0), (vocabulary.y, 1)):
        inputs[numbers.first : numbers.end, codes.shape[1] + part * half :][:, :half] = reader.coordinate_waves[part]
    inputs[:, -1] = 1
    solved = least_squares(inputs, rest)
    reader.tokens.weight.copy_(table)
    reader.place_out.zero_()
    # What the maps leave over stays with the token (nothing, but for rounding).
    reader.character_out.weight.copy_(out)
    reader.character_in.weight.copy_(solved[: codes.shape[1]].T)
    reader.token_place.weight.copy_(solved[codes.shape[1] : -1].T)
    reader.token_place.bias.copy_(solved[-1])


def least_squares(inputs, outputs):
    found = np.linalg.lstsq(inputs.double().numpy(), outputs.double().numpy(), rcond=1e-9)[0]
    return torch.from_numpy(found).float()


def main():
    parser = argparse.ArgumentParser(prog="python -m scripts.train.from_pack")
    parser.add_argument("pack", type=Path)
    parser.add_argument("folder", type=Path)
    arguments = parser.parse_args()
    vocabulary = vocabulary_of(arguments.pack)
    arguments.folder.mkdir(parents=True, exist_ok=True)
    for name, value in (("characters", vocabulary.characters), ("advances", vocabulary.advances)):
        (arguments.folder / f"{name}.json").write_text(json.dumps(value))
    save_file(vision_of(arguments.pack, vocabulary).state_dict(), arguments.folder / "vision.safetensors")
    save_file(layout_of(arguments.pack).state_dict(), arguments.folder / "layout.safetensors")
    save_file(reader_of(arguments.pack, vocabulary).state_dict(), arguments.folder / "decoder.safetensors")


if __name__ == "__main__":
    main()
