"""Writes PyTorch modules as the ONNX graphs of a pack, with this project's input and output names."""
import warnings
from pathlib import Path

import onnx
import torch

from .decoder import Decoder, Step

OPSET = 17


def write_graph(module, inputs: dict, outputs: list[str], dynamic: dict, path: Path):
    """Exports `module` called with `inputs` (name -> example) to `path`; `dynamic` maps a name to {dimension: symbol}."""
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            module.eval(), tuple(inputs.values()), str(path), input_names=list(inputs), output_names=outputs,
            dynamic_axes=dynamic, opset_version=OPSET, dynamo=False, do_constant_folding=True,
        )  # fmt: skip
    graph = onnx.load(str(path))
    missing = set(inputs) - {entry.name for entry in graph.graph.input}
    assert not missing, f"the exporter dropped inputs: {missing}"
    onnx.checker.check_model(graph)
    onnx.save(graph, str(path))


def write_decode_graph(decoder: Decoder, path: Path, focal_layers=(), write=write_graph):
    """The decode graph of src/graphs/mod.rs, P = 1; rows, tokens, prefix, trunk and suffix lengths are free, zero included.
    With `focal_layers` it has the outputs for fixation, too."""
    shape = decoder.shape
    kv, dim, parts = shape.kv_heads, shape.head_dim, shape.position_parts
    rows, length, prefix, trunk, suffix = 3, 4, 7, 5, 6
    inputs = {
        "tokens": torch.zeros(1, rows, length, dtype=torch.int64),
        "positions": torch.zeros(1, rows, length, parts),
        "prefix_len": torch.full((shape.layers, 1), prefix),
        "trunk_visible": torch.full((1, rows), trunk),
        "suffix_len": torch.full((1, rows), suffix),
    }
    row_axes = {1: "R", 2: "M"}
    dynamic = {"tokens": row_axes, "positions": row_axes, "trunk_visible": {1: "R"}, "suffix_len": {1: "R"}}
    for layer in range(shape.layers):
        inputs[f"prefix_k.{layer}"] = torch.randn(1, kv, prefix, dim)
        inputs[f"prefix_v.{layer}"] = torch.randn(1, kv, dim, prefix)
        dynamic[f"prefix_k.{layer}"], dynamic[f"prefix_v.{layer}"] = {2: f"Lv{layer}"}, {3: f"Lv{layer}"}
        for part, shape_of in (("trunk", (1, kv, trunk, dim)), ("suffix", (1, rows, kv, suffix, dim))):
            for name in (f"{part}_k.{layer}", f"{part}_v.{layer}"):
                inputs[name] = torch.randn(*shape_of)
                dynamic[name] = {2: "Lt"} if part == "trunk" else {1: "R", 3: "Ls"}
    outputs = ["next_id", "next_logprob", "draft_logprob", "hidden"]
    for name in outputs:
        dynamic[name] = row_axes
    if focal_layers:
        outputs += ["focal_scores", "image_attention"]
        dynamic["focal_scores"], dynamic["image_attention"] = {2: "R", 3: f"Lv{focal_layers[0]}"}, {2: "R"}
    for layer in range(shape.layers):
        for name in (f"new_k.{layer}", f"new_v.{layer}"):
            outputs.append(name)
            dynamic[name] = {1: "R", 3: "M"}
    write(Step(decoder, focal_layers), inputs, outputs, dynamic, path)
