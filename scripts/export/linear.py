"""An exported graph with its linear maps and embedding tables in other numbers.

Weights are read, converted and stored one at a time: no form of the graph is ever whole in memory, so that it may be larger than that, and larger
than a protobuf file. Everything else stays fp32, above all attention: the page's keys and values are fp32 inputs, and a graph that computed with them
in other numbers would convert, which is to copy, the whole prefix in every step.
"""
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, external_data_helper, helper, numpy_helper

from .checkpoint import Refused

# Weights of a column that share a scale.
BLOCK = 32


class Exported:
    """A graph as the exporter left it; its weights stay on disk until they are asked for."""

    def __init__(self, path: Path):
        self.model = onnx.load(str(path), load_external_data=False)
        self.folder = path.parent
        self.weights = {tensor.name: tensor for tensor in self.model.graph.initializer}

    def array(self, name: str) -> np.ndarray:
        tensor = self.weights[name]
        if external_data_helper.uses_external_data(tensor):
            loaded = TensorProto()
            loaded.CopyFrom(tensor)
            external_data_helper.load_external_data_for_tensor(loaded, str(self.folder))
            tensor = loaded
        return numpy_helper.to_array(tensor)

    def rank(self, name: str) -> int | None:
        """Of a weight; None for what is computed."""
        return len(self.weights[name].dims) if name in self.weights else None


def converted(exported: Exported, conversion, store) -> onnx.ModelProto:
    """The graph as `conversion` (weights.Conversion) says; `store(name, array)` makes the tensor of a weight."""
    stored: dict[str, TensorProto] = {}

    def keep(name: str, make):
        if name not in stored:
            stored[name] = store(name, make())
        return name

    nodes = []
    for node in exported.model.graph.node:
        if node.op_type in ("MatMul", "Gemm") and exported.rank(node.input[1]) == 2:
            nodes += linear(node, exported, conversion, keep)
        elif node.op_type == "Gather" and exported.rank(node.input[0]) == 2 and conversion.describe() != "fp32":
            nodes += table(node, exported, keep)
        else:
            nodes.append(node)
    for name in sorted(names_read(nodes) & set(exported.weights) - set(stored)):
        keep(name, lambda name=name: exported.array(name))
    graph = exported.model.graph
    del graph.node[:], graph.initializer[:]
    graph.node.extend(nodes)
    graph.initializer.extend(stored.values())
    if conversion.quantize:
        exported.model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    return exported.model


def names_read(nodes) -> set[str]:
    """What nodes and the graphs inside of them read."""
    names = set()
    for node in nodes:
        names |= set(node.input)
        for attribute in node.attribute:
            if attribute.HasField("g"):
                names |= names_read(attribute.g.node)
    return names


def linear(node, exported: Exported, conversion, keep) -> list:
    """`x @ matrix`, and the bias after it where the exporter joined them: graphs with and without the join then share their weights."""
    source, out, bias = node.input[1], node.output[0], None
    if node.op_type == "Gemm":
        options = {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}
        assert options.get("alpha", 1.0) == options.get("beta", 1.0) == 1.0 and not options.get("transA", 0), node
        turned, bias = options.get("transB", 0), node.input[2] if len(node.input) > 2 else None
    else:
        turned = 0
    matrix = lambda: np.ascontiguousarray(exported.array(source).T) if turned else exported.array(source)  # noqa: E731
    name = f"{source}.turned" if turned else source
    product = f"{out}.product" if bias else out
    nodes = product_of(node.input[0], name, matrix, product, conversion, keep)
    return nodes + ([helper.make_node("Add", [product, bias], [out], name=f"{node.name}/bias")] if bias else [])


def product_of(x: str, name: str, matrix, out: str, conversion, keep) -> list:
    if conversion.quantize:
        bits = conversion.bits
        packed, scales, (rows, columns) = quantized(keep, name, matrix, bits)
        options = {"K": rows, "N": columns, "bits": bits, "block_size": BLOCK, "accuracy_level": 4}
        return [helper.make_node("MatMulNBits", [x, packed, scales], [out], name=f"{out}/{bits} bits", domain="com.microsoft", **options)]
    if conversion.dtype == "fp16":
        weight = keep(f"{name}.half", lambda: half(name, matrix()))
        return [
            helper.make_node("Cast", [x], [f"{out}.half_in"], name=f"{out}/in", to=TensorProto.FLOAT16),
            helper.make_node("MatMul", [f"{out}.half_in", weight], [f"{out}.half_out"], name=f"{out}/half"),
            helper.make_node("Cast", [f"{out}.half_out"], [out], name=f"{out}/out", to=TensorProto.FLOAT),
        ]
    return [helper.make_node("MatMul", [x, keep(name, matrix)], [out], name=f"{out}/MatMul")]


def table(node, exported: Exported, keep) -> list:
    """Rows of an embedding table, stored in fp16."""
    source, out = node.input[0], node.output[0]
    weight = keep(f"{source}.half", lambda: half(source, exported.array(source)))
    rows = helper.make_node("Gather", [weight, node.input[1]], [f"{out}.half"], name=node.name, axis=0)
    return [rows, helper.make_node("Cast", [f"{out}.half"], [out], name=f"{node.name}/out", to=TensorProto.FLOAT)]


def half(name: str, array: np.ndarray) -> np.ndarray:
    if np.abs(array).max(initial=0) > np.finfo(np.float16).max:
        raise Refused(f"`{name}` has weights outside of the range of fp16")
    return array.astype(np.float16)


def quantized(keep, name: str, matrix, bits: int) -> tuple[str, str, tuple[int, int]]:
    """Names of the packed weights and their scales, a scale for each `BLOCK` weights of a column, and the matrix's size. Activations are scaled a row
    at a time, so that a token's neighbours in a call cannot change it."""
    from onnxruntime.quantization.matmul_nbits_quantizer import DefaultWeightOnlyQuantConfig, DefaultWeightOnlyQuantizer

    rule = DefaultWeightOnlyQuantConfig(block_size=BLOCK, is_symmetric=True, accuracy_level=4, bits=bits)
    weights = matrix()
    packed, scales, _ = DefaultWeightOnlyQuantizer(rule).qbits_block_quant(weights)
    return keep(f"{name}.{bits}_bits", lambda: packed), keep(f"{name}.{bits}_scales", lambda: scales), weights.shape
