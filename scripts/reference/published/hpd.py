"""The `hpd` family: an InternVL checkpoint of two layers, its pack, and what `transformers` writes with forks."""
import json
import re
import shutil
import tempfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import torch
from PIL import Image
from safetensors.torch import load_file, save_file
from transformers import InternVLConfig, InternVLForConditionalGeneration

from scripts.export import hpd
from scripts.export.checkpoint import Checkpoint
from scripts.export.family import write_pack
from scripts.export.weights import Conversion

from . import page, run, tokens, weights

TILE, MAX_TILES = 56, 25
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<img>", "</img>", "<IMG_CONTEXT>", "<BLOCK>", "<FORK>", "<CHILD>"]
TEXT = hpd.SYSTEM + " document parsing with fork. table equation paragraph_title [12, 345, 678, 901] <table><tr><td>" * 3
# Wide enough for a grid of several tiles and a thumbnail.
WIDTH, HEIGHT = 150, 97


def config(tokenizer) -> InternVLConfig:
    vision = dict(
        hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48, image_size=[TILE, TILE], patch_size=[14, 14],
        attention_bias=True, use_absolute_position_embeddings=True, layer_scale_init_value=0.1, use_qk_norm=False,
    )  # fmt: skip
    text = dict(
        model_type="qwen3", vocab_size=tokenizer.get_vocab_size(), hidden_size=48, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, head_dim=16, max_position_embeddings=4096, rope_theta=1e6, tie_word_embeddings=False,
    )  # fmt: skip
    image = tokenizer.token_to_id("<IMG_CONTEXT>")
    return InternVLConfig(vision_config=vision, text_config=text, image_token_id=image, downsample_ratio=0.5, vision_feature_layer=-1,
                          tie_word_embeddings=False)  # fmt: skip


def checkpoint(folder: Path):
    """Writes the checkpoint as `transformers` does; returns model and tokenizer."""
    tokenizer = tokens.train(SPECIAL, TEXT, 300)
    model = InternVLForConditionalGeneration(config(tokenizer)).eval()
    weights.scramble(model, 11)
    model.save_pretrained(folder)
    tokens.save(tokenizer, folder)
    return model, tokenizer


def own_names(folder: Path, target: Path):
    """The same checkpoint with the names and the configuration of the model's own repository."""
    rules = [
        (r"^(model\.)?language_model\.(model\.)?(?!lm_head)", "language_model.model."), (r"^lm_head", "language_model.lm_head"),
        (r"^(model\.)?vision_tower\.", "vision_model."), (r"embeddings\.cls_token", "embeddings.class_embedding"),
        (r"position_embeddings$", "position_embedding"), (r"patch_embeddings\.projection", "patch_embedding"), (r"encoder\.layer\.", "encoder.layers."),
        (r"layernorm_before", "norm1"), (r"layernorm_after", "norm2"), (r"lambda_(\d)", r"ls\1"), (r"attention\.projection_layer", "attn.proj"),
        (r"^(model\.)?multi_modal_projector\.layer_norm", "mlp1.0"), (r"^(model\.)?multi_modal_projector\.linear_1", "mlp1.1"),
        (r"^(model\.)?multi_modal_projector\.linear_2", "mlp1.3"),
    ]  # fmt: skip
    tensors, fused = {}, {}
    for name, tensor in load_file(folder / "model.safetensors").items():
        for pattern, replacement in rules:
            name = re.sub(pattern, replacement, name)
        if match := re.match(r"(vision_model.*)attention\.([qkv])_proj\.(weight|bias)", name):
            fused.setdefault(f"{match[1]}attn.qkv.{match[3]}", {})[match[2]] = tensor
        else:
            tensors[name] = tensor
    tensors |= {name: torch.cat([parts[part] for part in "qkv"]) for name, parts in fused.items()} | head_tensors()
    target.mkdir(parents=True, exist_ok=True)
    save_file(tensors, target / "model.safetensors")
    own = json.loads((folder / "config.json").read_text())
    own |= {"model_type": "internvl_chat", "llm_config": own.pop("text_config"), "force_image_size": TILE, "select_layer": -1, "max_dynamic_patch": 24}
    (target / "config.json").write_text(json.dumps(own))
    shutil.copy(folder / "tokenizer.json", target / "tokenizer.json")


def head_tensors() -> dict[str, torch.Tensor]:
    """A multi-token head, under names like those of other published ones."""
    generator = torch.Generator().manual_seed(31)
    shapes = {"enorm": (48,), "hnorm": (48,), "eh_proj": (48, 96), "mlp.gate_proj": (96, 48), "mlp.up_proj": (96, 48), "mlp.down_proj": (48, 96),
              "norm": (48,)}  # fmt: skip
    noise = lambda shape: torch.randn(shape, generator=generator)  # noqa: E731
    # A large last norm: a head that is sure of itself, or its drafts would not be tried.
    level = {"norm": 4.0}
    made = {name: level.get(name, 1.0) + 0.1 * noise(shape) if len(shape) == 1 else noise(shape) * shape[1] ** -0.5 for name, shape in shapes.items()}
    return {f"language_model.mtp.{name}.weight": tensor for name, tensor in made.items()}


def drafts(model, hidden: torch.Tensor, token: int, count: int = 6) -> dict:
    """What the head drafts after `token`, which follows the hidden state: RMSNorm of both, joined, SwiGLU with a residual, RMSNorm; again for each draft."""
    of = {name.removeprefix("language_model.mtp.").removesuffix(".weight"): tensor for name, tensor in head_tensors().items()}
    normed = lambda x, name: x / (x.pow(2).mean() + 1e-6).sqrt() * of[name]  # noqa: E731
    written, probabilities = [], []
    for _ in range(count):
        embedded = model.get_input_embeddings().weight[token]
        x = of["eh_proj"] @ torch.cat([normed(hidden, "hnorm"), normed(embedded, "enorm")])
        inner = torch.nn.functional.silu(of["mlp.gate_proj"] @ x) * (of["mlp.up_proj"] @ x)
        hidden = normed(x + of["mlp.down_proj"] @ inner, "norm")
        chances = model.get_output_embeddings()(hidden).softmax(-1)
        token = int(chances.argmax())
        written.append(token)
        probabilities.append(round(float(chances.max()), 6))
    return {"drafts": written, "probabilities": probabilities}


def grid(width: int, height: int, tile: int, most: int) -> tuple[int, int]:
    """Columns and rows of tiles (research notes on HPD-Parsing)."""
    choices = sorted(((c, r) for c in range(1, most + 1) for r in range(1, most + 1) if c * r <= most), key=lambda g: g[0] * g[1])
    difference = lambda g: abs(width / height - g[0] / g[1])  # noqa: E731
    near = [g for g in choices if difference(g) <= 0.2] or choices
    near.sort(key=lambda g: abs(width * height - tile * tile * g[0] * g[1]))
    return min(near[:3], key=difference)


def tiles(picture: Image.Image, tile: int, most: int) -> np.ndarray:
    """`[T, 3, tile, tile]` as the model's own processor cuts them, 0..255."""
    columns, rows = grid(*picture.size, tile, most)
    whole = picture.resize((columns * tile, rows * tile), Image.Resampling.BICUBIC)
    cut = [whole.crop((c * tile, r * tile, (c + 1) * tile, (r + 1) * tile)) for r in range(rows) for c in range(columns)]
    if len(cut) > 1:
        cut.append(picture.resize((tile, tile), Image.Resampling.BICUBIC))
    return np.stack([np.asarray(part).transpose(2, 0, 1) for part in cut])


def main(out: Path):
    with tempfile.TemporaryDirectory() as work:
        folder, own = Path(work) / "tiny-hpd", Path(work) / "tiny-hpd-own"
        model, tokenizer = checkpoint(folder)
        own_names(folder, own)
        export(own, out)
        copy = Path(work) / "native"
        export(folder, copy)
        for name in ("decode.onnx", "prefill.onnx", "vision.onnx"):
            assert (copy / name).read_bytes() == (out / name).read_bytes(), f"{name} differs between the two forms of one checkpoint"
        # The multi-token head, which `transformers` does not keep, comes last.
        assert (out / "weights.bin").read_bytes().startswith((copy / "weights.bin").read_bytes()), "weights differ"
    expected(model, tokenizer, out)


def export(folder: Path, out: Path, conversion: Conversion = Conversion()):
    source = Checkpoint(folder)
    write_pack(hpd.export(source, SimpleNamespace(prompt=None, licence=None)), source, out, conversion)


@torch.no_grad()
def expected(model, tokenizer, out: Path):
    graphs = run.Graphs(out)
    pre, prompt = graphs.manifest["preprocessing"], graphs.manifest["prompt"]
    raw = tiles(page.picture(WIDTH, HEIGHT), TILE, pre["max_tiles"])
    normal = ((raw / 255 - np.array(pre["pixels"]["mean"])[:, None, None]) / np.array(pre["pixels"]["std"])[:, None, None]).astype(np.float32)
    text = prompt["before"] + prompt["visual"] * (len(raw) * pre["tokens_per_tile"]) + prompt["after"]
    ids = tokenizer.encode(text, add_special_tokens=False).ids
    pixels = torch.from_numpy(normal)
    reference = model.get_image_features(pixels).pooler_output.flatten(0, 1).numpy()
    features = graphs.features(pixels=normal)
    assert np.abs(features[0] - reference).max() < run.CLOSE, np.abs(features[0] - reference).max()
    image = tokenizer.token_to_id("<IMG_CONTEXT>")
    visual = np.cumsum(np.array(ids) == image) * (np.array(ids) == image)
    positions = np.arange(len(ids))[:, None]
    prefix = graphs.prefix(ids[:-1], visual[:-1], features, positions[:-1])
    end = tokenizer.token_to_id("<|im_end|>")
    written = run.greedy(model, {"pixel_values": pixels}, ids, 64, end)
    step = graphs.step(prefix, ids[-1:], positions[-1:])
    difference = run.same_hidden(model, graphs, step, written.pop("logits")[0])
    assert difference < run.CLOSE, difference
    print(f"{out}: {len(ids)} prompt tokens, features to {np.abs(features[0] - reference).max():.1e}, logits to {difference:.1e}")
    result = {
        "family": "hpd", "width": WIDTH, "height": HEIGHT, "tiles": len(raw), "prompt": ids, "features": run.rounded(features), "hidden": run.rounded(step["hidden"][0, 0, -1]),
        "greedy": written, "branches": branches(model, tokenizer, pixels, ids, end),
        "mtp": {"token": written["tokens"][0], **drafts(model, torch.from_numpy(step["hidden"][0, 0, -1]), written["tokens"][0])},
    }  # fmt: skip
    (out / "pixels.bin").write_bytes(raw.tobytes())
    (out / "expected.json").write_text(json.dumps(result) + "\n")


def branches(model, tokenizer, pixels, ids: list[int], end: int) -> dict:
    """A trunk of three regions, and what is written after each child: the prompt and the trunk before the fork filled in anew."""
    layout = "<BLOCK>text [10, 20, 300, 90]<FORK><BLOCK>table [12, 100, 500, 400]<FORK><BLOCK>equation [1, 410, 999, 500]<FORK><|im_end|>"
    trunk = tokenizer.encode(layout, add_special_tokens=False).ids
    fork, child = tokenizer.token_to_id("<FORK>"), tokenizer.token_to_id("<CHILD>")
    forks = [index for index, token in enumerate(trunk) if token == fork]
    written = []
    for index in forks:
        result = run.greedy(model, {"pixel_values": pixels}, ids + trunk[:index] + [child], 64, end)
        result.pop("logits")
        written.append({"fork": index, **result})
    return {"trunk": trunk, "written": written}
