"""A published model as a pack: what each family's exporter says of it, and how the pack is written."""
import hashlib
import json
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path

import torch
from tokenizers import Tokenizer
from torch import nn

from .checkpoint import Checkpoint, Refused
from .decoder import Decoder, default_focal_layers, tsp_layer
from .graphs import prefix_names, write_decode_graph, write_lower_prefill, write_upper_prefill
from .language import PromptLayers, PromptPrefill
from .mtp import MultiTokenHead, write_mtp_graph
from .weights import Conversion, PackWriter

GRAPHS = {"vision": "vision.onnx", "prefill": "prefill.onnx", "decode": "decode.onnx"}
# A pack of a strong model: its drafts must be what it would have written itself.
LOSSLESS = {"mode": "lossless", "default": {"own_confidence": 2.0, "model_probability": 2.0, "override_probability": 0.0, "coordinate_bins": 0}}


@dataclass
class Family:
    """What the manifest says of a model, and its parts as modules. Keys are those of models/README.md."""

    name: str
    licence: str
    decoder: Decoder
    vision: nn.Module
    # Features that prefill adds to the embeddings, and to the states after its first layers (DeepStack).
    feature_groups: int
    preprocessing: dict
    prompt: dict
    tokens: dict
    protocol: dict
    max_tokens: int
    max_trunk_tokens: int
    # Drafts several tokens at once; None: the checkpoint has none.
    head: MultiTokenHead | None = None

    @property
    def graphs(self) -> dict[str, str]:
        upper = {} if self.tsp_layer is None else {"prefill_upper": "prefill_upper.onnx"}
        return GRAPHS | upper | ({"mtp": "mtp.onnx"} if self.head else {})

    @property
    def tsp_layer(self) -> int | None:
        """The last layer that sees all visual tokens; None: tokens cannot be left out, as features are added above it."""
        layer = tsp_layer(self.decoder.shape.layers)
        return layer if layer >= max(self.feature_groups - 2, 0) else None

    @property
    def focal_layers(self) -> list[int]:
        return default_focal_layers(self.decoder.shape.layers)


def one_of(config: dict, key: str, known: tuple[str, ...]) -> str:
    """The value of `key`; refuses one that is not known."""
    value = config.get(key)
    if value not in known:
        raise Refused(f"config.json: {key} is `{value}`; this exporter knows {', '.join(known)}")
    return value


def tokenizer_of(checkpoint: Checkpoint) -> Tokenizer:
    """The checkpoint's `tokenizer.json`, or what `transformers` makes of its other tokenizer files."""
    path = checkpoint.folder / "tokenizer.json"
    if path.exists():
        return Tokenizer.from_file(str(path))
    from transformers import AutoTokenizer

    try:
        return AutoTokenizer.from_pretrained(checkpoint.folder).backend_tokenizer
    except Exception as error:
        raise Refused(f"{checkpoint.folder}: no tokenizer.json, and none can be made of what is there: {error}") from error


def token_of(checkpoint: Checkpoint, configured: int | None, text: str) -> int:
    """The id of the token `text`. An id in the configuration must agree with the tokenizer."""
    found = tokenizer_of(checkpoint).token_to_id(text)
    if found is None and configured is None:
        raise Refused(f"{checkpoint.folder}: the tokenizer has no token `{text}`; is this the right family?")
    if None not in (found, configured) and found != configured:
        raise Refused(f"{checkpoint.folder}: `{text}` is token {found} of the tokenizer, {configured} in config.json")
    return configured if found is None else found


def last_tokens(tokenizer: Tokenizer, family: Family) -> list[int]:
    """Ids of what follows the picture in the prompt."""
    return tokenizer.encode(family.prompt.get("end", "") + family.prompt["after"], add_special_tokens=False).ids


def manifest(family: Family, checkpoint: Checkpoint, tokenizer: Tokenizer, files: dict, conversion: Conversion) -> dict:
    shape, after = family.decoder.shape, last_tokens(tokenizer, family)
    return {
        "schema": "docparse.pack/1", "name": family.name, "licence": family.licence, "source": f"checkpoint {checkpoint.folder.name}",
        "about": {"weights": conversion.describe()}, "files": files, "graphs": family.graphs, "tokenizer": "tokenizer.json",
        "dims": {
            "layers": shape.layers, "heads": shape.heads, "kv_heads": shape.kv_heads, "head_dim": shape.head_dim,
            "hidden": shape.hidden, "vocabulary": shape.vocabulary, "position_parts": shape.position_parts,
        },
        "preprocessing": family.preprocessing, "prompt": family.prompt, "tokens": family.tokens,
        "protocol": {"prefill_attention": "causal", "trunk_prompt": after[-1:], **family.protocol},
        "decode": {"buckets": [1, 8, 32, 128, 512], "max_tokens": family.max_tokens, "max_trunk_tokens": family.max_trunk_tokens},
        "acceptance": LOSSLESS, "extras": {
            "prefix_text": len(after) - 1, "focal_layers": family.focal_layers, "saliency": True,
            **({} if family.tsp_layer is None else {"tsp_layer": family.tsp_layer}),
        },
    }  # fmt: skip


def write_prefill(family: Family, writer: PackWriter):
    """One graph, or one for the layers up to that after which tokens may be left out, and one for the layers above it."""
    shape, groups = family.decoder.shape, family.feature_groups
    inputs = {
        "tokens": torch.tensor([1, 2, 2, 2, 3]), "visual": torch.tensor([0, 1, 2, 3, 0]),
        "features": torch.zeros(groups, 3, shape.hidden), "positions": torch.zeros(1, 5, shape.position_parts),
    }  # fmt: skip
    dynamic = {"tokens": {0: "V"}, "visual": {0: "V"}, "features": {1: "N"}, "positions": {1: "V"}}
    if family.tsp_layer is None:
        part = range(shape.layers)
        names, axes = prefix_names(part)
        writer.write(PromptPrefill(family.decoder, groups, part), inputs, names, dynamic | axes, GRAPHS["prefill"])
        return
    lower, upper = range(family.tsp_layer + 1), range(family.tsp_layer + 1, shape.layers)
    write_lower_prefill(PromptPrefill(family.decoder, groups, lower), inputs, dynamic, lower, GRAPHS["prefill"], writer.write)
    write_upper_prefill(PromptLayers(family.decoder, upper), shape, upper, family.graphs["prefill_upper"], writer.write)


def write_vision(family: Family, writer: PackWriter, name: str):
    inputs, dynamic = family.vision.example()
    writer.write(family.vision, inputs, ["features"], dynamic | {"features": {1: "N"}}, name)


@torch.no_grad()
def write_pack(family: Family, checkpoint: Checkpoint, out: Path, conversion: Conversion):
    """Writes graphs, weights, tokenizer and manifest to `out`."""
    left = [name for name in checkpoint.untaken() if not name.endswith(("rotary_emb.inv_freq", ".position_ids"))]
    if left:
        raise Refused(f"{checkpoint.folder}: {len(left)} tensors have no place in this family, e.g. {', '.join(left[:4])}")
    out.mkdir(parents=True, exist_ok=True)
    tokenizer = tokenizer_of(checkpoint)
    if tokenizer.get_vocab_size() > family.decoder.shape.vocabulary:
        raise Refused(f"the tokenizer has {tokenizer.get_vocab_size()} tokens, the decoder {family.decoder.shape.vocabulary}")
    with tempfile.TemporaryDirectory(dir=out) as work, PackWriter(out, Path(work), conversion) as writer:
        write_vision(family, writer, GRAPHS["vision"])
        write_prefill(family, writer)
        write_decode_graph(family.decoder, GRAPHS["decode"], family.focal_layers, saliency=True, write=writer.write)
        if family.head:
            write_mtp_graph(family.decoder, family.head, family.graphs["mtp"], write=writer.write)
    tokenizer.save(str(out / "tokenizer.json"), pretty=False)
    files = {name: sha256(out / name) for name in ["tokenizer.json", *family.graphs.values(), writer.weights_name]}
    text = json.dumps(manifest(family, checkpoint, tokenizer, files, conversion), indent=1, ensure_ascii=False)
    text = re.sub(r"\[\s+([-\d.,\s]+?)\s+\]", lambda match: "[" + " ".join(match[1].split()) + "]", text)
    (out / "docparse.json").write_text(text + "\n")


def sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
