"""The `padoc` family: a Qwen3-VL checkpoint with DeepStack and made-up control tokens, its pack, and what `transformers` writes with forks."""
import json
import tempfile
from pathlib import Path
from types import SimpleNamespace

from transformers import Qwen3VLConfig, Qwen3VLForConditionalGeneration
from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

from scripts.export import padoc
from scripts.export.checkpoint import Checkpoint
from scripts.export.family import write_pack
from scripts.export.weights import Conversion

from . import native, page, run, tokens, weights

SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<layout>", "<region_end>", "<branch>"]
TEXT = (padoc.PROMPT + " text table equation [12, 345, 678, 901] user assistant") * 3
WIDTH, HEIGHT = 150, 97
SIZE = {"shortest_edge": 1024, "longest_edge": 12288}


def config(tokenizer) -> Qwen3VLConfig:
    vision = dict(
        depth=3, hidden_size=16, intermediate_size=24, num_heads=2, patch_size=8, spatial_merge_size=2, temporal_patch_size=2, out_hidden_size=48,
        num_position_embeddings=49, deepstack_visual_indexes=[0, 1],
    )  # fmt: skip
    text = dict(
        vocab_size=tokenizer.get_vocab_size(), hidden_size=48, intermediate_size=64, num_hidden_layers=3, num_attention_heads=4,
        num_key_value_heads=2, head_dim=16, max_position_embeddings=4096, tie_word_embeddings=True,
        rope_parameters={"rope_type": "default", "rope_theta": 5e6, "mrope_section": [4, 2, 2], "mrope_interleaved": True},
    )  # fmt: skip
    ids = tokens.qwen_picture_ids(tokenizer)
    return Qwen3VLConfig(vision_config=vision, text_config=text, video_token_id=100_000, tie_word_embeddings=True, **ids)


def export(folder: Path, out: Path, conversion: Conversion = Conversion()):
    source = Checkpoint(folder)
    write_pack(padoc.export(source, SimpleNamespace(prompt=None, licence=None, token=None)), source, out, conversion)


def main(out: Path):
    tokenizer = tokens.train(SPECIAL, TEXT, 290)
    model = Qwen3VLForConditionalGeneration(config(tokenizer)).eval()
    weights.scramble(model, 14, embedding=0.15)
    with tempfile.TemporaryDirectory() as work:
        folder = Path(work) / "tiny-padoc"
        model.save_pretrained(folder)
        tokens.save(tokenizer, folder)
        (folder / "preprocessor_config.json").write_text(json.dumps({"patch_size": 8, "merge_size": 2, "size": SIZE}))
        export(folder, out)
    processor = Qwen2VLImageProcessorPil(patch_size=8, merge_size=2, size=SIZE, image_mean=[0.5] * 3, image_std=[0.5] * 3)
    native.expected("padoc", model, tokenizer, processor, page.picture(WIDTH, HEIGHT), out, branches)


def branches(model, tokenizer, inputs, ids: list[int], end: int) -> dict:
    """What is written after each branch's first token: the prompt, and the trunk up to and with the token that closes its region."""
    layout = "<layout>text [10, 20, 300, 90]<region_end><layout>table [12, 100, 500, 400]<region_end><|im_end|>"
    trunk = tokenizer.encode(layout, add_special_tokens=False).ids
    fork, child = tokenizer.token_to_id("<region_end>"), tokenizer.token_to_id("<branch>")
    written = []
    for index in [index for index, token in enumerate(trunk) if token == fork]:
        before = ids + trunk[: index + 1] + [child]
        result = run.greedy(model, inputs(before), before, 64, end)
        result.pop("logits")
        written.append({"fork": index, **result})
    return {"trunk": trunk, "written": written}
