"""One model trained on one corpus: the loop alone. What it measures goes to `log`, how far it is to `tick`."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.nn.functional as F

from lecture04 import config
from lecture04.data.types import Batch, Corpus
from lecture04.nn.model import LanguageModel
from lecture04.records.record import Status
from lecture04.training.course import has_collapsed
from lecture04.training.evaluate import mean_nll, ppl
from lecture04.training.optim import OPTIMISERS, lr_factor

Row = dict[str, float]

CHECK_EVERY = 50
"""Steps between two looks at whether the loss is still a number."""


@dataclass(frozen=True)
class Outcome:
    """How a training ended, and what it took; `why` says in words what was wrong with its end."""

    status: Status
    steps: int
    tokens: int
    seconds: float
    why: str | None = None


@dataclass
class Standing:
    """Where a training stands behind a step; with the model's parameters, all that it needs to go on from there.

    `row` is the last line of metrics.jsonl. `losses` are those of the steps whose loss was looked at, `unlogged` and
    `unchecked` those since the last line and since the last look. `optimiser` is its state as it was loaded from disk.
    """

    step: int = 0
    tokens: int = 0
    seconds: float = 0.0
    row: Row = field(default_factory=Row)
    losses: list[float] = field(default_factory=list[float])
    unlogged: list[torch.Tensor] = field(default_factory=list[torch.Tensor])
    unchecked: list[torch.Tensor] = field(default_factory=list[torch.Tensor])
    optimiser: dict[str, Any] = field(default_factory=dict[str, Any])


Pause = Callable[[Standing, LanguageModel, torch.optim.Optimizer], None]
"""What is called behind each step but the last: it may write down where the training stands, and may end it."""


def go_on(at: Standing, model: LanguageModel, optimiser: torch.optim.Optimizer) -> None:
    """No pause."""


def batch_loss(model: LanguageModel, batch: Batch) -> torch.Tensor:
    """Mean NLL of a batch's predicted tokens, in nats."""
    logits_BTV = model(batch.tokens_BT, batch.pos_BT, batch.document_BT)
    return F.cross_entropy(logits_BTV.flatten(0, 1), batch.targets_BT.flatten())


def train(
    model: LanguageModel,
    corpus: Corpus,
    run: config.Run,
    *,
    log: Callable[[Row], None],
    tick: Callable[[int, Row], None],
    log_every: int = CHECK_EVERY,
    start: Standing | None = None,
    pause: Pause = go_on,
) -> Outcome:
    """Train a model in place for a run's number of steps; stop where the loss is not finite.

    A training that goes on from where another stood (`start`, with that one's parameters in the model) takes the same
    steps as one that was never stopped, bit for bit.

    `log` gets a row each `log_every` steps (train/loss: the mean over them) and one with val/nll each epoch and at the
    end. `tick` gets every step done and the last row. `seconds` are those of training alone, validation apart.
    Without a step the model is only validated. How often is logged changes nothing of the result.
    """
    at, n_steps, epoch, val_nll = start or Standing(), run.trainer.steps, run.steps_per_epoch, math.nan
    optimiser = OPTIMISERS.lookup(run.optim.name)(run.optim, model)
    if at.optimiser:
        optimiser.load_state_dict(at.optimiser)
    batches = corpus.layout.training(corpus.train, seed=run.seed, batch_size=run.trainer.batch_size, start=at.step)
    began = time.perf_counter() - at.seconds
    for step in range(at.step + 1, n_steps + 1):
        batch = next(batches)
        lr = run.optim.lr * lr_factor(run.optim, step - 1, n_steps)
        for group in optimiser.param_groups:
            group["lr"] = lr
        optimiser.zero_grad()
        loss = batch_loss(model, batch)
        loss.backward()
        grad_norm = torch.nn.utils.get_total_norm([p.grad for p in model.parameters() if p.grad is not None])
        if run.optim.clip is not None:
            torch.nn.utils.clip_grads_with_norm_(model.parameters(), run.optim.clip, grad_norm)
        optimiser.step()
        at.unlogged.append(loss.detach())
        at.unchecked.append(loss.detach())
        at.step, at.tokens = step, at.tokens + batch.n_predicted
        last = step == n_steps
        if step % log_every == 0 or last:
            mean = torch.stack(at.unlogged).mean().item()
            at.row = {"step": step, "train/loss": mean, "train/grad_norm": grad_norm.item()}
            at.unlogged.clear()
            log(at.row | {"lr": lr, "tokens": at.tokens})
        if step % CHECK_EVERY == 0 or last:
            mean = torch.stack(at.unchecked).mean().item()
            at.losses += torch.stack(at.unchecked).tolist()
            at.unchecked.clear()
            if not math.isfinite(mean):
                seconds = time.perf_counter() - began
                return Outcome(Status.diverged, step, at.tokens, seconds, why=f"the loss is {mean} by step {step}")
        at.seconds = time.perf_counter() - began
        if step % epoch == 0 or last:
            val_nll = mean_nll(model, corpus.val, corpus.layout)
            at.row = at.row | {"val/nll": val_nll, "val/ppl": ppl(val_nll)}
            log({"step": step, "epoch": step / epoch, "val/nll": val_nll, "val/ppl": ppl(val_nll)})
        tick(step, at.row)
        if not last:
            pause(at, model, optimiser)
        began = time.perf_counter() - at.seconds  # neither validation nor a pause is training
    if n_steps == 0:
        val_nll = mean_nll(model, corpus.val, corpus.layout)
        log({"step": 0, "epoch": 0.0, "val/nll": val_nll, "val/ppl": ppl(val_nll)})
    # A training that ran to its end and learnt no more than how frequent tokens are has collapsed, or was too short.
    unigram, margin = corpus.unigram_nll("val"), run.trainer.diverged_margin
    if val_nll < unigram - margin:
        return Outcome(Status.finished, n_steps, at.tokens, at.seconds)
    collapsed = not math.isfinite(val_nll) or has_collapsed(at.losses, unigram)
    return Outcome(
        Status.diverged if collapsed else Status.undertrained,
        n_steps,
        at.tokens,
        at.seconds,
        why=f"val/nll is {val_nll:.3f}, no better than the unigram model's {unigram:.3f} less {margin}",
    )
