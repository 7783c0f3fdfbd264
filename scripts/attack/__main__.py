"""Runs docparse over damaged and hostile files and checks that each of them gets a result or a reason.

    python3 scripts/attack [--program target/debug/docparse] [--count 2000] [--seed 1] [-- CONVERT OPTIONS]

Passes if the program neither aborts nor hangs, ends with exit code 0, 1 or 5, and its journal says of every file either why it
failed or what became of its pages, with a reason for each page that is not ok. Needs nothing but Python.
"""

import argparse
import collections
import json
import pathlib
import random
import re
import resource
import subprocess
import sys
import tempfile
import time

from bombs import all_bombs
from mutations import mutated

ROOT = pathlib.Path(__file__).resolve().parents[2]
QUICK = ["--model", "none", "--drafts", "text-layer"]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", type=pathlib.Path, default=ROOT / "target/debug/docparse")
    parser.add_argument("--count", type=int, default=2000, help="mutated files, beside the bombs")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--bombs", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--limit", type=int, default=3600, help="seconds after which the run counts as hanging")
    parser.add_argument("--keep", type=pathlib.Path, help="folder to leave files and output in")
    parser.add_argument("options", nargs="*", help=f"options of `docparse convert` [default: {' '.join(QUICK)}]")
    return parser.parse_args()


def seeds():
    suffixes = {".pdf", ".png", ".jpg", ".tiff"}
    files = sorted(path for path in (ROOT / "fixtures/pdf").iterdir() if path.suffix in suffixes)
    return [(path.suffix, path.read_bytes()) for path in files if path.stat().st_size]


def write_files(folder, count, seed, bombs):
    names = []
    for name, data in all_bombs() if bombs else ():
        (folder / name).write_bytes(data)
        names.append(name)
    good, source = seeds(), random.Random(seed)
    for number in range(count):
        suffix, data = mutated(source, good)
        names.append(f"m{number:05}{suffix}")
        (folder / names[-1]).write_bytes(data)
    return names


def outcomes(journal):
    """What the journal says: file name -> list of (status, reason)."""
    said = collections.defaultdict(list)
    finished = set()
    for line in journal.read_text().splitlines():
        record = json.loads(line)
        name = pathlib.Path(record.get("file", "")).name
        if record["event"] == "file_failed":
            said[name].append(("file failed", record["reason"]))
            finished.add(name)
        elif record["event"] == "page":
            said[name].append((record["status"], record.get("reason")))
        elif record["event"] == "file":
            finished.add(name)
    return said, finished


def general(reason):
    return re.sub(r"[\d.]+", "N", reason)[:110]


def main():
    options = arguments()
    with tempfile.TemporaryDirectory(prefix="docparse-attack-") as temporary:
        base = options.keep or pathlib.Path(temporary)
        files, out = base / "files", base / "out"
        files.mkdir(parents=True)
        names = write_files(files, options.count, options.seed, options.bombs)
        command = [options.program, "convert", files, "-o", out, "-q", *(options.options or QUICK)]
        begun = time.monotonic()
        try:
            done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=options.limit)
        except subprocess.TimeoutExpired:
            sys.exit(f"FAILED: still running after {options.limit} s")
        seconds = time.monotonic() - begun
        said, finished = outcomes(out / "run.jsonl")
    problems = []
    if done.returncode not in (0, 1, 5):
        problems.append(f"exit status {done.returncode}: {done.stderr[-400:].decode(errors='replace')}")
    problems += [f"{name}: nothing is said of it" for name in names if name not in finished]
    problems += [f"{name}: {status} without a reason" for name, results in said.items()
                 for status, reason in results if status != "ok" and not reason]
    problems += [f"{name}: {reason}" for name, results in said.items()
                 for _, reason in results if reason and "internal error" in reason]
    counts = collections.Counter(status for results in said.values() for status, _ in results)
    reasons = collections.Counter(f"{status}: {general(reason)}" for results in said.values()
                                  for status, reason in results if reason)
    for reason, count in reasons.most_common():
        print(f"{count:8}  {reason}")
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"{len(names)} files, {seconds:.0f} s, {children.ru_utime + children.ru_stime:.0f} CPU s, "
          f"largest process {children.ru_maxrss / 1024:.0f} MiB, exit status {done.returncode}; "
          + ", ".join(f"{count} {status}" for status, count in counts.items()))
    for problem in problems:
        print(f"FAILED: {problem}")
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
