"""All initial values in one place.

Every parameter is drawn by a generator of its own, derived from the seed and the parameter's name. So swapping a part
leaves every parameter whose name and shape are unchanged exactly as it was.

| init | Linear weights | Linear biases | embeddings (multiplied by sqrt(D) at the input) |
|---|---|---|---|
| torch (default) | U(-a, a), a = 1/sqrt(fan_in): std a / sqrt(3), as torch has them | 0 | N(0, 1/D) |
| xavier | U(-a, a), a = sqrt(6 / (fan_in + fan_out)) | 0 | N(0, 1/D) |
| gpt2 | N(0, 0.02^2); those that write to the residual stream N(0, 0.02^2 / (2 n_layers)) | 0 | N(0, 1/D) |

Position encodings with parameters start as their sources do, whatever the init: a learned table at N(0, 0.02^2), T5's
scalars at N(0, 1/D), Shaw's embeddings at U(-a, a), a = sqrt(6 / (n_distances + K)).

Norms start at gain 1 and bias 0 in all of them. Biases start at 0, not at torch's U(-a, a): that bound would follow
d_ff, and a swapped part would change the start of a bias whose name and shape it leaves alone.
"""

import hashlib
import math
from typing import Protocol

import torch
from torch import Tensor, nn

from lecture04 import config
from lecture04.config.registry import Family, register
from lecture04.nn.model import LanguageModel
from lecture04.nn.posenc import PosEnc, ShawLayer

# The last matrix of each sublayer, which adds to the residual stream.
RESIDUAL_WRITERS = ("attention.output.weight", "ffn.down.weight")


def generator(seed: int, name: str) -> torch.Generator:
    """The generator of one parameter: from SHA-256, which is the same in every process, as hash() is not."""
    digest = hashlib.sha256(f"{seed}/{name}".encode()).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest[:8], "little") >> 1)


def _uniform(like: Tensor, bound: float, g: torch.Generator) -> Tensor:
    return torch.empty(like.shape).uniform_(-bound, bound, generator=g)


def _normal(like: Tensor, std: float, g: torch.Generator) -> Tensor:
    return torch.empty(like.shape).normal_(0, std, generator=g)


class Init:
    """The initial values of a Linear layer's weight; a row of the table above."""

    def __init__(self, model: config.Model) -> None:
        self.model = model

    def weight(self, name: str, linear: nn.Linear, g: torch.Generator) -> Tensor:
        """The weight, out x in, of the parameter called `name`."""
        raise NotImplementedError


class MakeInit(Protocol):
    """Initial values for a model of these sizes."""

    def __call__(self, model: config.Model) -> Init: ...


INITS: Family[MakeInit] = Family("init")


@register("init", "torch", options=config.Init)
class TorchInit(Init):
    """torch's own for weights, U(-1/sqrt(fan_in), 1/sqrt(fan_in)) (He et al. 2015, with a = sqrt(5))."""

    def weight(self, name: str, linear: nn.Linear, g: torch.Generator) -> Tensor:
        """U(-a, a) with a = 1/sqrt(fan_in)."""
        return _uniform(linear.weight, linear.in_features**-0.5, g)


@register("init", "xavier", options=config.Init)
class XavierInit(Init):
    """Uniform, keeping variance forward and backward alike (Glorot & Bengio 2010)."""

    def weight(self, name: str, linear: nn.Linear, g: torch.Generator) -> Tensor:
        """U(-a, a) with a = sqrt(6 / (fan_in + fan_out))."""
        return _uniform(linear.weight, math.sqrt(6 / (linear.in_features + linear.out_features)), g)


@register("init", "gpt2", options=config.Init)
class GPT2Init(Init):
    """N(0, 0.02^2), scaled down by sqrt(2 n_layers) where a sublayer writes its result (Radford et al. 2019)."""

    def weight(self, name: str, linear: nn.Linear, g: torch.Generator) -> Tensor:
        """N(0, 0.02^2) or N(0, 0.02^2 / (2 n_layers))."""
        writes = name.endswith(RESIDUAL_WRITERS)
        return _normal(linear.weight, 0.02 / (math.sqrt(2 * self.model.n_layers) if writes else 1.0), g)


def build(run: config.Run) -> LanguageModel:
    """The model of a run with the initial values of its seed.

    Norms keep the values that their constructors gave; position encodings draw their own (`initial`).
    """
    model = LanguageModel(run)
    init = INITS.lookup(run.init.name)(run.model)
    with torch.no_grad():
        for path, module in model.named_modules():
            for name, parameter in module.named_parameters(path, recurse=False):
                g = generator(run.seed, name)
                if isinstance(module, nn.Linear) and name.endswith("bias"):
                    parameter.zero_()
                elif isinstance(module, nn.Linear):
                    parameter.copy_(init.weight(name, module, g))
                elif isinstance(module, nn.Embedding):
                    parameter.copy_(_normal(parameter, module.embedding_dim**-0.5, g))
                elif isinstance(module, PosEnc | ShawLayer):
                    parameter.copy_(module.initial(name, g))
    return model
