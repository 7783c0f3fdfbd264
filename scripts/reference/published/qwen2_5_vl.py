"""The `qwen2_5_vl` family: a checkpoint with windows that the page does not fill, its pack, and what `transformers` writes."""
import json
import tempfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import torch
from transformers import Qwen2_5_VLConfig, Qwen2_5_VLForConditionalGeneration
from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

from scripts.export import qwen2_5_vl
from scripts.export.checkpoint import Checkpoint
from scripts.export.family import write_pack
from scripts.export.weights import Conversion

from . import native, page, run, tokens, weights

SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|vision_start|>", "<|vision_end|>", "<|image_pad|>"]
TEXT = (qwen2_5_vl.PROMPTS["olmocr"] + " primary_language: en is_rotation_valid: True # <table><tr><td>") * 2
WIDTH, HEIGHT = 150, 97
PROCESSOR = {"patch_size": 8, "merge_size": 2, "min_pixels": 1024, "max_pixels": 12288}


def config(tokenizer) -> Qwen2_5_VLConfig:
    vision = dict(
        depth=3, hidden_size=16, intermediate_size=24, num_heads=2, patch_size=8, spatial_merge_size=2, temporal_patch_size=2, window_size=32,
        fullatt_block_indexes=[1], out_hidden_size=64,
    )  # fmt: skip
    text = dict(
        vocab_size=tokenizer.get_vocab_size(), hidden_size=64, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=4096, tie_word_embeddings=False,
        rope_parameters={"rope_type": "default", "rope_theta": 1e6, "mrope_section": [2, 3, 3]},
    )  # fmt: skip
    ids = tokens.qwen_picture_ids(tokenizer)
    return Qwen2_5_VLConfig(vision_config=vision, text_config=text, video_token_id=100_000, tie_word_embeddings=False, **ids)


def export(folder: Path, out: Path, conversion: Conversion = Conversion()):
    source = Checkpoint(folder)
    write_pack(qwen2_5_vl.export(source, SimpleNamespace(prompt=None, licence=None)), source, out, conversion)


def main(out: Path):
    tokenizer = tokens.train(SPECIAL, TEXT, 300)
    model = Qwen2_5_VLForConditionalGeneration(config(tokenizer)).eval()
    weights.scramble(model, 17)
    with tempfile.TemporaryDirectory() as work:
        folder = Path(work) / "tiny-olmocr"
        model.save_pretrained(folder)
        tokens.save(tokenizer, folder)
        (folder / "preprocessor_config.json").write_text(json.dumps(PROCESSOR))
        export(folder, out)
    processor = Qwen2VLImageProcessorPil(patch_size=8, merge_size=2, size={"shortest_edge": 1024, "longest_edge": 12288})
    native.expected("qwen2_5_vl", model, tokenizer, processor, page.picture(WIDTH, HEIGHT), out)
