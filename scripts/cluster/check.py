"""Checks the Ray job on a cluster of two nodes on this machine: a worker and a whole node are killed in mid-run, and the tree must
be that of a single run, byte for byte.

    python3 scripts/cluster/check.py [--program target/debug/docparse] [--files 120]
"""

import argparse
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts/attack"))
from kills import documents, tree  # noqa: E402

OPTIONS = ["--model", "none", "--drafts", "text-layer"]


def actors():
    """Processes in which the actor runs."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and b"Converter" in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
        except OSError:
            pass
    return found


def kill_some(cluster, second, job, out):
    """Kills an actor once some pages are there, and the second node a little later; says what was killed."""
    killed = []
    while job.poll() is None and len(list(out.rglob("page-0001.md"))) < 10:
        time.sleep(0.1)
    for pid in actors()[:1]:
        os.kill(pid, signal.SIGKILL)
        killed.append("actor")
    while job.poll() is None and len(list(out.rglob("page-0001.md"))) < 25:
        time.sleep(0.1)
    if job.poll() is None:
        cluster.remove_node(second, allow_graceful=False)
        killed.append("node")
    return killed


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", type=pathlib.Path, default=ROOT / "target/debug/docparse")
    parser.add_argument("--files", type=int, default=120)
    options = parser.parse_args()
    # Ray's workers give way to everything else on the machine unless told not to.
    os.environ.setdefault("RAY_worker_niceness", "0")
    from ray.cluster_utils import Cluster

    with tempfile.TemporaryDirectory(prefix="docparse-cluster-") as temporary:
        base = pathlib.Path(temporary)
        documents(base / "in", options.files)
        subprocess.run([options.program, "convert", base / "in", "-o", base / "whole", "-q", *OPTIONS], check=True)
        cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
        second = cluster.add_node(num_cpus=1)
        cluster.wait_for_nodes()
        environment = {**os.environ, "RAY_ADDRESS": cluster.address}
        command = [sys.executable, ROOT / "scripts/cluster/convert.py", base / "in", "-o", base / "out", "--workers", "2",
                   "--parts", "6", "--program", options.program.resolve(), "--", *OPTIONS]
        job = subprocess.Popen([str(part) for part in command], env=environment)
        killed = kill_some(cluster, second, job, base / "out")
        try:
            status = job.wait(timeout=1800)
        finally:
            job.kill()
        cluster.shutdown()
        same = tree(base / "whole") == tree(base / "out")
        print(f"exit status {status}, killed: {', '.join(killed) or 'nothing'};  {len(tree(base / 'out'))} files, "
              f"{'the same bytes' if same else 'NOT the same'}")
        sys.exit(status != 0 or not same or not killed)


if __name__ == "__main__":
    main()
