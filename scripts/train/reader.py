"""The nano reader's decoder in its training form: visual tokens, trunk and branches of a page as one sequence under a tree mask.

The layers are those of `scripts/export/decoder.py`; `folded` turns the nano reader's own embeddings into that module's plain tables.

Positions have three parts: text order, y and x (px of the raster). A visual token has its character's centre; a text token the place that the
tokens before it imply (`positions.py`). Visual tokens see one another in one layer only: what is around them is in what the vision graph says.
"""
import math

import torch
from torch import nn
from torch.nn import functional

from scripts.export.decoder import Decoder, DecoderLayer, DecoderShape, RmsNorm, tsp_layer

from .layout import CLASSES
from .visual_tokens import MOST_GAP
from .vocabulary import Vocabulary

CHARACTER_WIDTH = 64
# The embedding table is kept small, because it is tied to the output; the input needs it larger.
INPUT_SCALE = 7.0
BOX_WAVES, FACTS = 7, 7
# Pairs of dimensions that turn with the text order, with y, with x, and not at all: 32 pairs = head dimension 64.
ORDER_PAIRS, Y_PAIRS, X_PAIRS, FREE_PAIRS = 10, 8, 8, 6
HEAD_DIM = 2 * (ORDER_PAIRS + Y_PAIRS + X_PAIRS + FREE_PAIRS)


def rotary_rule() -> torch.Tensor:
    """`[3, 32]`: wavelengths of 2 pi .. 62,800 tokens (order), 20 .. 1,280 px (y), 40 .. 2,560 px (x)."""
    rule = torch.zeros(3, HEAD_DIM // 2)
    rule[0, :ORDER_PAIRS] = 10000.0 ** (-torch.arange(ORDER_PAIRS).float() / ORDER_PAIRS)
    octaves = torch.arange(Y_PAIRS).float() * 7 / Y_PAIRS
    rule[1, ORDER_PAIRS : ORDER_PAIRS + Y_PAIRS] = 2 * math.pi / (20 * 2**octaves)
    octaves = torch.arange(X_PAIRS).float() * 6 / X_PAIRS
    first = ORDER_PAIRS + Y_PAIRS
    rule[2, first : first + X_PAIRS] = 2 * math.pi / (40 * 2**octaves)
    return rule


def place_waves(xy, width: int):
    """`[..., 2]` px -> `[..., width]`: sine and cosine of x, then of y, wavelengths of 8 .. 4,096 px."""
    count = width // 4
    frequency = (2 * math.pi) / (8.0 * 2.0 ** (torch.arange(count, dtype=torch.float32) * (9.0 / count)))
    x, y = xy[..., 0:1] * frequency, xy[..., 1:2] * frequency
    return torch.cat([x.sin(), x.cos(), y.sin(), y.cos()], -1)


def coordinate_waves(vocabulary: Vocabulary, width: int):
    """`[2, count, width / 2]`: waves of the x tokens' values, and of the y tokens'."""
    values = torch.arange(vocabulary.x.count).float()[:, None] * vocabulary.x.bin
    waves = place_waves(values.expand(-1, 2), width)
    return torch.stack([waves[:, : width // 2], waves[:, width // 2 :]])


def text_waves(positions, width: int):
    """`place_waves` of positions `[..., 3]` (order, y, x)."""
    return place_waves(torch.stack([positions[..., 2], positions[..., 1]], -1), width)


class PlacedDecoder(Decoder):
    """A decoder whose text tokens also carry their place."""

    def __init__(self, shape: DecoderShape, rotary: torch.Tensor):
        super().__init__(shape, rotary)
        self.text_place = nn.Linear(shape.hidden, shape.hidden, bias=False)

    def embed(self, tokens, positions):
        return self.embedding(tokens) + self.text_place(text_waves(positions, self.shape.hidden))


def box_waves(layout):
    """Rows of the layout net's map `[..., CHANNELS]` -> `[..., 8, 2 * BOX_WAVES]`: sine and cosine of the coordinates of the own box and of the one
    before, wavelengths of 32 .. 2,048 px. Few enough that a head's values can hold a box."""
    angle = layout[..., CLASSES:, None] * (2 * math.pi / (32.0 * 2.0 ** torch.arange(BOX_WAVES)))
    return torch.cat([angle.sin(), angle.cos()], -1)


def fact_waves(facts):
    """`facts [V, 3]` (mass, gaps in px) -> `[V, FACTS]`."""
    gaps = facts[:, 1:]
    return torch.cat([facts[:, :1], gaps / MOST_GAP, torch.exp(-gaps / 20.0), torch.exp(-gaps / 8.0)], 1)


class Reader(nn.Module):
    def __init__(self, vocabulary: Vocabulary, shape: DecoderShape, focal_layers=(2, 4)):
        super().__init__()
        width = shape.hidden
        self.vocabulary, self.shape, self.focal_layers = vocabulary, shape, tuple(focal_layers)
        self.register_buffer("rotary", rotary_rule(), persistent=False)
        # A code per character, shared by visual tokens, input text and output.
        self.character_codes = nn.Parameter(torch.randn(vocabulary.glyphs, CHARACTER_WIDTH) * 0.3)
        self.character_seen = nn.Linear(CHARACTER_WIDTH, width)
        # Of the characters on the left and on the right.
        self.neighbours_seen = nn.Linear(2 * CHARACTER_WIDTH, width, bias=False)
        self.facts = nn.Linear(FACTS, width, bias=False)
        # What the layout net says of a cell: its region's kind and box, and the box of the region before that.
        self.layout = nn.Linear(CLASSES + 16 * BOX_WAVES, width, bias=False)
        self.visual_place = nn.Linear(width, width)
        self.token_place = nn.Linear(width, width)
        # Where a text token is, inside the cell too: attention knows distances only.
        self.text_place = nn.Linear(width, width, bias=False)
        nn.init.zeros_(self.text_place.weight)
        self.character_in = nn.Linear(CHARACTER_WIDTH, width, bias=False)
        self.character_out = nn.Linear(width, CHARACTER_WIDTH, bias=False)
        # Coordinates are written as they are read: by their waves, so that what a cell says of its place is a coordinate already.
        self.place_out = nn.Parameter(torch.randn(2, width // 2, width) * 0.005)
        self.register_buffer("coordinate_waves", coordinate_waves(vocabulary, width), persistent=False)
        # For training only: a cell's box must be in what the layer that looks for the next place reads of it.
        self.box_probe = nn.Linear(shape.kv_heads * shape.head_dim, 8 * BOX_WAVES)
        self.tokens = nn.Embedding(vocabulary.size, width)
        nn.init.normal_(self.tokens.weight, std=0.02)
        self.layers = nn.ModuleList([DecoderLayer(shape) for _ in range(shape.layers)])
        self.norm = RmsNorm(width, shape.norm_epsilon)

    def visual(self, classes, facts, layout, xy):
        """Of V visual tokens their classes and those of their neighbours `[V, 3]` (0: no character), facts `[V, 3]`, the layout net's map at their cells `[V, CHANNELS]`, their centres
        `[V, 2]` (x, y) -> `[V, hidden]`."""
        codes = torch.cat([torch.zeros(1, CHARACTER_WIDTH), self.character_codes])[classes]
        told = torch.cat([layout[:, :CLASSES], box_waves(layout).flatten(1)], 1)
        placed = self.visual_place(place_waves(xy, self.shape.hidden))
        seen = self.character_seen(codes[:, 0]) + self.neighbours_seen(codes[:, 1:].flatten(1))
        return seen + self.facts(fact_waves(facts)) + self.layout(told) + placed

    def embed(self, tokens, positions):
        """Text tokens `[T]` at `positions [T, 3]` -> `[T, hidden]`."""
        return self.embed_tokens(tokens) + self.text_place(text_waves(positions, self.shape.hidden))

    def embed_tokens(self, tokens):
        vocabulary, half = self.vocabulary, self.shape.hidden // 2
        codes = torch.cat([self.character_codes, torch.zeros(1, CHARACTER_WIDTH)])
        x = self.tokens(tokens) * INPUT_SCALE + self.character_in(codes[tokens.clamp(max=vocabulary.glyphs)])
        is_x = (tokens >= vocabulary.x.first) & (tokens < vocabulary.x.end)
        is_y = (tokens >= vocabulary.y.first) & (tokens < vocabulary.y.end)
        place = torch.stack([(tokens - vocabulary.x.first) * vocabulary.x.bin * is_x, (tokens - vocabulary.y.first) * vocabulary.y.bin * is_y], -1)
        waves = place_waves(place, self.shape.hidden)
        return x + self.token_place(torch.cat([waves[:, :half] * is_x[:, None], waves[:, half:] * is_y[:, None]], -1))

    def logits(self, hidden):
        output, glyphs = functional.linear(hidden, self.tokens.weight), self.vocabulary.glyphs
        characters = output[..., :glyphs] + functional.linear(self.character_out(hidden), self.character_codes)
        first, end = self.vocabulary.x.first, self.vocabulary.y.end
        rows = (self.coordinate_waves @ self.place_out).flatten(0, 1)
        coordinates = output[..., first:end] + functional.linear(hidden, rows)
        return torch.cat([characters, output[..., glyphs:first], coordinates, output[..., end:]], -1)

    def box_loss(self, values, layout):
        """How badly the focal layer's `values [kv_heads, V, D]` tell the boxes of the visual tokens' regions, as the layout net has them: mean square
        over waves, of those that lie in a region."""
        inside = layout[:, 0] < 0.5
        if not inside.any():
            return torch.zeros(())
        told = self.box_probe(values.transpose(0, 1).flatten(1)[inside])
        return (told - box_waves(layout[inside])[:, :4].flatten(1)).square().mean()

    def run(self, x, positions, visible, visual_count: int, kept: list | None = None):
        """`x [N, hidden]` of V visual and T text tokens, `positions [N, 3]`, `visible [T, N]` bool -> hidden states of the text tokens, and the focal layers'
        attention from them to the visual ones, `[heads, T, V]` each. `kept` takes each layer's keys and values `[kv_heads, N, D]`."""
        shape = self.shape
        angle = positions @ self.rotary
        cosine, sine = angle.cos(), angle.sin()
        mask = torch.zeros(visible.shape).masked_fill(~visible, -1e9)
        group, scale, attention = shape.heads // shape.kv_heads, shape.head_dim**-0.5, []
        for index, layer in enumerate(self.layers):
            queries, keys, values = (part.transpose(0, 1) for part in layer.project(x, cosine, sine))
            if kept is not None:
                kept.append((keys, values))
            keys, values = keys.repeat_interleave(group, 0), values.repeat_interleave(group, 0)
            seen = values[:, :visual_count]
            if index == tsp_layer(shape.layers):
                rows = [part[None, :, :visual_count] for part in (queries, keys, values)]
                seen = functional.scaled_dot_product_attention(*rows)[0]
            asking = queries[:, visual_count:]
            if index in self.focal_layers:
                weights = (asking @ keys.transpose(1, 2) * scale + mask).softmax(-1)
                attention.append(weights[:, :, :visual_count])
                told = weights @ values
            else:
                told = functional.scaled_dot_product_attention(asking[None], keys[None], values[None], attn_mask=mask)[0]
            mixed = torch.cat([seen, told], 1)
            if index + 1 == shape.layers:
                # Of visual tokens the last layer's keys and values are enough.
                x, mixed = x[visual_count:], told
            x = layer.feed(x + layer.output(mixed.transpose(0, 1).flatten(1)))
        return self.norm(x), attention

    @torch.no_grad()
    def folded(self) -> Decoder:
        """The same decoder with a plain embedding table and output matrix."""
        decoder = PlacedDecoder(self.shape, self.rotary.clone())
        decoder.layers.load_state_dict(self.layers.state_dict())
        decoder.norm.load_state_dict(self.norm.state_dict())
        decoder.embedding.weight.copy_(self.embed_tokens(torch.arange(self.vocabulary.size)))
        decoder.text_place.load_state_dict(self.text_place.state_dict())
        decoder.head.weight.copy_(self.logits(torch.eye(self.shape.hidden)).T)
        return decoder.eval()


def tree_mask(visual_count: int, segment, visible, trunk_length: int):
    """What the text tokens see, `[T, N]` bool, of the sequence visual tokens, trunk, branches.

    `segment [T]`: 0 in the trunk, else the branch's number; `visible [T]`: trunk tokens that a branch token sees. The trunk is causal; a branch sees
    its part of the trunk and its own past; all see the visual tokens.
    """
    index = torch.arange(len(segment))
    causal = index[:, None] >= index[None]
    same = segment[:, None] == segment[None]
    trunk = (segment[None] == 0) & ((segment[:, None] == 0) | (index[None] < visible[:, None])) & (index[None] < trunk_length)
    return torch.cat([torch.ones(len(segment), visual_count, dtype=torch.bool), causal & (same | trunk)], 1)
