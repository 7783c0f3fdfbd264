"""PaDoc (Qwen3-VL): vision with stretched places and DeepStack, interleaved mrope, forks whose closing token the branch sees.

Only the architecture is known. The control tokens and the labels are not published in any text that this was written from: the tokens are looked
for among those that the checkpoint adds, and whatever is not found exactly once must be named with `--token`. Unverified against weights.
"""
import re

from . import language, native
from .checkpoint import Checkpoint, Refused
from .family import Family, one_of, token_of, tokenizer_of
from .hpd import LABELS
from .qwen2_5_vl import preprocessing

# What a control token's name may hold.
ROLES = {"block": r"block|layout|region.?start", "fork": r"fork|region.?end|spawn", "child": r"child|branch"}
PROMPT = "Parse the document."


def export(checkpoint: Checkpoint, options) -> Family:
    config = checkpoint.config
    one_of(config, "model_type", ("qwen3_vl",))
    text = config["text_config"]
    vision = load_vision(checkpoint, config["vision_config"])
    stem = checkpoint.prefix("model.language_model.", "language_model.model.")
    decoder = language.load_decoder(checkpoint, text, 3, stem, "lm_head.weight")
    tokens = control_tokens(checkpoint, dict(entry.split("=", 1) for entry in options.token or []))
    end = [token_of(checkpoint, None, name) for name in ("<|im_end|>", "<|endoftext|>")]
    return Family(
        name="padoc", licence=options.licence or "see the checkpoint", decoder=decoder, vision=vision, feature_groups=vision.groups,
        preprocessing=preprocessing(checkpoint, vision.shape, 0, {"mean": [0.5] * 3, "std": [0.5] * 3}),
        prompt={
            "before": "<|im_start|>user\n<|vision_start|>", "after": f"<|vision_end|>{options.prompt or PROMPT}<|im_end|>\n<|im_start|>assistant\n",
            "visual": "<|image_pad|>",
        },
        tokens={"fork": tokens["fork"], "child": tokens["child"]},
        protocol={
            "position_rule": "mrope", "trunk_end": end, "branch_end": end, "fork_visible": True, "region": "block-label-box", "block": tokens["block"],
            "grid": 1000, "labels": [dict(zip(("label", "kind", "drop"), entry)) for entry in LABELS],
            "content": {"default": "markdown", "table": "html", "formula": "latex"}, "no_content": [],
        },
        max_tokens=4096, max_trunk_tokens=4096,
    )  # fmt: skip


def control_tokens(checkpoint: Checkpoint, named: dict[str, str]) -> dict[str, int]:
    """Ids of the control tokens: as named, or the one added token whose name fits the role."""
    tokenizer = tokenizer_of(checkpoint)
    added = {token.content: index for index, token in tokenizer.get_added_tokens_decoder().items() if not token.content.startswith("<|")}
    found = {}
    for role, pattern in ROLES.items():
        if role in named:
            found[role] = token_of(checkpoint, None, named[role])
            continue
        fits = [name for name in added if re.search(pattern, name, re.IGNORECASE)]
        if len(fits) != 1:
            raise Refused(f"{checkpoint.folder}: which token is the `{role}`? {len(fits)} of the added tokens may be it; say --token {role}=TOKEN, one of "
                          f"{', '.join(added) or 'none: the tokenizer adds no tokens'}")  # fmt: skip
        found[role] = added[fits[0]]
    return found


def load_vision(checkpoint: Checkpoint, vision: dict) -> native.NativeVision:
    if vision.get("hidden_act", "gelu_pytorch_tanh") != "gelu_pytorch_tanh":
        raise Refused(f"config.json: vision activation `{vision['hidden_act']}` is not known; known: gelu_pytorch_tanh")
    shape = native.NativeShape(
        patch=vision["patch_size"], merge=vision["spatial_merge_size"], hidden=vision["hidden_size"], layers=vision["depth"], heads=vision["num_heads"],
        feed_forward=vision["intermediate_size"], output=vision["out_hidden_size"], place_side=round(vision["num_position_embeddings"] ** 0.5),
        deep_layers=tuple(vision["deepstack_visual_indexes"]),
    )  # fmt: skip
    both = lambda ours, theirs: {f"{ours}.{part}": f"{theirs}.{part}" for part in ("weight", "bias")}  # noqa: E731
    names = {"learnt": "pos_embed.weight"} | both("patches", "patch_embed.proj")
    for ours, theirs in [("merger", "merger"), *((f"deep.{i}", f"deepstack_merger_list.{i}") for i in range(len(shape.deep_layers)))]:
        names |= both(f"{ours}.norm", f"{theirs}.norm") | both(f"{ours}.fc1", f"{theirs}.linear_fc1") | both(f"{ours}.fc2", f"{theirs}.linear_fc2")
    layer = both("norm1", "blocks.{}.norm1") | both("norm2", "blocks.{}.norm2") | both("qkv", "blocks.{}.attn.qkv") | both("proj", "blocks.{}.attn.proj")
    layer |= both("feed.fc1", "blocks.{}.mlp.linear_fc1") | both("feed.fc2", "blocks.{}.mlp.linear_fc2")
    return native.load(checkpoint, shape, checkpoint.prefix("model.visual.", "visual."), names, layer)
