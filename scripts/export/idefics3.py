"""Idefics3 as granite-docling and SmolDocling use it: tiles of a page of fixed length, SigLIP, a Llama-like decoder, DocTags."""
from . import language, tiles
from .chat import frame
from .checkpoint import Checkpoint, Refused
from .family import Family, one_of, token_of, tokenizer_of

PROMPT = "Convert this page to docling."
PICTURE = "<image>"
# What the two models say around a picture and a request, where the checkpoint brings no template.
FRAMES = {
    "<|start_of_role|>": (f"<|start_of_role|>user<|end_of_role|>{PICTURE}{PROMPT}<|end_of_text|>\n<|start_of_role|>assistant<|end_of_role|>"),
    "<end_of_utterance>": (f"<|im_start|>User:{PICTURE}{PROMPT}<end_of_utterance>\nAssistant:"),
}
ENDS = ("<end_of_utterance>", "<|end_of_text|>", "<|im_end|>", "</doctag>")


def export(checkpoint: Checkpoint, options) -> Family:
    config = checkpoint.config
    one_of(config, "model_type", ("idefics3",))
    stem = checkpoint.prefix("model.text_model.", "text_model.")
    decoder = language.load_decoder(checkpoint, config["text_config"], 1, stem, "lm_head.weight")
    vision = load_vision(checkpoint, config, stem.removesuffix("text_model."))
    own = checkpoint.json("preprocessor_config.json") or {}
    side = (own.get("max_image_size") or {}).get("longest_edge", vision.shape.tile)
    if side != vision.shape.tile:
        raise Refused(f"preprocessor_config.json: tiles of {side} px, config.json: {vision.shape.tile}")
    if own.get("do_image_splitting", True) is False:
        raise Refused("preprocessor_config.json: pages that are not split are not known")
    tokenizer = tokenizer_of(checkpoint)
    said = options.prompt or PROMPT
    frames = [text.replace(PROMPT, said) for mark, text in FRAMES.items() if tokenizer.token_to_id(mark) is not None]
    before, after = frame(checkpoint, said, PICTURE, frames)
    fake = "<fake_token_around_image>"
    token_of(checkpoint, None, fake)
    ends = [tokenizer.token_to_id(name) for name in ENDS if tokenizer.token_to_id(name) is not None]
    return Family(
        name=checkpoint.folder.name, licence=options.licence or "see the checkpoint", decoder=decoder, vision=vision, feature_groups=1,
        preprocessing={
            "family": "idefics3-tiles", "tile": side, "tokens_per_tile": vision.shape.features_per_tile,
            "longest_side": (own.get("size") or {}).get("longest_edge", 4 * side), "tiles_per_call": 4,
            "pixels": {"filter": "lanczos", "mean": own.get("image_mean", [0.5] * 3), "std": own.get("image_std", [0.5] * 3)},
        },
        prompt={
            "before": before, "after": after, "visual": PICTURE, "tile": f"{fake}<row_{{row}}_col_{{column}}>", "row_end": "\n",
            "whole": f"\n{fake}<global-img>", "only": f"{fake}<global-img>", "end": fake,
        },
        tokens={},
        protocol={
            "position_rule": "sequential", "trunk_end": ends, "branch_end": ends, "fork_visible": False, "content": {"default": "markdown"},
            "region": "doctags", "grid": 500, "no_content": [],
        },
        max_tokens=64, max_trunk_tokens=8192,
    )  # fmt: skip


def load_vision(checkpoint: Checkpoint, config: dict, root: str) -> tiles.TileVision:
    vision = config["vision_config"]
    shape = tiles.TileShape(
        tile=vision["image_size"], patch=vision["patch_size"], hidden=vision["hidden_size"], layers=vision["num_hidden_layers"],
        heads=vision["num_attention_heads"], feed_forward=vision["intermediate_size"], epsilon=vision["layer_norm_eps"],
        activation=vision["hidden_act"], shuffle=config["scale_factor"], output=config["text_config"]["hidden_size"], class_token=False,
        final_norm=True, deep_projector=False,
    )  # fmt: skip
    stem = f"{root}vision_model."
    both = lambda ours, theirs: {f"{ours}.{part}": f"{theirs}.{part}" for part in ("weight", "bias")}  # noqa: E731
    names = {"places": f"{stem}embeddings.position_embedding.weight", "projector.weight": f"{root}connector.modality_projection.proj.weight"}
    names |= both("patches", f"{stem}embeddings.patch_embedding") | both("norm", f"{stem}post_layernorm")
    layer = f"{stem}encoder.layers.{{}}."
    of_layer = both("norm1", f"{layer}layer_norm1") | both("norm2", f"{layer}layer_norm2") | both("proj", f"{layer}self_attn.out_proj")
    of_layer |= both("fc1", f"{layer}mlp.fc1") | both("fc2", f"{layer}mlp.fc2")
    of_layer |= {f"qkv.{part}": "|".join(f"{layer}self_attn.{p}_proj.{part}" for p in "qkv") for part in ("weight", "bias")}
    return tiles.load(checkpoint, shape, names, of_layer)
