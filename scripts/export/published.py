"""The presets for published checkpoints: `python -m scripts.export hpd CHECKPOINT -o PACK`."""
import sys
from pathlib import Path

from . import hpd, idefics3, padoc, qwen2_5_vl
from .checkpoint import Checkpoint, Refused
from .family import write_pack
from .weights import DTYPES, QUANTIZED, Conversion

FAMILIES = {
    "hpd": (hpd.export, "HPD-Parsing: layout and forked content"),
    "qwen2_5_vl": (qwen2_5_vl.export, "Qwen2.5-VL, olmOCR: a page as Markdown"),
    "idefics3": (idefics3.export, "granite-docling, SmolDocling: a page as DocTags"),
    "padoc": (padoc.export, "PaDoc (Qwen3-VL): layout and forked content; control tokens from the checkpoint, unverified"),
}


def add_presets(presets):
    for name, (_, text) in FAMILIES.items():
        preset = presets.add_parser(name, help=text)
        preset.add_argument("checkpoint", type=Path, help="folder of the Hugging Face checkpoint")
        preset.add_argument("-o", "--output", type=Path, required=True, help="the pack's folder")
        preset.add_argument("--prompt", help="which of the model's prompts the pack uses")
        preset.add_argument("--token", action="append", metavar="ROLE=TOKEN", help="a control token that cannot be found (padoc)")
        preset.add_argument("--licence", help="licence of the weights, if it is not the family's usual one")
        preset.add_argument("--dtype", default="fp32", help=f"numbers of the weights: {', '.join(DTYPES)}")
        preset.add_argument("--quantize", help=f"matrices of linear maps: {', '.join(QUANTIZED)}")


def run(arguments):
    try:
        conversion = Conversion(arguments.dtype, arguments.quantize)
        checkpoint = Checkpoint(arguments.checkpoint)
        family = FAMILIES[arguments.preset][0](checkpoint, arguments)
        shape = family.decoder.shape
        print(f"{checkpoint.folder}: {checkpoint.config.get('model_type')}, decoder of {shape.layers} layers, {shape.heads}/{shape.kv_heads} heads of "
              f"{shape.head_dim}, {shape.vocabulary} tokens; {len(checkpoint.names)} tensors")  # fmt: skip
        write_pack(family, checkpoint, arguments.output, conversion)
    except Refused as refused:
        sys.exit(f"scripts.export: {refused}")
    total = sum(file.stat().st_size for file in arguments.output.iterdir())
    print(f"{arguments.output}: {total / 1e6:.1f} MB, {conversion.describe()}")
