"""Parameters under our names and under those of Hugging Face's models: tables of rules, read in both directions.

A rule names parameters of ours, one of theirs, and how the one is laid out in the other. `{i}` stands for the layer and
a final `*` for weight and bias, whichever there are. No tensor is changed in place, and gradients flow through. torch
is imported on use: a config is read, and a wrong one refused, without it.

Shapes: H query heads, G key and value heads, K d_head, D d_model, L d_latent, R d_rope; weights are out x in.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias

from lecture04 import config

if TYPE_CHECKING:
    from torch import Tensor

State: TypeAlias = "Mapping[str, Tensor]"
Size: TypeAlias = Callable[[config.Architecture], int]


class TensorLayout(Protocol):
    """How parameters of ours lie in one of theirs; `write` is the inverse of `read`."""

    def read(self, theirs: Tensor, c: config.Architecture) -> tuple[Tensor, ...]:
        """Theirs as ours."""
        ...

    def write(self, ours: tuple[Tensor, ...], c: config.Architecture) -> Tensor:
        """Ours as theirs."""
        ...


@dataclass(frozen=True)
class Shifted:
    """ours = theirs + by: a gain that is kept as its distance from 1 (Gemma). By 0: the same."""

    by: float = 0.0

    def read(self, theirs: Tensor, c: config.Architecture) -> tuple[Tensor, ...]:
        return (theirs + self.by if self.by else theirs,)

    def write(self, ours: tuple[Tensor, ...], c: config.Architecture) -> Tensor:
        return ours[0] - self.by if self.by else ours[0]


SAME = Shifted()


@dataclass(frozen=True)
class Transposed:
    """Theirs is in x out (GPT-2's Conv1D); a bias has one dimension and stays."""

    inner: TensorLayout = SAME

    def read(self, theirs: Tensor, c: config.Architecture) -> tuple[Tensor, ...]:
        return self.inner.read(theirs.mT if theirs.ndim == 2 else theirs, c)

    def write(self, ours: tuple[Tensor, ...], c: config.Architecture) -> Tensor:
        whole = self.inner.write(ours, c)
        return whole.mT.contiguous() if whole.ndim == 2 else whole


@dataclass(frozen=True)
class Stacked:
    """Theirs is ours end to end; where `heads` is given, so within each head: (head, part, row).

    `sizes` are the rows of each part (of one head), `inner` how each part is laid out by itself.
    """

    sizes: tuple[Size, ...]
    inner: tuple[TensorLayout, ...]
    heads: Size | None = None

    def read(self, theirs: Tensor, c: config.Architecture) -> tuple[Tensor, ...]:
        sizes = [size(c) for size in self.sizes]
        if self.heads is None:
            parts = theirs.split(sizes)
        else:
            parts = [t.flatten(0, 1) for t in theirs.unflatten(0, (self.heads(c), -1)).split(sizes, dim=1)]
        return tuple(layout.read(part, c)[0] for layout, part in zip(self.inner, parts, strict=True))

    def write(self, ours: tuple[Tensor, ...], c: config.Architecture) -> Tensor:
        import torch

        parts = [layout.write((part,), c) for layout, part in zip(self.inner, ours, strict=True)]
        if self.heads is None:
            return torch.cat(parts)
        heads = self.heads(c)
        return torch.cat([part.unflatten(0, (heads, -1)) for part in parts], dim=1).flatten(0, 1)


@dataclass(frozen=True)
class Rotated:
    """Rows that RoPE turns: theirs in halves or interleaved, ours as `posenc` says (see nn/rope.py).

    In each of `heads` heads the `width` rows from `offset` on are turned.
    """

    in_halves: bool
    heads: Size
    width: Size
    offset: Size = lambda c: 0

    def read(self, theirs: Tensor, c: config.Architecture) -> tuple[Tensor, ...]:
        return (self._permuted(theirs, c, to_halves=c.posenc.name == "rope_half", from_halves=self.in_halves),)

    def write(self, ours: tuple[Tensor, ...], c: config.Architecture) -> Tensor:
        return self._permuted(ours[0], c, to_halves=self.in_halves, from_halves=c.posenc.name == "rope_half")

    def _permuted(self, x: Tensor, c: config.Architecture, *, to_halves: bool, from_halves: bool) -> Tensor:
        if to_halves == from_halves:
            return x
        by_head, start, width = x.unflatten(0, (self.heads(c), -1)), self.offset(c), self.width(c)
        if to_halves:
            turned = [*range(0, width, 2), *range(1, width, 2)]
        else:
            turned = [i for pair in zip(range(width // 2), range(width // 2, width), strict=True) for i in pair]
        order = list(range(by_head.shape[1]))
        order[start : start + width] = [start + i for i in turned]
        return by_head[:, order].flatten(0, 1)


@dataclass(frozen=True)
class WithoutBias:
    """Theirs is a norm's weight alone; ours has a bias, which is 0 (MPT)."""

    def read(self, theirs: Tensor, c: config.Architecture) -> tuple[Tensor, ...]:
        return theirs, theirs.new_zeros(theirs.shape)

    def write(self, ours: tuple[Tensor, ...], c: config.Architecture) -> Tensor:
        """Raises ValueError where the bias is not 0."""
        if ours[1].any():
            raise ValueError("the bias is not 0, and the architecture's norms have none.")
        return ours[0]


@dataclass(frozen=True)
class Rule:
    """Parameters of ours, the one of theirs that holds them, and how."""

    ours: tuple[str, ...]
    theirs: str
    layout: TensorLayout = SAME


def rule(ours: str | tuple[str, ...], theirs: str, layout: TensorLayout = SAME) -> Rule:
    """A rule; one name of ours may stand alone."""
    return Rule((ours,) if isinstance(ours, str) else ours, theirs, layout)


@dataclass(frozen=True)
class NameMap:
    """An architecture's parameters: embedding, head, and the rules of the rest.

    `embed_scale` is what they multiply the embeddings by. `ignored` are patterns of theirs that hold nothing learned.
    `head_on_disk` is what the head is called in files, where that is not the name that the model has for it.
    """

    embed: str
    head: str
    rules: tuple[Rule, ...]
    embed_scale: Callable[[config.Architecture], float] = lambda c: 1.0
    ignored: tuple[str, ...] = ()
    head_on_disk: str = ""

    def is_ignored(self, name: str) -> bool:
        """Whether a name of theirs is one of the `ignored`."""
        return any(re.search(pattern, name) for pattern in self.ignored)


def is_tied(table: NameMap, c: config.Architecture) -> bool:
    """Whether what we write can share the embedding with the head: not where theirs has to take up our scale."""
    return c.model.tied and c.model.embed_scale == table.embed_scale(c)


def expanded(rules: tuple[Rule, ...], n_layers: int) -> Iterator[Rule]:
    """The rules of every layer, of weights and of biases."""
    for r in rules:
        for i in range(n_layers) if "{i}" in r.theirs else (0,):
            for suffix in ("weight", "bias") if r.theirs.endswith("*") else ("",):
                names = [name.replace("{i}", str(i)).replace("*", suffix) for name in (*r.ours, r.theirs)]
                yield Rule(tuple(names[:-1]), names[-1], r.layout)


def read_state(table: NameMap, theirs: State, c: config.Architecture) -> dict[str, Tensor]:
    """Their parameters under our names, for the model of `c`, which is as their config was read.

    Raises ValueError naming those that have no place in it, and where a head is not the embedding that it is tied to.
    """
    ours = {"embed.weight": theirs[table.embed]}
    if not c.model.tied:
        ours["head.weight"] = theirs[table.head]
    elif not theirs.get(table.head, theirs[table.embed]).equal(theirs[table.embed]):
        raise ValueError(f"{table.head} is not {table.embed}, though the config ties them.")
    left = theirs.keys() - {table.embed, table.head}
    for r in expanded(table.rules, c.model.n_layers):
        if r.theirs in theirs:
            ours |= zip(r.ours, r.layout.read(theirs[r.theirs], c), strict=True)
            left -= {r.theirs}
    _nothing_left({name for name in left if not table.is_ignored(name)})
    return ours


def write_state(table: NameMap, ours: State, c: config.Architecture) -> dict[str, Tensor]:
    """Our parameters under their names. Raises ValueError naming those that have no place there.

    A scale of our embeddings that is not theirs is multiplied in; a tied head is then written on its own (`is_tied`).
    """
    scale = c.model.embed_scale / table.embed_scale(c)
    theirs = {table.embed: ours["embed.weight"] if scale == 1 else ours["embed.weight"] * scale}
    if not is_tied(table, c):
        theirs[table.head] = ours["embed.weight" if c.model.tied else "head.weight"]
    left = ours.keys() - {"embed.weight", "head.weight"}
    for r in expanded(table.rules, c.model.n_layers):
        if all(name in ours for name in r.ours):
            try:
                theirs[r.theirs] = r.layout.write(tuple(ours[name] for name in r.ours), c)
            except ValueError as e:
                raise ValueError(f"{', '.join(r.ours)}: {e}") from e
            left -= {*r.ours}
    _nothing_left(left)
    return theirs


def _nothing_left(names: set[str]) -> None:
    if names:
        raise ValueError(f"no place for {', '.join(sorted(names)[:5])}{' and more' if len(names) > 5 else ''}.")


def n_heads(c: config.Architecture) -> int:
    """H."""
    return c.model.n_heads


def n_kv_heads(c: config.Architecture) -> int:
    """G."""
    return c.attention.n_kv_heads


def d_head(c: config.Architecture) -> int:
    """K."""
    return c.model.d_head


def d_model(c: config.Architecture) -> int:
    """D."""
    return c.model.d_model


def d_rotated(c: config.Architecture) -> int:
    """How many dimensions of a head are rotated, of a model with RoPE."""
    assert isinstance(c.posenc, config.Rope)
    return c.posenc.width


Q_HALVES = Rotated(in_halves=True, heads=n_heads, width=d_rotated)
K_HALVES = Rotated(in_halves=True, heads=n_kv_heads, width=d_rotated)
ONE_HEAD = Rotated(in_halves=True, heads=lambda c: 1, width=d_rotated)
