"""Converts a tree of files on a Ray cluster: the same output as one machine would write.

    python3 scripts/cluster/convert.py INPUT... -o OUT [--workers 8] [--parts 64] [--program docparse] [-- CONVERT OPTIONS]

Every machine sees INPUT, OUT and the program under the same paths. The files are cut into parts (`docparse convert --shard I/N`),
a Ray Data actor pool takes the parts, and each actor keeps one docparse running for a whole part: models are loaded once a part.
A worker or machine that is lost costs no page that was finished: Ray gives its part to another actor, and `--resume` goes on.
Exit code: that of the worst part.
"""

import argparse
import ctypes
import pathlib
import signal
import subprocess
import sys
import time

import ray

FINISHED = {0: "ok", 1: "something failed", 5: "some pages are partial"}
OUTPUT_BUSY = 4


def die_with_parent():
    """A docparse whose actor was killed must not go on writing beside the one that takes over (Linux)."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


class Converter:
    """Runs docparse over one part after another."""

    def __init__(self, program, inputs, out, parts, options):
        self.command = [program, "convert", *inputs, "-o", out, "--resume", "-q", *options]
        self.parts = parts

    def __call__(self, row):
        part = int(row["id"]) + 1
        begun = time.monotonic()
        command = [*self.command, "--shard", f"{part}/{self.parts}"]
        for _ in range(10):
            done = subprocess.run(command, stderr=subprocess.PIPE, preexec_fn=die_with_parent)
            if done.returncode != OUTPUT_BUSY:
                break
            time.sleep(2)
        messages = done.stderr.decode(errors="replace")
        if done.returncode not in FINISHED:
            raise RuntimeError(f"part {part}: exit status {done.returncode}: {messages[-2000:]}")
        return {"part": part, "status": done.returncode, "seconds": time.monotonic() - begun, "messages": messages}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("inputs", nargs="+", metavar="INPUT")
    parser.add_argument("-o", "--output", required=True, type=pathlib.Path)
    parser.add_argument("--workers", type=int, default=2, help="actors at the same time")
    parser.add_argument("--parts", type=int, help="parts the files are cut into [default: 8 a worker]")
    parser.add_argument("--cpus", type=float, default=1, help="CPUs of an actor, and its docparse's --jobs")
    parser.add_argument("--program", default="docparse")
    words = sys.argv[1:]
    cut = words.index("--") if "--" in words else len(words)
    parsed = parser.parse_args(words[:cut])
    parsed.options = words[cut + 1:]
    return parsed


def main():
    options = arguments()
    parts = options.parts or 8 * options.workers
    inputs = [str(pathlib.Path(path).resolve()) for path in options.inputs]
    convert = [*options.options, "--jobs", str(max(1, int(options.cpus)))]
    ray.init(log_to_driver=False)
    # Items, not a range: that would be read by tasks of their own, for which the actors may leave no CPU.
    items = [{"id": number} for number in range(parts)]
    rows = ray.data.from_items(items, override_num_blocks=parts).map(
        Converter,
        fn_constructor_args=(options.program, inputs, str(options.output.resolve()), parts, convert),
        compute=ray.data.ActorPoolStrategy(size=options.workers, max_tasks_in_flight_per_actor=1),
        num_cpus=options.cpus,
        max_restarts=-1,
        max_task_retries=-1,
    )
    worst = 0
    order = {0: 0, 5: 1, 1: 2}
    for row in rows.iter_rows():
        print(f"part {row['part']} of {parts}: {FINISHED[row['status']]}, {row['seconds']:.1f} s", flush=True)
        sys.stderr.write(row["messages"])
        worst = max(worst, row["status"], key=order.__getitem__)
    sys.exit(worst)


if __name__ == "__main__":
    main()
