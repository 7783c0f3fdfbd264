"""Stage 3: region labels for real pages. `python -m scripts.train.label_regions`

Boxes of the PicoDet layout model (layout_cdla.onnx, fetched by scripts/setup), filled with the page's characters. Writes
data/real/<hash>.json: regions in reading order {kind, box, characters}, and whether they can be trusted: hardly any character is left over,
and no region is interrupted by another one in content order. Resumable.
"""
import json

import numpy as np
import onnxruntime
from PIL import Image

from .page_characters import LINE_END, SPACE
from .settings import REAL_PAGES, ROOT, SETTINGS

LABELS = ("text", "title", "figure", "figure_caption", "table", "table_caption", "header", "footer", "reference", "equation")
KIND_OF = {
    "text": "text", "title": "heading", "figure": "figure", "figure_caption": "caption", "table": "table", "table_caption": "caption",
    "header": "header", "footer": "footer", "reference": "text", "equation": "formula",
}  # fmt: skip
# Input size and normalisation of layout_cdla.onnx.
WIDTH, HEIGHT, STRIDES, BINS = 608, 800, (8, 16, 32, 64), 8
MEAN, DEVIATION = np.array([0.485, 0.456, 0.406], np.float32), np.array([0.229, 0.224, 0.225], np.float32)


class Layout:
    def __init__(self):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.log_severity_level = 1, 3
        path = ROOT / "models" / "third-party" / "layout_cdla.onnx"
        assert path.exists(), f"{path} is missing: run scripts/setup"
        self.session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])

    def boxes(self, picture: Image.Image) -> list[tuple[str, float, list[float]]]:
        """(label, score, [x0, y0, x1, y1] px), best first, overlapping ones left out."""
        options = SETTINGS["labels"]
        pixels = np.asarray(picture.convert("RGB").resize((WIDTH, HEIGHT), Image.BILINEAR), np.float32) / 255
        outputs = self.session.run(None, {"image": ((pixels - MEAN) / DEVIATION).transpose(2, 0, 1)[None]})
        scores = np.concatenate([outputs[i][0] for i in range(len(STRIDES))])
        corners = np.concatenate([decode_corners(outputs[len(STRIDES) + i][0], stride) for i, stride in enumerate(STRIDES)])
        scale = np.array([picture.width / WIDTH, picture.height / HEIGHT] * 2)
        corners = np.clip(corners * scale, 0, [picture.width, picture.height] * 2)
        best, kept = scores.max(1), []
        for i in sorted(np.nonzero(best > options["score"])[0], key=lambda i: -best[i]):
            box = corners[i]
            if area(box) > 0 and all(intersection(box, other) <= options["overlap"] * min(area(box), area(other)) for _, _, other in kept):
                kept.append((LABELS[scores[i].argmax()], float(best[i]), box.tolist()))
        return kept


def decode_corners(distances, stride: int) -> np.ndarray:
    """Distributions over distances to the four sides -> corners, px of the model's input."""
    logits = distances.reshape(-1, 4, BINS)
    weights = np.exp(logits - logits.max(-1, keepdims=True))
    sides = (weights / weights.sum(-1, keepdims=True)) @ np.arange(BINS) * stride
    rows, columns = -(-HEIGHT // stride), -(-WIDTH // stride)
    y, x = np.mgrid[:rows, :columns]
    x, y = (x.ravel() + 0.5) * stride, (y.ravel() + 0.5) * stride
    return np.stack([x - sides[:, 0], y - sides[:, 1], x + sides[:, 2], y + sides[:, 3]], 1)


def area(box) -> float:
    return max(0.0, box[2] - box[0]) * max(0.0, box[3] - box[1])


def intersection(a, b) -> float:
    return area([max(a[0], b[0]), max(a[1], b[1]), min(a[2], b[2]), min(a[3], b[3])])


def owners(characters: np.ndarray, boxes, is_glyph) -> np.ndarray:
    """The smallest box around each character's centre, or -1."""
    x, y = (characters[:, 1] + characters[:, 3]) / 2, (characters[:, 2] + characters[:, 4]) / 2
    owner, smallest = np.full(len(characters), -1), np.full(len(characters), np.inf)
    for index, (_, _, box) in enumerate(boxes):
        inside = is_glyph & (x > box[0] - 2) & (x < box[2] + 2) & (y > box[1] - 2) & (y < box[3] + 2) & (area(box) < smallest)
        owner[inside], smallest[inside] = index, area(box)
    return owner


def interruptions(glyphs: list[int], own: int, owner: np.ndarray) -> int:
    """How often another region's characters come between those of region `own`."""
    count = 0
    for before, after in zip(glyphs, glyphs[1:], strict=False):
        between = owner[before + 1 : min(after, before + 400)]
        count += bool(((between >= 0) & (between != own)).any())
    return count


def label(layout: Layout, picture: Image.Image, characters: np.ndarray) -> dict:
    """Regions of a page, and `ok`."""
    boxes = layout.boxes(picture)
    is_glyph = (characters[:, 0] != SPACE) & (characters[:, 0] != LINE_END)
    owner = owners(characters, boxes, is_glyph)
    members, current = {}, -1
    for i in range(len(characters)):
        current = owner[i] if is_glyph[i] else current
        if current >= 0:
            members.setdefault(int(current), []).append(i)
    regions, broken = [], 0
    for index, inside in members.items():
        glyphs = [i for i in inside if is_glyph[i]]
        broken += interruptions(glyphs, index, owner)
        text = "".join(chr(int(characters[i, 0])) for i in glyphs)
        kind = KIND_OF[boxes[index][0]]
        if kind == "footer" and len(text) < 6 and any(c.isdigit() for c in text):
            kind = "page_number"
        own = characters[glyphs]
        box = [own[:, 1].min(), own[:, 2].min(), own[:, 3].max(), own[:, 4].max()] if kind != "figure" else boxes[index][2]
        regions.append({"kind": kind, "box": [float(v) for v in box], "characters": inside, "first": glyphs[0]})
    regions.sort(key=lambda region: region["first"])
    for index, (name, _, box) in enumerate(boxes):
        if name == "figure" and index not in members:
            above = [i + 1 for i, other in enumerate(regions) if other["box"][3] <= box[1] + 8 and other["kind"] not in ("footer", "page_number")]
            regions.insert(max(above, default=0), {"kind": "figure", "box": box, "characters": []})
    left_over = float((owner[is_glyph] < 0).mean()) if is_glyph.any() else 1.0
    ok = left_over < SETTINGS["labels"]["left_over"] and broken == 0 and len(regions) > 1
    return {"ok": ok, "regions": regions}


def main():
    layout, trusted, count = Layout(), 0, 0
    for path in sorted(REAL_PAGES.glob("*.npy")):
        target = path.with_suffix(".json")
        if target.exists():
            continue
        labels = label(layout, Image.open(path.with_suffix(".png")), np.load(path))
        target.write_text(json.dumps(labels))
        count, trusted = count + 1, trusted + labels["ok"]
        if count % 500 == 0:
            print(f"{count} pages, {trusted} to be trusted", flush=True)
    print("done", count, trusted, flush=True)


if __name__ == "__main__":
    main()
