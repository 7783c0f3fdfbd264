"""A decode graph with random weights of a given shape, to measure with: `python -m scripts.export random -o FOLDER`."""
import json
from pathlib import Path

import torch

from .checkpoint import Refused
from .decoder import Decoder, DecoderShape, default_focal_layers
from .graphs import write_decode_graph


def export(shape: DecoderShape, focal_layers: list[int] | None, out: Path):
    """Writes decode.onnx and shape.json (what `docparse bench --decoder` reads)."""
    focal_layers = default_focal_layers(shape.layers) if focal_layers is None else focal_layers
    if focal_layers != sorted({layer for layer in focal_layers if 0 <= layer < shape.layers}):
        raise Refused(f"--focal-layers {','.join(map(str, focal_layers))}: layers 0 to {shape.layers - 1}, ascending")
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
