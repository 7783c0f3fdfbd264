"""Writes a model pack. `python -m scripts.export nano --weights FOLDER -o models/nano`"""
import argparse
import json
from pathlib import Path

from . import nano


def main():
    parser = argparse.ArgumentParser(prog="python -m scripts.export", description="Write a model pack.")
    presets = parser.add_subparsers(dest="preset", required=True)
    preset = presets.add_parser("nano", help="the default pack, from weights of scripts/train")
    preset.add_argument("--weights", type=Path, required=True, help="folder that scripts.train.collect wrote")
    preset.add_argument("--about", type=Path, help="JSON file with free facts for the manifest, e.g. measured scores")
    preset.add_argument("-o", "--output", type=Path, required=True, help="the pack's folder")
    arguments = parser.parse_args()
    about = json.loads(arguments.about.read_text()) if arguments.about else {}
    nano.export(arguments.weights, arguments.output, about)
    total = sum(file.stat().st_size for file in arguments.output.iterdir())
    print(f"{arguments.output}: {total / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
