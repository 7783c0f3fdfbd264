"""Weights of one alphabet as a start for another. `python -m scripts.train.carry_over FROM TO`

FROM holds vision.safetensors, decoder.safetensors (either may be missing) and characters.json; TO gets weights for the present alphabet. What
belongs to a character moves with its code point; a new character starts like the letter that it has an accent over, or like the mean one.
"""
import argparse
import json
import unicodedata
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

from .loading import floats, load_vocabulary, load_what_fits, new_reader, new_vision
from .vocabulary import Vocabulary

# Latin letters that print like these Greek and Cyrillic ones.
TWINS = dict(zip("АВЕКМНОРСТХаеорсухіІΑΒΕΖΗΙΚΜΝΟΡΤΥΧονυικ", "ABEKMHOPCTXaeopcyxiIABEZHIKMNOPTYXovuik", strict=True))
# How much less likely a new character is than the one that it starts like, in the vision graph's logits.
BIAS = -3.0


def ancestor(code: int, old: Vocabulary) -> int | None:
    """The old token that the character starts from."""
    base = unicodedata.normalize("NFD", chr(code))[0]
    for candidate in (chr(code), base, TWINS.get(chr(code), ""), TWINS.get(base, "")):
        if candidate and ord(candidate) in old.token_of:
            return old.token_of[ord(candidate)]
    return None


def glyph_rows(rows: torch.Tensor, old: Vocabulary, new: Vocabulary, first: int = 0, bias: float = 0.0) -> torch.Tensor:
    """`rows [first + old glyphs, ...]` -> the same for the new alphabet's; the first ones and "unknown" (last) are kept."""
    mean = rows[first:].mean(0, keepdim=True)
    parts = [rows[:first]]
    for code in new.characters:
        token = ancestor(code, old)
        row = mean if token is None else rows[first + token : first + token + 1]
        parts.append(row if code in old.token_of else row + bias)
    return torch.cat([*parts, rows[first + old.unknown : first + old.unknown + 1]])


def vision_weights(weights: dict, old: Vocabulary, new: Vocabulary) -> dict:
    result = dict(weights)
    for name, bias in (("head.weight", 0.0), ("head.bias", BIAS)):
        sides = weights[name].unflatten(0, (2, old.glyphs + 1))
        result[name] = torch.cat([glyph_rows(side, old, new, first=1, bias=bias) for side in sides])
    return result


def decoder_weights(weights: dict, old: Vocabulary, new: Vocabulary) -> dict:
    """A new character is read as a weaker form of its ancestor, and not written: a copy would win as often as the ancestor does."""
    result = dict(weights)
    spread = torch.Generator().manual_seed(0)
    strangers = torch.tensor([code not in old.token_of for code in new.characters] + [False])
    codes = glyph_rows(weights["character_codes"], old, new)
    codes[strangers] = 0.7 * codes[strangers] + 0.1 * torch.randn(codes[strangers].shape, generator=spread)
    table = glyph_rows(weights["tokens.weight"][: old.glyphs], old, new)
    table[strangers] = 0
    result["character_codes"] = codes
    result["tokens.weight"] = torch.cat([table, weights["tokens.weight"][old.glyphs :]])
    return result


def main():
    parser = argparse.ArgumentParser(prog="python -m scripts.train.carry_over")
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path)
    arguments = parser.parse_args()
    old, new = Vocabulary(json.loads((arguments.source / "characters.json").read_text())), load_vocabulary()
    arguments.target.mkdir(parents=True, exist_ok=True)
    for name, make, convert in (("vision", new_vision, vision_weights), ("decoder", new_reader, decoder_weights)):
        path = arguments.source / f"{name}.safetensors"
        if path.exists():
            model = make(new)
            load_what_fits(model, convert(floats(load_file(path)), old, new))
            save_file(model.state_dict(), arguments.target / path.name)


if __name__ == "__main__":
    main()
