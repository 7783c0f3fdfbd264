"""Dense targets of the vision graph: a unit of mass for every character, shared by the four slots around its centre."""
import numpy as np
import torch

from .vision import SLOT_HEIGHT, SLOT_WIDTH

# Shares below this are left out.
LEAST_SHARE = 0.02


def bilinear_masses(x, y, height: int, width: int, least: float = LEAST_SHARE):
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
            kept = np.nonzero((row >= 0) & (row < rows) & (column >= 0) & (column < columns) & (mass > least))[0]
            parts.append((kept, row[kept], column[kept], mass[kept]))
    return tuple(np.concatenate([part[i] for part in parts]) for i in range(4))


def mass_loss(logits, entries, background_weight: float):
    """Cross-entropy of `logits [B, C, h, w]` against `entries [B, K, 3]` = slot, class, mass (0 = unused).

    What is left of a slot's unit of mass belongs to class 0, "none", whose part of the loss is weighted.
    """
    batch, classes = logits.shape[:2]
    logprobs = logits.flatten(2).log_softmax(1)
    slots = logprobs.shape[2]
    slot, class_, mass = entries[..., 0].long(), entries[..., 1].long(), entries[..., 2]
    full = torch.zeros(batch, slots).scatter_add_(1, slot, mass)
    mass = mass / full.gather(1, slot).clamp(min=1)
    row = (torch.arange(batch)[:, None] * slots + slot).flatten()
    chosen = logprobs.transpose(1, 2).reshape(batch * slots, classes)[row, class_.flatten()].view_as(mass)
    none = logprobs[:, 0] * (1 - full).clamp(min=0)
    return -((mass * chosen).sum() + background_weight * none.sum()) / mass.sum().clamp(min=1)
