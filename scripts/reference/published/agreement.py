"""How often packs in fp16, int8 and int4 choose the token that fp32 chooses, each token asked after the fp32 tokens before it.

`python -m scripts.reference.published.agreement [FAMILY ...]`. The checkpoints are those of the fixtures, with more layers and random weights: small
gaps between the best tokens are commoner than in a trained model, so the rates are low estimates.
"""
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch

from scripts.export.weights import Conversion

from . import hpd, idefics3, padoc, qwen2_5_vl, run, tokens, weights

CONVERSIONS = {"fp16": Conversion("fp16"), "int8": Conversion(quantize="int8"), "int4": Conversion(quantize="int4")}
MODELS = {
    "hpd": (hpd, "InternVLForConditionalGeneration"), "olmocr": (qwen2_5_vl, "Qwen2_5_VLForConditionalGeneration"),
    "doctags": (idefics3, "Idefics3ForConditionalGeneration"), "padoc": (padoc, "Qwen3VLForConditionalGeneration"),
}  # fmt: skip
LAYERS, PROMPT, WRITTEN = 4, 200, 200


def checkpoint(family, class_name: str, folder: Path):
    """The fixture's checkpoint with more layers."""
    import transformers

    tokenizer = tokens.train(family.SPECIAL, family.TEXT, 300)
    config = family.config(tokenizer)
    config.text_config.num_hidden_layers = LAYERS
    if getattr(config.text_config, "layer_types", None):
        config.text_config.layer_types = ["full_attention"] * LAYERS
    model = getattr(transformers, class_name)(config).eval()
    weights.scramble(model, 21, embedding=0.3)
    model.save_pretrained(folder)
    tokens.save(tokenizer, folder)
    return model


def choices(folder: Path, prompt: list[int], written: list[int]):
    """What the pack chooses after each of `written`'s tokens, with a prompt of text alone."""
    graphs = run.Graphs(folder)
    parts, hidden = graphs.dims["position_parts"], graphs.dims["hidden"]
    groups = next(entry.shape[0] for entry in graphs.prefill.get_inputs() if entry.name == "features")
    places = lambda first, count: np.repeat(np.arange(first, first + count)[:, None], parts, 1)  # noqa: E731
    features = np.zeros((groups if isinstance(groups, int) else 1, 1, hidden), np.float32)
    prefix = graphs.prefix(prompt, [0] * len(prompt), features, places(0, len(prompt)))
    step = graphs.step(prefix, written, places(len(prompt), len(written)))
    return step["next_id"][0, 0], step["next_logprob"][0, 0]


@torch.no_grad()
def measure(name: str) -> dict[str, float]:
    family, class_name = MODELS[name]
    with tempfile.TemporaryDirectory() as work:
        folder = Path(work) / name
        checkpoint(family, class_name, folder)
        family.export(folder, Path(work) / "fp32")
        random = np.random.default_rng(4)
        prompt, written = (random.integers(10, 290, count).tolist() for count in (PROMPT, WRITTEN))
        reference, _ = choices(Path(work) / "fp32", prompt, written)
        rates = {}
        for kind, conversion in CONVERSIONS.items():
            family.export(folder, Path(work) / kind, conversion)
            rates[kind] = float((choices(Path(work) / kind, prompt, written)[0] == reference).mean())
        sizes = {kind: sum(f.stat().st_size for f in (Path(work) / kind).iterdir()) for kind in ("fp32", *CONVERSIONS)}
    print(name, " ".join(f"{kind} {rate:.3f}" for kind, rate in rates.items()), {kind: f"{size / 1e3:.0f} kB" for kind, size in sizes.items()})
    return rates


if __name__ == "__main__":
    for name in sys.argv[1:] or MODELS:
        measure(name)
