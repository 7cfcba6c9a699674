"""Our models beside those of transformers, with the same random parameters: what is compared, and how nearly.

    pair = make_pair("llama", num_key_value_heads=2)
    differences = compare(pair, torch.float64)      # logits, loss, gradients, decoding

Theirs is built from its config class (nothing is downloaded) and its parameters are random, gains and biases too.
`lecture04.huggingface` reads config and parameters; our loss is differentiated through it, so that gradients are
compared under their names. `check` asserts the tolerance, and keeps the figures for docs/conformance.md, which is
written by

    python -m pytest tests/huggingface/conformance -n0 --write-conformance
"""

import os
import sys
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, fields, replace
from importlib.metadata import version
from pathlib import Path
from types import ModuleType

import pytest
import torch
import torch.nn.functional as F
from torch.func import functional_call

os.environ["HF_HUB_OFFLINE"] = "1"

import transformers

from lecture04 import config
from lecture04.huggingface import ARCHITECTURES, read_state
from lecture04.huggingface.mapping import NameMap
from lecture04.nn.model import LanguageModel

transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()

DOC = Path(__file__).parents[3] / "docs" / "conformance.md"
TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-10}
VOCAB, N_LAYERS, N_TOKENS = 17, 2, 24
USUAL = {
    "vocab_size": VOCAB,
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_hidden_layers": N_LAYERS,
    "num_attention_heads": 4,
    "max_position_embeddings": 32,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": None,
}


class InFloat64(ModuleType):
    """torch, but float32 is float64."""

    def __init__(self):
        super().__init__("torch")

    def __getattr__(self, name):
        return torch.float64 if name in ("float", "float32") else getattr(torch, name)


@contextmanager
def float32_is(dtype):
    """Their norms, rotations, softmax and losses are computed in float32 whatever the model's type; here in `dtype`."""
    if dtype is torch.float32:
        yield
        return
    stand_in, as_float = InFloat64(), torch.Tensor.float
    patched = [
        module
        for name, module in list(sys.modules.items())
        if name.startswith("transformers.") and getattr(module, "__dict__", {}).get("torch") is torch
    ]
    for module in patched:
        module.torch = stand_in
    torch.Tensor.float = torch.Tensor.double
    try:
        yield
    finally:
        torch.Tensor.float = as_float
        for module in patched:
            module.torch = torch


def randomised(module, seed=0, spread=0.3):
    """Every parameter random: weights N(0, spread^2), gains near 1, nothing left at the value that hides it."""
    g = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            noise = torch.randn(parameter.shape, generator=g, dtype=torch.float64) * spread
            parameter.copy_(noise if parameter.ndim > 1 else parameter + noise)
    return module


@dataclass(frozen=True)
class Pair:
    """One of their models, and what ours is to be read from it."""

    theirs: torch.nn.Module
    cfg: config.Architecture
    table: NameMap

    def ours(self, cfg=None):
        """Our model with their parameters (for `cfg`, where it is another), and theirs as leaves of its graph."""
        cfg = cfg or self.cfg
        leaves = {name: p.detach().clone().requires_grad_() for name, p in self.theirs.named_parameters()}
        dtype = next(iter(leaves.values())).dtype
        model = LanguageModel(cfg).to(dtype)
        return model, read_state(self.table, leaves, cfg), leaves


def their_config(model_type, **options):
    """A config of one of their classes, at the suite's sizes unless said otherwise."""
    cls = transformers.models.auto.configuration_auto.CONFIG_MAPPING[model_type]
    # A second name of a setting (hidden_size is n_embd) would win over the first.
    names = {f.name for f in fields(cls)} | cls.attribute_map.keys()
    usual = {k: value for k, value in USUAL.items() if k in names and cls.attribute_map.get(k) not in options}
    made = cls(**{**usual, **options}, attn_implementation="eager")
    ignored = [key for key, value in options.items() if key != "attn_config" and getattr(made, key) != value]
    assert not ignored or ignored == ["rope_parameters"], f"{model_type} made something else of {ignored}"
    return made


@pytest.fixture(scope="session")
def make_pair():
    """`make_pair("llama", num_key_value_heads=2)`: their model with random parameters, and our config read from it."""

    def make(model_type, dtype=torch.float64, posenc=None, **options):
        their = ARCHITECTURES[model_type]
        cls = getattr(transformers, their.class_name)  # imported before its module is patched
        with float32_is(dtype):
            model = cls(their_config(model_type, **options))
            model = randomised(model.to(dtype)).eval()
        cfg = their.read(model.config.to_dict())
        if posenc is not None:  # the other layout of RoPE
            cfg = replace(cfg, posenc=replace(cfg.posenc, name=posenc))
        return Pair(model, cfg, their.table)

    return make


def tokens(batch=2, n=N_TOKENS, seed=0):
    return torch.randint(VOCAB, (batch, n), generator=torch.Generator().manual_seed(seed))


def next_token_loss(logits_BTV, tokens_BT):
    return F.cross_entropy(logits_BTV[:, :-1].flatten(0, 1), tokens_BT[:, 1:].flatten())


def decoded(step, cache, chunks=(9, 1, 1, N_TOKENS - 11)):
    """The logits of `tokens()` in chunks, each from the cache that the last one left."""
    pieces = []
    for chunk in tokens().split(chunks, dim=1):
        logits, cache = step(chunk, cache)
        pieces.append(logits)
    return torch.cat(pieces, dim=1)


def difference(a, b):
    """max |a - b|, relative to the largest |b| where that is above 1."""
    return ((a - b).abs().max() / b.abs().max().clamp(min=1)).item()


def compare(pair, dtype, cfg=None, *, decoding=True):
    """The largest differences between ours and theirs, of logits, loss, gradients (by their largest) and decoding."""
    model, state, leaves = pair.ours(cfg)
    unused = deepcopy(pair.theirs)  # dynamic RoPE remembers the longest context that it has seen
    ours = functional_call(model, {**state, **dict(model.named_buffers())}, (tokens(),), strict=True)
    pair.theirs.zero_grad()
    with float32_is(dtype):
        out = pair.theirs(input_ids=tokens(), labels=tokens(), use_cache=False)
        out.loss.backward()
    loss = next_token_loss(ours, tokens())
    loss.backward()
    found = {"logits": difference(ours, out.logits), "loss": difference(loss, out.loss)}
    theirs = {name: p.grad for name, p in pair.theirs.named_parameters() if p.grad is not None}
    largest = max(g.abs().max() for g in theirs.values())
    missing = [name for name in theirs if leaves[name].grad is None]
    assert not missing, f"without a gradient here: {missing}"
    found["gradients"] = max((leaves[n].grad - g).abs().max().item() for n, g in theirs.items()) / largest.item()
    if decoding:
        with torch.no_grad():
            model.load_state_dict(state)
            step_by_step = decoded(model.decode, model.empty_cache(2))
            with float32_is(dtype):
                their_steps = decoded(lambda chunk, cache: their_step(unused, chunk, cache), None)
        found["decoding"] = difference(step_by_step, their_steps)
    return found


def their_step(model, chunk, cache):
    """Logits of new tokens, and their cache, grown."""
    cache = transformers.DynamicCache(config=model.config) if cache is None else cache
    out = model(input_ids=chunk, cache=cache, use_cache=True)
    return out.logits, cache


class Figures:
    """What was compared, for the page: title -> type -> differences."""

    def __init__(self):
        self.rows, self.remarks = {}, {}

    def check(self, title, found, dtype, remark=""):
        """Assert that the differences are within the tolerance; keep them, the largest where a title comes again."""
        kept = self.rows.setdefault(title, {}).setdefault(dtype, {})
        kept |= {what: max(value, kept.get(what, 0.0)) for what, value in found.items()}
        self.remarks[title] = remark
        assert max(found.values()) < TOLERANCE[dtype], found


@pytest.fixture(scope="session")
def harness():
    """This file, for tests that build their pair themselves."""
    return sys.modules[__name__]


FIGURES = pytest.StashKey[Figures]()


@pytest.fixture(scope="session")
def figures(request):
    return request.config.stash.setdefault(FIGURES, Figures())


@pytest.fixture(params=[pytest.param(torch.float32, marks=pytest.mark.slow), torch.float64], ids=["float32", "float64"])
def dtype(request):
    """In float64 the tolerance is a hundred thousand times smaller: it sees what float32 sees."""
    return request.param


@pytest.fixture
def hold(make_pair, figures, dtype):
    """`hold("Llama", "llama", num_key_value_heads=2)`: the pair is one function, at this type."""

    def check(title, model_type, *, remark="", decoding=True, posenc=None, **options):
        pair = make_pair(model_type, dtype, posenc, **options)
        figures.check(title, compare(pair, dtype, decoding=decoding), dtype, remark)

    return check


@pytest.fixture
def is_caught(make_pair):
    """`is_caught("llama", change)`: with `change(cfg)` for our config the comparison fails, without it holds."""

    def check(model_type, change, **options):
        pair = model_type if isinstance(model_type, Pair) else make_pair(model_type, torch.float64, **options)
        assert max(compare(pair, torch.float64, decoding=False).values()) < TOLERANCE[torch.float64]
        found = compare(pair, torch.float64, change(pair.cfg), decoding=False)
        assert found["logits"] > 1e3 * TOLERANCE[torch.float64], found
        assert found["gradients"] > 1e3 * TOLERANCE[torch.float64], found

    return check


def pytest_addoption(parser):
    parser.addoption("--write-conformance", action="store_true", help="write docs/conformance.md from what was seen")


def pytest_sessionfinish(session, exitstatus):
    figures = session.config.stash.get(FIGURES, None)
    if figures is not None and exitstatus == 0 and session.config.getoption("write_conformance", default=False):
        DOC.write_text(page(figures), encoding="utf-8")


HEAD = """\
# What was compared with what

Our models beside those of transformers, x-transformers and torch, with the same random parameters (gains and biases
too) on the same random tokens: 2 layers, 24 tokens a row. `lecture04.huggingface` reads transformers' config and
parameters; gradients are compared under their names. Decoding is in chunks from each side's own cache. A figure is the
largest difference of all that was compared, relative to the largest value where that is above 1 (of gradients: to the
largest). Allowed are 1e-5 in float32 and 1e-10 in float64, where theirs is made to compute in float64 what it computes
in float32 whatever the model's type (norms, rotations, softmax, the loss).

For each family a test plants faults (a wrong scale, a missing rotation, an off-by-one in a bucket, a mask that leaks)
and shows that the comparison fails.

Written by `python -m pytest tests/huggingface/conformance -n0 --write-conformance`, with
{versions}.

| theirs | compared | float32 | float64 | remarks |
|---|---|---|---|---|
"""
APART = """
## What is not comparable

| theirs | why |
|---|---|
| BLOOM | it normalises its embeddings, which no part here does; its ALiBi is MPT's |
| GPT-J, GPT-NeoX with parallel residual | attention and feed-forward layer side by side: no placement here |
| Mistral, Gemma 2 and 3 with windows, Gemma 2 with caps | attention here sees everything before it, and caps no score |
| Gemma and Qwen3 of d_head other than d_model / n_heads | heads here share d_model between them |
| DeepSeek's experts and compressed queries | no experts here; queries are as in DeepSeek-V2-Lite |
| T5's encoder and cross-attention | decoders only; a token that sees all others is for probes |
| Shaw's relative positions | transformers has no model with both embeddings; held to the paper's sums in tests/nn |
| x-transformers' latent attention | its latent is not normalised, and positions are carried by key heads of their own |
| x-transformers' ALiBi with grouped heads | query heads take turns with the key heads: a group has other slopes |
| x-transformers' gains on queries and keys, one a head | ours are shared by the heads; above, so are theirs |
| x-transformers' T5 bias on bin-packed documents | it takes given positions for ALiBi, RoPE and learned ones alone |
| x-transformers' xPos, PoPE, CoPE, dynamic and data-dependent position biases | no parts here |
| biases of attention and norms, Shaw, dynamic NTK, YaRN, Llama 3's scaling in x-transformers | it has none |
"""


def page(figures):
    """The page, from what the tests saw."""
    torch_version = torch.__version__.partition("+")[0]
    theirs = f"transformers {transformers.__version__}, x-transformers {version('x-transformers')}"
    versions = f"{theirs} and torch {torch_version}"
    rows = []
    for title, by_type in figures.rows.items():
        cells = [f"{max(by_type[t].values()):.1e}" if t in by_type else "" for t in TOLERANCE]
        what = ", ".join(next(iter(by_type.values())))
        rows.append(f"| {title} | {what} | {' | '.join(cells)} | {figures.remarks[title]} |")
    return HEAD.format(versions=versions) + "\n".join(rows) + "\n" + APART
