"""The training loop on a corpus that it learns in a second."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from lecture04.data.documents import make_batch, order
from lecture04.nn.init import build
from lecture04.records.identity import identity
from lecture04.records.record import Status
from lecture04.training import loop
from lecture04.training.evaluate import mean_nll
from lecture04.training.loop import CHECK_EVERY, batch_loss, train


class Watched:
    """One training, and everything that it said on the way."""

    def __init__(self, request, corpus, model=None):
        run = request.run
        self.model = build(run) if model is None else model
        self.rows, self.ticks = [], []
        self.outcome = train(
            self.model,
            corpus,
            run,
            log=self.rows.append,
            tick=lambda step, row: self.ticks.append((step, row)),
            log_every=request.session.log_every,
        )

    def values(self, key):
        return {row["step"]: row[key] for row in self.rows if key in row}


@pytest.fixture(scope="module")
def cfg(small_request):
    """16 epochs of 8 steps."""
    return small_request("trainer.steps=128", "optim.lr=1e-2", "trainer.log_every=16")


@pytest.fixture(scope="module")
def trained(cfg, tiny_corpus):
    return Watched(cfg, tiny_corpus)


def same_parameters(a, b):
    return all(torch.equal(x, y) for x, y in zip(a.parameters(), b.parameters(), strict=True))


def test_one_seed_gives_the_same_bits(small_request, tiny_corpus):
    first, second = (Watched(small_request("seed=3"), tiny_corpus) for _ in range(2))
    assert same_parameters(first.model, second.model)
    assert first.rows == second.rows


def test_seeds_give_different_models_and_batches(small_request, tiny_corpus):
    zero, one = (Watched(small_request(f"seed={seed}"), tiny_corpus) for seed in (0, 1))
    assert not same_parameters(zero.model, one.model)
    assert zero.values("tokens") != one.values("tokens")


def test_the_state_of_the_global_generators_does_not_enter(small_request, tiny_corpus):
    runs = []
    for seed in (0, 1):
        torch.manual_seed(seed)
        runs.append(Watched(small_request(), tiny_corpus))
    assert same_parameters(runs[0].model, runs[1].model)


def test_training_is_the_plain_loop(small_request, tiny_corpus):
    """Batches, schedule, clipping and steps put together once more, from torch's own parts, to the same bits."""
    asked = small_request("trainer.steps=12", "optim.clip=0.5")
    watched, run = Watched(asked, tiny_corpus), asked.run
    model = build(run)
    matrices, vectors = ([p for p in model.parameters() if (p.ndim == 2) == wanted] for wanted in (True, False))
    groups = [{"params": matrices, "weight_decay": 0.01}, {"params": vectors, "weight_decay": 0.0}]
    optimiser = torch.optim.AdamW(groups, betas=(0.9, 0.999), eps=1e-8, fused=True)
    rates = [*(run.optim.lr * (i + 1) / 4 for i in range(4))]
    rates += [run.optim.lr * (1 + math.cos(math.pi * i / 8)) / 2 for i in range(8)]
    documents = np.concatenate([order(64, seed=0, epoch=epoch) for epoch in (0, 1)]).reshape(-1, 8)
    for rate, chosen in zip(rates, documents[:12], strict=True):
        for group in optimiser.param_groups:
            group["lr"] = rate
        batch = make_batch(tiny_corpus.train, chosen, 16)
        logits = model(batch.tokens_BT, batch.pos_BT, batch.document_BT)
        model.zero_grad(set_to_none=True)
        F.cross_entropy(logits.flatten(0, 1), batch.targets_BT.flatten()).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimiser.step()
    assert same_parameters(watched.model, model)


def test_the_loss_goes_down_to_near_the_true_distribution(trained, tiny_corpus):
    losses, val = list(trained.values("train/loss").values()), list(trained.values("val/nll").values())
    assert losses[-1] < 0.7 * losses[0]
    assert val[-1] < val[0]
    assert trained.outcome.status is Status.finished
    assert trained.outcome.why is None
    assert 0 < val[-1] - tiny_corpus.true_nll("val") < 0.3


def test_rows_come_at_the_stated_steps(small_request, tiny_corpus):
    run = Watched(small_request("trainer.steps=22", "trainer.log_every=5"), tiny_corpus)
    assert list(run.values("train/loss")) == [5, 10, 15, 20, 22]
    assert run.values("val/nll").keys() == {8, 16, 22}
    assert run.values("epoch") == {8: 1.0, 16: 2.0, 22: 2.75}
    assert [step for step, _ in run.ticks] == list(range(1, 23))


def test_validation_at_the_end_comes_once_where_the_end_is_an_epochs(small_request, tiny_corpus):
    run = Watched(small_request("trainer.steps=16"), tiny_corpus)
    assert [row["step"] for row in run.rows if "val/nll" in row] == [8, 16]


def test_the_logged_loss_is_the_mean_since_the_row_before(small_request, tiny_corpus, monkeypatch):
    losses = []

    def watched(model, batch):
        loss = batch_loss(model, batch)
        losses.append(loss.item())
        return loss

    monkeypatch.setattr(loop, "batch_loss", watched)
    run = Watched(small_request("trainer.steps=12", "trainer.log_every=5"), tiny_corpus)
    expected = {5: losses[:5], 10: losses[5:10], 12: losses[10:]}
    assert run.values("train/loss") == pytest.approx({step: np.mean(part) for step, part in expected.items()})


def test_the_logged_validation_is_the_models(trained, tiny_corpus, cfg):
    nll = mean_nll(trained.model, tiny_corpus.val, tiny_corpus.layout)
    last = trained.rows[-1]
    assert last["val/nll"] == nll
    assert last["val/ppl"] == pytest.approx(math.exp(nll))


def test_tokens_are_those_predicted(small_request, tiny_corpus):
    """Two whole epochs; padding counts nothing."""
    run = Watched(small_request("trainer.steps=16"), tiny_corpus)
    assert run.outcome.tokens == 2 * tiny_corpus.train.n_predicted
    assert run.rows[-2]["tokens"] == run.outcome.tokens
    assert run.outcome.steps == 16
    assert run.outcome.seconds > 0


def test_the_learning_rate_follows_its_schedule(small_request, tiny_corpus):
    run = Watched(
        small_request("optim.lr=0.01", "trainer.log_every=2", "trainer.steps=8", "optim.schedule=linear"), tiny_corpus
    )
    assert run.values("lr") == pytest.approx({2: 0.005, 4: 0.01, 6: 0.0075, 8: 0.0025})


def test_clipping_bounds_the_gradient_and_null_leaves_it_alone(small_request, tiny_corpus, monkeypatch):
    """What the optimiser is handed; the norm that is logged is that before clipping."""
    handed = []

    def sgd_that_notes(options, model):
        parameters = list(model.parameters())
        optimiser = torch.optim.SGD(parameters, lr=1e-9)
        optimiser.register_step_pre_hook(
            lambda *_: handed.append(torch.cat([p.grad.flatten() for p in parameters]).norm().item())
        )
        return optimiser

    monkeypatch.setattr(loop.OPTIMISERS, "lookup", lambda name: sgd_that_notes)
    run = Watched(small_request("optim.clip=0.01", "trainer.steps=2", "trainer.log_every=1"), tiny_corpus)
    assert handed == pytest.approx([0.01, 0.01], rel=1e-3)
    assert min(run.values("train/grad_norm").values()) > 0.1
    handed.clear()
    free = Watched(small_request("optim.clip=null", "trainer.steps=2", "trainer.log_every=1"), tiny_corpus)
    assert handed == pytest.approx(list(free.values("train/grad_norm").values()), rel=1e-3)


def test_parameters_that_are_nan_are_a_divergence_that_stops_early(small_request, tiny_corpus):
    asked = small_request("trainer.steps=100", "trainer.log_every=5")
    model = build(asked.run)
    with torch.no_grad():
        model.blocks[0].ffn.up.weight[0, 0] = math.nan
    run = Watched(asked, tiny_corpus, model)
    assert run.outcome.status is Status.diverged
    assert "nan" in run.outcome.why
    assert run.outcome.steps == CHECK_EVERY
    assert math.isnan(run.rows[-1]["train/loss"])


def test_an_overflowing_learning_rate_is_a_divergence_that_stops_early(small_request, tiny_corpus):
    run = Watched(
        small_request("optim.lr=1e30", "optim.clip=null", "optim.schedule=constant", "trainer.steps=100"), tiny_corpus
    )
    assert run.outcome.status is Status.diverged
    assert run.outcome.why.startswith("the loss is ")
    assert run.outcome.steps < 100


def test_a_large_learning_rate_is_a_divergence(small_request, tiny_corpus):
    """Layer norms keep even these losses finite, so it is the last validation that tells."""
    run = Watched(small_request("optim.lr=1e6", "optim.clip=null", "optim.schedule=constant"), tiny_corpus)
    assert run.outcome.status is Status.diverged
    assert run.outcome.why.startswith(("val/nll is ", "the loss is "))


def test_a_model_that_learned_nothing_is_not_trained_enough(small_request, tiny_corpus):
    run = Watched(small_request("optim.lr=1e-9"), tiny_corpus)
    assert run.outcome.status is Status.undertrained
    assert run.outcome.why.startswith("val/nll is ")
    assert run.outcome.steps == 24


def test_the_margin_sets_where_divergence_ends(trained, cfg, tiny_corpus):
    val = trained.rows[-1]["val/nll"]
    gap = tiny_corpus.unigram_nll("val") - val
    assert gap > 0.25
    for margin, status in ((gap - 1e-6, Status.finished), (gap + 1e-6, Status.undertrained)):
        trainer = replace(cfg.run.trainer, diverged_margin=margin, steps=0)
        asked = replace(cfg, run=replace(cfg.run, trainer=trainer))
        assert Watched(asked, tiny_corpus, trained.model).outcome.status is status


def test_a_validation_that_is_no_number_is_a_divergence(small_request, tiny_corpus):
    asked = small_request("trainer.steps=0", "trainer.diverged_margin=-100")
    model = build(asked.run)
    assert Watched(asked, tiny_corpus, model).outcome.status is Status.finished
    with torch.no_grad():
        model.embed.weight[0, 0] = math.nan
    assert Watched(asked, tiny_corpus, model).outcome.status is Status.diverged


def test_a_longer_run_is_not_the_shorter_one_continued_but_starts_alike(small_request, tiny_corpus):
    """With a constant rate the first steps are the same: batches do not depend on how many are to come."""
    short, long = (
        Watched(small_request(f"trainer.steps={n}", "optim.schedule=constant"), tiny_corpus) for n in (10, 20)
    )
    assert short.values("train/loss")[10] == long.values("train/loss")[10]


def test_swapping_a_part_leaves_the_data_as_it_was(small_request, tiny_corpus):
    runs = [
        Watched(small_request(*swap), tiny_corpus) for swap in ((), ("recipe=llama",), ("init=gpt2", "placement=post"))
    ]
    assert runs[0].values("tokens") == runs[1].values("tokens") == runs[2].values("tokens")


def test_batch_loss_is_the_mean_over_predicted_tokens(small, tiny_corpus):
    model, split = build(small()), tiny_corpus.val
    batch = make_batch(split, np.arange(split.n_docs), 16)
    assert batch_loss(model, batch).item() == pytest.approx(mean_nll(model, split, tiny_corpus.layout), abs=1e-5)


@pytest.mark.parametrize("lr", ["1e-2", "1e30"])
def test_how_often_is_logged_changes_no_parameter_and_no_outcome(small_request, tiny_corpus, lr):
    """What diverges is found at the same step, however often one looks; and it is no part of the run."""
    line = ("optim.clip=null", f"optim.lr={lr}", "trainer.steps=60", "optim.schedule=constant")
    asked = [small_request(*line, f"trainer.log_every={n}") for n in (1, 7, 1000)]
    assert len({identity(request.run) for request in asked}) == 1
    runs = [Watched(request, tiny_corpus) for request in asked]
    assert [len(run.values("train/loss")) for run in runs][:2] == ([60, 9] if lr == "1e-2" else [50, 7])
    for run in runs[1:]:
        assert all(
            torch.equal(a.nan_to_num(), b.nan_to_num())
            for a, b in zip(*(r.model.parameters() for r in (run, runs[0])), strict=True)
        )
        assert replace(run.outcome, seconds=0) == replace(runs[0].outcome, seconds=0)
        assert run.values("val/nll") == pytest.approx(runs[0].values("val/nll"), abs=0, rel=0, nan_ok=True)
    assert (runs[0].outcome.status is Status.diverged) == (lr == "1e30")


def test_without_a_step_the_model_is_only_validated(small, small_request, tiny_corpus):
    ran = Watched(small_request("trainer.steps=0"), tiny_corpus)
    assert all(torch.equal(a, b) for a, b in zip(ran.model.parameters(), build(small()).parameters(), strict=True))
    nll = mean_nll(ran.model, tiny_corpus.val, tiny_corpus.layout)
    assert ran.values("val/nll") == {0: pytest.approx(nll)}
    assert (ran.outcome.steps, ran.outcome.tokens, ran.ticks) == (0, 0, [])
    assert ran.outcome.status is Status.undertrained  # new parameters know no more than word frequencies
