"""torch's own: the encoder layer of the 2017 Transformer, and its optimisers and schedules against our course."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
import transformers
from torch import nn
from torch.nn import functional as F
from torch.optim.lr_scheduler import ConstantLR, CosineAnnealingLR, LinearLR, SequentialLR

from lecture04.config import Schedule
from lecture04.huggingface.mapping import SAME, NameMap, Stacked, d_model, rule
from lecture04.nn.init import build
from lecture04.training.optim import OPTIMISERS, decays, lr_factor

LAYER = "encoder.layers.{i}."
TORCH = NameMap(
    "embed.weight",
    "head.weight",
    (
        *(
            rule(
                tuple(f"blocks.{{i}}.attention.{part}.{kind}" for part in "qkv"),
                f"{LAYER}self_attn.in_proj_{kind}",
                Stacked((d_model,) * 3, (SAME,) * 3),
            )
            for kind in ("weight", "bias")
        ),
        rule("blocks.{i}.attention.output.*", f"{LAYER}self_attn.out_proj.*"),
        rule("blocks.{i}.ffn.up.*", f"{LAYER}linear1.*"),
        rule("blocks.{i}.ffn.down.*", f"{LAYER}linear2.*"),
        rule("blocks.{i}.attention_norm.*", f"{LAYER}norm1.*"),
        rule("blocks.{i}.ffn_norm.*", f"{LAYER}norm2.*"),
        rule("final_norm.*", "encoder.norm.*"),
    ),
)


class Encoder(nn.Module):
    """torch's encoder layers between an embedding and a head; causal by its mask."""

    def __init__(self, cfg, activation):
        super().__init__()
        d, norm_first = cfg.model.d_model, cfg.placement.name == "pre"
        layer = nn.TransformerEncoderLayer(
            d,
            cfg.model.n_heads,
            cfg.ffn.d_ff,
            dropout=0.0,
            activation=activation,
            layer_norm_eps=cfg.norm.eps,
            batch_first=True,
            norm_first=norm_first,
        )
        self.embed = nn.Embedding(cfg.vocab_size, d)
        norm = nn.LayerNorm(d, cfg.norm.eps) if norm_first else None
        self.encoder = nn.TransformerEncoder(layer, cfg.model.n_layers, norm, enable_nested_tensor=False)
        self.head = nn.Linear(d, cfg.vocab_size, bias=False)

    def forward(self, input_ids, labels=None, use_cache=False):
        n, x_BTD = input_ids.shape[1], self.embed(input_ids)
        later = nn.Transformer.generate_square_subsequent_mask(n, dtype=x_BTD.dtype)
        logits = self.head(self.encoder(x_BTD, mask=later, is_causal=True))
        return SimpleNamespace(
            logits=logits, loss=F.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten())
        )


@pytest.fixture(scope="session")
def encoder_pair(small, harness):
    def make(dtype, placement, activation):
        sizes = ("data.vocab_size=17", "model.embed_scale=1", "model.tied=false", "posenc=none")
        cfg = small("recipe=transformer_2017", f"placement={placement}", f"ffn={activation}", *sizes)
        return harness.Pair(harness.randomised(Encoder(cfg, activation).to(dtype)).train(), cfg, TORCH)

    return make


@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("placement", ["pre", "post"])
def test_torchs_encoder_layer(encoder_pair, harness, figures, dtype, placement, activation):
    found = harness.compare(encoder_pair(dtype, placement, activation), dtype, decoding=False)
    title = f"torch.nn.TransformerEncoderLayer, {placement}-norm, {activation}"
    figures.check(title, found, dtype, "with a causal mask, no positions; it has no cache")


@pytest.mark.parametrize("placement", ["pre", "post"])
def test_a_fault_in_the_encoder_layer_is_caught(encoder_pair, is_caught, placement):
    pair = encoder_pair(torch.float64, placement, "relu")
    is_caught(pair, lambda cfg: replace(cfg, norm=replace(cfg.norm, eps=1e-4)))
    is_caught(pair, lambda cfg: replace(cfg, attention=replace(cfg.attention, causal=False)))


N_STEPS, WARMUP = 40, 7


def torchs_course(schedule):
    """The learning rates that torch's schedulers give a rate of 1: up over the warm-up, then the schedule."""
    optimiser = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=1.0)
    left = N_STEPS - WARMUP
    after = {
        Schedule.constant: lambda: ConstantLR(optimiser, 1.0),
        Schedule.linear: lambda: LinearLR(optimiser, 1.0, 0.0, left),
        Schedule.cosine: lambda: CosineAnnealingLR(optimiser, left),
    }[schedule]()
    warmup = LinearLR(optimiser, 1 / WARMUP, 1.0, WARMUP - 1)
    scheduler, rates = SequentialLR(optimiser, [warmup, after], [WARMUP]), []
    for _ in range(N_STEPS):
        rates.append(optimiser.param_groups[0]["lr"])
        optimiser.step()
        scheduler.step()
    return rates


@pytest.mark.parametrize("schedule", Schedule)
def test_the_learning_rates_course_is_torchs(compose, figures, schedule):
    options = replace(compose().optim, schedule=schedule, warmup_steps=WARMUP)
    ours = [lr_factor(options, step, N_STEPS) for step in range(N_STEPS)]
    off = max(abs(a - b) for a, b in zip(ours, torchs_course(schedule), strict=True))
    figures.check(f"torch.optim.lr_scheduler, {schedule.name}", {"rates": off}, torch.float64, f"{N_STEPS} steps")


@pytest.mark.parametrize(
    ("schedule", "theirs"),
    [
        (Schedule.constant, transformers.get_constant_schedule_with_warmup),
        (Schedule.linear, transformers.get_linear_schedule_with_warmup),
        (Schedule.cosine, transformers.get_cosine_schedule_with_warmup),
    ],
)
def test_the_course_is_transformers_but_for_a_step_of_warmup(compose, figures, schedule, theirs):
    """Theirs warms up from 0 and its first step moves nothing; ours is there one step earlier."""
    options = replace(compose().optim, schedule=schedule, warmup_steps=WARMUP)
    optimiser = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=1.0)
    length = () if schedule is Schedule.constant else (N_STEPS,)
    rate = theirs(optimiser, WARMUP, *length).lr_lambdas[0]
    steps = range(N_STEPS)
    off = max(abs(lr_factor(options, s, N_STEPS) - rate(s + 1 if s < WARMUP else s)) for s in steps)
    remark = "our warm-up is one step ahead: its first step already moves"
    figures.check(f"transformers' schedule, {schedule.name}", {"rates": off}, torch.float64, remark)
    assert lr_factor(options, 0, N_STEPS) == 1 / WARMUP
    assert rate(0) == 0


def trained(model, optimiser, set_rate):
    """The model after a few clipped steps on random tokens, with the rate that is set before each."""
    g = torch.Generator().manual_seed(3)
    for step in range(12):
        tokens = torch.randint(15, (4, 10), generator=g)
        set_rate(step)
        optimiser.zero_grad()
        F.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten()).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
    return dict(model.named_parameters())


@pytest.mark.parametrize("name", ["adamw", "sgd"])
def test_a_training_is_that_of_torchs_plain_optimiser(small, figures, dtype, name):
    """Ours: fused kernels, rates set by hand. Theirs: a loop over tensors, and a scheduler."""
    cfg = small(f"optim={name}", "optim.weight_decay=0.1", "recipe=llama", "optim.schedule=linear")
    ours, theirs = build(cfg).to(dtype), build(cfg).to(dtype)
    optimiser = OPTIMISERS.lookup(name)(cfg.optim, ours)

    def set_rate(step):
        for group in optimiser.param_groups:
            group["lr"] = cfg.optim.lr * lr_factor(cfg.optim, step, 12)

    groups = [
        {"params": [p for n, p in theirs.named_parameters() if decays(n)], "weight_decay": 0.1},
        {"params": [p for n, p in theirs.named_parameters() if not decays(n)], "weight_decay": 0.0},
    ]
    o = cfg.optim
    plain = (
        torch.optim.AdamW(groups, lr=o.lr, betas=(o.beta1, o.beta2), eps=o.eps, foreach=False, fused=False)
        if name == "adamw"
        else torch.optim.SGD(groups, lr=o.lr, momentum=o.momentum, foreach=False, fused=False)
    )
    scheduler = torch.optim.lr_scheduler.LambdaLR(plain, lambda step: lr_factor(o, step, 12))
    after = trained(ours, optimiser, set_rate)
    others = trained(theirs, plain, lambda step: scheduler.step() if step else None)
    off = max((after[n] - p).abs().max().item() for n, p in others.items())
    figures.check(f"torch.optim, {name}", {"parameters": off}, dtype, "12 clipped steps, fused against plain")
    assert (
        max((p - q).abs().max() for p, q in zip(build(cfg).to(dtype).parameters(), after.values(), strict=True)) > 1e-3
    )
