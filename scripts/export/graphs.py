"""Writes PyTorch modules as the ONNX graphs of a pack, with this project's input and output names."""
import tempfile
import warnings
from pathlib import Path

import onnx
import torch

from .decoder import Decoder, DecoderShape, Step

OPSET = 17


# Weights beyond this go into a file beside the graph: a protobuf holds 2 GiB.
INLINE_BYTES = 1 << 30


def export_onnx(module, inputs: dict, outputs: list[str], dynamic: dict, path: Path):
    """Runs the exporter; arguments as those of `write_graph`."""
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            module.eval(), tuple(inputs.values()), str(path), input_names=list(inputs), output_names=outputs,
            dynamic_axes=dynamic, opset_version=OPSET, dynamo=False, do_constant_folding=True,
        )  # fmt: skip


def check_inputs(graph: onnx.ModelProto, inputs: dict):
    """The exporter leaves inputs out that it thinks are not used."""
    missing = set(inputs) - {entry.name for entry in graph.graph.input}
    assert not missing, f"the exporter dropped inputs: {missing}"


def write_graph(module, inputs: dict, outputs: list[str], dynamic: dict, path: Path):
    """Exports `module` called with `inputs` (name -> example) to `path`; `dynamic` maps a name to {dimension: symbol}. The weights of large
    models lie beside it in `<path>.data`."""
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        # The exporter writes a file for each tensor of a large model.
        exported = Path(folder) / path.name
        export_onnx(module, inputs, outputs, dynamic, exported)
        graph = onnx.load(str(exported))
    check_inputs(graph, inputs)
    large = sum(value.numel() * value.element_size() for value in module.parameters()) > INLINE_BYTES
    data = f"{path.name}.data"
    (path.parent / data).unlink(missing_ok=True)
    onnx.save(graph, str(path), save_as_external_data=large, location=data if large else None)
    onnx.checker.check_model(str(path))


def prefix_names(layers) -> tuple[list[str], dict]:
    """Outputs of a prefill graph over `layers`, and their dynamic axes."""
    names = [f"prefix_{part}.{layer}" for layer in layers for part in "kv"]
    return names, {name: {2: "V"} if "_k" in name else {3: "V"} for name in names}


def write_lower_prefill(module, inputs: dict, dynamic: dict, layers, path: Path, write=write_graph):
    """A prefill graph that ends with the last of `layers`: it returns hidden states and saliency, too."""
    names, axes = prefix_names(layers)
    dynamic = {**dynamic, **axes, "hidden": {0: "V"}, "saliency": {1: "V"}}
    write(module, inputs, ["hidden", "saliency", *names], dynamic, path)


def write_upper_prefill(module, shape: DecoderShape, layers, path: Path, write=write_graph):
    """The layers above: hidden states and positions of the kept tokens in, the rest of the prefix out."""
    names, axes = prefix_names(layers)
    inputs = {"hidden": torch.randn(5, shape.hidden), "positions": torch.rand(1, 5, shape.position_parts)}
    write(module, inputs, names, {"hidden": {0: "V"}, "positions": {1: "V"}, **axes}, path)


def write_decode_graph(decoder: Decoder, path: Path, focal_layers=(), saliency: bool = False, write=write_graph):
    """The decode graph of src/graphs/mod.rs; pages, rows, tokens, prefix, trunk and suffix lengths are free, zero included.
    With `focal_layers` it has the outputs for fixation, too, with `saliency` those for retention."""
    shape = decoder.shape
    kv, dim, parts = shape.kv_heads, shape.head_dim, shape.position_parts
    pages, rows, length, prefix, trunk, suffix = 2, 3, 4, 7, 5, 6
    inputs = {
        "tokens": torch.zeros(pages, rows, length, dtype=torch.int64),
        "positions": torch.zeros(pages, rows, length, parts),
        "prefix_len": torch.full((shape.layers, pages), prefix),
        "trunk_visible": torch.full((pages, rows), trunk),
        "suffix_len": torch.full((pages, rows), suffix),
    }
    row_axes = {0: "P", 1: "R", 2: "M"}
    by_row = {0: "P", 1: "R"}
    dynamic = {"tokens": row_axes, "positions": row_axes, "prefix_len": {1: "P"}, "trunk_visible": by_row, "suffix_len": by_row}
    if saliency:
        inputs["watched"] = torch.tensor([1, 2])
        dynamic["watched"] = {0: "W"}
    for layer in range(shape.layers):
        inputs[f"prefix_k.{layer}"] = torch.randn(pages, kv, prefix, dim)
        inputs[f"prefix_v.{layer}"] = torch.randn(pages, kv, dim, prefix)
        dynamic[f"prefix_k.{layer}"], dynamic[f"prefix_v.{layer}"] = {0: "P", 2: f"Lv{layer}"}, {0: "P", 3: f"Lv{layer}"}
        for part, shape_of in (("trunk", (pages, kv, trunk, dim)), ("suffix", (pages, rows, kv, suffix, dim))):
            for name in (f"{part}_k.{layer}", f"{part}_v.{layer}"):
                inputs[name] = torch.randn(*shape_of)
                dynamic[name] = {0: "P", 2: "Lt"} if part == "trunk" else {**by_row, 3: "Ls"}
    outputs = ["next_id", "next_logprob", "draft_logprob", "hidden"]
    for name in outputs:
        dynamic[name] = row_axes
    if focal_layers:
        for layer in focal_layers:
            outputs.append(f"focal_scores.{layer}")
            dynamic[f"focal_scores.{layer}"] = {**by_row, 2: f"Lv{layer}"}
        outputs.append("image_attention")
        dynamic["image_attention"] = {1: "P", 2: "R"}
    for layer in range(shape.layers) if saliency else ():
        outputs.append(f"saliency.{layer}")
        dynamic[f"saliency.{layer}"] = {1: "W", 3: f"Lv{layer}"}
    for layer in range(shape.layers):
        for name in (f"new_k.{layer}", f"new_v.{layer}"):
            outputs.append(name)
            dynamic[name] = {**by_row, 3: "M"}
    write(Step(decoder, focal_layers, saliency), inputs, outputs, dynamic, path)
