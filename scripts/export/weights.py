"""Graphs of a large model, their weights in one file beside them.

A protobuf file ends at 2 GB, and the prefill and decode graphs hold the same decoder: weights of all graphs go to one external file, each
distinct one once.
"""
import hashlib
import logging
from dataclasses import dataclass
from pathlib import Path

import onnx
from onnx import TensorProto, external_data_helper, numpy_helper

from .checkpoint import Refused
from .graphs import check_inputs, export_onnx

# Smaller tensors stay in the graph: shape computations read them when a session is made.
LEAST_EXTERNAL_BYTES = 1024
# Where a weight starts in the file: large ones on pages, so that they can be mapped.
ALIGNMENT, PAGE, LARGE = 64, 4096, 1 << 20
DTYPES = ("fp32", "fp16")
QUANTIZED = {"int8": 8, "int4": 4}


@dataclass(frozen=True)
class Conversion:
    """Numbers of the weights: fp32, or fp16 (stored so, and computed so by a provider that can); int8 or int4 for the matrices of linear maps."""

    dtype: str = "fp32"
    quantize: str | None = None

    def __post_init__(self):
        if self.dtype not in DTYPES:
            raise Refused(f"--dtype {self.dtype}: known: {', '.join(DTYPES)} (ONNX Runtime multiplies no bf16 matrices on a CPU)")
        if self.quantize not in (None, *QUANTIZED):
            raise Refused(f"--quantize {self.quantize}: known: {', '.join(QUANTIZED)}")

    def describe(self) -> str:
        return self.quantize or self.dtype


class PackWriter:
    """Writes graphs to `out`; `work` is for what lies on disk in between."""

    weights_name = "weights.bin"

    def __init__(self, out: Path, work: Path, conversion: Conversion):
        self.out, self.work, self.conversion = out, work, conversion
        self._places = {}

    def __enter__(self):
        self._file = (self.out / self.weights_name).open("wb")
        return self

    def __exit__(self, *_):
        self._file.close()

    def write(self, module, inputs: dict, outputs: list[str], dynamic: dict, name):
        """Exports `module` as `name`; arguments as those of `write_graph`."""
        path = self.work / str(name)
        export_onnx(module, inputs, outputs, dynamic, path)
        graph = self.converted(path)
        check_inputs(graph, inputs)
        self.move_weights(graph)
        onnx.save(graph, str(self.out / str(name)))
        onnx.checker.check_model(str(self.out / str(name)))

    def converted(self, path: Path) -> onnx.ModelProto:
        if self.conversion.quantize:
            return quantized(path, QUANTIZED[self.conversion.quantize])
        graph = onnx.load(str(path))
        if self.conversion.dtype == "fp16":
            from onnxruntime.transformers.onnx_model import OnnxModel
            from onnxruntime.transformers.float16 import DEFAULT_OP_BLOCK_LIST, convert_float_to_float16

            # Norms and softmax sums leave the range of half numbers; positions lose their places.
            blocked = [*DEFAULT_OP_BLOCK_LIST, "ReduceMean", "Pow", "Sqrt", "Softmax", "ReduceLogSumExp", "Cos", "Sin"]
            graph = convert_float_to_float16(graph, keep_io_types=True, op_block_list=blocked, disable_shape_infer=True)
            OnnxModel(graph).topological_sort()
        return graph

    def move_weights(self, graph: onnx.ModelProto):
        for tensor in graph.graph.initializer:
            data = numpy_helper.to_array(tensor).tobytes()
            if len(data) < LEAST_EXTERNAL_BYTES:
                continue
            digest = hashlib.sha256(data).digest()
            if digest not in self._places:
                self._file.write(b"\0" * (-self._file.tell() % (PAGE if len(data) >= LARGE else ALIGNMENT)))
                self._places[digest] = self._file.tell()
                self._file.write(data)
            tensor.ClearField("raw_data")
            tensor.ClearField("float_data")
            tensor.raw_data = b""
            external_data_helper.set_external_data(tensor, self.weights_name, offset=self._places[digest], length=len(data))
            tensor.ClearField("raw_data")
            tensor.data_location = TensorProto.EXTERNAL
        self._file.flush()


def quantized(path: Path, bits: int) -> onnx.ModelProto:
    """Matrix products with constant weights in `bits` bits, a scale for each 32 weights of a column. Activations are scaled a row at a time, so
    that a token's neighbours in a call cannot change it."""
    from onnxruntime.quantization.matmul_nbits_quantizer import DefaultWeightOnlyQuantConfig, MatMulNBitsQuantizer

    logging.getLogger("onnxruntime.quantization.matmul_nbits_quantizer").setLevel(logging.WARNING)
    rule = DefaultWeightOnlyQuantConfig(block_size=32, is_symmetric=True, accuracy_level=4, bits=bits)
    quantizer = MatMulNBitsQuantizer(onnx.load(str(path)), algo_config=rule)
    quantizer.process()
    return quantizer.model.model
