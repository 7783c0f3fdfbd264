"""The training settings: `config.toml` of this folder, and the folders that it names."""
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = tomllib.loads((Path(__file__).parent / "config.toml").read_text())
DATA = ROOT / SETTINGS["paths"]["data"]
RUNS = ROOT / SETTINGS["paths"]["runs"]
DOCUMENTS = DATA / "documents"
FONTS = DATA / "fonts"
REAL_PAGES = DATA / "real"
SYNTHETIC_PAGES = DATA / "synthetic"
VOCABULARY = DATA / "alphabet"
PROSE = DATA / "prose.txt"


def is_test(name: str) -> bool:
    """Is the page of this name held out? Real pages are named by a hash (hexadecimal), synthetic ones by their seed (decimal)."""
    number = int(name) if len(name) == 8 else int(name, 16)
    return number % SETTINGS["split"]["test_every"] == 0
