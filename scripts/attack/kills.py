"""Kills docparse (SIGKILL) at random moments, resumes it until it is done, and compares the tree with that of an undisturbed run.

    python3 scripts/attack/kills.py [--program target/debug/docparse] [--rounds 10] [--files 60] [-- CONVERT OPTIONS]
"""

import argparse
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

from bombs import one_page, pdf

ROOT = pathlib.Path(__file__).resolve().parents[2]
QUICK = ["--model", "none", "--drafts", "text-layer", "-f", "md,json,text,html"]


def documents(folder, count):
    folder.mkdir()
    for number in range(count):
        text = b"BT /F 12 Tf 72 700 Td (Sheet %d of the archive, with some words on it.) Tj ET" % number
        (folder / f"sheet-{number:05}.pdf").write_bytes(one_page(text))
    many = 25
    kids = b" ".join(b"%d 0 R" % (n + 3) for n in range(many))
    pages = [b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 200 200] >>"] * many
    (folder / "long.pdf").write_bytes(
        pdf([b"<< /Type /Catalog /Pages 2 0 R >>", b"<< /Type /Pages /Count %d /Kids [%s] >>" % (many, kids), *pages]))


def tree(folder):
    journals = {path for path in folder.glob("run*.jsonl")}
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*")
            if path.is_file() and path not in journals}


def killed_runs(command, longest):
    """Starts the command again and again, each time for a random while; the number of kills once it ends by itself."""
    kills = 0
    while True:
        process = subprocess.Popen([*command, "--resume"], stderr=subprocess.PIPE)
        try:
            _, messages = process.communicate(timeout=random.uniform(0, longest))
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.communicate()
            kills += 1
            continue
        if process.returncode:
            sys.exit(f"FAILED: exit status {process.returncode}: {messages.decode(errors='replace')}")
        return kills


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", type=pathlib.Path, default=ROOT / "target/debug/docparse")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--files", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("options", nargs="*")
    options = parser.parse_args()
    random.seed(options.seed)
    with tempfile.TemporaryDirectory(prefix="docparse-kills-") as temporary:
        base = pathlib.Path(temporary)
        documents(base / "in", options.files)
        command = [options.program, "convert", base / "in", "-q", *(options.options or QUICK), "-o"]
        begun = time.monotonic()
        subprocess.run([*command, base / "whole"], check=True)
        seconds = time.monotonic() - begun
        expected = tree(base / "whole")
        for number in range(options.rounds):
            out = base / f"out-{number}"
            kills = killed_runs([*command, out], seconds)
            result = tree(out)
            if result != expected:
                differing = sorted(str(p) for p in expected.keys() | result.keys() if expected.get(p) != result.get(p))
                sys.exit(f"FAILED: after {kills} kills {len(differing)} files differ: {differing[:5]}")
            print(f"round {number + 1}: {kills} kills, {len(result)} files, the same bytes", flush=True)


if __name__ == "__main__":
    main()
