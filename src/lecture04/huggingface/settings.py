"""Configs of Hugging Face's models and ours: what both directions share.

Theirs is a config.json as a dict. `max_position_embeddings` is our n_ctx.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, Protocol, TypeAlias

from lecture04 import config
from lecture04.config import resolve
from lecture04.config.schema import ARCHITECTURE
from lecture04.config.validate import LARGEST, architecture_errors, bound_errors, model_errors
from lecture04.huggingface import known
from lecture04.huggingface.mapping import NameMap, is_tied

Theirs: TypeAlias = Mapping[str, Any]


class Complete(dict[str, Any]):
    """A config.json with what its silence means: `absent` are the settings that it does not say itself."""

    def __init__(self, said: Theirs, meant: Theirs) -> None:
        super().__init__({**meant, **said})
        self.absent = meant.keys() - said.keys()


class ReadConfig(Protocol):
    """Their config as ours. Raises ValueError with every setting that our parts cannot follow."""

    def __call__(self, theirs: Theirs) -> config.Architecture: ...


class WriteConfig(Protocol):
    """Our architecture as their config. Raises ValueError with every setting that they cannot follow."""

    def __call__(self, c: config.Architecture) -> dict[str, Any]: ...


@dataclass(frozen=True)
class Conversion:
    """One of their architectures: the names in its config.json, and the way there and back.

    `needed` are the settings that a config.json must say, `absent` the others that are read, with what transformers
    takes them for where they are not there, `inert` those that change no logit in this architecture (see known.py).
    `aliases` are its own names of usual settings: own -> usual, either of which may stand there.
    """

    model_type: str
    class_name: str
    table: NameMap
    read_config: ReadConfig
    write_config: WriteConfig
    needed: tuple[str, ...]
    absent: Theirs
    inert: tuple[str, ...] = ()
    aliases: Mapping[str, str] = field(default_factory=dict[str, str])

    def read(self, said: Theirs) -> config.Architecture:
        """What a config.json describes.

        Raises ValueError with a line for each setting that is missing, is not what it should be, or that our parts do
        not follow, by its own name.
        """
        wrong = self._errors(said)
        own = dict(said)
        for name, usual in self.aliases.items():
            if usual in own:
                own[name] = own.pop(usual)
        wrong += [f"{key}: missing, and {self.model_type} needs it." for key in self.needed if key not in own]
        if wrong:
            raise ValueError("\n".join(wrong))
        try:
            return self.read_config(Complete(own, self.absent))
        except ValueError as e:
            raise ValueError(self._in_their_words(str(e))) from e

    def _errors(self, said: Theirs) -> list[str]:
        """What is wrong with a config.json before anything is made of it, a line a setting."""
        wrong = known.badly_typed(said)
        if said.get("quantization_config"):
            wrong.append("quantization_config: there is no part here for quantised parameters.")
        for own, usual in self.aliases.items():
            if usual in said and own in said and said[usual] != said[own]:
                wrong.append(f"{usual}={said[usual]}: another name of {own}={said[own]}; they must be alike.")
        ours = {*self.needed, *self.absent, *self.aliases.values(), "quantization_config"}
        return wrong + list(known.unknown(said, ours, known.INERT.union(self.inert), ""))

    def _in_their_words(self, text: str) -> str:
        """An error of our config with the names that stand in the config.json."""
        of_usual = {usual: own for own, usual in self.aliases.items()}
        eps = next(key for key in self.absent if key.endswith(("_eps", "_epsilon")))
        for ours, usual in (NAMES | {"norm.eps": eps}).items():
            text = text.replace(ours, of_usual.get(usual, usual))
        return text


NAMES = {
    "model.d_model": "hidden_size",
    "model.n_heads": "num_attention_heads",
    "model.n_layers": "num_hidden_layers",
    "attention.n_kv_heads": "num_key_value_heads",
    "attention.d_rope": "qk_rope_head_dim",
    "attention.d_latent": "kv_lora_rank",
    "ffn.d_ff": "intermediate_size",
    "posenc.base": "rope_theta",
    "posenc.scaling.name": "rope_type",
    "posenc.scaling.n_original": "original_max_position_embeddings",
    "posenc.scaling.": "",
}
"""Our settings by their usual names there, for errors."""


def as_said(theirs: Theirs, key: str) -> str:
    """KEY=VALUE, or that it is not there and what that means."""
    if key in getattr(theirs, "absent", ()):
        return f"{key}: absent, which means {theirs[key]}"
    return f"{key}={theirs[key]}"


def refuse(theirs: Theirs, **allowed: object) -> None:
    """Raise ValueError for every setting that is there and is none of the allowed values (a tuple: any of them)."""
    wrong = [
        f"{as_said(theirs, key)}: there is no part for it here."
        for key, values in allowed.items()
        if key in theirs and theirs[key] not in (values if isinstance(values, tuple) else (values,))
    ]
    if wrong:
        raise ValueError("\n".join(wrong))


def require(c: config.Architecture, architecture: str, **allowed: tuple[object, ...]) -> None:
    """Raise ValueError for every setting of ours (`ffn__name`) that is none of the allowed values."""
    wrong = list[str]()
    for key, values in allowed.items():
        family, field = key.split("__")
        if (value := getattr(getattr(c, family), field)) not in values:
            wrong.append(f"{family}.{field}={value}: {architecture} has none. Choices: {', '.join(map(str, values))}.")
    if wrong:
        raise ValueError("\n".join(wrong))


@dataclass(frozen=True)
class Sizes:
    """What every config.json says, whatever the names: the options of our model, the vocabulary and the row's length.

    `model` is still open (see `config.asked`).
    """

    model: Any
    vocab_size: int
    n_ctx: int

    @property
    def d_head(self) -> int:
        """The width of one head."""
        return self.model.d_model // self.model.n_heads


USUAL = ("hidden_size", "num_attention_heads", "num_hidden_layers", "max_position_embeddings")


def read_sizes(
    theirs: Theirs, names: tuple[str, ...] = USUAL, *, bias: bool = False, embed_scale: float | None = 1.0
) -> Sizes:
    """d_model, n_heads, n_layers and length by these names, and the vocabulary; `embed_scale` null is sqrt(d_model)."""
    d_model, n_heads, n_layers, n_ctx = (theirs[name] for name in names)
    tied = theirs.get("tie_word_embeddings", False)
    model = config.asked(
        config.Model,
        d_model=d_model,
        n_heads=n_heads,
        n_layers=n_layers,
        tied=tied,
        bias=bias,
        embed_scale=embed_scale,
    )
    return Sizes(model, theirs["vocab_size"], n_ctx)


def resolved(sizes: Sizes, *, ffn: Any, norm: Any, placement: Any, attention: Any, posenc: Any) -> config.Architecture:
    """The architecture of these options, which may be open. Raises ValueError with every error, one a line."""
    asked = SimpleNamespace(
        model=sizes.model, ffn=ffn, norm=norm, placement=placement, attention=attention, posenc=posenc
    )
    lengths = {"vocab_size": sizes.vocab_size, "max_position_embeddings": sizes.n_ctx}
    errors = [f"{name}={n}: must be less than {LARGEST:.0e}." for name, n in lengths.items() if n >= LARGEST]
    for family in ("model", *ARCHITECTURE):
        errors += bound_errors(getattr(asked, family), f"{family}.")
    if errors := errors or model_errors(sizes.model):
        raise ValueError("\n".join(errors))
    found = resolve.architecture(asked, sizes.vocab_size, sizes.n_ctx)
    if errors := architecture_errors(found):
        raise ValueError("\n".join(errors))
    return found


def write_sizes(c: config.Architecture, table: NameMap) -> dict[str, Any]:
    """The inverse of `read_sizes`."""
    return {
        "hidden_size": c.model.d_model,
        "num_hidden_layers": c.model.n_layers,
        "num_attention_heads": c.model.n_heads,
        "tie_word_embeddings": is_tied(table, c),
        "vocab_size": c.vocab_size,
        "max_position_embeddings": c.n_ctx,
    }
