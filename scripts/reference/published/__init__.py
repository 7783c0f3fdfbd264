"""Small packs of the published families with random weights, and what `transformers` computes with the same checkpoint."""
