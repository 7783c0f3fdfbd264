"""New models with the configured sizes, and saved ones."""
import json
from pathlib import Path

from safetensors.torch import load_file

from scripts.export.decoder import DecoderShape

from .layout import LayoutNet
from .reader import HEAD_DIM, Reader
from .settings import SETTINGS, VOCABULARY
from .vision import Vision
from .vocabulary import Vocabulary


def load_vocabulary(folder: Path = VOCABULARY) -> Vocabulary:
    """From `characters.json` and `advances.json` of a folder."""
    advances = json.loads((folder / "advances.json").read_text())
    return Vocabulary(json.loads((folder / "characters.json").read_text()), advances)


def new_vision(vocabulary: Vocabulary) -> Vision:
    return Vision(vocabulary.glyphs, SETTINGS["vision"]["channels"], SETTINGS["vision"]["blocks"])


def new_reader(vocabulary: Vocabulary) -> Reader:
    options = SETTINGS["decoder"]
    shape = DecoderShape(
        vocabulary=vocabulary.size, hidden=options["width"], layers=options["layers"], heads=options["heads"],
        kv_heads=options["kv_heads"], head_dim=HEAD_DIM, feed_forward=options["feed_forward"], position_parts=3, norm_epsilon=1e-5,
    )  # fmt: skip
    return Reader(vocabulary, shape, options["focal_layers"])


def floats(weights: dict) -> dict:
    return {name: value.float() if value.is_floating_point() else value for name, value in weights.items()}


def load_vision(vocabulary: Vocabulary, path: Path) -> Vision:
    vision = new_vision(vocabulary)
    vision.load_state_dict(floats(load_file(path)))
    return vision.eval()


def load_layout(path: Path) -> LayoutNet:
    net = LayoutNet()
    net.load_state_dict(floats(load_file(path)))
    return net.eval()


def load_reader(vocabulary: Vocabulary, path: Path) -> Reader:
    reader = new_reader(vocabulary)
    reader.load_state_dict(floats(load_file(path)))
    return reader.eval()


def load_what_fits(model, weights: dict):
    """Tables may have rows more or fewer (kinds of numbers were added), the rest must be of the same shape or is left as it is."""
    own = model.state_dict()
    for name, value in weights.items():
        if name == "tokens.weight":
            count = min(len(value), len(own[name]))
            own[name][:count] = value[:count]
        elif name in own and own[name].shape == value.shape:
            own[name] = value
        else:
            print("not taken over:", name, tuple(value.shape))
    model.load_state_dict(own)
