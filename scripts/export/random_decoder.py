"""A decode graph with random weights of a given shape, to measure with: `python -m scripts.export random -o FOLDER`."""
import json
from pathlib import Path

import torch

from .decoder import Decoder, DecoderShape
from .graphs import write_decode_graph


def export(shape: DecoderShape, focal_layers, out: Path):
    """Writes decode.onnx and shape.json (what `docparse bench --decoder` reads)."""
    out.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(5)
    # Positions turn every pair of dimensions, at the usual wavelengths.
    half = shape.head_dim // 2
    rotary = (10000.0 ** (-torch.arange(half).float() / half)).unsqueeze(0)
    write_decode_graph(Decoder(shape, rotary).eval(), out / "decode.onnx", focal_layers, saliency=True)
    described = {
        "layers": shape.layers, "kv_heads": shape.kv_heads, "head_dim": shape.head_dim, "position_parts": shape.position_parts,
        "hidden": shape.hidden, "vocabulary": shape.vocabulary, "focal_layers": list(focal_layers), "saliency": True,
    }  # fmt: skip
    (out / "shape.json").write_text(json.dumps(described, indent=1) + "\n")
