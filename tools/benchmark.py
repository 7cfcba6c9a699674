"""How fast a training step is, as ratios to peers that do the same work in the same run: `python tools/benchmark.py`.

The peers: our model on plainly padded batches (what packing saves), and torch.nn.TransformerEncoder of the same sizes,
pre-norm, on the same padded batches (what our parts cost). Rounds alternate, so that a noisy machine meets all alike.
"""

import math
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from hydra import compose, initialize_config_dir
from torch import Tensor, nn

from lecture04 import config
from lecture04.cli import train as cli
from lecture04.config.places import CONF
from lecture04.data.documents import make_batch, order
from lecture04.data.types import IGNORE, PAD, Batch, Split, load
from lecture04.nn.init import build
from lecture04.training.optim import OPTIMISERS

ROUNDS, STEPS = 5, 40


class TorchPeer(nn.Module):
    """The standard model out of torch's own layers: embeddings and positions are ours, the blocks torch's."""

    def __init__(self, cfg: config.Run) -> None:
        super().__init__()
        ours = build(cfg)
        layer = nn.TransformerEncoderLayer(
            cfg.model.d_model, cfg.model.n_heads, cfg.ffn.d_ff, dropout=0.0, batch_first=True, norm_first=True
        )
        self.embed, self.posenc, self.scale = ours.embed, ours.posenc, ours.embed_scale
        norm = nn.LayerNorm(cfg.model.d_model)
        self.blocks = nn.TransformerEncoder(layer, cfg.model.n_layers, norm, enable_nested_tensor=False)

    def forward(self, tokens_BT: Tensor) -> Tensor:
        """logits_BTV."""
        T = tokens_BT.shape[1]
        x_BTD = self.posenc.embed(self.embed(tokens_BT) * self.scale, torch.arange(T))
        mask = nn.Transformer.generate_square_subsequent_mask(T)
        return F.linear(self.blocks(x_BTD, mask=mask, is_causal=True), self.embed.weight)


def padded(split: Split, documents: np.ndarray) -> tuple[Tensor, Tensor]:
    """tokens_BT and targets_BT of a plain batch: one document a row, padded to the longest."""
    longest = max(split.offsets[i + 1] - split.offsets[i] for i in documents) - 1
    tokens, targets = np.full((len(documents), longest), PAD), np.full((len(documents), longest), IGNORE)
    for row, i in enumerate(documents):
        document = split.tokens[split.offsets[i] : split.offsets[i + 1]]
        tokens[row, : len(document) - 1], targets[row, : len(document) - 1] = document[:-1], document[1:]
    return torch.from_numpy(tokens), torch.from_numpy(targets)


def stepper(model: nn.Module, logits: Callable[[int], tuple[Tensor, Tensor]], cfg: config.Run) -> Callable[[], float]:
    """A function that trains for STEPS batches and returns the milliseconds a step."""
    optimiser = OPTIMISERS.lookup(cfg.optim.name)(cfg.optim, model)

    def steps() -> float:
        started = time.perf_counter()
        for i in range(STEPS):
            optimiser.zero_grad()
            logits_BTV, targets_BT = logits(i)
            F.cross_entropy(logits_BTV.flatten(0, 1), targets_BT.flatten()).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimiser.step()
        return (time.perf_counter() - started) / STEPS * 1e3

    return steps


def main() -> None:
    """Print the milliseconds of each, and the ratios."""
    with initialize_config_dir(str(CONF), version_base="1.3"):
        request = cli.resolved(compose("config"))
    cfg, session = request.run, request.session
    torch.set_num_threads(cfg.trainer.threads)
    split, size = load(cfg, session.outputs).train, cfg.trainer.batch_size
    chosen = [order(split.n_docs, seed=0, epoch=0)[i * size : (i + 1) * size] for i in range(STEPS)]
    packed_batches: list[Batch] = [make_batch(split, documents, cfg.layout.length) for documents in chosen]
    padded_batches = [padded(split, documents) for documents in chosen]
    ours, plain, peer = build(cfg), build(cfg), TorchPeer(cfg)
    contenders = {
        "ours, packed": stepper(
            ours,
            lambda i: (
                ours(packed_batches[i].tokens_BT, packed_batches[i].pos_BT, packed_batches[i].document_BT),
                packed_batches[i].targets_BT,
            ),
            cfg,
        ),
        "ours, padded": stepper(plain, lambda i: (plain(padded_batches[i][0]), padded_batches[i][1]), cfg),
        "torch.nn.TransformerEncoder, padded": stepper(
            peer, lambda i: (peer(padded_batches[i][0]), padded_batches[i][1]), cfg
        ),
    }
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(ROUNDS + 1):
        for name, steps in contenders.items():
            times[name].append(steps())
    real = sum(batch.n_predicted for batch in packed_batches)
    for name, cells in (
        ("packed", sum(batch.tokens_BT.numel() for batch in packed_batches)),
        ("padded", sum(tokens.numel() for tokens, _ in padded_batches)),
    ):
        print(f"{name}: {1 - real / cells:.1%} of a batch is padding")
    first = math.nan
    for name, rounds in times.items():
        middle = statistics.median(rounds[1:])  # the first round warms up
        first = middle if math.isnan(first) else first
        print(f"{name:36s} {middle:6.2f} ms a step, {middle / first:5.2f} of ours packed")
    print(f"{ROUNDS} alternating rounds of {STEPS} steps, medians; corpus {Path(session.outputs) / 'data'}")


if __name__ == "__main__":
    main()
