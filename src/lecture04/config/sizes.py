"""Parameters, FLOPs and KV numbers of a model, summed over its parts' own formulas; no torch where they give them."""

from typing import NamedTuple, Protocol

from lecture04.config.parts import FFN
from lecture04.config.parts.ffn import linear
from lecture04.config.registry import Family, entry
from lecture04.config.schema import ARCHITECTURE, Architecture, Model


class Counted(Protocol):
    """A model that can be built without memory."""

    @staticmethod
    def counted(c: Architecture) -> "Counts":
        """What a model has that is really built, on torch's meta device."""
        ...


class Counts(NamedTuple):
    """What was counted of a built model: parameters over the whole of it and weights of the matrices of one layer, by
    family, and the numbers that one layer's KV cache keeps for a token.
    """

    params: dict[str, int]
    weights: dict[str, int]
    kv_numbers: int


MODELS: Family[Counted] = Family("architecture")


def is_declared(family: str, name: str) -> bool:
    """Whether a part names options of its own, which then count it; our own all do."""
    known = entry(family, name)
    return known.ours or bool(known.options)


def built(c: Architecture) -> Counts:
    """What is counted of the model, built without memory. Imports torch."""
    return MODELS.lookup("causal").counted(c)


def _declared(c: Architecture) -> dict[str, int]:
    """Parameters of each family over the whole model, by its parts' formulas."""
    n_layers, attention = c.model.n_layers, c.attention
    norms = 2 * n_layers * c.placement.norms_per_sublayer + c.placement.has_final_norm
    return {
        "attention": n_layers * attention.params(c),
        "ffn": n_layers * c.ffn.params(c),
        "norm": norms * c.norm.params(c.model.d_model) + n_layers * c.norm.params(attention.norm_widths(c)),
        "posenc": c.posenc.params(c),
    }


def params_by_part(c: Architecture) -> dict[str, int]:
    """Parameters of each family over the whole model; it is built and counted where a part declares no count."""
    embed = c.vocab_size * c.model.d_model
    undeclared = any(not is_declared(family, getattr(c, family).name) for family in ARCHITECTURE)
    found = built(c).params if undeclared else _declared(c)
    return {"embed": embed, **found, "head": 0 if c.model.tied else embed}


def params(c: Architecture) -> int:
    """Parameters of the whole model; a tied embedding counts once."""
    return sum(params_by_part(c).values())


def standard_params(model: Model, vocab_size: int) -> int:
    """Parameters of the same sizes built of the standard parts.

    Pre-norm LayerNorm, a plain FFN of 4 d_model, MHA, sinusoidal positions, biases in every Linear layer.
    """
    d = model.d_model
    block = 4 * linear(d, d, True) + linear(d, 4 * d, True) + linear(4 * d, d, True) + 2 * 2 * d
    return vocab_size * d * (1 if model.tied else 2) + model.n_layers * block + 2 * d


def plain_ffn_params(ffn: FFN, d_model: int) -> int:
    """Parameters of the plain feed-forward layer of 4 d_model, with this one's biases or without."""
    return linear(d_model, 4 * d_model, ffn.bias) + linear(4 * d_model, d_model, ffn.bias)


def ffn_params(c: Architecture) -> int:
    """Parameters of one feed-forward layer."""
    return c.ffn.params(c) if is_declared("ffn", c.ffn.name) else params_by_part(c)["ffn"] // c.model.n_layers


def flops_per_token(c: Architecture, n_ctx: int | None = None) -> int:
    """Forward FLOPs for one of `n_ctx` tokens in a whole sequence (the model's n_ctx where not given).

    Matrix products only, a multiply and an add counted as two, and the attention's products over all n_ctx keys: what a
    dense kernel does, mask or not. A training step costs about three times as much.
    """
    n_ctx = c.n_ctx if n_ctx is None else n_ctx
    if is_declared("attention", c.attention.name):
        attention = c.attention.flops(c, n_ctx)
    else:  # its weights, and the usual products with keys and values
        attention = built(c).weights["attention"] + 2 * n_ctx * c.model.d_model
    ffn = c.ffn.flops(c) if is_declared("ffn", c.ffn.name) else built(c).weights["ffn"]
    layer = attention + c.posenc.flops(c) + ffn
    return 2 * (c.model.n_layers * layer + c.model.d_model * c.vocab_size)


def kv_per_token(c: Architecture) -> int:
    """Numbers that the KV cache keeps for each token."""
    own = c.attention.kv_numbers(c) if is_declared("attention", c.attention.name) else built(c).kv_numbers
    return c.model.n_layers * own
