"""One model trained on one corpus: the loop alone. What it measures goes to `log`, how far it is to `tick`."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

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
) -> Outcome:
    """Train a model in place for a run's number of steps; stop where the loss is not finite.

    `log` gets a row each `log_every` steps (train/loss: the mean over them) and one with val/nll each epoch and at the
    end. `tick` gets every step done and the last row. `seconds` are those of training alone, validation apart.
    Without a step the model is only validated. How often is logged changes nothing of the result.
    """
    n_steps, epoch = run.trainer.steps, run.steps_per_epoch
    optimiser = OPTIMISERS.lookup(run.optim.name)(run.optim, model)
    batches = corpus.layout.training(corpus.train, seed=run.seed, batch_size=run.trainer.batch_size)
    tokens, seconds, row, val_nll, losses = 0, 0.0, Row(), math.nan, list[float]()
    logged, checked = list[torch.Tensor](), list[torch.Tensor]()
    started = time.perf_counter()
    for step in range(1, n_steps + 1):
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
        logged.append(loss.detach())
        checked.append(loss.detach())
        tokens += batch.n_predicted
        last = step == n_steps
        if step % log_every == 0 or last:
            row = {"step": step, "train/loss": torch.stack(logged).mean().item(), "train/grad_norm": grad_norm.item()}
            logged.clear()
            log(row | {"lr": lr, "tokens": tokens})
        if step % CHECK_EVERY == 0 or last:
            mean = torch.stack(checked).mean().item()
            losses += torch.stack(checked).tolist()
            checked.clear()
            if not math.isfinite(mean):
                seconds += time.perf_counter() - started
                return Outcome(Status.diverged, step, tokens, seconds, why=f"the loss is {mean} by step {step}")
        if step % epoch == 0 or last:
            seconds += time.perf_counter() - started
            val_nll = mean_nll(model, corpus.val, corpus.layout)
            row = row | {"val/nll": val_nll, "val/ppl": ppl(val_nll)}
            log({"step": step, "epoch": step / epoch, "val/nll": val_nll, "val/ppl": ppl(val_nll)})
            started = time.perf_counter()
        tick(step, row)
    if n_steps == 0:
        val_nll = mean_nll(model, corpus.val, corpus.layout)
        log({"step": 0, "epoch": 0.0, "val/nll": val_nll, "val/ppl": ppl(val_nll)})
    # A training that ran to its end and learnt no more than how frequent tokens are has collapsed, or was too short.
    unigram, margin = corpus.unigram_nll("val"), run.trainer.diverged_margin
    if val_nll < unigram - margin:
        return Outcome(Status.finished, n_steps, tokens, seconds)
    collapsed = not math.isfinite(val_nll) or has_collapsed(losses, unigram)
    return Outcome(
        Status.diverged if collapsed else Status.undertrained,
        n_steps,
        tokens,
        seconds,
        why=f"val/nll is {val_nll:.3f}, no better than the unigram model's {unigram:.3f} less {margin}",
    )
