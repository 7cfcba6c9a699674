"""nanoGPT's training loop, written plainly, beside ours: the same preset on the same text, seed by seed in one process.

    python tools/nanogpt.py                 three seeds of each: NLL on the last tenth of the text, and times
    python tools/nanogpt.py --steps 200     a short try

The peer is one model and one loop (Karpathy 2023, nanoGPT's train_shakespeare_char with the settings for a CPU): 4
layers, 4 heads, d 128, context 64, batch 12, 2,000 iterations, AdamW from 1e-3 to 1e-4 by a cosine after 100 steps of
warm-up, beta2 0.99, weight decay 0.1, no dropout, no biases. Ours is `data=shakespeare recipe=nanogpt`. The two draw
their initial values and batches each in its own way, so a seed of one is no partner of the other's.

Both are measured by one function on the same tokens, all of the last tenth in blocks of the context. The time is that
of the training steps; neither's validation is in it.
"""

import argparse
import math
import tempfile
import time
from collections.abc import Callable

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import lecture04
from lecture04.cli import train as cli
from lecture04.config import Request
from lecture04.data.types import Corpus, Split, load
from lecture04.nn.init import build
from lecture04.training.loop import train

N_LAYERS, N_HEADS, D_MODEL, CONTEXT, BATCH, STEPS = 4, 4, 128, 64, 12, 2000
LR, LAST_LR, WARMUP, BETA2, WEIGHT_DECAY, CLIP = 1e-3, 1e-4, 100, 0.99, 0.1, 1.0
Forward = Callable[[Tensor], Tensor]


class Block(nn.Module):
    """x + attention(norm(x)), then x + mlp(norm(x))."""

    def __init__(self) -> None:
        super().__init__()
        self.norm_1, self.norm_2 = (nn.LayerNorm(D_MODEL, bias=False) for _ in range(2))
        self.qkv, self.out = nn.Linear(D_MODEL, 3 * D_MODEL, bias=False), nn.Linear(D_MODEL, D_MODEL, bias=False)
        self.up, self.down = nn.Linear(D_MODEL, 4 * D_MODEL, bias=False), nn.Linear(4 * D_MODEL, D_MODEL, bias=False)

    def forward(self, x_BTD: Tensor) -> Tensor:
        """The stream behind the block."""
        B, T, D = x_BTD.shape
        q, k, v = (
            part.view(B, T, N_HEADS, D // N_HEADS).transpose(1, 2)
            for part in self.qkv(self.norm_1(x_BTD)).split(D_MODEL, dim=2)
        )
        y_BTD = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(B, T, D)
        x_BTD = x_BTD + self.out(y_BTD)
        return x_BTD + self.down(F.gelu(self.up(self.norm_2(x_BTD))))


class GPT(nn.Module):
    """A small GPT-2 with tied embeddings, N(0, 0.02^2), less where a sublayer writes into the stream."""

    def __init__(self, vocab_size: int) -> None:
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocab_size, D_MODEL), nn.Embedding(CONTEXT, D_MODEL)
        self.blocks = nn.ModuleList(Block() for _ in range(N_LAYERS))
        self.norm = nn.LayerNorm(D_MODEL, bias=False)
        for name, parameter in self.named_parameters():
            if parameter.dim() > 1:
                writes = name.endswith(("out.weight", "down.weight"))
                nn.init.normal_(parameter, std=0.02 / (math.sqrt(2 * N_LAYERS) if writes else 1))

    def forward(self, tokens_BT: Tensor) -> Tensor:
        """logits_BTV."""
        x_BTD = self.tokens(tokens_BT) + self.positions(torch.arange(tokens_BT.shape[1]))
        for block in self.blocks:
            x_BTD = block(x_BTD)
        return F.linear(self.norm(x_BTD), self.tokens.weight)


def train_peer(text: np.ndarray, vocab_size: int, seed: int, n_steps: int) -> tuple[Forward, float]:
    """The trained peer, and the seconds of its steps."""
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    model = GPT(vocab_size)
    matrices, rest = ([p for p in model.parameters() if (p.dim() > 1) == is_one] for is_one in (True, False))
    groups = [{"params": matrices, "weight_decay": WEIGHT_DECAY}, {"params": rest, "weight_decay": 0.0}]
    optimiser = torch.optim.AdamW(groups, lr=LR, betas=(0.9, BETA2), fused=True)
    started = time.perf_counter()
    for step in range(n_steps):
        start = rng.integers(0, len(text) - CONTEXT, BATCH)
        x_BT = torch.from_numpy(np.stack([text[s : s + CONTEXT] for s in start]).astype(np.int64))
        y_BT = torch.from_numpy(np.stack([text[s + 1 : s + 1 + CONTEXT] for s in start]).astype(np.int64))
        for group in optimiser.param_groups:
            group["lr"] = peer_lr(step, n_steps)
        loss = F.cross_entropy(model(x_BT).flatten(0, 1), y_BT.flatten())
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimiser.step()
    return model.eval(), time.perf_counter() - started


def peer_lr(step: int, n_steps: int) -> float:
    """Up in a line, then down by a cosine to a tenth."""
    if step < WARMUP:
        return LR * (step + 1) / WARMUP
    t = (step - WARMUP) / max(1, n_steps - WARMUP)
    return LAST_LR + 0.5 * (1 + math.cos(math.pi * t)) * (LR - LAST_LR)


def train_ours(request: Request, corpus: Corpus, seed: int) -> tuple[Forward, float]:
    """Our run of a seed, by the trainer that every run has, and the seconds of its steps."""
    run = request.run.with_seed(seed)
    model = build(run)
    outcome = train(model, corpus, run, log=lambda row: None, tick=lambda step, row: None)
    return model.eval(), outcome.seconds


@torch.no_grad()
def last_tenth_nll(forward: Forward, splits: list[Split]) -> float:
    """Nats a token on the validation and the test split, each cut into blocks of the context."""
    total, n = 0.0, 0
    for split in splits:
        tokens = torch.from_numpy(split.tokens.astype(np.int64))
        for start in range(0, len(tokens) - 1, CONTEXT):
            block = tokens[start : start + CONTEXT + 1]
            total += F.cross_entropy(forward(block[None, :-1])[0], block[1:], reduction="sum").item()
            n += len(block) - 1
    return total / n


def main() -> None:
    """Train both and judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--seeds", type=int, default=3)
    args = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as outputs:
        lines = ["data=shakespeare", "recipe=nanogpt", "logger=none", f"trainer.steps={args.steps}"]
        request = cli.resolved_settings(cli.composed([*lines, f"paths.outputs={outputs}"]))
        corpus = load(request.run, outputs)
        nll, seconds = {"nanoGPT": list[float](), "ours": list[float]()}, {"nanoGPT": 0.0, "ours": 0.0}
        for seed in range(args.seeds):
            peer = train_peer(corpus.train.tokens, corpus.vocab_size, seed, args.steps)
            ours = train_ours(request, corpus, seed)
            for name, (forward, took) in (("nanoGPT", peer), ("ours", ours)):
                nll[name].append(last_tenth_nll(forward, [corpus.val, corpus.test]))
                seconds[name] += took
                print(f"seed {seed}, {name:8s} {nll[name][-1]:.4f} nats a token, {took:.1f} s", flush=True)
    print(f"\nsteps: ours take {seconds['ours'] / seconds['nanoGPT']:.3f} of nanoGPT's time\n")
    print(lecture04.judge(nll))


if __name__ == "__main__":
    main()
