"""What `transformers` writes after a prompt, and the same with the pack's graphs: the difference is asserted here, the tokens are kept."""
import json
from pathlib import Path

import numpy as np
import onnxruntime
import torch

# Features and logits agree to this, fp32.
CLOSE = 1e-4


class Graphs:
    """A pack's graphs, run as the program runs them: prompt but its last token into the prefix, then a token at a time."""

    def __init__(self, folder: Path):
        self.manifest = json.loads((folder / "docparse.json").read_text())
        session = lambda name: onnxruntime.InferenceSession(str(folder / name), providers=["CPUExecutionProvider"])  # noqa: E731
        graphs = self.manifest["graphs"]
        self.vision, self.prefill, self.decode = (session(graphs[name]) for name in ("vision", "prefill", "decode"))
        self.upper = session(graphs["prefill_upper"]) if "prefill_upper" in graphs else None
        self.dims = self.manifest["dims"]

    def features(self, **inputs) -> np.ndarray:
        return self.vision.run(None, inputs)[0]

    def prefix(self, tokens, visual, features, positions) -> dict:
        inputs = {
            "tokens": np.asarray(tokens, np.int64), "visual": np.asarray(visual, np.int64), "features": features,
            "positions": np.asarray(positions, np.float32)[None],
        }  # fmt: skip
        prefix = called(self.prefill, inputs)
        if self.upper:
            prefix.pop("saliency")
            prefix |= called(self.upper, {"hidden": prefix.pop("hidden"), "positions": inputs["positions"]})
        return prefix

    def step(self, prefix: dict, tokens: list[int], positions) -> dict:
        """One call over `tokens` right after the prefix, no cache."""
        layers, heads, dim = self.dims["layers"], self.dims["kv_heads"], self.dims["head_dim"]
        inputs = {
            "tokens": np.asarray(tokens, np.int64)[None, None], "positions": np.asarray(positions, np.float32)[None, None],
            "prefix_len": np.full((layers, 1), prefix["prefix_k.0"].shape[2]), "trunk_visible": np.zeros((1, 1), np.int64),
            "suffix_len": np.zeros((1, 1), np.int64), "watched": np.zeros(0, np.int64), **prefix,
        }  # fmt: skip
        for layer in range(layers):
            for part in "kv":
                inputs[f"trunk_{part}.{layer}"] = np.zeros((1, heads, 0, dim), np.float32)
                inputs[f"suffix_{part}.{layer}"] = np.zeros((1, 1, heads, 0, dim), np.float32)
        return called(self.decode, inputs)


def called(session, inputs: dict) -> dict:
    return dict(zip([output.name for output in session.get_outputs()], session.run(None, inputs), strict=True))


@torch.no_grad()
def greedy(model, inputs: dict, tokens: list[int], most: int, end: int) -> dict:
    """`generate` after `tokens`: the tokens it adds, and the gap between the best two logits of each."""
    ids = torch.tensor([tokens])
    out = model.generate(
        input_ids=ids, attention_mask=torch.ones_like(ids), **inputs, do_sample=False, max_new_tokens=most, eos_token_id=end,
        pad_token_id=0, return_dict_in_generate=True, output_logits=True,
    )  # fmt: skip
    written = out.sequences[0, len(tokens):].tolist()
    logits = torch.stack([step[0] for step in out.logits])
    best = logits.float().topk(2).values
    gaps = (best[:, 0] - best[:, 1]).tolist()
    logprobs = logits.float().log_softmax(-1).max(-1).values.tolist()
    return {"tokens": written, "gaps": [round(gap, 6) for gap in gaps], "logprobs": [round(value, 6) for value in logprobs], "logits": logits}


def same_hidden(model, graphs: Graphs, step: dict, reference: torch.Tensor) -> float:
    """Largest difference between the logits of `step`'s last token and `reference`."""
    hidden = torch.from_numpy(step["hidden"][0, 0, -1])
    logits = model.get_output_embeddings()(hidden)
    return float((logits - reference).abs().max())


def rounded(values, places: int = 6) -> list:
    return [round(float(value), places) for value in np.asarray(values).ravel()]
