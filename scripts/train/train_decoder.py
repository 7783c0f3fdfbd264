"""Stage 7: trains the decoder. `python -m scripts.train.train_decoder RUN --layout LAYOUT_WEIGHTS --minutes 110 [--start WEIGHTS]`

Teacher-forced trunks and branches of whole pages and of bands, with planted mistakes; attention of two focal layers supervised onto the cell
of the current and of the next character, or region. Writes runs/RUN/{log.jsonl, state.pt, decoder.safetensors} and goes on from state.pt.
"""
from pathlib import Path

import torch
from safetensors.torch import load_file

from .loading import floats, load_layout, load_vocabulary, load_what_fits, new_reader
from .page_samples import IGNORED, Sample, Samples
from .read_regions import error_rate, held_out_samples
from .reader import Reader, tree_mask
from .run import TrainingRun, arguments, mean_facts
from .settings import SETTINGS
from .vocabulary import Vocabulary

OPTIONS = SETTINGS["decoder"]
LOG_STEPS, WARM_UP_STEPS = 50, 60
ATTENTION_HEADS = 2
BOX_WEIGHT = 3.0
# Coordinates so many bins off share in the target.
SPREAD_BINS = 4
# The map that writes coordinates learns faster: all of them share it.
COORDINATE_RATE = 10.0


def losses(reader: Reader, sample: Sample, facts: dict | None = None):
    """Branch loss, trunk loss (with that of the boxes) and attention loss of a sample; `facts` collects what was right."""
    count, length = len(sample.visual_xy), len(sample.tokens)
    visual = reader.visual(sample.classes, sample.facts, sample.layout, sample.visual_xy)
    text = reader.embed(sample.tokens, sample.positions)
    places = torch.cat([torch.zeros(count, 1), sample.visual_xy.flip(-1)], 1)
    mask = tree_mask(count, sample.segment, sample.visible, sample.trunk_length)
    kept = []
    hidden, attention = reader.run(torch.cat([visual, text]), torch.cat([places, sample.positions]), mask, count, kept)
    box_loss = reader.box_loss(kept[reader.focal_layers[-1]][1][:, :count], sample.layout)
    logits, labels = reader.logits(hidden), sample.labels
    in_branch = torch.arange(length) >= sample.trunk_length
    branch, trunk = (labels != IGNORED) & in_branch, (labels != IGNORED) & ~in_branch
    zero = torch.zeros(())
    branch_loss = spread_loss(reader.vocabulary, logits[branch], labels[branch]) if branch.any() else zero
    trunk_loss = spread_loss(reader.vocabulary, logits[trunk], labels[trunk]) if trunk.any() else zero
    branch_attention, trunk_attention = zero, zero
    own = torch.arange(count)
    for weights, cells in zip(attention, (sample.current_visual, sample.next_visual), strict=True):
        branch_attention = branch_attention + attention_loss(weights, own, cells, in_branch)
    for weights, regions in zip(attention, (sample.current_region, sample.next_region), strict=True):
        trunk_attention = trunk_attention + attention_loss(weights, sample.visual_region, regions, ~in_branch)
    if facts is not None:
        collect(facts, reader.vocabulary, logits, labels, branch, trunk)
        named = {
            "branch": branch_loss, "trunk": trunk_loss, "attention": branch_attention / 2, "trunk_attention": trunk_attention / 2, "box": box_loss,
        }  # fmt: skip
        for name, value in named.items():
            if value is not zero and float(value.detach()):
                facts.setdefault(name, []).append(float(value.detach()))
    # A trunk has a tenth of the tokens: it counts by itself.
    return branch_loss, trunk_loss + BOX_WEIGHT * box_loss, branch_attention + trunk_attention


def spread_loss(vocabulary: Vocabulary, logits, labels):
    """Cross-entropy; a coordinate near the true one is nearly right: its target is spread over its neighbours."""
    log_probabilities = logits.log_softmax(-1)
    places = labels[:, None] + torch.arange(-SPREAD_BINS, SPREAD_BINS + 1)
    weights = torch.exp(-0.5 * ((places - labels[:, None]) / (SPREAD_BINS / 2.5)) ** 2)
    kept = places == labels[:, None]
    for numbers in (vocabulary.x, vocabulary.y):
        own = (labels >= numbers.first) & (labels < numbers.end)
        kept |= own[:, None] & (places >= numbers.first) & (places < numbers.end)
    weights = weights * kept
    near = log_probabilities.gather(1, places.clamp(0, logits.shape[-1] - 1))
    return -(weights / weights.sum(1, keepdim=True) * near).sum(1).mean()


def attention_loss(weights, groups, wanted, chosen):
    """Of the `chosen` tokens that were read from the cells of a group: how little attention `[heads, T, V]` falls on them. `groups [V]`: each cell's
    group; `wanted [T]`: the one that a token was read from, or -1."""
    known = (wanted >= 0) & chosen
    if not known.any():
        return torch.zeros(())
    on_them = (weights[:ATTENTION_HEADS].mean(0)[known] * (groups[None] == wanted[known, None])).sum(1)
    return -torch.log(on_them + 1e-6).mean()


def collect(facts: dict, vocabulary: Vocabulary, logits, labels, branch, trunk):
    """Shares of right tokens: characters, numbers (within one bin), trunk."""
    guess = logits.argmax(-1)

    def note(name, chosen, slack=0):
        if chosen.any():
            facts.setdefault(name, []).append(float(((guess[chosen] - labels[chosen]).abs() <= slack).float().mean()))

    note("characters_right", branch & (labels < vocabulary.glyphs))
    for name in ("gap", "down", "x"):
        numbers = getattr(vocabulary, name)
        note(f"{name}_near", branch & (labels >= numbers.first) & (labels < numbers.end), 1)
    note("end_right", branch & (labels == vocabulary.end))
    note("trunk_near", trunk, 1)


def train(run: TrainingRun, reader: Reader, layout: Path, minutes: float):
    vocabulary = reader.vocabulary
    samples = torch.utils.data.DataLoader(Samples(vocabulary, layout, OPTIONS["seed"] + run.step), batch_size=None)
    held_out = held_out_samples(vocabulary, load_layout(layout), 24)
    tokens, facts = 0, {}
    run.begin(minutes)
    for number, sample in enumerate(samples, 1):
        branch, trunk, attention = losses(reader, sample, facts)
        loss = branch + OPTIONS["trunk_weight"] * trunk + OPTIONS["attention_weight"] * attention
        (loss / OPTIONS["accumulate"]).backward()
        tokens += int((sample.labels != IGNORED).sum())
        if number % OPTIONS["accumulate"]:
            continue
        run.advance(OPTIONS["learning_rate"], WARM_UP_STEPS, 0.03)
        torch.nn.utils.clip_grad_norm_(reader.parameters(), 1.0)
        run.optimiser.step()
        run.optimiser.zero_grad()
        if run.step % LOG_STEPS == 0:
            run.log(tokens=tokens, **mean_facts(facts))
            facts = {}
        if run.tend(lambda: check(run, reader, held_out)):
            return


def check(run: TrainingRun, reader: Reader, held_out: list[Sample]):
    """Held-out figures, teacher forced and free-running."""
    facts = {}
    with torch.no_grad():
        for sample in held_out:
            losses(reader, sample, facts)
    run.log(held_out=mean_facts(facts), **error_rate(reader, held_out))


def main():
    parser = arguments("train_decoder", 110)
    parser.add_argument("--layout", type=Path, required=True)
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(OPTIONS["seed"])
    reader = new_reader(load_vocabulary())
    trained = [value for name, value in reader.named_parameters() if name != "place_out"]
    groups = [{"params": trained}, {"params": [reader.place_out], "scale": COORDINATE_RATE, "weight_decay": 0.0}]
    optimiser = torch.optim.AdamW(groups, lr=OPTIONS["learning_rate"], betas=(0.9, 0.98), weight_decay=0.02)
    run = TrainingRun(options.run, "decoder", reader, optimiser)
    if not run.resume() and options.start:
        load_what_fits(reader, floats(load_file(options.start)))
    train(run, reader, options.layout, options.minutes)


if __name__ == "__main__":
    main()
