"""Prefill with token-selective propagation on random weights of a given shape, by rate: what it saves at long prefixes.

`python -m scripts.bench_prefill -o FILE [--layers 4 --hidden 1024 ...] [--tokens 4809]`. The graphs are those of a pack, in two parts, but read
embeddings instead of a page. The default is HPD-Parsing's decoder with 4 of its 28 layers: half of them see everything, as in the whole, and every
layer costs the same. CPU seconds of one thread, ONNX Runtime, rates by turns.
"""
import argparse
import json
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
import onnxruntime
import torch

from scripts.export.decoder import Decoder, DecoderShape, tsp_layer
from scripts.export.graphs import write_lower_prefill, write_upper_prefill
from scripts.export.language import PromptLayers
from scripts.reference.retention import propagated


def sessions(shape: DecoderShape, folder: Path):
    torch.manual_seed(5)
    half = shape.head_dim // 2
    decoder = Decoder(shape, (1e6 ** (-torch.arange(half).float() / half)).unsqueeze(0)).eval()
    first_upper = tsp_layer(shape.layers) + 1
    lower, upper = range(first_upper), range(first_upper, shape.layers)
    inputs = {"embeddings": torch.randn(12, shape.hidden), "positions": torch.rand(1, 12, 1)}
    dynamic = {"embeddings": {0: "V"}, "positions": {1: "V"}}
    write_lower_prefill(PromptLayers(decoder, lower), inputs, dynamic, lower, folder / "lower.onnx")
    write_upper_prefill(PromptLayers(decoder, upper), shape, upper, folder / "upper.onnx")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return [onnxruntime.InferenceSession(str(folder / name), options, providers=["CPUExecutionProvider"]) for name in ("lower.onnx", "upper.onnx")]


def prefill(lower, upper, embeddings, positions, rate: float, text: int) -> float:
    start = time.process_time()
    outputs = dict(zip([o.name for o in lower.get_outputs()], lower.run(None, {"embeddings": embeddings, "positions": positions}), strict=True))
    kept = propagated(torch.from_numpy(outputs["saliency"]), rate, text)
    upper.run(None, {"hidden": outputs["hidden"][kept], "positions": positions[:, kept]})
    return time.process_time() - start


def main():
    parser = argparse.ArgumentParser(prog="python -m scripts.bench_prefill")
    for name, default in (("layers", 4), ("hidden", 1024), ("heads", 16), ("kv-heads", 8), ("head-dim", 128), ("feed-forward", 3072), ("tokens", 4809), ("text", 40)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--rates", type=lambda text: [float(rate) for rate in text.split(",")], default=[1.0, 0.5, 0.2, 0.1])
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("-o", "--output", type=Path, required=True)
    options = parser.parse_args()
    torch.set_num_threads(1)
    shape = DecoderShape(64, options.hidden, options.layers, options.heads, options.kv_heads, options.head_dim, options.feed_forward)
    random = np.random.default_rng(1)
    embeddings = random.standard_normal((options.tokens, options.hidden)).astype(np.float32)
    positions = np.arange(options.tokens, dtype=np.float32)[None, :, None]
    seconds = {rate: [] for rate in options.rates}
    with tempfile.TemporaryDirectory() as folder:
        lower, upper = sessions(shape, Path(folder))
        for _ in range(options.repetitions):
            for rate in options.rates:
                seconds[rate].append(prefill(lower, upper, embeddings, positions, rate, options.text))
    figures = {"tokens": options.tokens, "layers": options.layers, "seconds": {str(rate): values for rate, values in seconds.items()}}
    whole = statistics.median(seconds[options.rates[0]])
    figures["times_faster"] = {str(rate): round(whole / statistics.median(values), 3) for rate, values in seconds.items()}
    options.output.write_text(json.dumps(figures, indent=1) + "\n")
    print(json.dumps(figures["times_faster"]), round(whole, 1))


if __name__ == "__main__":
    main()
