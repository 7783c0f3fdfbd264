"""HPD-Parsing (InternVL3.5: InternViT, pixel shuffle and two linear maps, Qwen3): from its own checkpoint, or from the form that
`transformers` writes. Facts: the model card and configuration of PaddlePaddle/HPD-Parsing; the layout language is in src/tokens/blocks.rs."""
import re

from . import language, tiles
from .checkpoint import Checkpoint, Refused, fill
from .decoder import DecoderShape
from .family import Family, one_of, token_of
from .mtp import MultiTokenHead, head_of

PROMPTS = {"fork": "document parsing with fork.", "plain": "document parsing."}
SYSTEM = "你是书生·万象，英文名是InternVL，是由上海人工智能实验室、清华大学及多家合作单位联合开发的多模态大语言模型。"
# Labels of the model -> kinds of regions; the first label of a kind is the one that drafts use. `drop`: what is not kept.
LABELS = [
    ("text", "text"), ("doc_title", "title"), ("title", "heading"), ("paragraph_title", "heading"), ("list", "list"), ("table", "table"),
    ("equation", "formula"), ("formula", "formula"), ("image", "figure", "content"), ("image_block", "figure", "content"),
    ("seal", "figure", "content"), ("chart", "chart", "content"), ("table_caption", "caption"), ("image_caption", "caption"), ("code_caption", "caption"),
    ("figure_title", "caption"), ("code", "code"), ("algorithm", "code"), ("page_footnote", "footnote"), ("table_footnote", "footnote"),
    ("image_footnote", "footnote"), ("ref_text", "reference"), ("header", "header"), ("footer", "footer"), ("page_number", "page_number"),
    ("number", "page_number"), ("header_image", "header", "content"), ("footer_image", "footer", "content"), ("aside_text", "other"),
    ("phonetic", "other"), ("index", "text"), ("abandon", "other", "region"),
]  # fmt: skip
# What the names of the multi-token head's tensors hold.
HEAD_ROLES = {
    "gate": r"gate_proj|\.gate\.|w1\.", "up": r"up_proj|\.up\.|w3\.", "down": r"down_proj|\.down\.|w2\.",
    "token_norm": r"emb\w*norm|norm\w*emb|enorm|token_?norm", "hidden_norm": r"hidden\w*norm|norm\w*hidden|hnorm", "norm": r"norm",
}  # fmt: skip
NO_CONTENT = ["[Non-Text]", "The image is too blurry to recognize any text content.", "The image contains no text or characters*"]


def export(checkpoint: Checkpoint, options) -> Family:
    config = checkpoint.config
    kind = one_of(config, "model_type", ("internvl_chat", "internvl"))
    own = kind == "internvl_chat"
    text = config["llm_config"] if own else config["text_config"]
    vision = load_vision(checkpoint, config, own)
    stem, head = ("language_model.model.", "language_model.lm_head.weight") if own else native_names(checkpoint)
    decoder = language.load_decoder(checkpoint, text, 1, stem, head)
    head = load_head(checkpoint, decoder.shape)
    prompt = options.prompt or "fork"
    if prompt not in PROMPTS:
        raise Refused(f"--prompt {prompt}: known: {', '.join(PROMPTS)}")
    before = f"<|im_start|>system\n{SYSTEM}<|im_end|>\n<|im_start|>user\n<img>"
    after = f"</img>\n{PROMPTS[prompt]}<|im_end|>\n<|im_start|>assistant\n"
    fork, child = (token_of(checkpoint, config.get(f"{name}_token_id"), f"<{name.upper()}>") for name in ("fork", "child"))
    end = token_of(checkpoint, None, "<|im_end|>")
    layout = {
        "region": "block-label-box", "block": token_of(checkpoint, None, "<BLOCK>"), "grid": 1000,
        "labels": [dict(zip(("label", "kind", "drop"), entry)) for entry in LABELS],
        "content": {"default": "markdown", "code": "text", "table": "html", "formula": "latex"},
    }  # fmt: skip
    plain = {"region": "markdown", "content": {"default": "markdown"}}
    return Family(
        name="hpd-parsing", licence="Apache-2.0", decoder=decoder, vision=vision, feature_groups=1,
        preprocessing={
            "family": "internvl-tiles", "tile": vision.shape.tile, "tokens_per_tile": vision.shape.features_per_tile, "min_tiles": 1,
            # One more than the configuration says: the vendor's MAX_PATCHES_WITH_RESIZE.
            "max_tiles": int(config.get("max_dynamic_patch") or 24) + 1, "whole": True,
            "tiles_per_call": 4, "pixels": {"filter": "bicubic", "mean": [0.485, 0.456, 0.406], "std": [0.229, 0.224, 0.225]},
        },
        prompt={"before": before, "after": after, "visual": "<IMG_CONTEXT>"},
        tokens={"fork": fork, "child": child} if prompt == "fork" else {},
        protocol={
            "position_rule": "sequential", "trunk_end": [end], "branch_end": [end], "fork_visible": False, "no_content": NO_CONTENT,
            **(layout if prompt == "fork" else plain),
        },
        max_tokens=4096, max_trunk_tokens=4096 if prompt == "fork" else 8000, head=head,
    )  # fmt: skip


def load_head(checkpoint: Checkpoint, shape: DecoderShape) -> MultiTokenHead | None:
    """P-MTP's block from `language_model.mtp.*`. Its tensors are told apart by shape and by what their names hold, since no text that this was
    written from gives the names; where that is not clear, the pack has no head: it drafts, and nothing else depends on it."""
    stem = "language_model.mtp."
    tensors = {name: checkpoint.take(name) for name in checkpoint.names if name.startswith(stem)}
    if not tensors:
        return None
    head, found = head_of(shape), {}
    for name, tensor in tensors.items():
        short = name.removeprefix(stem)
        role = next((role for role, pattern in HEAD_ROLES.items() if re.search(pattern, short)), None)
        if role is None and tuple(tensor.shape) == (shape.hidden, 2 * shape.hidden):
            role = "join"
        if role is None or f"{role}.weight" in found:
            print(f"{checkpoint.folder}: `{name}` is not understood; the pack has no multi-token head")
            return None
        found[f"{role}.weight"] = tensor
    if set(found) != {name for name, _ in head.named_parameters()}:
        print(f"{checkpoint.folder}: the multi-token head lacks {', '.join(sorted({n for n, _ in head.named_parameters()} - set(found)))}")
        return None
    fill(head, found)
    return head.eval()


def native_names(checkpoint: Checkpoint) -> tuple[str, str]:
    stem = checkpoint.prefix("model.language_model.", "language_model.model.")
    return stem, "lm_head.weight" if checkpoint.has("lm_head.weight") else "language_model.lm_head.weight"


def load_vision(checkpoint: Checkpoint, config: dict, own: bool) -> tiles.TileVision:
    vision = config["vision_config"]
    if vision.get("use_qk_norm") or vision.get("qk_normalization") or vision.get("norm_type", "layer_norm") != "layer_norm":
        raise Refused("config.json: a vision model with other norms than LayerNorm is not known")
    side = lambda value: value[0] if isinstance(value, list) else value  # noqa: E731
    ratio = config.get("downsample_ratio", 0.5)
    text = config["llm_config"] if own else config["text_config"]
    if config.get("select_layer", -1) != -1 or config.get("vision_feature_layer", -1) != -1:
        raise Refused("config.json: features of another than the last vision layer are not known")
    shape = tiles.TileShape(
        tile=side(config.get("force_image_size") or vision["image_size"]), patch=side(vision["patch_size"]), hidden=vision["hidden_size"],
        layers=vision["num_hidden_layers"], heads=vision["num_attention_heads"], feed_forward=vision["intermediate_size"],
        epsilon=vision.get("layer_norm_eps", 1e-6), activation=vision.get("hidden_act", "gelu"), shuffle=round(1 / ratio),
        output=text["hidden_size"], class_token=True, final_norm=False, deep_projector=True,
    )  # fmt: skip
    stem, projector = ("vision_model.", "mlp1.") if own else (checkpoint.prefix("model.vision_tower.", "vision_tower."), None)
    projector = projector or checkpoint.prefix("model.multi_modal_projector.", "multi_modal_projector.")
    layer = f"{stem}encoder.layers.{{}}." if own else f"{stem}encoder.layer.{{}}."
    both = lambda ours, theirs: {f"{ours}.{part}": f"{theirs}.{part}" for part in ("weight", "bias")}  # noqa: E731
    if own:
        names = {"class_token": f"{stem}embeddings.class_embedding", "places": f"{stem}embeddings.position_embedding"}
        names |= both("patches", f"{stem}embeddings.patch_embedding")
        names |= both("projector.0", f"{projector}0") | both("projector.1", f"{projector}1") | both("projector.3", f"{projector}3")
        of_layer = both("norm1", f"{layer}norm1") | both("qkv", f"{layer}attn.qkv") | both("proj", f"{layer}attn.proj")
        of_layer |= both("norm2", f"{layer}norm2") | both("fc1", f"{layer}mlp.fc1") | both("fc2", f"{layer}mlp.fc2")
        of_layer |= {"scale1": f"{layer}ls1", "scale2": f"{layer}ls2"}
    else:
        names = {"class_token": f"{stem}embeddings.cls_token", "places": f"{stem}embeddings.position_embeddings"}
        names |= both("patches", f"{stem}embeddings.patch_embeddings.projection")
        names |= both("projector.0", f"{projector}layer_norm") | both("projector.1", f"{projector}linear_1") | both("projector.3", f"{projector}linear_2")
        of_layer = both("norm1", f"{layer}layernorm_before") | both("proj", f"{layer}attention.projection_layer")
        of_layer |= {f"qkv.{part}": "|".join(f"{layer}attention.{p}_proj.{part}" for p in "qkv") for part in ("weight", "bias")}
        of_layer |= both("norm2", f"{layer}layernorm_after") | both("fc1", f"{layer}mlp.fc1") | both("fc2", f"{layer}mlp.fc2")
        of_layer |= {"scale1": f"{layer}lambda_1", "scale2": f"{layer}lambda_2"}
    return tiles.load(checkpoint, shape, names, of_layer)
