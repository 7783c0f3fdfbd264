"""The decoder of every pack, with this project's graph contract (see src/graphs/mod.rs): one module for all models.

RMSNorm, rotary positions, grouped-query attention, SwiGLU, optionally QK-norm. What differs between models is data:

* the rotary rule is a matrix `[A, head_dim / 2]`: angle = positions x matrix. A row per component of a position (one for sequential
  positions; order, y, x for grounded words; time, height, width for mrope); a column per pair of dimensions (i, i + head_dim / 2).
  A column of zeros leaves its pair unrotated.
* the embedding table and the output matrix, tied or not.

Query heads of one key/value head are folded into the row dimension, so that keys and values are never repeated; and the page prefix is
read once for all rows.
"""
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional

# Added to the scores of what a row may not see. Finite, so that a fully masked row is not NaN.
HIDDEN_SCORE = -1e9


@dataclass(frozen=True)
class DecoderShape:
    vocabulary: int
    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    feed_forward: int
    position_parts: int = 1
    qk_norm: bool = True
    norm_epsilon: float = 1e-6
    qkv_bias: bool = False


def tsp_layer(layers: int) -> int:
    """The last layer that sees all visual tokens (FastKV: N/2 - 1)."""
    return layers // 2 - 1


def default_focal_layers(layers: int) -> list[int]:
    """Layers that say where on the page they look, of which the first steps of a page choose (FastOCR finds its focal layers in the middle and late):
    those at four to seven eighths of the depth."""
    return sorted({max(layers * eighths // 8 - 1, 0) for eighths in (4, 5, 6, 7)})


class RmsNorm(nn.Module):
    def __init__(self, width: int, epsilon: float):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.epsilon = epsilon

    def forward(self, x):
        return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + self.epsilon) * self.weight


def rotate(x, cosine, sine):
    """`x [..., D]` rotated; `cosine` and `sine` are `[..., D / 2]` and broadcast over heads."""
    half = x.shape[-1] // 2
    first, second = x[..., :half], x[..., half:]
    return torch.cat([first * cosine - second * sine, second * cosine + first * sine], -1)


def hide(length, visible):
    """Score mask `[..., length]` that hides the positions from `visible [...]` on."""
    return (torch.arange(length) >= visible.unsqueeze(-1)).float() * HIDDEN_SCORE


class DecoderLayer(nn.Module):
    def __init__(self, shape: DecoderShape):
        super().__init__()
        self.shape = shape
        width, queries, keys = shape.hidden, shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
        self.attention_norm = RmsNorm(width, shape.norm_epsilon)
        self.query = nn.Linear(width, queries, bias=shape.qkv_bias)
        self.key = nn.Linear(width, keys, bias=shape.qkv_bias)
        self.value = nn.Linear(width, keys, bias=shape.qkv_bias)
        self.output = nn.Linear(queries, width, bias=False)
        self.query_norm = RmsNorm(shape.head_dim, shape.norm_epsilon) if shape.qk_norm else nn.Identity()
        self.key_norm = RmsNorm(shape.head_dim, shape.norm_epsilon) if shape.qk_norm else nn.Identity()
        self.feed_norm = RmsNorm(width, shape.norm_epsilon)
        self.gate = nn.Linear(width, shape.feed_forward, bias=False)
        self.up = nn.Linear(width, shape.feed_forward, bias=False)
        self.down = nn.Linear(shape.feed_forward, width, bias=False)

    def project(self, x, cosine, sine):
        """`x [..., T, hidden]` -> queries `[..., T, heads, D]`, keys and values `[..., T, kv_heads, D]`; queries and keys rotated."""
        shape = self.shape
        normed = self.attention_norm(x)
        cosine, sine = cosine.unsqueeze(-2), sine.unsqueeze(-2)
        queries = self.query(normed).unflatten(-1, (shape.heads, shape.head_dim))
        keys = self.key(normed).unflatten(-1, (shape.kv_heads, shape.head_dim))
        values = self.value(normed).unflatten(-1, (shape.kv_heads, shape.head_dim))
        return rotate(self.query_norm(queries), cosine, sine), rotate(self.key_norm(keys), cosine, sine), values

    def feed(self, x):
        normed = self.feed_norm(x)
        return x + self.down(functional.silu(self.gate(normed)) * self.up(normed))


class Decoder(nn.Module):
    """Layers, embedding, output matrix and rotary rule. `Step` and `Prefill` are its two graphs."""

    def __init__(self, shape: DecoderShape, rotary: torch.Tensor):
        super().__init__()
        assert rotary.shape == (shape.position_parts, shape.head_dim // 2), "a row per position part, a column per pair of dimensions"
        self.shape = shape
        self.register_buffer("rotary", rotary)
        self.embedding = nn.Embedding(shape.vocabulary, shape.hidden)
        self.layers = nn.ModuleList([DecoderLayer(shape) for _ in range(shape.layers)])
        self.norm = RmsNorm(shape.hidden, shape.norm_epsilon)
        self.head = nn.Linear(shape.hidden, shape.vocabulary, bias=False)

    def embed(self, tokens, positions):
        """Input embeddings. Packs whose embedding depends on the position, too, override this."""
        return self.embedding(tokens)

    def angles(self, positions):
        angle = positions @ self.rotary
        return angle.cos(), angle.sin()


class Prefill(nn.Module):
    """Embeddings `[V, hidden]` and positions `[1, V, A]` of a page -> keys `[1, KVH, V, D]`, values `[1, KVH, D, V]` of the layers `part`. Every
    position sees every other in the layers `together` (None: in all), and itself alone in the others; a prompt is `PromptLayers`.

    A part that does not reach the last layer also returns, first, its hidden states and the saliency `[heads, V]` of every position: what all
    positions paid it in the part's last layer. The part above it takes the hidden states of the positions that are kept, with their own
    positions (token-selective propagation, FastKV).
    """

    def __init__(self, decoder: Decoder, part: range, together=None):
        super().__init__()
        self.decoder = decoder
        self.part = part
        self.together = part if together is None else together

    def forward(self, embeddings, positions):
        shape = self.decoder.shape
        group = shape.heads // shape.kv_heads
        cosine, sine = self.decoder.angles(positions[0])
        x = embeddings
        length = x.shape[0]
        outputs = []
        for index in self.part:
            layer = self.decoder.layers[index]
            queries, keys, values = layer.project(x, cosine, sine)
            keys, values_t = keys.transpose(0, 1), values.permute(1, 2, 0)
            outputs += [keys.unsqueeze(0), values_t.unsqueeze(0)]
            if index + 1 == shape.layers:
                return tuple(outputs)
            if index not in self.together:
                alone = values.repeat_interleave(group, 1).flatten(1)
                x = layer.feed(x + layer.output(alone))
                continue
            queries = queries.unflatten(1, (shape.kv_heads, group)).permute(1, 2, 0, 3)
            scores = (queries * shape.head_dim**-0.5).flatten(1, 2) @ keys.transpose(1, 2)
            weights = scores.softmax(-1)
            mixed = weights @ values.transpose(0, 1)
            mixed = mixed.unflatten(1, (group, length)).permute(2, 0, 1, 3).flatten(1)
            x = layer.feed(x + layer.output(mixed))
        return (x, weights.unflatten(1, (group, length)).flatten(0, 1).sum(1), *outputs)


class Step(nn.Module):
    """One decode call; inputs and outputs as in src/graphs/mod.rs. `focal_layers`: layers that say where on the page they look.
    `saliency`: every layer says where the rows `watched` look, for retention; without such rows that costs nothing."""

    def __init__(self, decoder: Decoder, focal_layers=(), saliency: bool = False):
        super().__init__()
        self.decoder = decoder
        self.focal_layers = tuple(focal_layers)
        self.saliency = saliency

    def forward(self, tokens, positions, prefix_len, trunk_visible, suffix_len, *cache):
        """`cache`: per layer prefix_k, prefix_v, trunk_k, trunk_v, suffix_k, suffix_v; before them `watched [W]` if there is saliency."""
        watched, cache = (cache[0], cache[1:]) if self.saliency else (None, cache)
        decoder = self.decoder
        cosine, sine = decoder.angles(positions)
        x = decoder.embed(tokens, positions)
        new, focal, image, saliency = [], [], [], []
        trunk_mask = hide(cache[2].shape[2], trunk_visible)
        suffix_mask = hide(cache[4].shape[3], suffix_len)
        token = torch.arange(tokens.shape[2])
        own_mask = (token[None, :] > token[:, None]).float() * HIDDEN_SCORE
        for index, layer in enumerate(decoder.layers):
            prefix_k, prefix_v, trunk_k, trunk_v, suffix_k, suffix_v = cache[6 * index : 6 * index + 6]
            masks = (hide(prefix_k.shape[2], prefix_len[index]), trunk_mask, suffix_mask, own_mask)
            queries, keys, values = layer.project(x, cosine, sine)
            keys, values = keys.transpose(2, 3), values.transpose(2, 3)
            new += [keys, values]
            mixed, seen = self.attend(queries, (prefix_k, prefix_v), (trunk_k, trunk_v), (suffix_k, suffix_v), (keys, values), masks)
            seen = seen[:, :, :, :, -1]
            if self.saliency:
                saliency.append(seen[0].index_select(1, watched))
            if self.focal_layers:
                seen = seen.mean((1, 3))
                image.append(seen.sum(-1))
                focal += [seen] * (index in self.focal_layers)
            x = layer.feed(x + layer.output(mixed))
        hidden = decoder.norm(x)
        logits = decoder.head(hidden)
        next_logit, next_id = logits.max(-1)
        normaliser = logits.logsumexp(-1)
        following = torch.cat([tokens[:, :, 1:], tokens[:, :, :1]], 2)
        drafted = logits.gather(-1, following.unsqueeze(-1)).squeeze(-1) - normaliser
        last = token == tokens.shape[2] - 1
        drafted = torch.where(last, torch.zeros_like(drafted), drafted)
        fixation = (*focal, torch.stack(image)) if focal else ()
        return (next_id, next_logit - normaliser, drafted, hidden, *fixation, *saliency, *new)

    def attend(self, queries, prefix, trunk, suffix, own, masks):
        """Queries `[P, R, M, heads, D]` over prefix, trunk, suffix and own rows, under one softmax -> `[P, R, M, heads * D]`, and the
        weights of the prefix `[P, KVH, R, group, M, Lv]`."""
        shape = self.decoder.shape
        group = shape.heads // shape.kv_heads
        pages, rows, length = queries.shape[0], queries.shape[1], queries.shape[2]
        kv, dim = shape.kv_heads, shape.head_dim
        queries = (queries * dim**-0.5).unflatten(3, (kv, group))
        # Shared parts: all rows of the page are query rows of one matrix product. Own parts: a product per row.
        shared = queries.permute(0, 3, 1, 4, 2, 5).reshape(pages, kv, rows * group * length, dim)
        private = queries.permute(0, 1, 3, 4, 2, 5).reshape(pages, rows, kv, group * length, dim)
        by_row = (pages, kv, rows, group, length, -1)
        prefix_scores = (shared @ prefix[0].transpose(2, 3)).view(by_row) + masks[0][:, None, None, None, None, :]
        trunk_scores = (shared @ trunk[0].transpose(2, 3)).view(by_row) + masks[1][:, None, :, None, None, :]
        suffix_scores = (private @ suffix[0].transpose(3, 4)).view(pages, rows, kv, group, length, -1)
        suffix_scores = suffix_scores.transpose(1, 2) + masks[2][:, None, :, None, None, :]
        own_scores = (private @ own[0].transpose(3, 4)).view(pages, rows, kv, group, length, -1)
        own_scores = own_scores.transpose(1, 2) + masks[3]
        sizes = [prefix_scores.shape[-1], trunk_scores.shape[-1], suffix_scores.shape[-1], own_scores.shape[-1]]
        weights = torch.cat([prefix_scores, trunk_scores, suffix_scores, own_scores], -1).softmax(-1)
        start = 0
        parts = []
        for size in sizes:
            parts.append(weights[..., start : start + size])
            start += size
        flat = (pages, kv, rows * group * length, -1)
        mixed = parts[0].reshape(flat) @ prefix[1].transpose(2, 3) + parts[1].reshape(flat) @ trunk[1]
        mixed = mixed.view(pages, kv, rows, group, length, dim)
        per_row = (pages, rows, kv, group * length, -1)
        for weight, values in ((parts[2], suffix[1]), (parts[3], own[1])):
            product = weight.transpose(1, 2).reshape(per_row) @ values
            mixed = mixed + product.view(pages, rows, kv, group, length, dim).transpose(1, 2)
        return mixed.permute(0, 2, 4, 1, 3, 5).reshape(pages, rows, length, shape.heads * dim), parts[0]
