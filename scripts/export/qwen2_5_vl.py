"""Qwen2.5-VL and what is trained from it (olmOCR): windowed vision at the page's own size, sectioned mrope, a page as Markdown."""
from . import language, native
from .checkpoint import Checkpoint, Refused
from .family import Family, one_of, token_of

SYSTEM = "You are a helpful assistant."
# olmOCR 2's prompt (allenai/olmocr, prompts for pages without anchors); a plain one for the base model.
PROMPTS = {
    "olmocr": (
        "Attached is one page of a document that you must process. Just return the plain text representation of this document as if you were "
        "reading it naturally. Convert equations to LateX and tables to HTML.\nIf there are any figures or charts, label them with the following "
        "markdown syntax ![Alt text describing the contents of the figure](page_startx_starty_width_height.png)\nReturn your output as markdown, "
        "with a front matter section on top specifying values for the primary_language, is_rotation_valid, rotation_correction, is_table, and "
        "is_diagram parameters."
    ),
    "markdown": "Convert this page to Markdown. Write formulas as LaTeX and tables as HTML. Answer with the page's content only.",
}  # fmt: skip
# olmOCR shows the model its prompt before the picture and the page at this longest side, px.
OLMOCR_SIDE = 1288
CLIP = {"mean": [0.48145466, 0.4578275, 0.40821073], "std": [0.26862954, 0.26130258, 0.27577711]}


def export(checkpoint: Checkpoint, options) -> Family:
    config = checkpoint.config
    one_of(config, "model_type", ("qwen2_5_vl",))
    text = config.get("text_config") or config
    vision = load_vision(checkpoint, config["vision_config"], text["hidden_size"])
    stem = checkpoint.prefix("model.language_model.", "language_model.model.", "model.layers.")
    stem = "model." if stem == "model.layers." else stem
    decoder = language.load_decoder(checkpoint, text | {"model_type": "qwen2_5_vl_text"}, 3, stem, "lm_head.weight")
    prompt = options.prompt or "olmocr"
    if prompt not in PROMPTS:
        raise Refused(f"--prompt {prompt}: known: {', '.join(PROMPTS)}")
    olmocr = prompt == "olmocr"
    end = [token_of(checkpoint, None, name) for name in ("<|im_end|>", "<|endoftext|>")]
    before = f"<|im_start|>system\n{SYSTEM}<|im_end|>\n<|im_start|>user\n"
    picture = ("<|vision_start|>", "<|vision_end|>")
    words = (PROMPTS[prompt], "") if olmocr else ("", PROMPTS[prompt])
    return Family(
        name="olmocr" if olmocr else "qwen2.5-vl", licence=options.licence or "Apache-2.0", decoder=decoder, vision=vision, feature_groups=1,
        preprocessing=preprocessing(checkpoint, vision.shape, OLMOCR_SIDE if olmocr else 0, CLIP),
        prompt={
            "before": before + words[0] + picture[0], "after": f"{picture[1]}{words[1]}<|im_end|>\n<|im_start|>assistant\n", "visual": "<|image_pad|>",
        },
        tokens={},
        protocol={
            "position_rule": "mrope", "trunk_end": end, "branch_end": end, "fork_visible": False, "content": {"default": "markdown"},
            "region": "front-matter-markdown" if olmocr else "markdown", "no_content": [],
        },
        max_tokens=64, max_trunk_tokens=8000,
    )  # fmt: skip


def preprocessing(checkpoint: Checkpoint, shape: native.NativeShape, side: int, normal: dict) -> dict:
    """The picture's bounds from the checkpoint's own processor."""
    own = checkpoint.json("preprocessor_config.json") or {}
    size = own.get("size") or {}
    patch, merge = own.get("patch_size", shape.patch), own.get("merge_size", shape.merge)
    if (patch, merge) != (shape.patch, shape.merge):
        raise Refused(f"preprocessor_config.json: patches of {patch} px merged by {merge}, config.json: {shape.patch} and {shape.merge}")
    return {
        "family": "qwen-native", "patch": patch, "merge": merge,
        "min_pixels": own.get("min_pixels") or size.get("shortest_edge") or size.get("min_pixels") or 56 * 56,
        "max_pixels": own.get("max_pixels") or size.get("longest_edge") or size.get("max_pixels") or 28 * 28 * 1280,
        "max_side": side, "window": shape.window, "place_side": shape.place_side,
        "pixels": {"filter": "bicubic", "mean": own.get("image_mean", normal["mean"]), "std": own.get("image_std", normal["std"])},
    }  # fmt: skip


def load_vision(checkpoint: Checkpoint, vision: dict, output: int) -> native.NativeVision:
    if vision.get("hidden_act", "silu") != "silu":
        raise Refused(f"config.json: vision activation `{vision['hidden_act']}` is not known; known: silu")
    patch = vision["patch_size"]
    shape = native.NativeShape(
        patch=patch, merge=vision["spatial_merge_size"], hidden=vision["hidden_size"], layers=vision["depth"], heads=vision["num_heads"],
        feed_forward=vision["intermediate_size"], output=vision.get("out_hidden_size", output), window=vision["window_size"] // patch,
        whole_layers=tuple(vision["fullatt_block_indexes"]), gated=True,
    )  # fmt: skip
    stem = checkpoint.prefix("model.visual.", "visual.")
    both = lambda ours, theirs: {f"{ours}.{part}": f"{theirs}.{part}" for part in ("weight", "bias")}  # noqa: E731
    names = {"patches.weight": "patch_embed.proj.weight", "merger.norm.weight": "merger.ln_q.weight"}
    names |= both("merger.fc1", "merger.mlp.0") | both("merger.fc2", "merger.mlp.2")
    layer = {"norm1.weight": "blocks.{}.norm1.weight", "norm2.weight": "blocks.{}.norm2.weight"}
    layer |= both("qkv", "blocks.{}.attn.qkv") | both("proj", "blocks.{}.attn.proj")
    for ours in ("gate", "up", "down"):
        layer |= both(f"feed.{ours}", f"blocks.{{}}.mlp.{ours}_proj")
    return native.load(checkpoint, shape, stem, names, layer)
