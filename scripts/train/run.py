"""A training run: its folder with log, resumable state and newest weights."""
import argparse
import json
import math
import time
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file

from .settings import RUNS


SAVE_SECONDS, CHECK_SECONDS = 240, 900


def arguments(stage: str, minutes: float) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=f"python -m scripts.train.{stage}")
    parser.add_argument("run")
    parser.add_argument("--minutes", type=float, default=minutes)
    parser.add_argument("--start", type=Path)
    return parser


def mean_facts(facts: dict) -> dict:
    return {name: round(float(np.mean(values)), 4) for name, values in facts.items()}


class TrainingRun:
    """Writes runs/NAME/{log.jsonl, state.pt, WEIGHTS.safetensors}. `seconds` is the CPU time trained so
    far, over all resumptions: on a crowded machine the learning rate must not fall with the clock on the wall."""

    def __init__(self, name: str, weights: str, model, optimiser):
        self.folder = RUNS / name
        self.folder.mkdir(parents=True, exist_ok=True)
        self.weights, self.model, self.optimiser = weights, model, optimiser
        self.step, self.seconds = 0, 0.0

    def resume(self) -> bool:
        """Goes on from the saved state, if there is one."""
        path = self.folder / "state.pt"
        if not path.exists():
            return False
        state = torch.load(path)
        self.model.load_state_dict(state["model"])
        self.optimiser.load_state_dict(state["optimiser"])
        self.step, self.seconds = state["step"], state["seconds"]
        return True

    def save(self):
        state = {"model": self.model.state_dict(), "optimiser": self.optimiser.state_dict(), "step": self.step, "seconds": self.seconds}
        part = self.folder / "state.pt.part"
        torch.save(state, part)
        part.rename(self.folder / "state.pt")
        part = self.folder / "weights.part"
        save_file(self.model.state_dict(), part)
        part.rename(self.folder / f"{self.weights}.safetensors")

    def log(self, **facts):
        line = json.dumps({"time": time.strftime("%H:%M:%S"), "step": self.step, "seconds": round(self.seconds), **facts})
        print(line, flush=True)
        with open(self.folder / "log.jsonl", "a") as file:
            file.write(line + "\n")

    def set_rate(self, rate: float):
        for group in self.optimiser.param_groups:
            group["lr"] = rate * group.get("scale", 1.0)

    def begin(self, minutes: float):
        """Starts the clock of a run that ends after so many minutes of CPU time, earlier ones counted."""
        self.minutes, self.done, self.clock = minutes, 0.0, time.process_time() - self.seconds
        self.saved, self.checked = time.time(), self.seconds

    def advance(self, rate: float, warm_up: int, least: float) -> float:
        """Counts a step and returns its learning rate, set: up to `rate` in `warm_up` steps, then down a cosine to `least` of it at the end."""
        self.seconds = time.process_time() - self.clock
        self.done = min(1.0, self.seconds / (self.minutes * 60))
        self.step += 1
        rate *= min(1, self.step / warm_up) * (least + (1 - least) * 0.5 * (1 + math.cos(math.pi * self.done)))
        self.set_rate(rate)
        return rate

    def tend(self, check) -> bool:
        """Saves and calls `check` where that is due; says whether the run is over."""
        over = self.done == 1
        if time.time() - self.saved > SAVE_SECONDS or over:
            self.save()
            self.saved = time.time()
        if self.seconds - self.checked > CHECK_SECONDS or over:
            check()
            self.checked = self.seconds
        return over
