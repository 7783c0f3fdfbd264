"""The decoder of a published checkpoint (Qwen2, Qwen3, Llama, Granite: one family) as this project's `Decoder`, and its prefill graph."""
import warnings

import torch
from torch import nn

from .checkpoint import Checkpoint, Refused, fill
from .decoder import HIDDEN_SCORE, Decoder, DecoderShape

# What the names stand for: biases of the query, key and value projections, norms of queries and keys.
FAMILIES = {
    "qwen2": (True, False), "qwen2_5_vl_text": (True, False), "qwen2_vl_text": (True, False), "qwen3": (False, True), "qwen3_vl_text": (False, True),
    "llama": (False, False), "granite": (False, False),
}  # fmt: skip
ROPE_TYPES = ("default", "mrope", None)


def rope_of(config: dict) -> dict:
    """Parameters of the rotary embedding, whichever way the configuration says them."""
    rope = dict(config.get("rope_parameters") or config.get("rope_scaling") or {})
    rope.setdefault("rope_theta", config.get("rope_theta", 10000.0))
    kind = rope.get("rope_type", rope.get("type"))
    if kind not in ROPE_TYPES:
        raise Refused(f"config.json: rotary type `{kind}` is not known; known: default, mrope")
    return rope


def rotary_matrix(config: dict, head_dim: int, parts: int) -> torch.Tensor:
    """`[parts, head_dim / 2]`: one row for sequential positions; time, height and width for mrope, in sections or interleaved."""
    rope = rope_of(config)
    half = head_dim // 2
    frequencies = 1.0 / (rope["rope_theta"] ** (torch.arange(0, head_dim, 2).float() / head_dim))
    if parts == 1:
        return frequencies[None]
    sections = rope.get("mrope_section")
    if not sections or len(sections) != 3 or sum(sections) != half:
        raise Refused(f"config.json: mrope_section {sections} does not split {half} pairs of dimensions in three")
    owner = torch.zeros(half, dtype=torch.int64)
    if rope.get("mrope_interleaved") or config["model_type"] == "qwen3_vl_text":
        for part in (1, 2):
            owner[part : 3 * sections[part] : 3] = part
    else:
        owner = torch.repeat_interleave(torch.arange(3), torch.tensor(sections))
    return torch.where(owner[None] == torch.arange(3)[:, None], frequencies[None], torch.zeros(()))


def decoder_shape(config: dict, parts: int) -> DecoderShape:
    """The shape that a text configuration describes. Refuses what this decoder does not compute."""
    kind = config.get("model_type")
    if kind not in FAMILIES:
        raise Refused(f"config.json: text model `{kind}` is not known; known: {', '.join(sorted(FAMILIES))}")
    if config.get("hidden_act", "silu") != "silu":
        raise Refused(f"config.json: activation `{config['hidden_act']}` is not known; known: silu")
    if config.get("use_sliding_window"):
        raise Refused("config.json: sliding-window attention is not known")
    bias, norm = FAMILIES[kind]
    heads = config["num_attention_heads"]
    return DecoderShape(
        vocabulary=config["vocab_size"], hidden=config["hidden_size"], layers=config["num_hidden_layers"], heads=heads,
        kv_heads=config.get("num_key_value_heads") or heads, head_dim=config.get("head_dim") or config["hidden_size"] // heads,
        feed_forward=config["intermediate_size"], position_parts=parts, qk_norm=norm, norm_epsilon=config.get("rms_norm_eps", 1e-6),
        qkv_bias=bias or bool(config.get("attention_bias")),
    )  # fmt: skip


def load_decoder(checkpoint: Checkpoint, config: dict, parts: int, stem: str, head: str) -> Decoder:
    """The decoder whose layers are named `{stem}layers.N...` and whose output matrix is `head` (or the embedding, if tied).

    Granite's multipliers are folded into the weights: all of them scale a linear map."""
    shape = decoder_shape(config, parts)
    scale = {name: float(config.get(name, 1.0)) for name in ("embedding_multiplier", "residual_multiplier", "logits_scaling")}
    query_scale = float(config.get("attention_multiplier", shape.head_dim**-0.5)) * shape.head_dim**0.5
    tensors = {"embedding.weight": checkpoint.take(f"{stem}embed_tokens.weight"), "norm.weight": checkpoint.take(f"{stem}norm.weight")}
    tied = not checkpoint.has(head)
    tensors["head.weight"] = tensors["embedding.weight"] if tied else checkpoint.take(head)
    if scale["embedding_multiplier"] != 1.0:
        tensors["embedding.weight"] = tensors["embedding.weight"] * scale["embedding_multiplier"]
    if scale["logits_scaling"] != 1.0:
        tensors["head.weight"] = tensors["head.weight"] / scale["logits_scaling"]
    names = {
        "attention_norm": "input_layernorm", "query": "self_attn.q_proj", "key": "self_attn.k_proj", "value": "self_attn.v_proj",
        "output": "self_attn.o_proj", "feed_norm": "post_attention_layernorm", "gate": "mlp.gate_proj", "up": "mlp.up_proj", "down": "mlp.down_proj",
    }  # fmt: skip
    if shape.qk_norm:
        names |= {"query_norm": "self_attn.q_norm", "key_norm": "self_attn.k_norm"}
    factors = {"output": scale["residual_multiplier"], "down": scale["residual_multiplier"], "query": query_scale}
    for layer in range(shape.layers):
        for ours, theirs in names.items():
            for part in ("weight", "bias") if shape.qkv_bias and ours in ("query", "key", "value") else ("weight",):
                tensor = checkpoint.take(f"{stem}layers.{layer}.{theirs}.{part}")
                factor = factors.get(ours, 1.0)
                tensors[f"layers.{layer}.{ours}.{part}"] = tensor if factor == 1.0 else tensor * factor
    with torch.device("meta"):
        decoder = Decoder(shape, torch.zeros(parts, shape.head_dim // 2))
    decoder.rotary = rotary_matrix(config, shape.head_dim, parts)
    fill(decoder, tensors)
    return decoder.eval()


# Queries of a prompt that attend at once: the scores of all heads are `heads x QUERY_BLOCK x T` numbers.
QUERY_BLOCK = 256
# Last queries that say what the upper layers need (FastKV).
WINDOW = 8


def attend_causally(queries, keys_t, values, blocks, block: int):
    """`queries [KVH, G, T, D]` (scaled), `keys_t [KVH, D, T]`, `values [KVH, T, D]` -> `[KVH, G, T, D]`: a loop in the graph. A block of queries
    reads the keys up to its last one, so half of the products are never made. `blocks`: how many there are, a number in a tensor, since the
    exporter takes sizes that are asked for here to be constant."""
    parts: list[torch.Tensor] = []
    heads, group, width = queries.shape[0], queries.shape[1], queries.shape[3]
    for number in range(int(blocks)):
        part = queries[:, :, number * block : (number + 1) * block]
        rows = part.shape[2]
        end = number * block + rows
        hidden = (torch.arange(end).unsqueeze(0) > torch.arange(number * block, end).unsqueeze(1)).float() * -1e9
        scores = torch.matmul(part.reshape(heads, group * rows, width), keys_t[:, :, :end])
        scores = scores.reshape(heads, group, rows, end) + hidden
        weights = torch.softmax(scores, 3).reshape(heads, group * rows, end)
        parts.append(torch.matmul(weights, values[:, :end]).reshape(heads, group, rows, width))
    return torch.cat(parts, 2)


with warnings.catch_warnings():
    # Only a script keeps the loop; this exporter reads no other form of it.
    warnings.simplefilter("ignore", FutureWarning)
    attend_causally = torch.jit.script(attend_causally)


class PromptLayers(nn.Module):
    """Layers `part` over a prompt, causal: hidden states `[T, hidden]` and positions `[1, T, A]` in.

    Out: keys and values of the layers. Where there are layers above, their hidden states come first, then the saliency `[heads, T]` of every
    position: what the last `WINDOW` queries pay it in the part's last layer."""

    def __init__(self, decoder: Decoder, part: range):
        super().__init__()
        self.decoder = decoder
        self.part = part

    def forward(self, hidden, positions):
        return self.run(hidden, positions, lambda index: None)

    def run(self, x, positions, added):
        """`added(layer)`: what is added to the states after a layer, or None."""
        decoder, shape = self.decoder, self.decoder.shape
        cosine, sine = decoder.angles(positions[0])
        blocks = (torch._shape_as_tensor(x)[0] + QUERY_BLOCK - 1) // QUERY_BLOCK
        outputs = []
        for index in self.part:
            layer = decoder.layers[index]
            queries, keys, values = layer.project(x, cosine, sine)
            keys, values = keys.transpose(0, 1), values.transpose(0, 1)
            outputs += [keys.unsqueeze(0), values.transpose(1, 2).unsqueeze(0)]
            if index + 1 == shape.layers:
                return tuple(outputs)
            queries = (queries * shape.head_dim**-0.5).unflatten(1, (shape.kv_heads, -1)).permute(1, 2, 0, 3)
            mixed = attend_causally(queries, keys.transpose(1, 2), values, blocks, QUERY_BLOCK)
            x = layer.feed(x + layer.output(mixed.permute(2, 0, 1, 3).flatten(1)))
            if (more := added(index)) is not None:
                x = x + more
        place = torch.arange(x.shape[0])
        hidden = (place.unsqueeze(0) > place[-WINDOW:].unsqueeze(1)).float() * HIDDEN_SCORE
        paid = (queries[:, :, -WINDOW:] @ keys.transpose(1, 2).unsqueeze(1) + hidden).softmax(-1)
        return (x, paid.sum(2).flatten(0, 1), *outputs)


class PromptPrefill(PromptLayers):
    """Prompt -> keys and values of the layers `part`, which begin with the first.

    `tokens [T]`; `visual [T]`: 1 + index of the picture feature that stands at a position, 0 for text; `features [G, N, hidden]`: the
    features that replace embeddings, then those that are added after the first `G - 1` layers; `positions [1, T, A]`."""

    def __init__(self, decoder: Decoder, feature_groups: int, part: range):
        super().__init__(decoder, part)
        self.feature_groups = feature_groups

    def forward(self, tokens, visual, features, positions):
        is_text = (visual == 0).unsqueeze(-1)
        chosen = (visual - 1).clamp(min=0)
        x = torch.where(is_text, self.decoder.embedding(tokens), features[0][chosen])

        def deep(index):
            group = index + 1
            return torch.where(is_text, torch.zeros(()), features[group][chosen]) if group < self.feature_groups else None

        return self.run(x, positions, deep)
