"""Every probe ends in a sentence, made of its table's figures: other figures, another sentence."""

import sys

import pandas as pd
import pytest

from lecture04.config import registry
from lecture04.lecture.probes import sparsity, text, unigram
from lecture04.lecture.probes.options import PROBES


@pytest.fixture
def said(ask):
    """`said("rope", "posenc=rope")`: a probe's sentence; `change` is made to the table before."""

    def said(name, *overrides, change=None):
        table = ask(name, *overrides)
        if change:
            change(table)
        return sentence_of(name)(table)

    return said


def sentence_of(name):
    PROBES.lookup(name)
    return sys.modules[registry.entry("probe", name).module].sentence


def setter(value, **where):
    """A change to a table: the value of the rows that fit."""

    def change(table):
        fits = pd.Series(True, table.index)
        for column, wanted in where.items():
            fits &= table[column] == wanted
        assert fits.any()
        table.loc[fits, "value"] = value

    return change


@pytest.mark.parametrize("name", PROBES.names())
def test_every_probe_has_a_sentence(name):
    assert sentence_of(name).__doc__


WITHOUT_RUNS = [name for name in PROBES.names() if name not in ("grad_norms", "sparsity", "unigram", "world")]


@pytest.mark.parametrize("name", WITHOUT_RUNS)
def test_it_is_one_sentence_or_two_and_no_figure_is_missing(said, name):
    found = said(name, "model.d_model=16")
    assert found[0].isupper()
    assert found.endswith(".")
    assert 1 <= found.count(". ") + 1 <= 2
    assert "nan" not in found
    assert "\n" not in found


def test_activations(said):
    assert "only relu is flat, value and slope 0: gelu falls to -0.17 at x = -0.75 and silu" in said("activations")

    def flatten(table):
        table.loc[table.function.isin(["silu", "gelu", "gelu_tanh"]) & (table.x < 0), "value"] = 0.0

    assert "only relu, gelu, gelu_tanh and silu are flat, value and slope 0." in said("activations", change=flatten)
    assert "no function is flat" in said("activations", change=setter(0.1, function="relu", x=-1.0))


def test_alibi(said):
    assert said("alibi") == (
        "Head 1 takes 0.25 off a score for each token of distance, head 4 only 0.0039; at distance 512 that is 128 "
        "against 2."
    )
    assert said("alibi", "model.n_heads=1") == (
        "Head 1 takes 0.0039 off a score for each token of distance, as every head does: 2 at distance 512."
    )


def test_ffn_params(said):
    found = said("ffn_params")
    assert "1.5 times the parameters of a ReLU layer (49,728 against 33,088); at d_ff 171 it has 0.45 % more." in found
    assert found.endswith("agree in all 6 counts.")
    assert "(12,576 against 8,352); at d_ff 85 it has 0.12 % more." in said("ffn_params", "model.d_model=32")
    few = said("ffn_params", change=setter(33088 / 2, claim="ffn_swiglu_171"))
    assert "at d_ff 171 it has 50 % fewer." in few
    wrong = said("ffn_params", change=setter(7e9, quantity="model_params", by="model"))
    assert wrong.endswith("Formula and model differ for Llama 2 7B.")


def test_grad_norms():
    """Means of 1 and a spread of 0.1 at two layers; what the last of four does is set."""

    def table(last, depths=(2, 4)):
        rows = [
            (placement, n, seed, "layer", layer, 0.1 * seed + (last if layer == max(depths) else 1.0))
            for placement in ("pre", "post")
            for n in depths
            for layer in range(1, n + 1)
            for seed in (0, 1, 2)
        ]
        return pd.DataFrame(rows, columns=["placement", "n_layers", "seed", "quantity", "layer", "value"])

    sentence = sentence_of("grad_norms")
    both = "From 2 to 4 layers the last layer's gradient norm {} in pre-norm and {} in post-norm."
    assert sentence(table(0.3)) == both.format(*["falls from 1.1 to 0.4"] * 2)
    assert sentence(table(3.0)) == both.format(*["rises from 1.1 to 3.1"] * 2)
    assert sentence(table(1.3)) == both.format(*["does not move beyond the seeds' bands (from 1.1 to 1.4)"] * 2)
    assert sentence(table(3.0, (4,))).startswith(
        "From the first to the last of 4 layers the gradient norm rises from 1.1 to 3.1 in pre-norm"
    )


def test_kv_cache(said):
    found = said("kv_cache")
    assert found.startswith(
        "DeepSeek-V2 saves most: its MLA keeps 576 numbers a token and layer where MHA would keep 32,768, 57 times as "
        "many, so that 32,768 tokens take 2.1 GiB and not 120. "
    )
    assert "bytes of the formula in all 31 cases" in found
    assert "so that 2,000 tokens take 0.064 GiB and not 3.7" in said(
        "kv_cache", "probe.n_ctx=1000", "probe.batch=2", "probe.dtype=fp8", "probe.n_tokens=3"
    )

    def spoil(table):
        setter(1.0, model="DeepSeek-V2", attention="mla", quantity="share_of_mha")(table)
        setter(0.5, attention="gqa", posenc="rope", quantity="cached_gap")(table)
        setter(7, attention="gqa", posenc="rope", quantity="bytes_measured")(table)

    other = said("kv_cache", change=spoil)
    assert other.startswith("Llama 2 70B saves most: its GQA keeps 2,048 numbers")
    assert "differ by at most 0.5 from" in other
    assert "formula not in 1 of 31 cases." in other


def test_mla(said):
    found = said("mla")
    assert found.startswith("With no positions or RoPE in a part of its own absorbing changes no score by more than ")
    assert "; with RoPE on restored keys it is wrong by up to 24, where the largest score is 20." in found
    wrong = said("mla", change=setter(3.0, positions="decoupled", quantity="score_gap"))
    assert wrong.startswith("With no positions absorbing changes no score")
    assert "with RoPE in a part of its own or RoPE on restored keys it is wrong by up to 24" in wrong


def test_models(said, ask):
    assert said("models") == (
        "Of 10 models from 2017 to 2025, 5 have SwiGLU, 7 RMSNorm, 7 pre-norm, 6 RoPE and 7 no biases; Llama 2, "
        "Llama 3, Mistral 7B, DeepSeek-V2 and Qwen3 have all of them."
    )

    table = ask("models")
    assert sentence_of("models")(table[table.year <= 2019]) == (
        "Of 4 models from 2017 to 2019, 0 have SwiGLU, 1 RMSNorm, 2 pre-norm, 0 RoPE and 1 no biases; none has all of "
        "them."
    )


def test_norm_invariance(said):
    assert said("norm_invariance").startswith(
        "Shifting the input by 5 changes the output of rmsnorm (by 2.7), hardly that of layernorm (by 6e-7); "
        "multiplying it by 3 hardly changes the output of layernorm (by 2.5e-5) and rmsnorm (by 2.4e-5). "
    )
    coarse = said("norm_invariance", "norm.eps=0.5", "model.d_model=32")
    assert "multiplying it by 3 changes the output of layernorm (by 0." in coarse
    assert coarse.endswith("One layernorm has 64 parameters, one rmsnorm 32.")


def test_order_blind(said):
    found = said("order_blind")
    assert found.startswith(
        "Blind to the order of tokens: posenc=none with all tokens seen (the logits change by at most"
    )
    assert said("order_blind", change=setter(0.7, posenc="none", causal=False)).startswith(
        "No case is blind to the order of its tokens: in all cases the logits change, by "
    )
    blind = said("order_blind", change=setter(0.0, posenc="rope"))
    assert (
        "posenc=none with all tokens seen, posenc=rope with all tokens seen and posenc=rope with causal mask" in blind
    )


def test_position_shift(said):
    found = said("position_shift")
    assert found.startswith(
        "When all positions move by 17, the first layer's scores stay with posenc none, alibi, t5, "
    )
    assert "; they change with posenc sinusoidal (by 1.3) and learned (by 0.045), so that positions" in found
    assert said("position_shift", "probe.shift=1000").startswith("When all positions move by 1,000, ")
    moved = said("position_shift", change=setter(0.5, posenc="rope", quantity="scores_change"))
    assert "learned (by 0.045) and rope (by 0.5)" in moved


def test_residual_paths(said):
    found = said("residual_paths", "model.d_model=16")
    assert found.startswith("In pre-norm J is I plus its branches (gap ")
    assert "and loses no direction of the gradient; in post-norm J is not I plus its branches (gap 0." in found
    assert found.endswith("and loses 6 directions of the gradient.")

    def swap(table):
        table.placement = table.placement.map({"pre": "post", "post": "pre"})

    assert said("residual_paths", "model.d_model=16", change=swap).startswith(
        "In pre-norm J is not I plus its branches"
    )


def test_rope(said):
    found = said("rope")
    assert found.startswith(
        "RoPE's scores depend on the distance alone: shifting both positions by up to 997 changes a "
    )
    assert "falls from 64 to 18 at distance 1,000, with rises in between" in found
    assert "falls from 64 to 18" not in said("rope", "posenc=rope", "posenc.base=1e9")
    broken = said("rope", change=setter(1.0, quantity="rope_score", q_pos=1000))
    assert broken.startswith("RoPE's scores do not depend on the distance alone: ")
    assert " by at most 2.9," in broken


def test_t5_buckets(said):
    assert said("t5_buckets") == (
        "The 16 shortest distances (0 to 15) have a bucket each, then up to 14 share one, and all from 113 on share "
        "the last of 32 buckets."
    )
    few = said("t5_buckets", "posenc=t5", "posenc.n_buckets=4", "posenc.max_distance=3")
    assert few == "The 3 shortest distances (0 to 2) have a bucket each, and all from 3 on share the last of 4 buckets."


def test_unigram():
    columns = ["split", "model", "quantity", "value"]
    table = pd.DataFrame(
        [
            ("test", "uniform", "perplexity", 92.0),
            ("test", "unigram", "perplexity", 46.0),
            ("val", "unigram", "nats", 3.0),
        ],
        columns=columns,
    )
    without = "On test a model without context has perplexity 46: 0.5 times the uniform model's (92)."
    assert unigram.sentence(table) == without
    true = pd.DataFrame([("test", "true", "perplexity", 4.0)], columns=columns)
    assert "46: 12 times the best possible (4) and 0.5 times" in unigram.sentence(pd.concat([table, true]))


def test_sparsity():
    def table(zeros, dead):
        rows = [
            (row, 0, 1, quantity, value)
            for row in zeros
            for quantity, value in ((sparsity.ZEROS, zeros[row]), (sparsity.DEAD, dead[row]), (sparsity.D_FF, 256))
        ]
        return pd.DataFrame(rows, columns=["row", "seed", "layer", "quantity", "value"])

    no_dead = {"A": 0, "+ B": 0, "C": 0}
    found = sparsity.sentence(table({"A": 0.6, "+ B": 0.0, "C": 0.0}, no_dead))
    assert found == (
        'Of the hidden layers\' values 60 % are exactly 0 in "A", the most, and 0 % in "+ B" and "C", the fewest; '
        "every unit of every run is active somewhere."
    )
    dead = sparsity.sentence(table({"A": 0.25, "+ B": 0.25, "C": 0.25}, no_dead | {"C": 12}))
    assert dead == (
        'Of the hidden layers\' values 25 % are exactly 0 in "A", "+ B" and "C"; 1 of 3 runs have units that are never '
        'active, at most 12 of 256 ("C", seed 0).'
    )


@pytest.mark.parametrize(
    ("value", "written"),
    [(0.25, "0.25"), (43.06, "43"), (3840.5, "3,840"), (2.44e-6, "2.4e-6"), (-0.0, "0"), (1e16, "1e16"), (1.0, "1")],
)
def test_figures_of_a_sentence(value, written):
    assert text.number(value) == written


def test_lists():
    assert [text.listed(list(words)) for words in ("", "a", "ab", "abc")] == ["", "a", "a and b", "a, b and c"]
    assert text.listed(["a", "b"], "or") == "a or b"


def test_words_stand_left_and_figures_right():
    frame = pd.DataFrame(
        {"row": ["a"], "kind": ["b"], "year": ["2017"], "band": ["1.2 ± 0.1"], "n": [3], "mixed": [None]}
    )
    (table,) = text.tables({"T": frame}, "So it is.")
    assert [column.is_words for column in table.columns] == [True, True, False, False, False, False]
    assert text.terminal({"T": frame}, "So it is.").endswith("\n\nSo it is.")
    assert text.markdown({"T": frame}, "a*b.").endswith("\n\n- a\\*b.\n")
