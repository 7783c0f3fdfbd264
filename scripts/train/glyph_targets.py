"""Dense targets of the vision graph: a unit of mass for every character, shared by the four slots around its centre."""
import numpy as np
import torch

from .vision import SLOT_HEIGHT, SLOT_WIDTH

# Shares below this are left out.
LEAST_SHARE = 0.02


def bilinear_masses(x, y, height: int, width: int):
    """Centres in px of a picture of `height x width` px -> (index of the character, slot row, slot column, mass), one entry a share."""
    rows, columns = height // SLOT_HEIGHT, width // SLOT_WIDTH
    across, down = x / SLOT_WIDTH - 0.5, y / SLOT_HEIGHT - 0.5
    left, top = np.floor(across).astype(int), np.floor(down).astype(int)
    right_share, lower_share = across - left, down - top
    parts = []
    for lower in (0, 1):
        for right in (0, 1):
            row, column = top + lower, left + right
            mass = (right_share if right else 1 - right_share) * (lower_share if lower else 1 - lower_share)
            kept = np.nonzero((row >= 0) & (row < rows) & (column >= 0) & (column < columns) & (mass > LEAST_SHARE))[0]
            parts.append((kept, row[kept], column[kept], mass[kept]))
    return tuple(np.concatenate([part[i] for part in parts]) for i in range(4))


def mass_loss(vision, features, entries, background_weight: float, share: float = 0.25):
    """Cross-entropy of the glyph logits on `features [B, C, h, w]` against `entries [B, K, 3]` = slot, class, mass (0 = unused).

    What is left of a slot's unit of mass belongs to class 0, "none", whose part of the loss is weighted. Of the slots without any mass
    only a random `share` is looked at: logits of all classes for every slot would take a quarter of the time.
    """
    batch, _, height, width = features.shape
    slots = height * width * 2
    used = entries[..., 2] > 0
    slot = (torch.arange(batch)[:, None] * slots + entries[..., 0].long())[used]
    class_, mass = entries[..., 1].long()[used], entries[..., 2][used]
    full = torch.zeros(batch * slots).scatter_add_(0, slot, mass)
    empty = full == 0
    chosen = torch.nonzero(~empty | (torch.rand(batch * slots) < share))[:, 0]
    # Left slots, then right ones: each side has a head of its own.
    chosen = torch.cat([chosen[chosen % 2 == side] for side in (0, 1)])
    place = torch.zeros(batch * slots, dtype=torch.int64)
    place[chosen] = torch.arange(len(chosen))
    logprobs = vision.slot_logits(features, chosen).log_softmax(1)
    mass = mass / full[slot].clamp(min=1)
    none = logprobs[:, 0] * (1 - full[chosen]).clamp(min=0) * torch.where(empty[chosen], 1 / share, 1.0)
    return -((mass * logprobs[place[slot], class_]).sum() + background_weight * none.sum()) / mass.sum().clamp(min=1)
