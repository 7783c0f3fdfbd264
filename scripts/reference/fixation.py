"""The selection rules of fixation (FastOCR, arXiv 2605.17447) in numpy, and the fixture that src/decode/fixation.rs is tested against.
`python -m scripts.reference.fixation` writes fixtures/reference/fixation.json."""
import json
from pathlib import Path

import numpy as np

OUTPUT = Path(__file__).parents[2] / "fixtures/reference/fixation.json"
FOCAL_LAYERS = 2


def image_attention(weights, prefix_length):
    """`weights [layers, heads, keys]`: attention of one token -> share that falls on the prefix, by layer, mean over heads."""
    return weights[:, :, :prefix_length].sum(-1).mean(1)


def focal_scores(weights, prefix_length):
    """`weights [heads, keys]` of a focal layer -> `[prefix_length]`, mean over heads."""
    return weights[:, :prefix_length].mean(0)


def choose_focal(candidates, attention):
    """The candidates with the largest image attention, in the order of the layers."""
    best = sorted(candidates, key=lambda layer: (-attention[layer], layer))[:FOCAL_LAYERS]
    return sorted(best)


def governing(layers, focal):
    """For each layer the index of the focal layer whose selection it reads: the last one before it, the deepest if there is none."""
    rule = []
    for layer in range(layers):
        before = [index for index, f in enumerate(focal) if f < layer]
        rule.append(None if layer in focal else before[-1] if before else len(focal) - 1)
    return rule


def select(scores, tau, text_tail):
    """The top `tau` of the visual positions, and all text behind them."""
    visual = len(scores) - text_tail
    wanted = min(max(int(np.ceil(np.float32(tau) * np.float32(visual))), 1), visual)
    order = np.argsort(-scores[:visual], kind="stable")[:wanted]
    return np.concatenate([np.sort(order), np.arange(visual, len(scores))]).astype(int)


def main():
    random = np.random.default_rng(11)
    layers, heads, candidates = 8, 4, [2, 3, 5, 6]
    shares = np.zeros(layers)
    cases = []
    for tau in (1.0, 0.5, 0.2, 0.1, 0.05, 0.02):
        for prefix, text_tail in ((1, 0), (7, 2), (40, 0), (60, 5)):
            logits = 2 * random.standard_normal((layers, heads, prefix + 9))
            weights = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
            shares += image_attention(weights, prefix)
            # Coarse numbers, so that some are equal.
            scores = np.round(focal_scores(weights[2], prefix), 2 if tau == 0.2 else 6).astype(np.float32)
            chosen = select(scores, tau, text_tail)
            cases.append({"scores": [float(s) for s in scores], "tau": tau, "text_tail": text_tail, "selected": chosen.tolist()})
    focal = choose_focal(candidates, shares)
    reference = {"layers": layers, "candidates": candidates, "image_attention": shares.tolist(), "focal": focal,
                 "governing": governing(layers, focal), "cases": cases}  # fmt: skip
    OUTPUT.write_text(json.dumps(reference) + "\n")


if __name__ == "__main__":
    main()
