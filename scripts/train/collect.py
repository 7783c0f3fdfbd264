"""Stage 8: puts the newest weights of a vision, a layout and a decoder run into one folder for the export, with their held-out figures.

`python -m scripts.train.collect VISION_RUN LAYOUT_RUN DECODER_RUN FOLDER [--mtp MTP_RUN]`, then
`python -m scripts.export nano --weights FOLDER --about FOLDER/about.json -o models/nano` and
`python -m scripts.reference --weights FOLDER --pack models/nano --fixture fixtures/reference/nano`
"""
import argparse
import json
import shutil
from pathlib import Path

from .settings import RUNS, VOCABULARY


def newest_check(folder: Path) -> dict:
    """The last held-out figures in a run's log; nothing where it has not come to any yet."""
    log = folder / "log.jsonl"
    lines = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
    checks = [line for line in lines if "held_out" in line]
    return checks[-1] if checks else {}


def main():
    parser = argparse.ArgumentParser(prog="python -m scripts.train.collect")
    parser.add_argument("vision_run")
    parser.add_argument("layout_run")
    parser.add_argument("decoder_run")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--mtp", help="a run of train_mtp on that decoder; without it the pack has no multi-token head")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    for name in ("characters.json", "advances.json"):
        shutil.copy(VOCABULARY / name, arguments.folder / name)
    runs, about = {"vision": arguments.vision_run, "layout": arguments.layout_run, "decoder": arguments.decoder_run}, {}
    for part, run in runs.items():
        shutil.copy(RUNS / run / f"{part}.safetensors", arguments.folder)
        about[part] = newest_check(RUNS / run)
    if arguments.mtp:
        shutil.copy(RUNS / arguments.mtp / "mtp.safetensors", arguments.folder)
        about["mtp"] = newest_check(RUNS / arguments.mtp)
    (arguments.folder / "about.json").write_text(json.dumps(about, indent=2))
    print(json.dumps(about))


if __name__ == "__main__":
    main()
