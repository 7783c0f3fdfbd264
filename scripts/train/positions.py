"""The position rule `grounded-steps`: where on the page a text token is, from the tokens before it.

A line starts with [down] (step from the last line's centre; or [y], where the step is out of range) and [pitch] (mean width of a
character); a word with [gap] (from the estimated right edge of the word before, at a line's start from the region's left edge; or [x], where
it is out of range). The [gap] or [x] is the space. All of it can be copied from the line before, and corrects what went wrong before.
"""
from dataclasses import dataclass

from .vocabulary import Vocabulary


@dataclass
class GroundedSteps:
    """Running state of one stream; px of the raster. `feed` reads a token, moves on, and returns the token's (y, x)."""

    vocabulary: Vocabulary
    y: float = 0.0
    x: float = 0.0
    line_x: float = 0.0
    pitch: float = 0.0
    advance: float = 0.0

    @property
    def right_edge(self) -> float:
        return self.x + self.advance * self.pitch

    def feed(self, token: int) -> tuple[float, float]:
        vocabulary = self.vocabulary
        if token in vocabulary.y or token in vocabulary.down:
            self.y = vocabulary.y.value(token) if token in vocabulary.y else self.y + vocabulary.down.value(token)
            self.x, self.pitch, self.advance = self.line_x, 0.0, 0.0
        elif token in vocabulary.x:
            self.x, self.advance = vocabulary.x.value(token), 0.0
        elif token in vocabulary.gap:
            self.x, self.advance = self.right_edge + vocabulary.gap.value(token), 0.0
        elif token in vocabulary.pitch:
            self.pitch, self.advance = vocabulary.pitch.value(token), 0.0
        elif self.pitch > 0:
            self.advance += vocabulary.advance(token)
        # The centre of the character to come.
        return self.y, self.x + ((self.advance + 0.5) * self.pitch if self.pitch > 0 else 0.0)


def branch_start(vocabulary: Vocabulary, trunk: list[int], fork: int) -> GroundedSteps:
    """State of the branch that forks at the trunk token with index `fork`: the top left corner of the box before it."""
    x, y = trunk[fork - 4], trunk[fork - 3]
    left = vocabulary.x.value(x) if x in vocabulary.x else 0.0
    return GroundedSteps(vocabulary, vocabulary.y.value(y) if y in vocabulary.y else 0.0, left, left)


def trunk_positions(vocabulary: Vocabulary, trunk: list[int]) -> list[tuple[float, float, float]]:
    """(order, y, x) of trunk tokens: the last coordinates seen."""
    y = x = 0.0
    positions = []
    for order, token in enumerate(trunk, 1):
        if token in vocabulary.x:
            x = vocabulary.x.value(token)
        elif token in vocabulary.y:
            y = vocabulary.y.value(token)
        positions.append((float(order), y, x))
    return positions


def branch_positions(vocabulary: Vocabulary, trunk: list[int], fork: int, tokens: list[int]) -> list[tuple[float, float, float]]:
    """(order, y, x) of a branch's tokens; its first one, CHILD, takes the order of the FORK."""
    state = branch_start(vocabulary, trunk, fork)
    return [(float(fork + 1 + i), *state.feed(token)) for i, token in enumerate(tokens)]
