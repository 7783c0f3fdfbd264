"""A training run: its folder with log, resumable state and newest weights."""
import json
import time

import torch
from safetensors.torch import save_file

from .settings import RUNS


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
