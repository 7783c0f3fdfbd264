"""The mean of several weights of one run: nearly what letting the learning rate fall would give, where a run was stopped before that.

`python -m scripts.train.average OUT WEIGHTS...`, safetensors files of about the last third of the run.
"""
import argparse
from pathlib import Path

from safetensors.torch import load_file, save_file


def average(paths: list[Path]) -> dict:
    """Floating-point tensors averaged, whole numbers (counters) from the last one."""
    every = [load_file(path) for path in paths]
    return {name: sum(w[name] for w in every) / len(every) if value.is_floating_point() else value for name, value in every[-1].items()}


def main():
    parser = argparse.ArgumentParser(prog="python -m scripts.train.average")
    parser.add_argument("out", type=Path)
    parser.add_argument("weights", type=Path, nargs="+")
    arguments = parser.parse_args()
    save_file(average(arguments.weights), arguments.out)


if __name__ == "__main__":
    main()
