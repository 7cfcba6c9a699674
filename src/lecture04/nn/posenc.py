"""Position encodings: one a model, owner of what its layers share.

A model calls these hooks and knows no encoding by name; an encoding overrides those it needs:

    embed      adds to the embeddings (sinusoidal, learned)
    rotation   what `rotate` needs, computed once a forward (RoPE)
    rotate     turns queries and NEW keys, before the keys enter the cache (RoPE)
    bias       added to the scores after their scaling (T5, ALiBi)
    relative   a module of each attention layer's own, which enters scores and values (Shaw)

Shapes: B batch, T queries, S keys, H heads, D d_model, K d_head. Positions are integers, pos_T or, where each row of
the batch has its own, pos_BT.
"""

import math
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from lecture04 import config
from lecture04.config.registry import Family, register


def frequencies(base: float | Tensor, width: int, device: torch.device | None = None) -> Tensor:
    """base^(-2i/width) radians a token, for i = 0 .. (width - 1)/2 (Vaswani et al. 2017, section 3.5).

    In float64 whatever the model's own type: a bfloat16 angle is off by radians at a position of some hundreds.
    """
    pair = torch.arange(0, width, 2, device=device, dtype=torch.float64)
    return base ** (-pair / width)


class PosEnc(nn.Module):
    """No hook does anything here; see the module's docstring.

    `score_factor` multiplies the scale of the scores (YaRN, where it is asked to).
    `needs_scores`: the attention must write out its scores, since they are learned from (fused kernels have no gradient
    for what is added to them) or more than a product.
    """

    needs_scores = False
    score_factor = 1.0

    def __init__(self, options: config.PosEnc, model: config.Model) -> None:
        super().__init__()

    def embed(self, x_BTD: Tensor, pos: Tensor) -> Tensor:
        """The embeddings with their positions added."""
        return x_BTD

    def rotation(self, pos: Tensor) -> Tensor | None:
        """What `rotate` needs for these positions; None where nothing is rotated."""
        return None

    def rotate(self, x_BHTK: Tensor, rotation: Tensor | None) -> Tensor:
        """Queries or keys turned to their positions."""
        return x_BHTK

    def bias(self, pos_q: Tensor, pos_k: Tensor) -> Tensor | None:
        """What is added to the scores, bias_HTS or bias_BHTS; None for nothing."""
        return None

    def relative(self, attention: config.Attention, d_head: int) -> "ShawLayer | None":
        """A new module for one attention layer; None where positions do not enter there."""
        return None

    def initial(self, name: str, generator: torch.Generator) -> Tensor:
        """The initial value of the parameter called `name`, where the encoding has any."""
        raise NotImplementedError(f"{type(self).__name__} has no initial value for {name}")


class MakePosEnc(Protocol):
    """A position encoding, one a model."""

    def __call__(self, options: Any, model: config.Model) -> PosEnc: ...


POSENCS: Family[MakePosEnc] = Family("posenc")


@register("posenc", "none")
class NoPE(PosEnc):
    """No position encoding: the causal mask alone tells the order (Kazemnejad et al. 2023)."""


@register("posenc", "sinusoidal")
class Sinusoidal(PosEnc):
    """Adds sin(p f_i) to even and cos(p f_i) to odd dimensions, f_i = 10000^(-2i/D) (Vaswani et al. 2017)."""

    def embed(self, x_BTD: Tensor, pos: Tensor) -> Tensor:
        """x + [sin, cos, sin, cos, ...]; an odd width drops the last cosine."""
        width = x_BTD.shape[-1]
        angle = pos[..., None] * frequencies(10000.0, width, pos.device)
        wave = torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(-2)[..., :width]
        return x_BTD + wave.to(x_BTD.dtype)


@register("posenc", "learned", options=config.Learned)
class Learned(PosEnc):
    """Adds a learned vector for each position; there is none beyond the table (Gehring et al. 2017; BERT, GPT-2)."""

    def __init__(self, options: config.Learned, model: config.Model) -> None:
        super().__init__(options, model)
        self.table = nn.Parameter(torch.empty(options.n_positions, model.d_model))

    def embed(self, x_BTD: Tensor, pos: Tensor) -> Tensor:
        """x + table[pos]."""
        return x_BTD + self.table[pos]

    def initial(self, name: str, generator: torch.Generator) -> Tensor:
        """N(0, 0.02^2), as GPT-2."""
        return torch.empty(self.table.shape).normal_(0, 0.02, generator=generator)


def distance(pos_q: Tensor, pos_k: Tensor) -> Tensor:
    """How far back each key lies from each query: pos_q - pos_k, (B)TS."""
    return pos_q[..., :, None] - pos_k[..., None, :]


@register("posenc", "alibi")
class ALiBi(PosEnc):
    """Adds -m_h |p_q - p_k| to the scores, m_h = 2^(-8h/H) for h = 1 .. H, not learned (Press et al. 2022).

    Where H is no power of two: the slopes of the next lower one, then every other slope of the next higher one, as the
    paper's own code has it.
    """

    exponents: Tensor

    def __init__(self, options: config.PosEnc, model: config.Model) -> None:
        super().__init__(options, model)
        # Exact in every type, as the slopes are not: those of 16 heads are roots of 2.
        self.register_buffer("exponents", torch.tensor(alibi_exponents(model.n_heads)), persistent=False)

    @property
    def slopes(self) -> Tensor:
        """m_h, in the model's own type."""
        return torch.exp2(self.exponents)

    def bias(self, pos_q: Tensor, pos_k: Tensor) -> Tensor:
        """-m_h |p_q - p_k|, (B)HTS."""
        return -self.slopes[:, None, None] * distance(pos_q, pos_k).abs().unsqueeze(-3)


def alibi_exponents(n_heads: int) -> list[float]:
    """The exponent of 2 in the slope of each head."""
    power = 2 ** int(math.log2(n_heads))
    between = [-4 * h / power for h in range(1, 2 * power + 1, 2)]
    return [-8 * h / power for h in range(1, power + 1)] + between[: n_heads - power]


def alibi_slopes(n_heads: int) -> list[float]:
    """ALiBi's slope of each head."""
    return [2**exponent for exponent in alibi_exponents(n_heads)]


@register("posenc", "t5", options=config.T5)
class T5(PosEnc):
    """Adds a learned scalar for each head and bucket of distances (Raffel et al. 2020), the causal buckets.

    Of n buckets the first n/2 hold one distance each; the others grow with the logarithm up to `max_distance`, and what
    is farther shares the last.
    """

    needs_scores = True

    def __init__(self, options: config.T5, model: config.Model) -> None:
        super().__init__(options, model)
        self.max_distance, self.d_model = options.max_distance, model.d_model
        self.table = nn.Parameter(torch.empty(options.n_buckets, model.n_heads))

    def bucket(self, back: Tensor) -> Tensor:
        """The bucket of each distance back; what lies ahead counts as distance 0."""
        n, back = self.table.shape[0], back.clamp(min=0)
        exact = n // 2
        # In float64: at a bucket's edge float32 rounds to either side, by machine.
        far = torch.log(back.clamp(min=1).double() / exact) / math.log(self.max_distance / exact) * (n - exact)
        return torch.where(back < exact, back, (exact + far.long()).clamp(max=n - 1))

    def bias(self, pos_q: Tensor, pos_k: Tensor) -> Tensor:
        """table[bucket(p_q - p_k)], (B)HTS."""
        return self.table[self.bucket(distance(pos_q, pos_k))].movedim(-1, -3)

    def initial(self, name: str, generator: torch.Generator) -> Tensor:
        """N(0, 1/D)."""
        return torch.empty(self.table.shape).normal_(0, self.d_model**-0.5, generator=generator)


class ShawLayer(nn.Module):
    """One layer's embeddings of distances, for its keys and for its values; shared by its heads.

    No T x S x K tensor is made: a query meets each of the n distances once, and the scores are gathered.
    """

    def __init__(self, n: int, max_distance: int, d_head: int) -> None:
        super().__init__()
        self.max_distance = max_distance
        self.key = nn.Parameter(torch.empty(n, d_head))
        self.value_table = nn.Parameter(torch.empty(n, d_head))

    def index(self, pos_q: Tensor, pos_k: Tensor) -> Tensor:
        """The row of the tables for each query and key, (B,1,)TS: 0 .. max back, then -1 .. -max ahead from behind."""
        back = distance(pos_q, pos_k).clamp(-self.max_distance, self.max_distance)
        return (back % self.key.shape[0]).unsqueeze(-3)

    def score(self, q_BHTK: Tensor, index: Tensor) -> Tensor:
        """q . key[index], BHTS, before the scaling."""
        by_distance_BHTN = q_BHTK @ self.key.T
        return by_distance_BHTN.gather(-1, index.expand(*q_BHTK.shape[:3], -1))

    def value(self, weights_BHTS: Tensor, index: Tensor) -> Tensor:
        """sum over keys of weight * value[index], BHTK: the weights are summed by distance first."""
        shape = (*weights_BHTS.shape[:3], self.value_table.shape[0])
        by_distance_BHTN = weights_BHTS.new_zeros(shape).scatter_add(-1, index.expand_as(weights_BHTS), weights_BHTS)
        return by_distance_BHTN @ self.value_table

    def initial(self, name: str, generator: torch.Generator) -> Tensor:
        """Uniform by Glorot & Bengio (2010), as the paper's own code has it."""
        bound = math.sqrt(6 / sum(self.key.shape))
        return torch.empty(self.key.shape).uniform_(-bound, bound, generator=generator)


@register("posenc", "shaw", options=config.Shaw)
class Shaw(PosEnc):
    """Relative positions in scores, q . (k + a_d), and values, sum w (v + b_d); d is clipped (Shaw et al. 2018)."""

    needs_scores = True

    def __init__(self, options: config.Shaw, model: config.Model) -> None:
        super().__init__(options, model)
        self.options = options

    def relative(self, attention: config.Attention, d_head: int) -> ShawLayer:
        """A layer's own embeddings; a causal one never looks ahead and has none for it."""
        return ShawLayer(self.options.n_distances(attention), self.options.max_distance, d_head)
