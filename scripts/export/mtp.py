"""The multi-token head of every pack (P-MTP): one small block, applied K times, drafts K tokens from one hidden state of the decoder.

An application takes a hidden state and the token after it: RMSNorm of the state and of the token's embedding, joined and mapped to the hidden
width, SwiGLU with a residual, RMSNorm. That is the next hidden state, and the decoder's own output matrix reads the draft from it. No attention,
no cache. The graph: `hidden [N, H]` and `tokens [N]` -> `drafts [N, K]` (the tokens after `tokens`) and `probabilities [N, K]`.
"""
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional

from .decoder import Decoder, DecoderShape, RmsNorm
from .graphs import write_graph

DRAFTS = 6


class MultiTokenHead(nn.Module):
    def __init__(self, width: int, feed_forward: int, epsilon: float):
        super().__init__()
        self.hidden_norm, self.token_norm = RmsNorm(width, epsilon), RmsNorm(width, epsilon)
        self.join = nn.Linear(2 * width, width, bias=False)
        self.gate = nn.Linear(width, feed_forward, bias=False)
        self.up = nn.Linear(width, feed_forward, bias=False)
        self.down = nn.Linear(feed_forward, width, bias=False)
        self.norm = RmsNorm(width, epsilon)

    def forward(self, hidden, embedding):
        """The hidden state after one more token, both `[..., H]`."""
        x = self.join(torch.cat([self.hidden_norm(hidden), self.token_norm(embedding)], -1))
        return self.norm(x + self.down(functional.silu(self.gate(x)) * self.up(x)))


def head_of(shape: DecoderShape) -> MultiTokenHead:
    return MultiTokenHead(shape.hidden, shape.feed_forward, shape.norm_epsilon)


class Draft(nn.Module):
    """K applications, each fed with the token that the one before drafted."""

    def __init__(self, decoder: Decoder, head: MultiTokenHead, drafts: int):
        super().__init__()
        self.embedding, self.output, self.head, self.drafts = decoder.embedding, decoder.head, head, drafts

    def forward(self, hidden, tokens):
        drafted, probabilities = [], []
        for _ in range(self.drafts):
            hidden = self.head(hidden, self.embedding(tokens))
            logits = self.output(hidden)
            best, tokens = logits.max(-1)
            drafted.append(tokens)
            probabilities.append((best - logits.logsumexp(-1)).exp())
        return torch.stack(drafted, 1), torch.stack(probabilities, 1)


def write_mtp_graph(decoder: Decoder, head: MultiTokenHead, path: Path, drafts: int = DRAFTS, write=write_graph):
    inputs = {"hidden": torch.randn(3, decoder.shape.hidden), "tokens": torch.tensor([1, 2, 3])}
    dynamic = {name: {0: "N"} for name in ("hidden", "tokens", "drafts", "probabilities")}
    write(Draft(decoder, head, drafts), inputs, ["drafts", "probabilities"], dynamic, path)
