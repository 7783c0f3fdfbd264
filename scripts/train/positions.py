"""The position rule `grounded-words`: where on the page a text token is, from the tokens before it."""
from dataclasses import dataclass

from .vocabulary import Vocabulary


@dataclass
class GroundedWords:
    """Running state of one stream; px of the raster. `feed` returns the (y, x) of a token and moves on."""

    vocabulary: Vocabulary
    y: float = 0.0
    x: float = 0.0
    pitch: float = 0.0
    characters: int = 0

    def feed(self, token: int) -> tuple[float, float]:
        vocabulary = self.vocabulary
        if token in vocabulary.y:
            self.y, self.pitch = vocabulary.y.value(token), 0.0
        elif token in vocabulary.x:
            self.x, self.characters = vocabulary.x.value(token), 0
        elif token in vocabulary.pitch:
            self.pitch, self.characters = vocabulary.pitch.value(token), 0
        elif self.pitch > 0:
            self.characters += 1
        # The centre of the character to come.
        return self.y, self.x + ((self.characters + 0.5) * self.pitch if self.pitch > 0 else 0.0)


def branch_start(vocabulary: Vocabulary, trunk: list[int], fork: int) -> GroundedWords:
    """State of the branch that forks at the trunk token with index `fork`: the top left corner of the box before it."""
    x, y = trunk[fork - 4], trunk[fork - 3]
    return GroundedWords(vocabulary, vocabulary.y.value(y) if y in vocabulary.y else 0.0, vocabulary.x.value(x) if x in vocabulary.x else 0.0)


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
