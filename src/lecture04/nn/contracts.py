"""What every model must hold to, whatever its parts: each a check that raises AssertionError with what does not hold.

`lecture04 check-part ffn=mine` runs them on a part from outside, the tests on every part of ours. A check is called
with the run of a small model; it builds what it needs.
"""

import itertools
import re
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.func import functional_call, grad, stack_module_state, vmap

from lecture04.config import Run, sizes
from lecture04.nn.init import build
from lecture04.nn.model import LanguageModel

Check = Callable[[Run], None]
CHECKS: dict[str, Check] = {}
TOLERANCE = 1e-5
"""The largest difference of float32 sums that are taken in another order."""


def contract(check: Check) -> Check:
    """A check that every model must pass, under its own name."""
    CHECKS[check.__name__] = check
    return check


def words(run: Run, batch: int, n_tokens: int, seed: int = 0) -> Tensor:
    """Random tokens_BT of the run's vocabulary."""
    return torch.randint(run.vocab_size, (batch, n_tokens), generator=torch.Generator().manual_seed(seed))


def close(ours: Tensor, theirs: Tensor, what: str) -> None:
    """Raise AssertionError where two tensors differ by more than the order of sums."""
    torch.testing.assert_close(ours, theirs, atol=TOLERANCE, rtol=0, msg=lambda text: f"{what}: {text}")


def next_token_loss(logits_BTV: Tensor, tokens_BT: Tensor) -> Tensor:
    """Mean NLL of each token after the first."""
    return F.cross_entropy(logits_BTV[:, :-1].flatten(0, 1), tokens_BT[:, 1:].flatten())


@contract
def logits_are_one_row_a_token(run: Run) -> None:
    """logits_BTV of any batch and length."""
    model = build(run)
    for batch, n_tokens in ((3, 7), (1, 1)):
        shape = model(words(run, batch, n_tokens)).shape
        assert shape == (batch, n_tokens, run.vocab_size), f"logits of shape {tuple(shape)}"


@contract
def every_parameter_gets_a_finite_nonzero_gradient(run: Run) -> None:
    """A parameter without a gradient is never trained, and counted all the same.

    One weight of a matrix may well have none (a ReLU that never fires), a whole matrix may not.
    """
    model = build(run)
    tokens = words(run, 8, 12)
    loss = next_token_loss(model(tokens), tokens)
    loss.backward()
    assert torch.isfinite(loss), f"the loss is {loss.item()}"
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, f"{name} is not used"
        assert torch.isfinite(parameter.grad).all(), f"{name}: its gradient is not finite"
        # Softmax does not see what is added to all scores of a query: the keys' bias has no gradient but rounding.
        is_key_bias = name.endswith(("attention.k.bias", "attention.k_rope.bias"))
        assert parameter.grad.abs().max() > 1e-6 or is_key_bias, f"{name}: its gradient is 0"


@contract
def a_later_token_never_changes_an_earlier_logit(run: Run) -> None:
    """The model is causal, to the last bit; and a token does change its own logits and what follows."""
    model = build(run)
    tokens = words(run, 2, 10)
    with torch.no_grad():
        before = model(tokens)
        for t in range(10):
            changed = tokens.clone()
            changed[:, t] = (changed[:, t] + 1) % run.vocab_size
            difference = (model(changed) - before).abs()
            assert difference[:, :t].sum() == 0.0, f"token {t} changes the logits before it"
            assert (difference[:, t:].amax(dim=(1, 2)) > 0).all(), f"token {t} changes nothing"


@contract
def an_earlier_token_reaches_every_later_logit(run: Run) -> None:
    """Every earlier token can be seen."""
    model = build(run).double()
    tokens = words(run, 1, 10)
    changed = tokens.clone()
    changed[:, 0] = (changed[:, 0] + 1) % run.vocab_size
    with torch.no_grad():
        reached = (model(changed) - model(tokens)).abs().amax(dim=-1) > 0
    assert reached.all(), f"the first token does not reach token {int((~reached).nonzero()[0, 1])}"


@contract
def documents_in_one_row_give_what_each_gives_alone(run: Run) -> None:
    """Positions start again and attention stays inside a document."""
    model = build(run)
    lengths = [[4, 3, 2], [5, 6]]  # the first row ends with two tokens of padding
    tokens = words(run, 2, 11)
    pos = torch.zeros_like(tokens)
    document = torch.full_like(tokens, -1)
    places = list(_places(lengths))
    for row, i, start, n in places:
        pos[row, start : start + n] = torch.arange(n)
        document[row, start : start + n] = 10 * row + i
    with torch.no_grad():
        together = model(tokens, pos, document)
        assert torch.isfinite(together).all(), "logits at padding are not finite, so that a gradient would not be"
        for row, _, start, n in places:
            alone = model(tokens[row : row + 1, start : start + n])
            close(together[row : row + 1, start : start + n], alone, "a document beside others")


def _places(lengths: list[list[int]]) -> Iterator[tuple[int, int, int, int]]:
    """(row, number, start, length) of each document."""
    for row, inside in enumerate(lengths):
        for i, (start, n) in enumerate(zip(itertools.accumulate([0, *inside]), inside, strict=False)):
            yield row, i, start, n


@contract
def cached_decoding_equals_full_recomputation(run: Run) -> None:
    """Token by token, in chunks, in one, and with an empty chunk."""
    model = build(run)
    tokens = words(run, 2, 12)
    with torch.no_grad():
        full = model(tokens)
        for chunks in ([1] * 12, [5, 1, 4, 2], [12], [0, 12]):
            cache, logits = model.empty_cache(2), list[Tensor]()
            for chunk in tokens.split(chunks, dim=1):
                new, cache = model.decode(chunk, cache)
                logits.append(new)
            close(torch.cat(logits, dim=1), full, f"decoded in chunks of {chunks}")
            assert {layer.n_tokens for layer in cache} == {12}, "the cache does not hold every token"


@contract
def a_cache_can_be_continued_twice(run: Run) -> None:
    """Two ways to go on from one prefix: neither sees the other."""
    model = build(run)
    tokens, ends = words(run, 1, 5), words(run, 2, 3, seed=1)
    with torch.no_grad():
        _, cache = model.decode(tokens, model.empty_cache(1))
        for end in ends:
            ours, _ = model.decode(end[None], cache)
            close(ours, model(torch.cat([tokens, end[None]], dim=1))[:, 5:], "a second continuation of a cache")


@contract
def float64_gives_the_logits_of_float32(run: Run) -> None:
    """Every tensor follows the model's own type."""
    model = build(run)
    tokens = words(run, 2, 8)
    with torch.no_grad():
        single, double = model(tokens), model.double()(tokens)
    assert double.dtype is torch.float64, f"a float64 model gives {double.dtype}"
    close(single.double(), double, "float32 against float64")


@contract
def rows_of_a_batch_are_independent(run: Run) -> None:
    """A row gives what it gives alone, and does not see the others."""
    model = build(run)
    tokens = words(run, 4, 8)
    with torch.no_grad():
        together = model(tokens)
        for row in range(4):
            close(together[row], model(tokens[row : row + 1])[0], "a row alone")
        changed = tokens.clone()
        changed[0] = (changed[0] + 1) % run.vocab_size
        assert torch.equal(model(changed)[1:], together[1:]), "the first row changes the others"


@contract
def a_forward_leaves_the_model_as_it_was(run: Run) -> None:
    """No state, and nothing random."""
    model = build(run)
    before = {name: t.clone() for name, t in (*model.named_parameters(), *model.named_buffers())}
    first, second, third = (m(words(run, 2, 8)) for m in (model, model.train(), model.eval()))
    assert torch.equal(first, second), "training mode gives other logits"
    assert torch.equal(first, third), "a second forward gives other logits"
    after = dict((*model.named_parameters(), *model.named_buffers()))
    changed = [name for name in before.keys() | after.keys() if not _same(before.get(name), after.get(name))]
    assert not changed, f"a forward changes {', '.join(sorted(changed))}"


def _same(a: Tensor | None, b: Tensor | None) -> bool:
    return a is not None and b is not None and torch.equal(a, b)


@contract
def seeds_run_stacked(run: Run) -> None:
    """Parts are pure, so two seeds' parameters run as one model under vmap, each with its own result and gradient."""
    models = [build(replace(run, seed=seed)) for seed in (0, 1)]
    parameters, buffers = stack_module_state(models)
    tokens = words(run, 3, 9)
    pos, document = torch.arange(9).expand(3, 9) % 5, torch.arange(9).expand(3, 9) // 5

    def loss(parameters: dict[str, Tensor], buffers: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        logits_BTV = functional_call(models[0], (parameters, buffers), (tokens, pos, document))
        return next_token_loss(logits_BTV, tokens), logits_BTV

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "There is a performance drop")  # fused attention runs seed after seed
        gradients, stacked = vmap(grad(loss, has_aux=True))(parameters, buffers)
    for i, model in enumerate(models):
        logits_BTV = model(tokens, pos, document)
        close(stacked[i], logits_BTV, "the logits of stacked seeds")
        next_token_loss(logits_BTV, tokens).backward()
        for name, parameter in model.named_parameters():
            assert parameter.grad is not None
            close(gradients[name][i], parameter.grad, f"{name}: the gradient of stacked seeds")


@contract
def names_are_roles(run: Run) -> None:
    """Initial values and checkpoints hang on the names, so no part puts a level of its own in front of its role."""
    roles = r"(embed|posenc|blocks\.\d+\.(attention|ffn|[a-z_]+_norm)|final_norm|head)\.[a-z_.]+"
    for name, _ in build(run).named_parameters():
        assert re.fullmatch(roles, name), f"{name}: a parameter's name must match {roles}"


@contract
def the_declared_count_is_that_of_the_model(run: Run) -> None:
    """What the options say of their parameters is what is built."""
    said, built = sizes.params_by_part(run), LanguageModel.counted(run)
    for family, n in built.params.items():
        assert said[family] == n, f"{family}: its options count {said[family]:,} parameters, the model has {n:,}"
    kept, n = sizes.kv_per_token(run), run.model.n_layers * built.kv_numbers
    assert kept == n, f"attention: its options count {kept:,} KV numbers a token, the cache keeps {n:,}"


@contract
def it_runs_on_another_device(run: Run) -> None:
    """Forward and backward on torch's meta device, which refuses most tensors that were left on the CPU."""
    with torch.device("meta"):
        model = LanguageModel(run)
        tokens = torch.zeros(2, 6, dtype=torch.long)
    next_token_loss(model(tokens), tokens).backward()
