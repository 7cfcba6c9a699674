"""RoPE's scalings against their papers' formulas written out, and what the formulas promise."""

import math
from dataclasses import replace

import pytest
import torch
from hydra.errors import ConfigCompositionException
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from lecture04.config import Model, Rope, RopeScaling, Scaling, UserError
from lecture04.config import messages as errors
from lecture04.config.resolve import resolve
from lecture04.nn.init import build
from lecture04.nn.rope import HalfRoPE, RoPE
from lecture04.nn.rope_scaling import dynamic, linear, llama3, none, ntk, scaled, yarn

BASE, WIDTH, N_ORIGINAL = 10000.0, 64, 2048
NAMES = list(RopeScaling)
STRETCHING = [name for name in NAMES if name is not RopeScaling.none]
STATIC = [name for name in NAMES if name is not RopeScaling.dynamic]
BASES, WIDTHS, FACTORS = st.floats(2, 1e7), st.integers(2, 64).map(lambda n: 2 * n), st.floats(1, 100)


def scaling(name, factor=8.0, n_original=N_ORIGINAL):
    return Scaling(
        name=name,
        factor=1.0 if name is RopeScaling.none else factor,
        n_original=n_original,
        beta_fast=4.0 if name is RopeScaling.llama3 else 32.0,
    )


def frequencies(name, n_tokens=4 * N_ORIGINAL, **options):
    """At a context of so many tokens, which dynamic NTK alone looks at."""
    f, factor = scaled(scaling(name, **options), BASE, WIDTH)(torch.arange(n_tokens))
    return f.squeeze(0), factor


def turns(frequency, n_original=N_ORIGINAL):
    return n_original * frequency / (2 * math.pi)


@given(base=BASES, width=WIDTHS)
@hypothesis_settings(deadline=None)
def test_none_is_ropes_own_formula(base, width):
    f, factor = none(base, width)
    assert f.tolist() == pytest.approx([base ** (-2 * i / width) for i in range(width // 2)], rel=1e-12)
    assert factor == 1.0


@given(base=BASES, width=WIDTHS, factor=FACTORS)
@hypothesis_settings(deadline=None)
def test_linear_divides_every_frequency(base, width, factor):
    f, on_vectors = linear(base, width, factor)
    assert f.tolist() == pytest.approx([base ** (-2 * i / width) / factor for i in range(width // 2)], rel=1e-12)
    assert on_vectors == 1.0


@given(base=BASES, width=WIDTHS, factor=FACTORS)
@hypothesis_settings(deadline=None)
def test_ntk_leaves_the_fastest_pair_and_interpolates_the_slowest(base, width, factor):
    f, on_vectors = ntk(base, width, factor)
    plain, _ = none(base, width)
    assert f[0] == plain[0] == 1
    assert f[-1].item() == pytest.approx(plain[-1].item() / factor, rel=1e-9)
    shares = [factor ** (-2 * i / (width - 2)) for i in range(width // 2)]
    assert (f / plain).tolist() == pytest.approx(shares, rel=1e-9)
    assert on_vectors == 1.0


def papers_by_parts(factor, beta_fast, beta_slow):
    """Peng et al. 2023, equations 17 to 20: the ramp falls with the number of turns."""
    found = []
    for i in range(WIDTH // 2):
        f = BASE ** (-2 * i / WIDTH)
        kept = min(1, max(0, (turns(f) - beta_slow) / (beta_fast - beta_slow)))
        found.append((1 - kept) * f / factor + kept * f)
    return torch.tensor(found, dtype=torch.float64)


@pytest.mark.parametrize("betas", [(4.0, 1.0), (32.0, 1.0)])
def test_llama3_is_the_papers_equation_by_parts(betas):
    f, on_vectors = llama3(BASE, WIDTH, 8.0, N_ORIGINAL, *betas)
    torch.testing.assert_close(f, papers_by_parts(8.0, *betas), atol=0, rtol=1e-12)
    assert on_vectors == 1.0


def test_the_betas_left_open_are_those_of_the_formulas_authors(compose):
    for formula, name in ((yarn, RopeScaling.yarn), (llama3, RopeScaling.llama3)):
        asked = ("posenc=rope", f"posenc.scaling.name={name.name}", "posenc.scaling.factor=8")
        options = compose(*asked, f"posenc.scaling.n_original={N_ORIGINAL}").posenc.scaling
        expected = formula(BASE, WIDTH, 8.0, N_ORIGINAL)
        found = scaled(options, BASE, WIDTH)(torch.arange(4))
        assert torch.equal(found[0], expected[0])
        assert found[1] == expected[1]


def test_dynamic_leaves_short_contexts_alone_and_is_ntk_at_the_length_of_longer_ones():
    plain, _ = none(BASE, WIDTH)
    for factor in (1.0, 2.0):
        for n_tokens in (0, 1, N_ORIGINAL):
            assert torch.equal(dynamic(BASE, WIDTH, factor, N_ORIGINAL, torch.arange(n_tokens))[0][0], plain)
        f, on_vectors = dynamic(BASE, WIDTH, factor, N_ORIGINAL, torch.arange(3 * N_ORIGINAL))
        torch.testing.assert_close(f[0], ntk(BASE, WIDTH, 2 * factor + 1)[0], atol=0, rtol=1e-12)
        assert on_vectors == 1.0


def test_dynamic_takes_the_length_of_each_row():
    pos = torch.stack([torch.arange(8), torch.arange(8) + 92])
    f, _ = dynamic(BASE, WIDTH, 1.0, 50, pos)
    assert f.shape == (2, 1, WIDTH // 2)
    for row in range(2):
        assert torch.equal(f[row], dynamic(BASE, WIDTH, 1.0, 50, pos[row])[0])
    part = rope(RoPE, RopeScaling.dynamic, n_original=50)
    x = random(2, 3, 8, 16)
    together = part.rotate(x, part.rotation(pos))
    assert torch.equal(together[1:], part.rotate(x[1:], part.rotation(pos[1])))


def test_keys_cached_before_a_context_grew_are_stale_with_dynamic(small):
    """Why decoding from a cache is not asked to be the full forward: while n_original is not passed, it is."""
    cfg = small("posenc=rope", "model.n_heads=2")
    model = build(scaled_by(cfg, RopeScaling.dynamic, n_original=16)).double()
    tokens = torch.randint(15, (1, 24), generator=torch.Generator().manual_seed(0))
    for n_tokens, is_stale in ((16, False), (24, True)):
        cache, pieces = model.empty_cache(1), []
        for chunk in tokens[:, :n_tokens].split(8, dim=1):
            logits, cache = model.decode(chunk, cache)
            pieces.append(logits)
        off = (torch.cat(pieces, dim=1) - model(tokens[:, :n_tokens])).abs().max()
        assert (off > 1e-4) == is_stale


@pytest.mark.parametrize("n_original", [1, 6, 64, 10**9])
def test_yarn_is_between_kept_and_interpolated_whatever_was_trained_on(n_original):
    f, _ = yarn(BASE, WIDTH, 8.0, n_original)
    plain = none(BASE, WIDTH)[0]
    assert ((f >= plain / 8 * (1 - 1e-12)) & (f <= plain)).all()
    if n_original == 1:
        torch.testing.assert_close(f[1:], plain[1:] / 8)
    if n_original == 10**9:
        assert torch.equal(f, plain)


@pytest.mark.parametrize(("factor", "expected"), [(1.0, 1.0), (math.e, 1.1), (16.0, 1.2773)])
def test_yarns_temperature(factor, expected):
    assert yarn(BASE, WIDTH, factor, N_ORIGINAL)[1] == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("overrides", [("attention=gqa",), ("attention=mla", "attention.d_rope=8")], ids=" ".join)
def test_on_the_scores_the_temperature_is_a_scale_of_all_of_them(small, overrides):
    """Where every dimension is rotated that is the same as on the vectors; in MLA, where not all are, it is not."""
    cfg = scaled_by(small("posenc=rope", "model.n_heads=2", *overrides), RopeScaling.yarn, n_original=16)
    of_scores = replace(cfg, posenc=replace(cfg.posenc, scaling=replace(cfg.posenc.scaling, on_scores=True)))
    on_vectors, on_scores = build(cfg).double(), build(of_scores).double()
    none_at_all = replace(cfg, posenc=replace(cfg.posenc, scaling=replace(cfg.posenc.scaling, temperature=0.0)))
    scale = build(cfg).blocks[0].attention.scale
    by_hand = build(replace(none_at_all, attention=replace(cfg.attention, scale=scale * (0.1 * math.log(8) + 1) ** 2)))
    tokens = torch.randint(15, (1, 40), generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(on_scores(tokens), by_hand.double()(tokens), atol=1e-12, rtol=0)
    same = (on_scores(tokens) - on_vectors(tokens)).abs().max() < 1e-12
    assert same == ("attention=gqa" in overrides)


@pytest.mark.parametrize("name", STATIC)
def test_a_factor_of_one_changes_nothing(name):
    f, on_vectors = frequencies(name, factor=1.0)
    torch.testing.assert_close(f, frequencies(RopeScaling.none)[0], atol=0, rtol=1e-15)
    assert on_vectors == 1.0


@pytest.mark.parametrize("name", STRETCHING)
def test_longer_contexts_turn_no_faster_and_something_slower(name):
    f, _ = frequencies(name)
    plain, _ = frequencies(RopeScaling.none)
    assert (f <= plain).all()
    assert (f < plain).any()
    assert torch.equal(f, f.sort(descending=True).values)
    assert f.dtype is torch.float64


def rope(kind, name, width=16, **options):
    model = Model(d_model=16, n_heads=1, embed_scale=4.0)
    return kind(Rope(name="rope", width=width, scaling=scaling(name, **options)), model)


def random(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.parametrize("kind", [RoPE, HalfRoPE])
@pytest.mark.parametrize("width", [16, 8])
def test_interpolated_at_a_multiple_of_a_position_is_unscaled_at_the_position(kind, width):
    stretched, plain = rope(kind, RopeScaling.linear, width, factor=4.0), rope(kind, RopeScaling.none, width)
    x, pos = random(1, 2, 6, 16), torch.arange(6)
    far, near = (part.rotate(x, part.rotation(p)) for part, p in ((stretched, 4 * pos), (plain, pos)))
    torch.testing.assert_close(far, near, atol=1e-14, rtol=0)


@pytest.mark.parametrize("kind", [RoPE, HalfRoPE])
@pytest.mark.parametrize("width", [16, 8])
@pytest.mark.parametrize("name", NAMES)
def test_rotated_pairs_have_their_length_times_the_factor_and_the_rest_stays(kind, width, name):
    part, n = rope(kind, name, width), width
    x = random(1, 2, 6, 16)
    y = part.rotate(x, part.rotation(torch.arange(6) * 300))
    expected = 0.1 * math.log(8) + 1 if name is RopeScaling.yarn else 1.0
    lengths = [torch.stack(part.split(t[..., :n])).norm(dim=0) for t in (x, y)]
    torch.testing.assert_close(lengths[1], lengths[0] * expected)
    assert torch.equal(y[..., n:], x[..., n:])


ATTENTIONS = [("attention=gqa",), ("attention=gqa", "posenc.width=4"), ("attention=mla", "attention.d_rope=8")]
MODELS = [(f"posenc={kind}", *attention) for kind in ("rope", "rope_half") for attention in ATTENTIONS]


def scaled_by(cfg, name, **options):
    """The same run with another scaling, as an evaluation asks for it."""
    return replace(cfg, posenc=replace(cfg.posenc, scaling=scaling(name, **options)))


@pytest.mark.parametrize("overrides", MODELS, ids=" ".join)
def test_no_parameter_depends_on_the_scaling(small, overrides):
    """A trained model takes another scaling as it is; and the scaling reaches its logits."""
    cfg = small("model.n_heads=2", *overrides)
    plain, tokens = build(cfg).double(), torch.randint(15, (1, 40), generator=torch.Generator().manual_seed(0))
    for name in STRETCHING:
        stretched = build(replace(scaled_by(cfg, name, n_original=16), seed=1)).double()
        stretched.load_state_dict(plain.state_dict())
        change = (stretched(tokens) - plain(tokens)).abs().amax(dim=(0, 2))
        assert change[-1] > 1e-4, name
    assert torch.equal(build(scaled_by(cfg, RopeScaling.none)).double()(tokens), plain(tokens))


@pytest.mark.parametrize("name", STATIC)
@pytest.mark.parametrize("overrides", MODELS, ids=" ".join)
def test_decoding_from_a_cache_is_the_full_forward(small, overrides, name):
    cfg = small("model.n_heads=2", *overrides)
    model = build(scaled_by(cfg, name, n_original=16)).double()
    tokens = torch.randint(15, (2, 24), generator=torch.Generator().manual_seed(0))
    cache, pieces = model.empty_cache(2), []
    for chunk in tokens.split([9, 1, 1, 13], dim=1):
        logits, cache = model.decode(chunk, cache)
        pieces.append(logits)
    torch.testing.assert_close(torch.cat(pieces, dim=1), model(tokens), atol=1e-12, rtol=0)


def test_open_positions_are_those_of_the_longest_document(compose):
    assert compose("posenc=rope").posenc.scaling == Scaling(n_original=64, beta_fast=32.0)
    assert compose("posenc=rope", "data.max_len=80").posenc.scaling.n_original == 80
    asked = ("posenc.scaling.name=yarn", "posenc.scaling.factor=8", "posenc.scaling.n_original=50")
    assert compose("posenc=rope_half", *asked).posenc.scaling == Scaling(
        name=RopeScaling.yarn, factor=8.0, n_original=50, beta_fast=32.0
    )


@pytest.mark.parametrize(
    ("overrides", "changes", "said"),
    [
        ((), {"factor": 0.5}, "posenc.scaling.factor=0.5: must be at least 1."),
        ((), {"factor": math.inf}, "posenc.scaling.factor=inf: must be finite and at least 1."),
        ((), {"n_original": 0}, "posenc.scaling.n_original=0: must be at least 1."),
        ((), {"factor": 8.0}, "posenc.scaling.factor=8.0: posenc.scaling.name=none scales nothing"),
        (("posenc.width=2",), {"name": RopeScaling.ntk}, "posenc.scaling.name=ntk: needs at least 4 rotated"),
        (("attention=mla", "attention.d_rope=2"), {"name": RopeScaling.ntk}, "posenc.scaling.name=ntk: needs at least"),
        ((), {"beta_fast": 1.0}, "posenc.scaling.beta_slow=1.0: must be below posenc.scaling.beta_fast=1.0."),
        ((), {"name": RopeScaling.llama3, "beta_slow": 4.0}, "posenc.scaling.beta_slow=4.0: must be below"),
        (("posenc.base=1",), {"name": RopeScaling.yarn}, "posenc.base=1.0: posenc.scaling.name=yarn"),
    ],
)
def test_what_cannot_be_is_said(settings, overrides, changes, said):
    asked = settings("posenc=rope", *overrides)
    for name, value in changes.items():
        setattr(asked.posenc.scaling, name, value)
    with pytest.raises(UserError) as caught:
        resolve(asked)
    (error,) = str(caught.value).splitlines()
    assert error.startswith(said)


def test_an_unknown_scaling_lists_the_choices(compose):
    with pytest.raises(ConfigCompositionException) as caught:
        compose("posenc=rope", "posenc.scaling.name=yran")
    said = errors.explain(caught.value)
    assert said.startswith("posenc.scaling.name=yran: ")
    assert f"Did you mean yarn? Choices: {', '.join(name.name for name in NAMES)}." in said
