"""What `transformers` computes with a model that reads a page at about its own size."""
import json
from pathlib import Path

import numpy as np
import torch
from transformers.vision_utils import get_vision_interpolation_indices_and_weights, get_vision_position_ids, get_vision_window_index

from . import run


def vision_inputs(pre: dict, patches: np.ndarray, grid: torch.Tensor) -> dict:
    """The inputs of the vision graph besides the patches, by the functions of `transformers`."""
    merge = pre["merge"]
    inputs = {"patches": patches, "places": get_vision_position_ids(grid, merge).numpy()}
    if pre["window"]:
        index, ends = get_vision_window_index(grid, merge, pre["window"] * pre["patch"], pre["patch"])
        order = (index[:, None] * merge**2 + torch.arange(merge**2)).flatten().numpy()
        windows = [order[start:end] for start, end in zip(ends[:-1], ends[1:], strict=True)]
        size = pre["window"] ** 2
        table = np.full((len(windows), size), -1)
        back = np.zeros(len(patches), np.int64)
        for number, window in enumerate(windows):
            table[number, : len(window)] = window
            back[window] = number * size + np.arange(len(window))
        inputs |= {"windows": table, "windows_back": back}
    if pre["place_side"]:
        indices, weights = get_vision_interpolation_indices_and_weights(grid, pre["place_side"], align_corners=True, spatial_merge_size=merge)
        inputs |= {"learnt_places": indices.numpy(), "learnt_weights": weights.float().numpy()}
    return inputs


@torch.no_grad()
def expected(family: str, model, tokenizer, processor, picture, out: Path, branches=None):
    graphs = run.Graphs(out)
    pre, prompt = graphs.manifest["preprocessing"], graphs.manifest["prompt"]
    processed = processor(picture, return_tensors="pt")
    pixels, grid = processed["pixel_values"], processed["image_grid_thw"]
    side = pre["patch"]
    patches = pixels.reshape(-1, 3, 2, side, side)[:, :, 0].numpy()
    rule = pre["pixels"]
    mean, std = (np.array(rule[name])[:, None, None] for name in ("mean", "std"))
    raw = np.rint((patches * std + mean) * 255).astype(np.uint8)
    count = len(patches) // pre["merge"] ** 2
    ids = tokenizer.encode(prompt["before"] + prompt["visual"] * count + prompt["after"], add_special_tokens=False).ids
    looked = model.model.get_image_features(pixels, grid)
    whole = lambda parts: torch.cat(list(parts)) if isinstance(parts, (tuple, list)) else parts  # noqa: E731
    groups = [looked.pooler_output, *(getattr(looked, "deepstack_features", None) or [])]
    reference = torch.stack([whole(group) for group in groups]).numpy()
    features = graphs.features(**vision_inputs(pre, patches, grid))
    far = np.abs(features - reference).max()
    assert far < run.CLOSE, far
    image = tokenizer.token_to_id(prompt["visual"])
    visual = np.cumsum(np.array(ids) == image) * (np.array(ids) == image)
    kinds = (torch.tensor([ids]) == image).long()
    positions, _ = model.model.get_rope_index(torch.tensor([ids]), mm_token_type_ids=kinds, image_grid_thw=grid)
    positions = positions[:, 0].transpose(0, 1).numpy()
    prefix = graphs.prefix(ids[:-1], visual[:-1], features, positions[:-1])
    end = graphs.manifest["protocol"]["trunk_end"][0]
    inputs = lambda tokens: {"pixel_values": pixels, "image_grid_thw": grid, "mm_token_type_ids": (torch.tensor([tokens]) == image).long()}  # noqa: E731
    written = run.greedy(model, inputs(ids), ids, 64, end)
    step = graphs.step(prefix, ids[-1:], positions[-1:])
    difference = run.same_hidden(model, graphs, step, written.pop("logits")[0])
    assert difference < run.CLOSE, difference
    print(f"{out}: {len(ids)} prompt tokens, {count} features to {far:.1e}, logits to {difference:.1e}")
    result = {
        "family": family, "width": picture.width, "height": picture.height, "prompt": ids, "features": run.rounded(features),
        "hidden": run.rounded(step["hidden"][0, 0, -1]), "greedy": written,
        "branches": branches(model, tokenizer, inputs, ids, end) if branches else None,
    }  # fmt: skip
    (out / "pixels.bin").write_bytes(raw.tobytes())
    (out / "expected.json").write_text(json.dumps(result) + "\n")
