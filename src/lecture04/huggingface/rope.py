"""Rotary settings of a config.json, in the form of transformers 4 or 5, and ours: both directions."""

import math
from typing import Any

from lecture04 import config
from lecture04.config import RopeScaling
from lecture04.huggingface.known import unknown
from lecture04.huggingface.settings import Theirs, as_said, refuse

ABSENT = {"rope_theta": None, "rope_scaling": None, "rope_parameters": None, "partial_rotary_factor": None}
"""Where all of it may stand: the whole below `rope_parameters` (5), or the scaling below `rope_scaling` (4)."""
LENGTH = "original_max_position_embeddings"
OF_TYPE = {
    "default": (),
    "linear": ("factor",),
    "dynamic": ("factor", LENGTH),
    "llama3": ("factor", LENGTH, "low_freq_factor", "high_freq_factor"),
    "yarn": ("factor", LENGTH, "beta_fast", "beta_slow", "attention_factor", "mscale", "mscale_all_dim", "truncate"),
}
OF_ALL = ("rope_type", "type", "rope_theta", "partial_rotary_factor")


def scaling_of(theirs: Theirs) -> tuple[str, Theirs]:
    """The rotary settings that stand below a name, and the name. Raises ValueError where two such disagree."""
    old, new = theirs.get("rope_scaling"), theirs.get("rope_parameters")
    if old and new and old != new:
        raise ValueError(
            "rope_scaling, rope_parameters: both are there and differ; one is the older name of the other."
        )
    return ("rope_scaling", old) if old else ("rope_parameters", new or {})


def read_rope(theirs: Theirs, name: str, d_head: int, n_ctx: int, share: float = 1.0, base: float = 10_000.0) -> Any:
    """Their rotary settings as options of ours, the width still open where whole heads are rotated.

    `share` and `base` are what the architecture has where `rope_parameters` (or `rope_scaling`) does not say it.
    """
    where, given = scaling_of(theirs)
    kind = given.get("rope_type", given.get("type", "default"))
    if not isinstance(kind, str) or kind not in OF_TYPE:
        raise ValueError(f"rope_type={kind}: there is no part for it here.")
    # What a type does not look at changes nothing: the length, and whether the model was trained so.
    inert = ("finetuned", LENGTH) if kind in ("default", "linear") else ("finetuned",)
    if foreign := list(unknown(given, (*OF_ALL, *OF_TYPE[kind]), inert, f"{where}.")):
        raise ValueError("\n".join(line.replace("known here", f"a setting of rope_type={kind}") for line in foreign))
    if (said := given.get("partial_rotary_factor")) is not None:
        share = said
    width = None if share == 1 else int(d_head * share)
    if width is not None and (width < 2 or width % 2 or width > d_head):
        raise ValueError(
            f"partial_rotary_factor={share}: rotates {width} of the {d_head} dimensions of a head; here it must be an "
            "even number of them, 2 or more."
        )
    scaling = _read_scaling(kind, given, n_ctx)
    return config.asked(config.Rope, name=name, base=float(given.get("rope_theta", base)), width=width, scaling=scaling)


def read_whole_rope(theirs: Theirs, name: str, d_head: int, n_ctx: int) -> Any:
    """Those of an architecture that rotates whole heads, whatever `partial_rotary_factor` says."""
    for settings in (theirs, scaling_of(theirs)[1]):
        if settings.get("partial_rotary_factor") not in (None, 1):
            raise ValueError(f"{as_said(settings, 'partial_rotary_factor')}: this architecture rotates whole heads.")
    return read_rope(theirs, name, d_head, n_ctx, base=theirs["rope_theta"] or 10_000.0)


def _read_scaling(kind: str, given: Theirs, n_ctx: int) -> Any:
    if kind == "default":
        return config.asked(config.Scaling)
    if missing := [key for key in OF_TYPE[kind] if key in REQUIRED and given.get(key) is None]:
        raise ValueError("\n".join(f"{key}: missing, and rope_type={kind} needs it." for key in missing))
    found: dict[str, Any] = {"name": RopeScaling[kind], "factor": given["factor"], "n_original": given.get(LENGTH)}
    match kind:
        case "dynamic":  # theirs scales beyond the model's own length
            refuse(given, **{LENGTH: (None, n_ctx)})
        case "llama3":
            slow, fast = given["low_freq_factor"], given["high_freq_factor"]
            if slow >= fast:
                raise ValueError(f"low_freq_factor={slow}: must be below high_freq_factor={fast}.")
            found |= {"beta_fast": fast, "beta_slow": slow}
        case "yarn":
            refuse(given, truncate=(None, True))
            found |= {"beta_fast": given.get("beta_fast") or 32.0, "beta_slow": given.get("beta_slow") or 1.0}
            found["temperature"] = _temperature(given)
    return config.asked(config.Scaling, **found)


REQUIRED = ("factor", "low_freq_factor", "high_freq_factor")


def attention_factor(given: Theirs) -> float:
    """What YaRN multiplies the rotated queries and keys by."""
    if (said := given.get("attention_factor")) is not None:
        return said
    above, below = given.get("mscale"), given.get("mscale_all_dim")
    if above and below:
        return _mscale(given["factor"], above) / _mscale(given["factor"], below)
    return _mscale(given["factor"], 1.0)


def _mscale(factor: float, mscale: float) -> float:
    return 0.1 * mscale * math.log(factor) + 1 if factor > 1 else 1.0


def _temperature(given: Theirs) -> float:
    """The t of ours with t ln(factor) + 1 = their factor on rotated queries and keys."""
    wanted, factor = attention_factor(given), given["factor"]
    if all(given.get(key) is None for key in ("attention_factor", "mscale", "mscale_all_dim")):
        return 0.1
    if wanted == 1:
        return 0.0
    if wanted < 1 or factor <= 1:
        keys = ["attention_factor"] if given.get("attention_factor") is not None else ["mscale", "mscale_all_dim"]
        said = ", ".join(as_said(given, key) for key in keys)
        raise ValueError(f"{said}: multiplies rotated queries and keys by {wanted:g} at factor={factor}; no part does.")
    return plain((wanted - 1) / math.log(factor))


def plain(value: float) -> float:
    """A number without the last digits, which dividing and multiplying again has made uncertain."""
    return float(f"{value:.14g}")


def write_rope(c: config.Architecture) -> dict[str, Any]:
    """The inverse, in the form of transformers 4, which 5 reads too. Fixed NTK is written as the base that it is."""
    assert isinstance(c.posenc, config.Rope)
    scaling, base, width = c.posenc.scaling, c.posenc.base, c.posenc.width
    theirs: dict[str, Any] | None = {"rope_type": scaling.name.name, "factor": scaling.factor}
    n_original = {LENGTH: scaling.n_original}
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
            theirs |= n_original | {"beta_fast": scaling.beta_fast, "beta_slow": scaling.beta_slow}
            if scaling.on_scores and width != c.model.d_head:
                raise ValueError("posenc.scaling.on_scores=True: theirs scales rotated queries and keys alone.")
            if scaling.temperature != 0.1:
                theirs["attention_factor"] = scaling.temperature * math.log(scaling.factor) + 1
    return {"rope_theta": base, "rope_scaling": theirs}
