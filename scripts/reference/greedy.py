"""A plain greedy reader of the nano weights in PyTorch, slow on purpose: no cache, no batch, no graph.

Every token of the trunk, and every token of every branch, is computed from the picture and the whole token sequence before it; a branch
sees the trunk before its fork and nothing of other branches. The decode graph must say the same.
"""
from dataclasses import dataclass, field

import torch

from scripts.export.nano import cells_of
from scripts.train.layout import LayoutNet
from scripts.train.positions import branch_positions, trunk_positions
from scripts.train.reader import Reader
from scripts.train.vision import CELL_HEIGHT, CELL_WIDTH, SLOT_HEIGHT, SLOT_WIDTH, Vision, glyph_probabilities, inked


@dataclass
class Stream:
    """Tokens, and for each decoded one its log-probability and the gap to the second best."""

    tokens: list[int]
    forced: int
    logprobs: list[float] = field(default_factory=list)
    margins: list[float] = field(default_factory=list)


def kept_cells(ink: torch.Tensor) -> torch.Tensor:
    """Cells with ink `[V, 2]` (row, column), row-major."""
    return torch.nonzero(torch.from_numpy(inked(ink)))


def cell_positions(cells: torch.Tensor) -> torch.Tensor:
    """(0, y, x) of the cells' centres `[V, 3]`."""
    centre = (cells.float() + 0.5) * torch.tensor([CELL_HEIGHT, CELL_WIDTH])
    return torch.cat([torch.zeros(len(cells), 1), centre], 1)


class GreedyReader:
    def __init__(self, vision: Vision, layout: LayoutNet, reader: Reader):
        self.vision, self.layout, self.reader, self.vocabulary = vision, layout, reader, reader.vocabulary

    @torch.no_grad()
    def look(self, ink: torch.Tensor):
        """Visual tokens of a page: embeddings `[V, hidden]`, positions `[V, 3]`."""
        cells = kept_cells(ink)
        positions = cell_positions(cells)
        told = self.layout(ink)[0, :, cells[:, 0], cells[:, 1]].T
        masses = cells_of(glyph_probabilities(self.vision(ink)), CELL_HEIGHT // SLOT_HEIGHT, CELL_WIDTH // SLOT_WIDTH, cells)
        visual = self.reader.visual(told, masses, positions[:, [2, 1]])
        return visual, positions

    @torch.no_grad()
    def logprobs(self, page, tokens: list[int], positions) -> torch.Tensor:
        """Log-probabilities of the token after `tokens`, from scratch."""
        visual, visual_positions = page
        count, length = len(visual), len(tokens)
        text_positions = torch.tensor(positions)
        x = torch.cat([visual, self.reader.embed(torch.tensor(tokens), text_positions)])
        visible = torch.ones(count + length, count + length, dtype=torch.bool).tril()
        visible[:, :count] = True
        hidden, _ = self.reader.run(x, torch.cat([visual_positions, text_positions]), visible, count)
        return self.reader.logits(hidden[-1:]).log_softmax(-1)[0]

    def extend(self, page, before: list[int], stream: Stream, place, most: int) -> Stream:
        """Decodes until the end token or `most` tokens; `place(tokens)` gives the positions of `before + tokens`."""
        while len(stream.tokens) < most and stream.tokens[-1] != self.vocabulary.end:
            scores = self.logprobs(page, before + stream.tokens, place(stream.tokens))
            best = scores.topk(2)
            stream.tokens.append(int(best.indices[0]))
            stream.logprobs.append(float(best.values[0]))
            stream.margins.append(float(best.values[0] - best.values[1]))
        return stream

    def trunk(self, page, most: int, given: list[int] | None = None) -> Stream:
        """The trunk: free from BEGIN on, or after `given` tokens."""
        start = given or [self.vocabulary.begin]
        return self.extend(page, [], Stream(list(start), len(start)), lambda tokens: trunk_positions(self.vocabulary, tokens), most)

    def branch(self, page, trunk: list[int], fork: int, most: int) -> Stream:
        """The branch of the FORK at index `fork` of the trunk, which it does not see."""
        before = trunk[:fork]
        seen = trunk_positions(self.vocabulary, before)

        def place(tokens):
            return seen + branch_positions(self.vocabulary, trunk, fork, tokens)

        return self.extend(page, before, Stream([self.vocabulary.child], 1), place, most)
