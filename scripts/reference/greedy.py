"""A plain greedy reader of the nano weights in PyTorch, slow on purpose: no cache, no batch, no graph.

Every token of the trunk, and every token of every branch, is computed from the picture and the whole token sequence before it; a branch
sees the trunk before its fork and nothing of other branches. The decode graph must say the same.
"""
from dataclasses import dataclass, field

import torch

from scripts.train.layout import LayoutNet
from scripts.train.positions import branch_positions, trunk_positions
from scripts.train.reader import Reader
from scripts.train.read_glyphs import take_characters
from scripts.train.vision import Vision, glyph_probabilities, inked
from scripts.train.visual_tokens import VisualTokens, visual_tokens


@dataclass
class Stream:
    """Tokens, and for each decoded one its log-probability and the gap to the second best."""

    tokens: list[int]
    forced: int
    logprobs: list[float] = field(default_factory=list)
    margins: list[float] = field(default_factory=list)


@dataclass
class Look:
    """A page's visual tokens: what they are, the cells they lie in `[V, 2]`, positions `[V, 3]` (0, y, x), and their embeddings `[V, hidden]`."""

    tokens: VisualTokens
    cells: torch.Tensor
    positions: torch.Tensor
    embeddings: torch.Tensor


class GreedyReader:
    def __init__(self, vision: Vision, layout: LayoutNet, reader: Reader):
        self.vision, self.layout, self.reader, self.vocabulary = vision, layout, reader, reader.vocabulary

    @torch.no_grad()
    def look(self, ink: torch.Tensor) -> Look:
        grid = inked(ink)
        tokens = visual_tokens(take_characters(glyph_probabilities(self.vision(ink))[0].numpy()), grid)
        cells, xy = torch.from_numpy(tokens.cells(grid)), torch.from_numpy(tokens.xy).float()
        told = self.layout(ink)[0, :, cells[:, 0], cells[:, 1]].T
        embeddings = self.reader.visual(torch.from_numpy(tokens.classes), torch.from_numpy(tokens.facts).float(), told, xy)
        return Look(tokens, cells, torch.cat([torch.zeros(len(xy), 1), xy.flip(-1)], 1), embeddings)

    @torch.no_grad()
    def logprobs(self, page: Look, tokens: list[int], positions) -> torch.Tensor:
        """Log-probabilities of the token after `tokens`, from scratch."""
        count, length = len(page.embeddings), len(tokens)
        text_positions = torch.tensor(positions)
        x = torch.cat([page.embeddings, self.reader.embed(torch.tensor(tokens), text_positions)])
        visible = torch.ones(length, count + length, dtype=torch.bool).tril(count)
        hidden, _ = self.reader.run(x, torch.cat([page.positions, text_positions]), visible, count)
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
