"""Runs a pack's ONNX graphs on a page the way docparse does: prefix once, trunk, then all branches as rows of one call a step."""
import numpy as np
import onnxruntime

from scripts.train.positions import branch_positions, trunk_positions

from .greedy import Look


def run(session, inputs: dict) -> dict:
    """Outputs by name."""
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, inputs), strict=True))


class Pack:
    def __init__(self, folder, vocabulary, layers: int, kv_heads: int, head_dim: int):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.log_severity_level = 3
        session = lambda name: onnxruntime.InferenceSession(str(folder / name), options, providers=["CPUExecutionProvider"])  # noqa: E731
        self.vision, self.prefill, self.decode = session("vision.onnx"), session("prefill.onnx"), session("decode.onnx")
        # The layers above token-selective propagation.
        self.prefill_upper = session("prefill_upper.onnx") if (folder / "prefill_upper.onnx").exists() else None
        self.vocabulary, self.layers, self.kv_heads, self.head_dim = vocabulary, layers, kv_heads, head_dim

    def prefix(self, ink: np.ndarray, look: Look) -> dict:
        features, _ = self.vision.run(None, {"ink": ink})
        positions, tokens = look.positions.numpy()[None], look.tokens
        facts = tokens.facts.astype(np.float32)
        shown = {"cells": look.cells.numpy(), "classes": tokens.classes, "facts": facts, "positions": positions}
        prefix = run(self.prefill, {"features": features, **shown})
        if self.prefill_upper:
            prefix |= run(self.prefill_upper, {"hidden": prefix["hidden"], "positions": positions})
        return {name: value for name, value in prefix.items() if name.startswith("prefix_")}

    def empty(self, rows: int | None) -> list[np.ndarray]:
        """Empty trunk (`rows` None) or suffix keys of every layer; values alike."""
        shape = (1, self.kv_heads, 0, self.head_dim) if rows is None else (1, rows, self.kv_heads, 0, self.head_dim)
        return [np.zeros(shape, np.float32) for _ in range(2 * self.layers)]

    def step(self, prefix, trunk, suffix, tokens, positions, trunk_visible, suffix_len) -> dict:
        """One call. `trunk` and `suffix`: keys and values of layer 0, of layer 1, ..."""
        inputs = {
            "tokens": np.asarray(tokens, np.int64)[None], "positions": np.asarray(positions, np.float32)[None],
            "prefix_len": np.full((self.layers, 1), prefix["prefix_k.0"].shape[2]),
            "trunk_visible": np.asarray(trunk_visible, np.int64)[None], "suffix_len": np.asarray(suffix_len, np.int64)[None], **prefix,
        }  # fmt: skip
        if any(wanted.name == "watched" for wanted in self.decode.get_inputs()):
            inputs["watched"] = np.zeros(0, np.int64)
        for layer in range(self.layers):
            inputs[f"trunk_k.{layer}"], inputs[f"trunk_v.{layer}"] = trunk[2 * layer], trunk[2 * layer + 1]
            inputs[f"suffix_k.{layer}"], inputs[f"suffix_v.{layer}"] = suffix[2 * layer], suffix[2 * layer + 1]
        return run(self.decode, inputs)

    def new_rows(self, outputs) -> list[np.ndarray]:
        return [outputs[f"new_{part}.{layer}"] for layer in range(self.layers) for part in ("k", "v")]

    def feed_trunk(self, prefix, tokens: list[int]):
        """Trunk keys and values after one call over all of its tokens, and the call's outputs."""
        positions = trunk_positions(self.vocabulary, tokens)
        outputs = self.step(prefix, self.empty(None), self.empty(1), [tokens], [positions], [0], [0])
        return [rows[:, 0] for rows in self.new_rows(outputs)], outputs

    def decode_trunk(self, prefix, most: int):
        """Greedy trunk, one token a call -> tokens, log-probabilities."""
        tokens, logprobs, trunk = [self.vocabulary.begin], [], self.empty(None)
        while len(tokens) < most and tokens[-1] != self.vocabulary.end:
            position = trunk_positions(self.vocabulary, tokens)[-1]
            outputs = self.step(prefix, trunk, self.empty(1), [[tokens[-1]]], [[position]], [len(tokens) - 1], [0])
            trunk = [np.concatenate([old, new[:, 0]], 2) for old, new in zip(trunk, self.new_rows(outputs), strict=True)]
            tokens.append(int(outputs["next_id"][0, 0, 0]))
            logprobs.append(float(outputs["next_logprob"][0, 0, 0]))
        return tokens, logprobs

    def decode_branches(self, prefix, trunk_rows, trunk: list[int], forks: list[int], most: int):
        """Greedy branches, all as rows of one call a step -> per branch tokens, log-probabilities."""
        tokens, logprobs = [[self.vocabulary.child] for _ in forks], [[] for _ in forks]
        suffix = self.empty(len(forks))
        for length in range(most - 1):
            positions = [[branch_positions(self.vocabulary, trunk, fork, row)[-1]] for fork, row in zip(forks, tokens, strict=True)]
            outputs = self.step(prefix, trunk_rows, suffix, [[row[-1]] for row in tokens], positions, forks, [length] * len(forks))
            suffix = [np.concatenate([old, new], 3) for old, new in zip(suffix, self.new_rows(outputs), strict=True)]
            for i, row in enumerate(tokens):
                row.append(int(outputs["next_id"][0, i, 0]))
                logprobs[i].append(float(outputs["next_logprob"][0, i, 0]))
        return [cut(self.vocabulary.end, row, scores) for row, scores in zip(tokens, logprobs, strict=True)]


def cut(end: int, tokens: list[int], logprobs: list[float]):
    """Up to and with the first end token."""
    if end in tokens:
        tokens = tokens[: tokens.index(end) + 1]
    return tokens, logprobs[: len(tokens) - 1]
