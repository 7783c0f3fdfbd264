"""Writes fixtures/packs/{hpd,...}: `python -m scripts.reference.published [FAMILY ...]` in the repository's root."""
import sys
from pathlib import Path

from . import hpd, idefics3, padoc, qwen2_5_vl

FAMILIES = {"hpd": hpd, "olmocr": qwen2_5_vl, "doctags": idefics3, "padoc": padoc}
FOLDER = Path(__file__).parents[3] / "fixtures/packs"

for name in sys.argv[1:] or FAMILIES:
    FAMILIES[name].main(FOLDER / name)
