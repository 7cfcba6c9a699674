"""What every model must hold to, over every registered part: a new registration is covered by itself."""

import itertools
import re
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from torch.func import functional_call, grad, stack_module_state, vmap

from lecture04.config import Attention, registry
from lecture04.nn.init import build

# A part of the standard model is tried once, with the others of its kind: the model as it is.
STANDARD = {"ffn": "relu", "norm": "layernorm", "placement": "pre", "attention": "mha", "posenc": "sinusoidal"}
ALONE = [(), *((f"{f}={name}",) for f, own in STANDARD.items() for name in registry.names(f) if name != own)]
TOGETHER = [
    ("recipe=transformer_2017",),
    ("recipe=llama",),
    ("recipe=llama", "placement=post", "model.tied=false"),
    ("ffn=swiglu", "attention=mqa", "posenc=none", "model.bias=false"),
    ("posenc=rope", "posenc.scaling.name=yarn", "posenc.scaling.factor=4", "posenc.scaling.n_original=6"),
    (
        "attention=mla",
        "attention.output_bias=false",
        "posenc=rope_half",
        "posenc.scaling.name=yarn",
        "posenc.scaling.factor=4",
        "posenc.scaling.on_scores=true",
    ),
    ("recipe=llama", "model.embed_scale=1", "posenc.scaling.name=llama3", "posenc.scaling.factor=4"),
]
EVERY_MODEL = pytest.mark.parametrize("overrides", ALONE + TOGETHER, ids=" ".join)
PLACEMENTS = registry.names("placement")
# Every two of an attention, a position encoding and a placement that go together.
PAIRS = [
    (f"attention={attention}", f"posenc={posenc}", f"placement={PLACEMENTS[(i + j) % len(PLACEMENTS)]}")
    for i, attention in enumerate(registry.names("attention"))
    for j, posenc in enumerate(registry.names("posenc"))
    if posenc not in registry.options_of("attention", attention, Attention).refuses
]
EVERY_PAIR = pytest.mark.parametrize("overrides", PAIRS, ids=" ".join)
N_WORDS = 15


def words(batch, n_tokens, seed=0):
    return torch.randint(N_WORDS, (batch, n_tokens), generator=torch.Generator().manual_seed(seed))


def test_every_two_parts_are_tried_together():
    tried = {frozenset(two) for row in PAIRS for two in itertools.combinations(row, 2)}
    names = {f: [f"{f}={name}" for name in registry.names(f)] for f in ("attention", "posenc", "placement")}
    wanted = {
        frozenset(two) for f, g in itertools.combinations(names, 2) for two in itertools.product(names[f], names[g])
    }
    assert wanted - tried == {frozenset({"attention=mla", "posenc=shaw"})}


@EVERY_MODEL
def test_logits_are_one_row_a_token(small, overrides):
    model = build(small(*overrides))
    assert model(words(3, 7)).shape == (3, 7, N_WORDS)
    assert model(words(1, 1)).shape == (1, 1, N_WORDS)


@EVERY_MODEL
def test_every_parameter_gets_a_finite_nonzero_gradient(small, overrides):
    """A parameter without a gradient is in the way of nothing and in the counts; one weight of a matrix may well have
    none (a ReLU that never fires), a whole matrix may not."""
    model = build(small(*overrides))
    tokens = words(8, 12)
    loss = F.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())
    loss.backward()
    assert torch.isfinite(loss)
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, f"{name} is not used"
        assert torch.isfinite(parameter.grad).all(), name
        # Softmax does not see what is added to all scores of a query: the keys' bias has no gradient but rounding.
        is_key_bias = name.endswith(("attention.k.bias", "attention.k_rope.bias"))
        assert (parameter.grad.abs().max() > 1e-6) or is_key_bias, name


@EVERY_MODEL
def test_a_later_token_never_changes_an_earlier_logit(small, overrides):
    model = build(small(*overrides))
    tokens = words(2, 10)
    with torch.no_grad():
        before = model(tokens)
        for t in range(10):
            changed = tokens.clone()
            changed[:, t] = (changed[:, t] + 1) % N_WORDS
            difference = (model(changed) - before).abs()
            assert difference[:, :t].sum() == 0.0
            assert (difference[:, t:].amax(dim=(1, 2)) > 0).all()


@EVERY_MODEL
def test_an_earlier_token_reaches_every_later_logit(small, overrides):
    model = build(small(*overrides)).double()
    tokens = words(1, 10)
    changed = tokens.clone()
    changed[:, 0] = (changed[:, 0] + 1) % N_WORDS
    with torch.no_grad():
        assert ((model(changed) - model(tokens)).abs().amax(dim=-1) > 0).all()


@EVERY_MODEL
def test_packed_documents_give_what_each_gives_alone(small, overrides):
    model = build(small(*overrides))
    lengths = [[4, 3, 2], [5, 6]]  # the first row ends with two tokens of padding
    tokens = words(2, 11)
    pos = torch.zeros_like(tokens)
    document = torch.full_like(tokens, -1)
    for row, inside in enumerate(lengths):
        start = 0
        for i, n in enumerate(inside):
            pos[row, start : start + n] = torch.arange(n)
            document[row, start : start + n] = 10 * row + i
            start += n
    with torch.no_grad():
        together = model(tokens, pos, document)
        assert torch.isfinite(together).all(), "padding too, or a gradient would turn NaN"
        for row, inside in enumerate(lengths):
            start = 0
            for n in inside:
                alone = model(tokens[row : row + 1, start : start + n])
                torch.testing.assert_close(together[row : row + 1, start : start + n], alone, atol=1e-5, rtol=0)
                start += n


@pytest.mark.parametrize("overrides", [*PAIRS, *ALONE[1:], *TOGETHER], ids=" ".join)
def test_cached_decoding_equals_full_recomputation(small, overrides):
    model = build(small(*overrides))
    tokens = words(2, 12)
    with torch.no_grad():
        full = model(tokens)
        for chunks in ([5, 1, 4, 2], [0, 12], [1] * 12):
            cache, logits = model.empty_cache(2), []
            for chunk in tokens.split(chunks, dim=1):
                new, cache = model.decode(chunk, cache)
                logits.append(new)
            torch.testing.assert_close(torch.cat(logits, dim=1), full, atol=1e-5, rtol=0)
            assert {layer.n_tokens for layer in cache} == {12}


@EVERY_PAIR
def test_a_cache_can_be_continued_twice(small, overrides):
    """Two ways to go on from one prefix: neither sees the other."""
    model = build(small(*overrides))
    tokens = words(1, 5)
    ends = words(2, 3, seed=1)
    with torch.no_grad():
        _, cache = model.decode(tokens, model.empty_cache(1))
        for end in ends:
            ours, _ = model.decode(end[None], cache)
            full = model(torch.cat([tokens, end[None]], dim=1))[:, 5:]
            torch.testing.assert_close(ours, full, atol=1e-5, rtol=0)


@EVERY_MODEL
def test_float64_gives_float32s_logits(small, overrides):
    model = build(small(*overrides))
    tokens = words(2, 8)
    with torch.no_grad():
        single, double = model(tokens), model.double()(tokens)
    assert double.dtype is torch.float64
    torch.testing.assert_close(single.double(), double, atol=1e-5, rtol=0)


@EVERY_MODEL
def test_rows_of_a_batch_are_independent(small, overrides):
    model = build(small(*overrides))
    tokens = words(4, 8)
    with torch.no_grad():
        together = model(tokens)
        for row in range(4):
            torch.testing.assert_close(together[row], model(tokens[row : row + 1])[0], atol=1e-5, rtol=0)
        changed = tokens.clone()
        changed[0] = (changed[0] + 1) % N_WORDS
        assert torch.equal(model(changed)[1:], together[1:])


@EVERY_MODEL
def test_a_forward_leaves_the_model_as_it_was(small, overrides):
    model = build(small(*overrides))
    before = {name: tensor.clone() for name, tensor in (*model.named_parameters(), *model.named_buffers())}
    first = model(words(2, 8))
    second = model.train()(words(2, 8))
    third = model.eval()(words(2, 8))
    assert torch.equal(first, second)
    assert torch.equal(first, third)
    after = dict((*model.named_parameters(), *model.named_buffers()))
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)


@pytest.mark.filterwarnings("ignore:There is a performance drop")  # fused attention runs one seed after the other
@EVERY_MODEL
def test_seeds_run_stacked(small, overrides):
    """Parts are pure, so two seeds' parameters run as one model under vmap, each with its own result and gradient."""
    models = [build(replace(small(*overrides), seed=seed)) for seed in (0, 1)]
    parameters, buffers = stack_module_state(models)
    tokens = words(3, 9)
    pos, document = torch.arange(9).expand(3, 9) % 5, torch.arange(9).expand(3, 9) // 5

    def loss(logits):
        return F.cross_entropy(logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())

    def loss_and_logits(parameters, buffers):
        logits = functional_call(models[0], (parameters, buffers), (tokens, pos, document))
        return loss(logits), logits

    gradients, stacked = vmap(grad(loss_and_logits, has_aux=True))(parameters, buffers)
    for i, model in enumerate(models):
        logits = model(tokens, pos, document)
        torch.testing.assert_close(stacked[i], logits, atol=1e-5, rtol=0)
        loss(logits).backward()
        for name, parameter in model.named_parameters():
            torch.testing.assert_close(gradients[name][i], parameter.grad, atol=1e-5, rtol=0)


@EVERY_MODEL
def test_names_are_roles(small, overrides):
    """Initial values and checkpoints hang on the names, so no part puts a level of its own in front of its role."""
    roles = r"(embed|posenc|blocks\.\d+\.(attention|ffn|[a-z_]+_norm)|final_norm|head)\.[a-z_.]+"
    for name, _ in build(small(*overrides)).named_parameters():
        assert re.fullmatch(roles, name), name
