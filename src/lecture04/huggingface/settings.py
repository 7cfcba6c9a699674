"""Configs of Hugging Face's models and ours: what both directions share.

Theirs is a config.json as a dict. `max_position_embeddings` is our n_ctx.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, Protocol, TypeAlias

from lecture04 import config
from lecture04.config import RopeScaling, resolve
from lecture04.config.schema import ARCHITECTURE
from lecture04.config.validate import LARGEST, architecture_errors, bound_errors, model_errors
from lecture04.huggingface.mapping import NameMap, is_tied

Theirs: TypeAlias = Mapping[str, Any]


class ReadConfig(Protocol):
    """Their config as ours. Raises ValueError with every setting that our parts cannot follow."""

    def __call__(self, theirs: Theirs) -> config.Architecture: ...


class WriteConfig(Protocol):
    """Our architecture as their config. Raises ValueError with every setting that they cannot follow."""

    def __call__(self, c: config.Architecture) -> dict[str, Any]: ...


@dataclass(frozen=True)
class Conversion:
    """One of their architectures: the names in its config.json, and the way there and back.

    `absent` is what a setting is that a config.json leaves out, where reading would take it for something else.
    """

    model_type: str
    class_name: str
    table: NameMap
    read_config: ReadConfig
    write_config: WriteConfig
    absent: Theirs = field(default_factory=dict[str, Any])


def refuse(theirs: Theirs, **allowed: object) -> None:
    """Raise ValueError for every setting that is there and is none of the allowed values (a tuple: any of them)."""
    wrong = [
        f"{key}={theirs[key]}: there is no part for it here."
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


def read_sizes(theirs: Theirs, *, tied: bool, bias: bool = False, embed_scale: float | None = 1.0) -> Sizes:
    """d_model, n_layers, n_heads, vocabulary and length by their usual names.

    `tied` is what the architecture is where its config does not say; `embed_scale` null is our sqrt(d_model).
    """
    width, heads = theirs["hidden_size"], theirs["num_attention_heads"]
    if (d_head := theirs.get("head_dim")) and d_head * heads != width:
        raise ValueError(f"head_dim={d_head}: here it is hidden_size / num_attention_heads, {width / heads:g}.")
    model = config.asked(
        config.Model,
        d_model=width,
        n_heads=heads,
        n_layers=theirs["num_hidden_layers"],
        tied=theirs.get("tie_word_embeddings", tied),
        bias=bias,
        embed_scale=embed_scale,
    )
    return Sizes(model, theirs["vocab_size"], theirs["max_position_embeddings"])


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


def read_rope(theirs: Theirs, name: str, d_head: int) -> Any:
    """Their rotary settings, in the form of transformers 5 (rope_parameters) or of 4 (rope_theta, rope_scaling).

    They come as options of ours, the width still open where whole heads are rotated.
    """
    given = {**(theirs.get("rope_scaling") or {}), **(theirs.get("rope_parameters") or {})}
    share = given.get("partial_rotary_factor", theirs.get("partial_rotary_factor", theirs.get("rotary_pct", 1.0)))
    base = given.get("rope_theta", theirs.get("rope_theta", theirs.get("rotary_emb_base", 10_000.0)))
    width = None if share == 1 else int(d_head * share)
    return config.asked(config.Rope, name=name, base=float(base), width=width, scaling=_read_scaling(theirs, given))


def _read_scaling(theirs: Theirs, given: Theirs) -> Any:
    kind = given.get("rope_type", given.get("type", "default"))
    factor = given.get("factor", 1.0)
    found: dict[str, Any] = {"n_original": given.get("original_max_position_embeddings")}
    match kind:
        case "default":
            return config.asked(config.Scaling, **found)
        case "linear":
            pass
        case "dynamic":
            found = {}  # theirs scales beyond the model's own length
        case "llama3":
            found |= {"beta_fast": given["high_freq_factor"], "beta_slow": given["low_freq_factor"]}
        case "yarn":
            refuse(given, attention_factor=None, truncate=True)
            found |= {"beta_fast": given.get("beta_fast") or 32.0, "beta_slow": given.get("beta_slow") or 1.0}
        case _:
            raise ValueError(f"rope_type={kind}: there is no part for it here.")
    return config.asked(config.Scaling, name=RopeScaling[kind], factor=factor, **found)


def write_rope(c: config.Architecture) -> dict[str, Any]:
    """The inverse, in the form of transformers 4, which 5 reads too. Fixed NTK is written as the base that it is."""
    assert isinstance(c.posenc, config.Rope)
    scaling, base, width = c.posenc.scaling, c.posenc.base, c.posenc.width
    theirs: dict[str, Any] | None = {"rope_type": scaling.name.name, "factor": scaling.factor}
    n_original = {"original_max_position_embeddings": scaling.n_original}
    match scaling.name:
        case RopeScaling.none:
            theirs = None
        case RopeScaling.ntk:
            theirs, base = None, base * scaling.factor ** (width / (width - 2))
        case RopeScaling.linear:
            pass
        case RopeScaling.dynamic:
            if scaling.n_original != c.n_ctx:
                raise ValueError(
                    f"posenc.scaling.n_original={scaling.n_original}: theirs is the length of a row, {c.n_ctx}."
                )
        case RopeScaling.llama3:
            theirs |= n_original | {"high_freq_factor": scaling.beta_fast, "low_freq_factor": scaling.beta_slow}
        case RopeScaling.yarn:
            if scaling.temperature != 0.1 or scaling.on_scores:
                raise ValueError("posenc.scaling: theirs has YaRN's own temperature, on rotated queries and keys.")
            theirs |= n_original | {"beta_fast": scaling.beta_fast, "beta_slow": scaling.beta_slow}
    return {"rope_theta": base, "rope_scaling": theirs}
