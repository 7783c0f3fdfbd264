"""Words, numbers and phrases for the synthetic pages."""
from functools import cache

from .settings import DATA, PROSE

NUMBER_FORMS = (
    lambda r: str(r.randint(0, 99)),
    lambda r: f"{r.uniform(0, 1000):.{r.randint(1, 3)}f}",
    lambda r: f"{r.randint(1, 999):,}",
    lambda r: f"{r.randint(1, 9999):,}.{r.randint(0, 99):02d}",
    lambda r: f"{r.uniform(0, 100):.1f}%",
    lambda r: f"${r.randint(1, 99999):,}",
    lambda r: f"({r.randint(1, 20)})",
    lambda r: f"{r.randint(1900, 2026)}",
    lambda r: f"−{r.uniform(0, 10):.2f}",
    lambda r: f"{r.randint(1, 31):02d}/{r.randint(1, 12):02d}/{r.randint(1990, 2026)}",
)


@cache
def prose_lines() -> list[str]:
    return PROSE.read_text().split("\n") if PROSE.exists() else []


@cache
def dictionary() -> list[str]:
    path = next((DATA / "words").glob("*/usr/share/dict/american-english"))
    return [word for word in path.read_text().split() if word.isascii()]


def number(random_) -> str:
    return random_.choice(NUMBER_FORMS)(random_)


def phrase(random_, count: int) -> str:
    """`count` words, mostly of prose, sometimes with a number among them."""
    words = []
    if prose_lines() and random_.random() < 0.8:
        while len(words) < count:
            words += random_.choice(prose_lines()).split()
        words = words[:count]
    else:
        words = [random_.choice(dictionary()) for _ in range(count)]
    if random_.random() < 0.25:
        words[random_.randrange(count)] = number(random_)
    return " ".join(words)


def sentence(random_, least: int = 15, most: int = 110) -> str:
    text = phrase(random_, random_.randint(least, most))
    text = text[0].upper() + text[1:]
    return text if text[-1] in ".!?:" else text + "."


def quote(text: str) -> str:
    """A typst string."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
