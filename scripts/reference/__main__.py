"""Checks a nano pack against its weights, and writes the fixture for the Rust test.

`python -m scripts.reference --weights FOLDER --pack models/nano [--fixture fixtures/reference/nano]`

On a small page it compares (1) keys and values of the prefix, (2) the log-probability of every token of a trunk and of two branches with
given boxes, fed in one call, (3) the first 32 greedy tokens of the trunk and of both branches, decoded together by the pack, with the
plain reader's, which reads every branch alone and from scratch. Tolerance 1e-4; a greedy stream may differ after a position where the
two best tokens lie within 1e-4, and such positions are counted.
"""
import argparse
import io
import json
import sys
from pathlib import Path

import numpy as np
import torch
import typst
from PIL import Image

from scripts.export.nano import load_models
from scripts.train.positions import trunk_positions
from scripts.train.vision import page_ink

from .greedy import GreedyReader, Look, Stream
from .pack import Pack

TOLERANCE = 1e-4
TOKENS = 32
PAGE = """
#set page(width: 300pt, height: 190pt, margin: 20pt)
#set text(size: 11pt)
#text(size: 15pt, weight: "bold")[Rivers and Bridges]

The old stone bridge was built in 1742 by a local mason, who used granite from the quarry near the mill. It has three arches.

#columns(2)[In spring the water rises quickly and reaches the lower road. #colbreak() Since 1998 a gauge beside the pier measures its level.]
"""
# Kind and box (px) of two regions of the page above, as a layout might give them.
BOXES = [("heading", (42, 36, 240, 66)), ("text", (42, 84, 498, 144))]
PIXELS_PER_INCH = 136


def example_page() -> np.ndarray:
    """The page above, grey."""
    picture = typst.compile(PAGE.encode(), format="png", ppi=PIXELS_PER_INCH)
    return np.asarray(Image.open(io.BytesIO(picture)).convert("L"))


def given_trunk(vocabulary) -> tuple[list[int], list[int]]:
    """Trunk tokens of BOXES, and the indices of their forks."""
    tokens, forks = [vocabulary.begin], []
    for kind, (x0, y0, x1, y1) in BOXES:
        tokens += [vocabulary.kind(kind), vocabulary.x.token(x0), vocabulary.y.token(y0), vocabulary.x.token(x1), vocabulary.y.token(y1)]
        forks.append(len(tokens))
        tokens.append(vocabulary.fork)
    return [*tokens, vocabulary.end], forks


def ties_before_difference(reference: Stream, tokens: list[int]) -> int | None:
    """Near ties among the tokens that both have; None if the streams part elsewhere."""
    ties = 0
    for i in range(reference.forced, len(reference.tokens)):
        near = reference.margins[i - reference.forced] < TOLERANCE
        ties += near
        if i >= len(tokens) or tokens[i] != reference.tokens[i]:
            return ties if near else None
    return ties if len(tokens) == len(reference.tokens) else None


def compare(name: str, difference: float, failures: list[str]):
    print(f"{name}: largest difference {difference:.1e}")
    if not difference <= TOLERANCE:
        failures.append(name)


def compare_streams(name: str, reference: Stream, tokens, logprobs, failures: list[str]):
    ties = ties_before_difference(reference, tokens)
    same = min(len(reference.logprobs), len(logprobs)) if reference.tokens == tokens else 0
    difference = max((abs(a - b) for a, b in zip(reference.logprobs[:same], logprobs[:same], strict=True)), default=0.0)
    print(f"{name}: {len(tokens)} greedy tokens, same: {ties is not None}, near ties: {ties}, log-probabilities within {difference:.1e}")
    if ties is None or difference > TOLERANCE:
        failures.append(name)


def main():
    parser = argparse.ArgumentParser(prog="python -m scripts.reference")
    parser.add_argument("--weights", type=Path, required=True)
    parser.add_argument("--pack", type=Path, required=True)
    parser.add_argument("--fixture", type=Path, help="folder to write page.png and reference.json to")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    vision, layout, reader = load_models(arguments.weights)
    vocabulary, shape = reader.vocabulary, reader.shape
    pack = Pack(arguments.pack, vocabulary, shape.layers, shape.kv_heads, shape.head_dim)
    plain, failures = GreedyReader(vision, layout, reader), []
    grey = example_page()
    ink = page_ink(grey.astype(np.float32) / 255)
    page = plain.look(ink)
    prefix = pack.prefix(ink.numpy(), page)
    trunk, forks = given_trunk(vocabulary)

    free = plain.trunk(page, TOKENS)
    branches = [plain.branch(page, trunk, fork, TOKENS) for fork in forks]
    compare_streams("free trunk", free, *pack.decode_trunk(prefix, TOKENS), failures)
    trunk_rows, outputs = pack.feed_trunk(prefix, trunk)
    forced = [float(plain.logprobs(page, trunk[: i + 1], trunk_positions(vocabulary, trunk[: i + 1]))[trunk[i + 1]]) for i in range(len(trunk) - 1)]
    compare("given trunk, drafted", float(np.abs(outputs["draft_logprob"][0, 0, :-1] - forced).max()), failures)
    together = pack.decode_branches(prefix, trunk_rows, trunk, forks, TOKENS)
    for fork, reference, (tokens, logprobs) in zip(forks, branches, together, strict=True):
        compare_streams(f"branch of fork {fork}, forked together", reference, tokens, logprobs, failures)
        alone = pack.decode_branches(prefix, trunk_rows, trunk, [fork], TOKENS)[0]
        compare_streams(f"branch of fork {fork}, as the only row", reference, *alone, failures)
    if arguments.fixture:
        write_fixture(arguments.fixture, grey, page, trunk, forced, forks, free, branches)
    if failures:
        sys.exit(f"not the same: {', '.join(failures)}")


def write_fixture(folder: Path, grey, page: Look, trunk, forced, forks, free: Stream, branches: list[Stream]):
    """`page.png` (grey, px of the model raster) and `reference.json`."""
    folder.mkdir(parents=True, exist_ok=True)
    Image.fromarray(grey).save(folder / "page.png", optimize=True)
    describe = lambda stream: {"tokens": stream.tokens, "logprobs": stream.logprobs, "margins": stream.margins}  # noqa: E731
    reference = {
        "tolerance": TOLERANCE, "classes": page.tokens.classes.flatten().tolist(), "centres": page.tokens.xy.round(2).tolist(),
        "facts": page.tokens.facts.round(3).flatten().tolist(), "trunk": trunk, "trunk_logprobs": forced, "forks": forks,
        "free_trunk": describe(free), "branches": [describe(stream) for stream in branches],
    }  # fmt: skip
    (folder / "reference.json").write_text(json.dumps(reference) + "\n")


if __name__ == "__main__":
    main()
