"""The `idefics3` family: a checkpoint with small tiles, its pack, and what `transformers` writes."""
import json
import tempfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import torch
from transformers import Idefics3Config, Idefics3ForConditionalGeneration
from transformers.models.idefics3.image_processing_pil_idefics3 import Idefics3ImageProcessorPil

from scripts.export import idefics3
from scripts.export.checkpoint import Checkpoint
from scripts.export.family import write_pack
from scripts.export.weights import Conversion

from . import page, run, tokens, weights

TILE, LONGEST = 32, 90
FAKE, WHOLE = "<fake_token_around_image>", "<global-img>"
SPECIAL = [
    "<|end_of_text|>", "<|start_of_role|>", "<|end_of_role|>", "<image>", FAKE, WHOLE, "<doctag>", "</doctag>", "<text>", "</text>", "<otsl>",
    "</otsl>", "<fcel>", "<nl>", *(f"<loc_{place}>" for place in (0, 100, 250, 499)), *(f"<row_{r}_col_{c}>" for r in range(1, 4) for c in range(1, 4)),
]  # fmt: skip
TEXT = (idefics3.PROMPT + " user assistant page_header section_header_level_1 the quick brown fox") * 3
WIDTH, HEIGHT = 150, 97


def config(tokenizer) -> Idefics3Config:
    vision = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48, image_size=TILE, patch_size=8,
                  hidden_act="gelu_pytorch_tanh")  # fmt: skip
    text = dict(
        model_type="llama", vocab_size=tokenizer.get_vocab_size(), hidden_size=48, intermediate_size=96, num_hidden_layers=2,
        num_attention_heads=6, num_key_value_heads=2, head_dim=8, max_position_embeddings=4096, rope_theta=1e5, tie_word_embeddings=True,
        pad_token_id=0, bos_token_id=0, eos_token_id=0,
    )  # fmt: skip
    image = tokenizer.token_to_id("<image>")
    return Idefics3Config(vision_config=vision, text_config=text, image_token_id=image, scale_factor=2, tie_word_embeddings=True)


def export(folder: Path, out: Path, conversion: Conversion = Conversion()):
    source = Checkpoint(folder)
    write_pack(idefics3.export(source, SimpleNamespace(prompt=None, licence=None)), source, out, conversion)


def main(out: Path):
    tokenizer = tokens.train(SPECIAL, TEXT, 290)
    model = Idefics3ForConditionalGeneration(config(tokenizer)).eval()
    weights.scramble(model, 13, embedding=0.15)
    processor = Idefics3ImageProcessorPil(size={"longest_edge": LONGEST}, max_image_size={"longest_edge": TILE}, return_row_col_info=True)
    with tempfile.TemporaryDirectory() as work:
        folder = Path(work) / "doctags"
        model.save_pretrained(folder)
        tokens.save(tokenizer, folder)
        (folder / "preprocessor_config.json").write_text(json.dumps({"size": {"longest_edge": LONGEST}, "max_image_size": {"longest_edge": TILE}}))
        export(folder, out)
    expected(model, tokenizer, processor, out)


def prompt(rows: int, columns: int, per_tile: int, before: str, after: str) -> str:
    """The prompt as the reference processor expands it."""
    run = "<image>" * per_tile
    tiles = "".join("".join(f"{FAKE}<row_{r}_col_{c}>{run}" for c in range(1, columns + 1)) + "\n" for r in range(1, rows + 1))
    return f"{before}{tiles}\n{FAKE}{WHOLE}{run}{FAKE}{after}"


@torch.no_grad()
def expected(model, tokenizer, processor, out: Path):
    graphs = run.Graphs(out)
    processed = processor(page.picture(WIDTH, HEIGHT), return_tensors="pt")
    pixels = processed["pixel_values"]
    per_tile = graphs.manifest["preprocessing"]["tokens_per_tile"]
    frame = graphs.manifest["prompt"]
    text = prompt(processed["rows"][0][0], processed["cols"][0][0], per_tile, frame["before"], frame["after"])
    ids = tokenizer.encode(text, add_special_tokens=False).ids
    reference = torch.cat(list(model.get_image_features(pixels).pooler_output)).numpy()
    features = graphs.features(pixels=pixels[0].numpy())
    far = np.abs(features[0] - reference).max()
    assert far < run.CLOSE, far
    image = tokenizer.token_to_id("<image>")
    visual = np.cumsum(np.array(ids) == image) * (np.array(ids) == image)
    positions = np.arange(len(ids))[:, None]
    prefix = graphs.prefix(ids[:-1], visual[:-1], features, positions[:-1])
    written = run.greedy(model, {"pixel_values": pixels}, ids, 64, graphs.manifest["protocol"]["trunk_end"][0])
    step = graphs.step(prefix, ids[-1:], positions[-1:])
    difference = run.same_hidden(model, graphs, step, written.pop("logits")[0])
    assert difference < run.CLOSE, difference
    print(f"{out}: {len(ids)} prompt tokens, features to {far:.1e}, logits to {difference:.1e}")
    raw = np.rint((pixels[0].numpy() * 0.5 + 0.5) * 255).astype(np.uint8)
    result = {
        "family": "idefics3", "width": WIDTH, "height": HEIGHT, "prompt": ids, "features": run.rounded(features),
        "hidden": run.rounded(step["hidden"][0, 0, -1]), "greedy": written, "branches": None,
    }  # fmt: skip
    (out / "pixels.bin").write_bytes(raw.tobytes())
    (out / "expected.json").write_text(json.dumps(result) + "\n")
