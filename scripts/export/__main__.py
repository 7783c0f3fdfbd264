"""Writes a model pack. `python -m scripts.export nano --weights FOLDER -o models/nano`"""
import argparse
import json
import sys
from pathlib import Path

from . import nano, published, random_decoder
from .checkpoint import Refused
from .decoder import DecoderShape


def main():
    parser = argparse.ArgumentParser(prog="python -m scripts.export", description="Write a model pack.")
    presets = parser.add_subparsers(dest="preset", required=True)
    preset = presets.add_parser("nano", help="the default pack, from weights of scripts/train")
    preset.add_argument("--weights", type=Path, required=True, help="folder that scripts.train.collect wrote")
    preset.add_argument("--about", type=Path, help="JSON file with free facts for the manifest, e.g. measured scores")
    preset.add_argument("-o", "--output", type=Path, required=True, help="the pack's folder")
    random = presets.add_parser("random", help="a decode graph with random weights, for `docparse bench --decoder`")
    for name, default in (("layers", 8), ("hidden", 320), ("heads", 5), ("kv-heads", 5), ("head-dim", 64), ("feed-forward", 880), ("vocabulary", 8192)):
        random.add_argument(f"--{name}", type=int, default=default)
    random.add_argument("--focal-layers", type=lambda text: [int(layer) for layer in text.split(",")],
                        help="layers that say where they look [default: those at four to seven eighths of the depth]")  # fmt: skip
    random.add_argument("-o", "--output", type=Path, required=True)
    published.add_presets(presets)
    arguments = parser.parse_args()
    if arguments.preset in published.FAMILIES:
        return published.run(arguments)
    if arguments.preset == "random":
        shape = DecoderShape(arguments.vocabulary, arguments.hidden, arguments.layers, arguments.heads, arguments.kv_heads, arguments.head_dim,
                             arguments.feed_forward)  # fmt: skip
        try:
            return random_decoder.export(shape, arguments.focal_layers, arguments.output)
        except Refused as refused:
            sys.exit(f"scripts.export: {refused}")
    about = json.loads(arguments.about.read_text()) if arguments.about else {}
    nano.export(arguments.weights, arguments.output, about)
    total = sum(file.stat().st_size for file in arguments.output.iterdir())
    print(f"{arguments.output}: {total / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
