"""Random weights under which attention, positions and pictures all matter to the next token."""
import torch


@torch.no_grad()
def scramble(model: torch.nn.Module, seed: int, embedding: float = 0.7):
    """Sets every weight at random, by its name's order. Tied weights stay tied; their tokens then repeat unless `embedding` is small."""
    generator = torch.Generator().manual_seed(seed)
    for name, parameter in model.named_parameters():
        noise = torch.randn(parameter.shape, generator=generator)
        if "norm" in name and parameter.dim() == 1 and name.endswith("weight") or "ln_q" in name:
            parameter.copy_(1 + 0.1 * noise)
        elif parameter.dim() == 1 and ("lambda" in name):
            parameter.copy_(0.5 + 0.1 * noise)
        elif parameter.dim() == 1:
            parameter.copy_(0.05 * noise)
        elif "embed_tokens" in name:
            parameter.copy_(embedding * noise)
        elif "embedding" in name or "token" in name or "pos_embed" in name:
            parameter.copy_(0.3 * noise)
        else:
            parameter.copy_(noise * 1.4 / parameter[0].numel() ** 0.5)
