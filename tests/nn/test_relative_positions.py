"""Shaw, T5, ALiBi and the kinds of RoPE, against their papers' formulas written out by loops."""

import math

import pytest
import torch

from lecture04 import config
from lecture04.nn.attention import Attention
from lecture04.nn.init import build
from lecture04.nn.norm import RMSNorm
from lecture04.nn.posenc import T5, ALiBi, Learned, Shaw, alibi_slopes
from lecture04.nn.rope import HalfRoPE, RoPE

MODEL = config.Model(d_model=24, n_heads=3, embed_scale=1.0)
UNSCALED = config.Scaling(n_original=64, beta_fast=32.0)


def random(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def t5_bucket(back, n_buckets=32, max_distance=128):
    """The causal rule of the T5 paper's code, in integers and logarithms."""
    exact = n_buckets // 2
    if back < exact:
        return max(back, 0)
    share = math.log(back / exact) / math.log(max_distance / exact)
    return min(n_buckets - 1, exact + int(share * (n_buckets - exact)))


def t5(n_buckets=32, max_distance=128):
    return T5(config.T5(name="t5", n_buckets=n_buckets, max_distance=max_distance), MODEL)


def test_t5_buckets_of_the_lecture():
    back = torch.tensor([*range(16), 20, 32, 64, 100, 128, 129, 100_000])
    assert t5().bucket(back).tolist() == [*range(16), 17, 21, 26, 30, 31, 31, 31]


@pytest.mark.parametrize(("n_buckets", "max_distance"), [(32, 128), (8, 20), (10, 64)])
def test_t5_buckets_are_the_papers_and_never_go_back(n_buckets, max_distance):
    back = torch.arange(0, 3 * max_distance)
    buckets = t5(n_buckets, max_distance).bucket(back).tolist()
    assert buckets == [t5_bucket(b, n_buckets, max_distance) for b in back.tolist()]
    assert buckets == sorted(buckets)
    assert set(buckets) <= set(range(n_buckets))


def test_t5_adds_the_buckets_scalar_of_each_head():
    module = t5()
    with torch.no_grad():
        module.table.copy_(random(32, 3))
    pos_q, pos_k = torch.tensor([3, 40, 200]), torch.tensor([0, 1, 3, 39, 150])
    bias = module.bias(pos_q, pos_k)
    assert bias.shape == (3, 3, 5)
    for h in range(3):
        for i, q in enumerate(pos_q.tolist()):
            for j, k in enumerate(pos_k.tolist()):
                assert bias[h, i, j] == module.table[t5_bucket(q - k), h]


def test_alibis_slopes_of_the_lecture():
    assert alibi_slopes(4) == [1 / 4, 1 / 16, 1 / 64, 1 / 256]


@pytest.mark.parametrize("n", [1, 2, 8, 16])
def test_alibis_slopes_for_powers_of_two(n):
    assert alibi_slopes(n) == pytest.approx([2 ** (-8 * h / n) for h in range(1, n + 1)])


@pytest.mark.parametrize("n", [3, 5, 6, 12, 40])
def test_alibis_slopes_for_any_number_of_heads(n):
    """As the paper's code: those of the lower power of two, then every other one of the higher."""
    lower = 2 ** math.floor(math.log2(n))
    expected = alibi_slopes(lower) + alibi_slopes(2 * lower)[0::2][: n - lower]
    assert alibi_slopes(n) == pytest.approx(expected)
    assert len(set(alibi_slopes(n))) == n


@pytest.mark.parametrize("n", [3, 4, 16, 32])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_alibis_slopes_are_exact_in_a_models_own_type(n, dtype):
    module = ALiBi(config.PosEnc(name="alibi"), config.Model(d_model=n, n_heads=n, embed_scale=1.0)).to(dtype)
    expected = torch.tensor(alibi_slopes(n), dtype=torch.float64)
    torch.testing.assert_close(module.slopes.double(), expected, atol=0, rtol=torch.finfo(dtype).eps)


def test_alibi_is_minus_slope_times_distance():
    bias = ALiBi(config.PosEnc(name="alibi"), MODEL).bias(torch.arange(5), torch.arange(5))
    for h, slope in enumerate(alibi_slopes(3)):
        for i in range(5):
            for j in range(5):
                assert bias[h, i, j].item() == pytest.approx(-slope * abs(i - j))


def shaw_attention(causal, max_distance=2):
    posenc = Shaw(config.Shaw(name="shaw", max_distance=max_distance), MODEL)
    options = config.MultiHead(name="mha", n_kv_heads=3, bias=False, output_bias=False, scale=8**-0.5, causal=causal)
    part = Attention(options, MODEL, posenc, lambda width: RMSNorm(config.Norm(name="rmsnorm"), width)).double()
    with torch.no_grad():
        for seed, p in enumerate(part.parameters()):
            p.copy_(random(*p.shape, seed=seed) / 4)
    return part


@pytest.mark.parametrize("causal", [True, False])
def test_shaw_against_the_papers_sums(small, causal):
    """e_ij = q_i . (k_j + a_ij) / sqrt(K), z_i = sum_j w_ij (v_j + b_ij), a_ij by the clipped distance."""
    part, T, longest = shaw_attention(causal), 6, 2
    x = random(2, T, 24, seed=9)
    # The model makes the mask; a model of these sizes makes the one that the attention needs.
    model = build(small("posenc=shaw", "model.d_model=24", "model.n_heads=3"))
    model.is_causal = causal
    y, _ = part(x, model.attention_context(torch.arange(T), torch.arange(T)))
    q, k, v = (part.heads(layer(x)) for layer in (part.q, part.k, part.v))
    keys, values = part.relative.key, part.relative.value_table
    assert len(keys) == longest * (1 if causal else 2) + 1
    expected = torch.zeros(2, 3, T, 8, dtype=torch.float64)
    for i in range(T):
        seen = range(i + 1) if causal else range(T)
        # Rows of the tables: 0 .. longest back, then what lies ahead, counted from behind.
        row = {j: max(-longest, min(longest, i - j)) for j in seen}
        scores = torch.stack([(q[:, :, i] * (k[:, :, j] + keys[row[j]])).sum(-1) / 8**0.5 for j in seen], dim=-1)
        weights = scores.softmax(-1)
        expected[:, :, i] = sum(weights[..., n, None] * (v[:, :, j] + values[row[j]]) for n, j in enumerate(seen))
    torch.testing.assert_close(y, part.output(expected.transpose(1, 2).flatten(2)), atol=1e-12, rtol=0)


def rope(kind, width, d_head=16):
    options = config.Rope(name="rope", width=width, scaling=UNSCALED)
    return kind(options, config.Model(d_model=d_head, n_heads=1, embed_scale=1.0))


@pytest.mark.parametrize("width", [16, 8])
def test_the_two_layouts_are_one_function_under_a_permutation(width):
    """Dimension 2i of a pair goes to i, 2i + 1 to i + width/2; what is not turned stays."""
    interleaved, half, n = rope(RoPE, width), rope(HalfRoPE, width), width
    permuted = [*range(0, n, 2), *range(1, n, 2), *range(n, 16)]
    x, pos = random(1, 1, 7, 16), torch.arange(7) * 5
    one = interleaved.rotate(x, interleaved.rotation(pos))[..., permuted]
    other = half.rotate(x[..., permuted], half.rotation(pos))
    torch.testing.assert_close(one, other, atol=1e-12, rtol=0)


@pytest.mark.parametrize("kind", [RoPE, HalfRoPE])
def test_a_partial_rotation_leaves_the_rest_and_turns_as_if_the_head_were_narrow(kind):
    partial, narrow = rope(kind, 8), rope(kind, 8, d_head=8)
    x, pos = random(1, 1, 5, 16), torch.arange(5)
    y = partial.rotate(x, partial.rotation(pos))
    assert torch.equal(y[..., 8:], x[..., 8:])
    assert torch.equal(y[..., :8], narrow.rotate(x[..., :8], narrow.rotation(pos)))


def test_a_learned_table_has_no_vector_beyond_its_end():
    module = Learned(config.Learned(name="learned", n_positions=4), MODEL)
    with torch.no_grad():
        module.table.copy_(random(4, 24))
    x = torch.zeros(1, 2, 24)
    torch.testing.assert_close(module.embed(x, torch.tensor([0, 3]))[0], module.table[[0, 3]])
    with pytest.raises(IndexError):
        module.embed(x, torch.tensor([0, 4]))


@pytest.mark.parametrize("posenc", ["t5", "alibi", "shaw", "rope", "rope_half"])
def test_a_shift_of_every_position_changes_nothing_where_only_distances_count(small, posenc):
    model = build(small(f"posenc={posenc}")).double()
    tokens = torch.tensor([[3, 9, 10, 11, 9, 6]])
    document = torch.zeros_like(tokens)
    pos = torch.arange(6)[None]
    torch.testing.assert_close(model(tokens, pos, document), model(tokens, pos + 7, document), atol=1e-10, rtol=0)


@pytest.mark.parametrize("posenc", ["sinusoidal", "learned"])
def test_a_shift_changes_what_counts_from_the_start(small, posenc):
    model = build(small(f"posenc={posenc}")).double()
    tokens = torch.tensor([[3, 9, 10, 11, 9, 6]])
    document = torch.zeros_like(tokens)
    pos = torch.arange(6)[None]
    assert (model(tokens, pos, document) - model(tokens, pos + 7, document)).abs().max() > 1e-4


@pytest.mark.parametrize("posenc", ["none", "alibi", "shaw", "rope", "sinusoidal"])
def test_a_model_that_is_not_causal_sees_ahead_and_cannot_be_decoded(small, posenc):
    model = build(small(f"posenc={posenc}", "attention.causal=false"))
    tokens = torch.tensor([[3, 9, 10, 11]])
    changed = tokens.clone()
    changed[0, -1] = 6
    assert (model(tokens)[0, 0] - model(changed)[0, 0]).abs().max() > 0
    with pytest.raises(ValueError, match=r"attention\.causal=false"):
        model.empty_cache(1)


def test_without_order_and_without_a_mask_permuting_the_input_permutes_the_output(small):
    model = build(small("posenc=none", "attention.causal=false")).double()
    tokens, order = torch.tensor([[3, 9, 10, 11, 6]]), [3, 1, 4, 0, 2]
    torch.testing.assert_close(model(tokens)[:, order], model(tokens[:, order]), atol=1e-12, rtol=0)


@pytest.mark.parametrize("posenc", ["none", "sinusoidal", "learned", "rope", "alibi", "t5", "shaw"])
@pytest.mark.parametrize("batch", [1, 2, 4])
def test_positions_given_for_each_row_are_those_of_the_row(small, posenc, batch):
    """Four heads: a mask of BTS must not be taken for one of HTS, whatever B is."""
    model = build(small(f"posenc={posenc}")).double()
    tokens = torch.randint(3, 15, (batch, 6), generator=torch.Generator().manual_seed(1))
    pos = torch.arange(6).expand(batch, -1)
    torch.testing.assert_close(model(tokens, pos), model(tokens), atol=1e-10, rtol=0)
