"""The nano reader's tokens: characters, structure, kinds of regions, and numbers for places and distances."""
from dataclasses import dataclass

# Names of this project's page types, in token order.
KINDS = (
    "text", "title", "heading", "list", "table", "formula", "figure", "caption", "code",
    "header", "footer", "page_number", "footnote",
)  # fmt: skip
STRUCTURE = ("unknown", "space", "end", "child", "fork", "begin", "cell", "row")


@dataclass(frozen=True)
class NumberRange:
    """Token ids that stand for numbers: value = (id - first) * bin + offset, px of the raster."""

    first: int
    count: int
    bin: float
    offset: float = 0.0

    @property
    def end(self) -> int:
        return self.first + self.count

    def token(self, value: float) -> int:
        return self.first + min(self.count - 1, max(0, round((value - self.offset) / self.bin)))

    def spans(self, value: float) -> bool:
        """Is there a token for the value?"""
        return 0 <= round((value - self.offset) / self.bin) < self.count

    def value(self, token: int) -> float:
        return (token - self.first) * self.bin + self.offset

    def moved(self, token: int, bins: int) -> int:
        """The token so many bins on, or the last one on that side."""
        return min(self.end - 1, max(self.first, token + bins))

    def __contains__(self, token: int) -> bool:
        return self.first <= token < self.end


class Vocabulary:
    """Token ids. Character `i` of `characters` (code points) is token `i`; glyph class 0 is "none", class `c` is token `c - 1`."""

    def __init__(self, characters: list[int], advances: list[float] | None = None):
        self.characters = characters
        self.token_of = {code: i for i, code in enumerate(characters)}
        for i, name in enumerate(STRUCTURE):
            setattr(self, name, len(characters) + i)
        self.first_kind = len(characters) + len(STRUCTURE)
        self.x = NumberRange(self.first_kind + len(KINDS), 320, 6.0)
        self.y = NumberRange(self.x.end, 320, 6.0)
        self.pitch = NumberRange(self.y.end, 96, 0.25)
        self.gap = NumberRange(self.pitch.end, 120, 2.0, -40.0)
        self.down = NumberRange(self.gap.end, 80, 2.0, -24.0)
        self.size = self.down.end
        # Width of a character relative to the mean one, as measured by `scripts.train.advances`.
        self.advances = advances or [1.0] * self.glyphs

    @property
    def glyphs(self) -> int:
        """Characters that the vision graph tells apart, "unknown" among them."""
        return len(self.characters) + 1

    def advance(self, token: int) -> float:
        return self.advances[token] if token < self.glyphs else 1.0

    def character(self, code: int) -> int:
        return self.token_of.get(code, self.unknown)

    def kind(self, name: str) -> int:
        return self.first_kind + KINDS.index(name)

    def kind_of(self, token: int) -> str | None:
        index = token - self.first_kind
        return KINDS[index] if 0 <= index < len(KINDS) else None
