"""Words, numbers and phrases for the synthetic pages, in several languages."""
import unicodedata
from functools import cache
from pathlib import Path

from .alphabet import CHARACTERS, canonical
from .settings import DATA, PROSE

# Word list by language, with how often a page is in it. English is mostly the real pages' prose.
ENGLISH = "american-english"
LATIN = (
    "ngerman", "french", "spanish", "italian", "portuguese", "swedish", "danish", "catalan", "pl_PL", "cs_CZ", "tr_TR", "ro_RO", "hu_HU",
    "hr_HR", "lv_LV", "lt_LT",
)  # fmt: skip
OTHER_SCRIPTS = {"ru_RU": 0.07, "uk_UA": 0.03, "bg_BG": 0.03, "el_GR": 0.08}
SHARES = {ENGLISH: 0.44, **{name: 0.3 / len(LATIN) for name in LATIN}, **OTHER_SCRIPTS, "any": 0.05}
MOST_WORDS = 30000
NUMBER_FORMS = (
    lambda r: str(r.randint(0, 99)),
    lambda r: f"{r.uniform(0, 1000):.{r.randint(1, 3)}f}",
    lambda r: f"{r.randint(1, 999):,}",
    lambda r: f"{r.randint(1, 9999):,}.{r.randint(0, 99):02d}",
    lambda r: f"{r.uniform(0, 100):.1f}%",
    lambda r: f"{r.choice('$$€£¥')}{r.randint(1, 99999):,}",
    lambda r: f"{r.randint(1, 9999)} {r.choice('€€°£%₹‰')}",
    lambda r: f"{r.randint(0, 99)} {r.choice('±×÷=≈≤≥<>·−')} {r.randint(0, 99)}",
    lambda r: f"§ {r.randint(1, 400)}",
    lambda r: f"{r.randint(1, 31)}.{r.randint(1, 12)}.{r.randint(1950, 2026)}",
    lambda r: f"({r.randint(1, 20)})",
    lambda r: f"{r.randint(1900, 2026)}",
    lambda r: f"−{r.uniform(0, 10):.2f}",
    lambda r: f"{r.randint(1, 31):02d}/{r.randint(1, 12):02d}/{r.randint(1990, 2026)}",
)


@cache
def prose_lines() -> list[str]:
    return PROSE.read_text().split("\n") if PROSE.exists() else []


def encoding(listed: Path) -> str:
    """Of a hunspell dictionary: its affix file names it."""
    affixes = listed.with_suffix(".aff")
    if not affixes.exists():
        return "utf-8"
    named = next((line for line in affixes.read_bytes().split(b"\n") if line.startswith(b"SET")), b"SET UTF-8")
    return named.split()[1].decode().lower().replace("microsoft-", "")


@cache
def word_list(name: str) -> list[str]:
    """Words of a list or hunspell dictionary, spelled in the alphabet alone, evenly thinned out."""
    listed = next(path for path in sorted((DATA / "words").glob("*/usr/share/*/*")) if path.stem == name and path.suffix != ".aff")
    text = listed.read_bytes().decode(encoding(listed), "replace").lstrip("\ufeff")
    words = [unicodedata.normalize("NFC", line.split("/")[0].split("\t")[0].strip()) for line in text.split("\n")]
    words = [word for word in words if 1 < len(word) < 24 and all(chr(canonical(ord(c))) in CHARACTERS for c in word)]
    return words[:: max(1, len(words) // MOST_WORDS)]


def number(random_) -> str:
    return random_.choice(NUMBER_FORMS)(random_)


def quote(text: str) -> str:
    """A typst string."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


class Prose:
    """A page's text: words of one language, with numbers, punctuation and now and then a symbol among them.

    `any` is no language: made-up words of any characters, so that rare ones are seen often enough.
    """

    def __init__(self, random_):
        self.random_ = random_
        self.language = random_.choices(list(SHARES), weights=list(SHARES.values()))[0]
        self.latin = self.language not in OTHER_SCRIPTS and self.language != "any"
        # Share of words in capital letters, and of words with something attached.
        self.capitals = random_.choice((0.0, 0.0, 0.02, 0.1))
        self.odd = random_.choice((0.01, 0.03, 0.1))

    def made_up(self) -> str:
        letters = self.random_.choices(CHARACTERS, k=self.random_.randint(1, 9))
        return "".join(letters)

    def word(self) -> str:
        random_ = self.random_
        word = self.made_up() if self.language == "any" else random_.choice(word_list(self.language))
        if random_.random() < self.capitals:
            return word.upper()
        return word

    def odd_word(self, word: str) -> str:
        """With quotation marks, brackets, or a symbol before or after it."""
        before, after = self.random_.choice(("“”", "‘’", "„“", "«»", "‹›", "()", "[]", '""', "''", "‚‘", "⟨⟩", "¿?", "¡!"))
        kind = self.random_.random()
        if kind < 0.5:
            return before + word + after
        symbol = self.random_.choice(CHARACTERS)
        return symbol + word if kind < 0.6 else word + symbol if kind < 0.8 else f"{symbol} {word}"

    def phrase(self, count: int) -> str:
        """`count` words, or a little more."""
        random_ = self.random_
        words = []
        if self.language == ENGLISH and prose_lines() and random_.random() < 0.85:
            while len(words) < count:
                words += random_.choice(prose_lines()).split()
            words = words[:count]
        else:
            words = [self.word() + (random_.choice(",,,.;:–…!?") if random_.random() < 0.1 else "") for _ in range(count)]
        words = [self.odd_word(word) if random_.random() < self.odd else word for word in words]
        if random_.random() < 0.25:
            words[random_.randrange(count)] = number(random_)
        return " ".join(words)

    def sentence(self, least: int = 15, most: int = 110) -> str:
        text = self.phrase(self.random_.randint(least, most))
        text = text[0].upper() + text[1:]
        return text if text[-1] in ".!?:" else text + "."
