"""The selection rules of FastKV (arXiv 2502.01068) in PyTorch, and the fixture that src/decode/retention.rs is tested against.
`python -m scripts.reference.retention` writes fixtures/reference/retention.json.

Scores are computed here from random queries and keys, by the paper's formulas: softmax of the window's scaled scores, causal inside the window;
sum over the window's queries; max pool (7, stride 1, same padding) for each query head; sum over the query heads of a kv head.
"""
import json
import math
from pathlib import Path

import torch
from torch.nn import functional

OUTPUT = Path(__file__).parents[2] / "fixtures/reference/retention.json"
WINDOW, POOL = 8, 7


def saliency(queries, keys):
    """Queries `[heads, n, D]`, keys `[kv_heads, n, D]` -> `[heads, n]`: what the last WINDOW queries pay each position."""
    heads, length, width = queries.shape
    keys = keys.repeat_interleave(heads // keys.shape[0], 0)
    window = queries[:, -WINDOW:]
    scores = window @ keys.transpose(1, 2) / math.sqrt(width)
    place = torch.arange(length)
    after = place[None] > place[-window.shape[1] :, None]
    return scores.masked_fill(after, -torch.inf).softmax(-1).sum(1)


def by_head(saliency, kv_heads):
    """Pooled and summed over the query heads of each kv head: `[kv_heads, n]`."""
    pooled = functional.max_pool1d(saliency[:, None], POOL, stride=1, padding=POOL // 2)[:, 0]
    return pooled.unflatten(0, (kv_heads, -1)).sum(1)


def best(scores, count):
    """The places of the largest scores, of equal ones the first, ascending."""
    order = torch.sort(scores, descending=True, stable=True).indices
    return sorted(order[:count].tolist())


def propagated(saliency, rate, text_tail):
    visual = saliency.shape[1] - text_tail
    count = min(max(math.ceil(torch.tensor(rate) * visual), 1), visual)
    scores = by_head(saliency, 1)[0]
    return best(scores[:visual], count) + list(range(visual, saliency.shape[1]))


def retained(saliency, kv_heads, count, own, text_tail):
    length = saliency.shape[1]
    visual = length - text_tail
    kept = []
    for scores in by_head(saliency, kv_heads):
        scores = scores[:visual].clone()
        scores[own] = -1
        kept.append(sorted({*best(scores, min(count, visual - len(own))), *own}) + list(range(visual, length)))
    return kept


def rounded(saliency):
    """Numbers that JSON carries exactly, some of them equal."""
    return (saliency * 1024).round() / 1024


def main():
    torch.manual_seed(3)
    cases = []
    for length, text_tail in ((9, 8), (20, 8), (60, 9), (130, 12)):
        for heads, kv_heads in ((4, 2), (2, 2), (3, 1)):
            scores = rounded(saliency(2 * torch.randn(heads, length, 16), torch.randn(kv_heads, length, 16)))
            visual = length - text_tail
            own = sorted(torch.randperm(visual)[: visual // 5].tolist())
            counts = sorted({1, max(1, visual // 10), max(1, visual // 2)})
            cases.append({
                "saliency": [float(score) for score in scores.flatten()], "len": length, "kv_heads": kv_heads, "text_tail": text_tail, "own": own,
                "propagated": [[rate, propagated(scores, rate, text_tail)] for rate in (1.0, 0.5, 0.2, 0.05)],
                "retained": [[count, retained(scores, kv_heads, count, own, text_tail)] for count in counts],
            })  # fmt: skip
    OUTPUT.write_text(json.dumps(cases) + "\n")


if __name__ == "__main__":
    main()
