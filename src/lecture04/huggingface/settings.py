"""Configs of Hugging Face's models and ours: what both directions share.

Theirs is a config.json as a dict. `max_position_embeddings` is our data.max_len.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeAlias

from lecture04 import config
from lecture04.config import RopeScaling, Scaling
from lecture04.huggingface.mapping import Table, is_tied

Theirs: TypeAlias = Mapping[str, Any]


class ReadConfig(Protocol):
    """Their config as ours. Everything that is not the model's (data, optimiser, ...) is `base`'s.

    Raises ValueError with every setting that our parts cannot follow.
    """

    def __call__(self, theirs: Theirs, base: config.Root) -> config.Root: ...


class WriteConfig(Protocol):
    """A settled config of ours as theirs. Raises ValueError with every setting that they cannot follow."""

    def __call__(self, cfg: config.Root) -> dict[str, Any]: ...


@dataclass(frozen=True)
class Architecture:
    """One of their architectures: the names in its config.json, and the way there and back.

    `absent` is what a setting is that a config.json leaves out, where reading would take it for something else.
    """

    model_type: str
    class_name: str
    table: Table
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


def require(cfg: config.Root, architecture: str, **allowed: tuple[object, ...]) -> None:
    """Raise ValueError for every setting of ours (`ffn__name`) that is none of the allowed values."""
    wrong = list[str]()
    for key, values in allowed.items():
        family, field = key.split("__")
        if (value := getattr(getattr(cfg, family), field)) not in values:
            wrong.append(f"{family}.{field}={value}: {architecture} has none. Choices: {', '.join(map(str, values))}.")
    if wrong:
        raise ValueError("\n".join(wrong))


def read_sizes(theirs: Theirs, base: config.Root, *, tied: bool, bias: bool = False) -> config.Root:
    """d_model, n_layers, n_heads, vocabulary and length by their usual names; embeddings are not scaled.

    `tied` is what the architecture is where its config does not say.
    """
    width, heads = theirs["hidden_size"], theirs["num_attention_heads"]
    if (d_head := theirs.get("head_dim")) and d_head * heads != width:
        raise ValueError(f"head_dim={d_head}: here it is hidden_size / num_attention_heads, {width / heads:g}.")
    model = {
        "d_model": width,
        "n_heads": heads,
        "n_layers": theirs["num_hidden_layers"],
        "tied": theirs.get("tie_word_embeddings", tied),
        "bias": bias,
        "embed_scale": 1.0,
        "budget": None,
    }
    data = {"vocab_size": theirs["vocab_size"], "max_len": theirs["max_position_embeddings"]}
    return replace(base, model=replace(base.model, **model), data=replace(base.data, **data))


def write_sizes(cfg: config.Root, table: Table) -> dict[str, Any]:
    """The inverse of `read_sizes`."""
    return {
        "hidden_size": cfg.model.d_model,
        "num_hidden_layers": cfg.model.n_layers,
        "num_attention_heads": cfg.model.n_heads,
        "tie_word_embeddings": is_tied(table, cfg),
        "vocab_size": cfg.data.vocab_size,
        "max_position_embeddings": cfg.data.max_len,
    }


def read_rope(theirs: Theirs, name: str, d_head: int) -> config.Rope:
    """Their rotary settings, in the form of transformers 5 (rope_parameters) or of 4 (rope_theta, rope_scaling)."""
    given = {**(theirs.get("rope_scaling") or {}), **(theirs.get("rope_parameters") or {})}
    share = given.get("partial_rotary_factor", theirs.get("partial_rotary_factor", theirs.get("rotary_pct", 1.0)))
    base = given.get("rope_theta", theirs.get("rope_theta", theirs.get("rotary_emb_base", 10_000.0)))
    kind = given.get("rope_type", given.get("type", "default"))
    n_original = given.get("original_max_position_embeddings", theirs["max_position_embeddings"])
    factor = given.get("factor", 1.0)
    match kind:
        case "default":
            scaling = Scaling(n_original=n_original)
        case "linear":
            scaling = Scaling(RopeScaling.linear, factor, n_original)
        case "dynamic":
            scaling = Scaling(RopeScaling.dynamic, factor, theirs["max_position_embeddings"])
        case "llama3":
            betas = given["high_freq_factor"], given["low_freq_factor"]
            scaling = Scaling(RopeScaling.llama3, factor, n_original, *betas)
        case "yarn":
            refuse(given, attention_factor=None, truncate=True)
            betas = given.get("beta_fast") or 32.0, given.get("beta_slow") or 1.0
            scaling = Scaling(RopeScaling.yarn, factor, n_original, *betas)
        case _:
            raise ValueError(f"rope_type={kind}: there is no part for it here.")
    width = None if share == 1 else int(d_head * share)
    return config.Rope(name=name, base=float(base), width=width, scaling=scaling)


def write_rope(cfg: config.Root) -> dict[str, Any]:
    """The inverse, in the form of transformers 4, which 5 reads too. Fixed NTK is written as the base that it is."""
    assert isinstance(cfg.posenc, config.Rope)
    scaling, base, width = cfg.posenc.scaling, cfg.posenc.base, cfg.posenc.width or cfg.model.d_head
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
            if scaling.n_original != cfg.data.max_len:
                raise ValueError(f"posenc.scaling.n_original={scaling.n_original}: theirs is data.max_len.")
        case RopeScaling.llama3:
            theirs |= n_original | {"high_freq_factor": scaling.kept_turns, "low_freq_factor": scaling.beta_slow}
        case RopeScaling.yarn:
            if scaling.temperature != 0.1 or scaling.on_scores:
                raise ValueError("posenc.scaling: theirs has YaRN's own temperature, on rotated queries and keys.")
            theirs |= n_original | {"beta_fast": scaling.kept_turns, "beta_slow": scaling.beta_slow}
    return {"rope_theta": base, "rope_scaling": theirs}
