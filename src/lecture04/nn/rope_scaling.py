"""RoPE for contexts longer than those trained on: other frequencies, from the formulas of their papers.

Each formula gives the frequencies f_i in radians a token for the pairs i = 0 .. width/2 - 1, in float64, and a factor
on the rotated queries and on the rotated keys. `base` and `width` are RoPE's, unscaled f_i = base^(-2i/width); `factor`
is how many times longer than the `n_original` positions trained on the context is to be; 1 changes nothing, but for
`dynamic`.
"""

import math
from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

from lecture04.config import RopeScaling, Scaling
from lecture04.nn.posenc import frequencies

Device = torch.device | None
Frequencies = tuple[Tensor, float]


def none(base: float, width: int, *, device: Device = None) -> Frequencies:
    """base^(-2i/width), unscaled (Su et al. 2021)."""
    return frequencies(base, width, device), 1.0


def linear(base: float, width: int, factor: float, *, device: Device = None) -> Frequencies:
    """f_i / factor, position interpolation: position p is turned as p / factor was (Chen et al. 2023)."""
    return frequencies(base, width, device) / factor, 1.0


def ntk(base: float, width: int, factor: float, *, device: Device = None) -> Frequencies:
    """base' = base factor^(width/(width - 2)), "NTK-aware" (bloc97 2023; Peng et al. 2023, definition 1).

    The fastest pair keeps its frequency, the slowest is interpolated by the whole factor, those between by powers of
    it. `width` is at least 4.
    """
    return frequencies(base * factor ** (width / (width - 2)), width, device), 1.0


def dynamic(base: float, width: int, factor: float, n_original: int, pos: Tensor) -> Frequencies:
    """`ntk` with factor' = factor n / n_original - (factor - 1), n = max(n_original, tokens so far) (emozilla 2023).

    What is no longer than n_original stays as it was; at factor 1 a context of n tokens has factor' = n / n_original.
    The tokens so far are the largest of `pos` plus 1, in each row its own: frequencies (B,) 1 x width/2.

    Not causal in the length: a longer context turns the earlier tokens differently. So keys that were cached before the
    context grew are stale, and decoding from a cache is not the full forward (as in transformers, which caches the
    same).
    """
    n_tokens = F.pad(pos, (0, 1)).amax(-1, keepdim=True).double() + 1  # padded: there may be no position at all
    grown = factor * n_tokens.clamp(min=n_original) / n_original - (factor - 1)
    return frequencies((base * grown ** (width / (width - 2)))[..., None], width, pos.device), 1.0


def yarn(
    base: float,
    width: int,
    factor: float,
    n_original: int,
    beta_fast: float = 32.0,
    beta_slow: float = 1.0,
    temperature: float = 0.1,
    *,
    device: Device = None,
) -> Frequencies:
    """(1 - r_i) f_i + r_i f_i / factor and a factor of 0.1 ln(factor) + 1: YaRN (Peng et al. 2023, section 3).

    "NTK by parts": pairs that turn more than beta_fast times over n_original positions keep their frequency (r = 0),
    those that turn less than beta_slow times are interpolated (r = 1). The factor stands on cos and sin, so that scores
    of rotated dimensions grow by its square, the paper's attention temperature; `temperature` is its 0.1.

    Between them r grows linearly with i, from floor(i(beta_fast)) to ceil(i(beta_slow)), as in the paper's released
    code and the models that use it; i(b) = width ln(n_original / 2 pi b) / (2 ln base) is the pair that turns b times,
    and both ends are kept within 0 .. width - 1. The paper's equation has r fall linearly with the number of turns
    instead (see `llama3`), which interpolates more of the ramp; and where n_original is so short that pair 0 turns less
    than beta_fast times, the code leaves pair 0 alone all the same. Needs base > 1.
    """

    def pair(turns: float) -> float:
        return width * math.log(n_original / (2 * math.pi * turns)) / (2 * math.log(base))

    low, high = max(math.floor(pair(beta_fast)), 0), min(math.ceil(pair(beta_slow)), width - 1)
    length = max(high - low, 0.001)  # a step, where both ends meet
    ramp = ((torch.arange(width // 2, device=device, dtype=torch.float64) - low) / length).clamp(0, 1)
    f = frequencies(base, width, device)
    return f * (1 - ramp) + f / factor * ramp, temperature * math.log(factor) + 1


def llama3(
    base: float,
    width: int,
    factor: float,
    n_original: int,
    beta_fast: float = 4.0,
    beta_slow: float = 1.0,
    *,
    device: Device = None,
) -> Frequencies:
    """(1 - r_i) f_i + r_i f_i / factor, r falling with the turns: Llama 3.1 (Dubey et al. 2024).

    r_i = (beta_fast - t_i) / (beta_fast - beta_slow) within 0 .. 1, where pair i turns t_i = n_original f_i / 2 pi
    times over n_original positions: the equation of YaRN's "NTK by parts", without its temperature. Llama calls the
    betas high_freq_factor and low_freq_factor.
    """
    f = frequencies(base, width, device)
    turns = n_original * f / (2 * math.pi)
    ramp = ((beta_fast - turns) / (beta_fast - beta_slow)).clamp(0, 1)
    return f * (1 - ramp) + f / factor * ramp, 1.0


def scaled(scaling: Scaling, base: float, width: int) -> Callable[[Tensor], Frequencies]:
    """The chosen formula with its settings: positions -> frequencies and factor."""
    base_width_factor = (base, width, scaling.factor)
    n_original, betas = scaling.n_original, (scaling.beta_fast, scaling.beta_slow)
    match scaling.name:
        case RopeScaling.none:
            return partial(_at_any, partial(none, base, width))
        case RopeScaling.linear:
            return partial(_at_any, partial(linear, *base_width_factor))
        case RopeScaling.ntk:
            return partial(_at_any, partial(ntk, *base_width_factor))
        case RopeScaling.dynamic:
            return partial(dynamic, *base_width_factor, n_original)
        case RopeScaling.yarn:
            return partial(_at_any, partial(yarn, *base_width_factor, n_original, *betas, scaling.temperature))
        case RopeScaling.llama3:
            return partial(_at_any, partial(llama3, *base_width_factor, n_original, *betas))


def _at_any(formula: Callable[..., Frequencies], pos: Tensor) -> Frequencies:
    """A formula that does not depend on the positions, on their device."""
    return formula(device=pos.device)
