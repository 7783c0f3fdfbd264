"""A checkpoint of HPD-Parsing's true shape with random weights, to measure with: `python -m scripts.reference.published.true_shape FOLDER`.

About 2.2 GB in bf16. Names and configuration are those of the model's own repository; the tokenizer is a small one, so most of the 151,681 tokens have no text.
"""
import json
import sys
from pathlib import Path

import torch
from safetensors.torch import save_file

from . import hpd, tokens

VISION = {"hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 24, "num_attention_heads": 16, "image_size": 448, "patch_size": 14,
          "layer_norm_eps": 1e-6, "hidden_act": "gelu", "qk_normalization": False, "norm_type": "layer_norm"}  # fmt: skip
TEXT = {"model_type": "qwen3", "hidden_size": 1024, "intermediate_size": 3072, "num_hidden_layers": 28, "num_attention_heads": 16,
        "num_key_value_heads": 8, "head_dim": 128, "rms_norm_eps": 1e-6, "rope_theta": 1e6, "vocab_size": 151681, "hidden_act": "silu"}  # fmt: skip


def tensors() -> dict[str, tuple[int, ...]]:
    """Shapes by name."""
    width, inner = VISION["hidden_size"], VISION["intermediate_size"]
    both = lambda name, *shape: {f"{name}.weight": shape, f"{name}.bias": shape[:1]}  # noqa: E731
    of = {"vision_model.embeddings.class_embedding": (1, 1, width), "vision_model.embeddings.position_embedding": (1, 1025, width)}
    of |= both("vision_model.embeddings.patch_embedding", width, 3, 14, 14)
    for layer in range(VISION["num_hidden_layers"]):
        stem = f"vision_model.encoder.layers.{layer}."
        of |= both(f"{stem}norm1", width) | both(f"{stem}norm2", width) | both(f"{stem}attn.qkv", 3 * width, width) | both(f"{stem}attn.proj", width, width)
        of |= both(f"{stem}mlp.fc1", inner, width) | both(f"{stem}mlp.fc2", width, inner) | {f"{stem}ls1": (width,), f"{stem}ls2": (width,)}
    width, inner, heads, kv, dim = (TEXT[name] for name in ("hidden_size", "intermediate_size", "num_attention_heads", "num_key_value_heads", "head_dim"))
    of |= both("mlp1.0", 4096) | both("mlp1.1", width, 4096) | both("mlp1.3", width, width)
    for layer in range(TEXT["num_hidden_layers"]):
        stem = f"language_model.model.layers.{layer}."
        shapes = {"self_attn.q_proj": (heads * dim, width), "self_attn.k_proj": (kv * dim, width), "self_attn.v_proj": (kv * dim, width),
                  "self_attn.o_proj": (width, heads * dim), "self_attn.q_norm": (dim,), "self_attn.k_norm": (dim,), "input_layernorm": (width,),
                  "post_attention_layernorm": (width,), "mlp.gate_proj": (inner, width), "mlp.up_proj": (inner, width), "mlp.down_proj": (width, inner)}  # fmt: skip
        of |= {f"{stem}{name}.weight": shape for name, shape in shapes.items()}
    of |= {"language_model.model.embed_tokens.weight": (TEXT["vocab_size"], width), "language_model.model.norm.weight": (width,)}
    return of | {"language_model.lm_head.weight": (TEXT["vocab_size"], width)}


def main(folder: Path):
    folder.mkdir(parents=True, exist_ok=True)
    generator = torch.Generator().manual_seed(9)
    made = {}
    for name, shape in tensors().items():
        noise = torch.randn(shape, generator=generator) * (1.2 / (shape[-1] if len(shape) > 1 else 64) ** 0.5)
        made[name] = (1 + 0.1 * noise if "norm" in name and name.endswith("weight") else noise).bfloat16()
    save_file(made, folder / "model.safetensors")
    config = {"model_type": "internvl_chat", "vision_config": VISION, "llm_config": TEXT, "force_image_size": 448, "downsample_ratio": 0.5,
              "select_layer": -1, "max_dynamic_patch": 24}  # fmt: skip
    (folder / "config.json").write_text(json.dumps(config))
    tokens.save(tokens.train(hpd.SPECIAL, hpd.TEXT, 300), folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
