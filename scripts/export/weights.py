"""Graphs of a large model, their weights in one file beside them.

A protobuf file ends at 2 GB, and the prefill and decode graphs hold the same decoder: weights of all graphs go to one external file, each
distinct one once.
"""
import hashlib
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, external_data_helper, helper, numpy_helper

from .checkpoint import Refused
from .graphs import check_inputs, export_onnx
from .linear import Exported, converted

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

    @property
    def bits(self) -> int:
        return QUANTIZED[self.quantize]

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
        with tempfile.TemporaryDirectory(dir=self.work) as folder:
            # The exporter writes a file for each tensor of a large model.
            path = Path(folder) / str(name)
            export_onnx(module, inputs, outputs, dynamic, path)
            graph = converted(Exported(path), self.conversion, self.store)
        self._file.flush()
        check_inputs(graph, inputs)
        onnx.save(graph, str(self.out / str(name)))
        onnx.checker.check_model(str(self.out / str(name)))

    def store(self, name: str, array: np.ndarray) -> TensorProto:
        """The tensor `name`: in the weights' file, once, unless it is small."""
        if array.nbytes < LEAST_EXTERNAL_BYTES:
            return numpy_helper.from_array(array, name)
        data = array.tobytes()
        digest = hashlib.sha256(data).digest()
        if digest not in self._places:
            self._file.write(b"\0" * (-self._file.tell() % (PAGE if len(data) >= LARGE else ALIGNMENT)))
            self._places[digest] = self._file.tell()
            self._file.write(data)
        tensor = TensorProto(name=name, dims=array.shape, data_type=helper.np_dtype_to_tensor_dtype(array.dtype))
        tensor.raw_data = b""
        external_data_helper.set_external_data(tensor, self.weights_name, offset=self._places[digest], length=len(data))
        tensor.ClearField("raw_data")
        return tensor
