"""RoPE in figures (section 4.4, exercises 4 and 9), from the encodings that models use.

Shapes: N positions, K d_head. The lecture's q and k are 16 numbers each from torch's seed 0.
"""

import pandas as pd
import torch
from torch import Tensor

from lecture04 import config
from lecture04.config.registry import register
from lecture04.lecture.probes.common import largest, plain_rope, sizes
from lecture04.lecture.probes.options import Probe
from lecture04.lecture.probes.text import number
from lecture04.nn.posenc import Sinusoidal
from lecture04.nn.rope import HalfRoPE, RoPE

# claim, quantity, variant, position of q, position of k, value
Rows = list[tuple[str, str, str, int | None, int | None, float]]
PAIRS = ((3, 1), (10, 8), (100, 98), (1000, 998))
ROTATED = ((0, 5), (3, 1), (7, 40), (100, 98))
DISTANCES = (0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
WIDTH, N_WAVES, MOVED_BY = 16, 100, 50
ROUNDING = 1e-5  # in float32, of the score
# The quantities of the table, as they are shown, and what is shown of the case.
LABELS = {
    "rope_score": ("score with RoPE", "q at {q_pos}, k at {k_pos}"),
    "added_score": ("score with sinusoids added", "q at {q_pos}, k at {k_pos}"),
    "length": ("|R_m q|", "m = {q_pos}"),
    "identity_gap": ("max |R_a^T R_b - R_(b-a)|", f"{len(ROTATED)} pairs a, b"),
    "output_change": (f"change of output, all positions moved by {MOVED_BY}", "{variant} turned"),
    "n_params": ("parameters", "RoPE's own"),
    "wave_gap": ("max |cos, sin - the sinusoidal encoding|", f"{N_WAVES} positions"),
    "ones_score": ("score of 64 ones with 64 ones", "distance {q_pos}"),
    "layout_gap": ("max |interleaved - half-split score|", "{variant}"),
}
VARIANTS = {"qk": "q and k", "qkv": "q, k and v", "permuted": "dimensions permuted", "plain": "not permuted"}


def encoding(kind: type[RoPE], base: float, width: int = WIDTH) -> RoPE:
    """A RoPE of one head that is so wide."""
    return kind(plain_rope(base, width), sizes(width))


def turned(rope: RoPE, x_NK: Tensor, pos_N: Tensor) -> Tensor:
    """Row n of x_NK turned to position pos_N[n]."""
    return rope.rotate(x_NK[None, None], rope.rotation(pos_N))[0, 0]


def at(rope: RoPE, x_K: Tensor, pos: int) -> Tensor:
    """One vector turned to a position."""
    return turned(rope, x_K[None], torch.tensor([pos]))[0]


def matrix(rope: RoPE, pos: int) -> Tensor:
    """R_pos, whose columns are the turned unit vectors, in float64."""
    eye = torch.eye(rope.width, dtype=torch.float64)
    return turned(rope, eye, torch.full((rope.width,), pos)).T


def query_and_key() -> tuple[Tensor, Tensor]:
    """The lecture's q_K and k_K."""
    g = torch.Generator().manual_seed(0)
    return torch.randn(WIDTH, generator=g), torch.randn(WIDTH, generator=g)


def scores(base: float) -> Rows:
    """The same q and k two positions apart: RoPE's score does not move, the additive sinusoids' does."""
    q, k = query_and_key()
    rope = encoding(RoPE, base)
    waves = Sinusoidal(config.PosEnc(name="sinusoidal"), sizes(WIDTH))
    rows: Rows = []
    for pair in PAIRS:
        m, n = pair
        q_added, k_added = waves.embed(torch.stack([q, k])[None], torch.tensor(pair))[0]
        rows.append(("rope_relative", "rope_score", "", m, n, (at(rope, q, m) @ at(rope, k, n)).item()))
        rows.append(("additive_absolute", "added_score", "", m, n, (q_added @ k_added).item()))
    rows += [("rope_length", "length", "", m, None, at(rope, q, m).norm().item()) for m in (0, 3, 10, 100, 1000)]
    return rows


def rotations(base: float) -> Rows:
    """R_a^T R_b = R_(b - a); what turning the values as well would do; whose frequencies they are."""
    rope = encoding(RoPE, base)
    gap = max(largest(matrix(rope, a).T @ matrix(rope, b) - matrix(rope, b - a)) for a, b in ROTATED)
    g = torch.Generator().manual_seed(1)
    q_NK, k_NK, v_NK = torch.randn(3, 8, WIDTH, generator=g, dtype=torch.float64)

    def attended(shift: int, *, values: bool) -> Tensor:
        pos = torch.arange(8) + shift
        weights_NN = (turned(rope, q_NK, pos) @ turned(rope, k_NK, pos).T / WIDTH**0.5).softmax(-1)
        return weights_NN @ (turned(rope, v_NK, pos) if values else v_NK)

    moved = {
        values: largest(attended(MOVED_BY, values=values) - attended(0, values=values)) for values in (False, True)
    }
    pos = torch.arange(N_WAVES)
    cos, sin = rope.rotation(pos)[:, 0]
    waves = Sinusoidal(config.PosEnc(name="sinusoidal"), sizes(WIDTH))
    added = waves.embed(torch.zeros(1, N_WAVES, WIDTH, dtype=torch.float64), pos)[0]
    off = largest(torch.stack([sin, cos], dim=-1).flatten(1) - added)
    claim = "rope_rotations"
    return [
        (claim, "identity_gap", "", None, None, gap),
        (claim, "output_change", "qk", None, None, moved[False]),
        (claim, "output_change", "qkv", None, None, moved[True]),
        (claim, "n_params", "", None, None, sum(p.numel() for p in rope.parameters())),
        (claim, "wave_gap", "", None, None, off),
    ]


def decay(base: float) -> Rows:
    """q = k = (1, ..., 1) of 64 dimensions: sum_i 2 cos(distance theta_i)."""
    rope, ones = encoding(RoPE, base, 64), torch.ones(64)
    return [
        ("rope_decay", "ones_score", "", distance, 0, (at(rope, ones, distance) @ ones).item())
        for distance in DISTANCES
    ]


def layouts(base: float) -> Rows:
    """Even dimensions first, then odd ones: after this permutation the half-split layout is the interleaved one."""
    q, k = query_and_key()
    pairs_side_by_side, halves = encoding(RoPE, base), encoding(HalfRoPE, base)
    permutation = torch.cat([torch.arange(0, WIDTH, 2), torch.arange(1, WIDTH, 2)])
    gaps, unpermuted = [], []
    for m, n in PAIRS:
        score = at(pairs_side_by_side, q, m) @ at(pairs_side_by_side, k, n)
        gaps.append(largest(score - at(halves, q[permutation], m) @ at(halves, k[permutation], n)))
        unpermuted.append(largest(score - at(halves, q, m) @ at(halves, k, n)))
    return [
        ("rope_layouts", "layout_gap", "permuted", None, None, max(gaps)),
        ("rope_layouts", "layout_gap", "plain", None, None, max(unpermuted)),
    ]


@register("probe", "rope")
def rope(request: config.Request, options: Probe) -> pd.DataFrame:
    """Whether RoPE's scores know distances alone and fade with them, and whether its two layouts are one.

    Columns: claim, quantity (see LABELS), variant (see VARIANTS), q_pos, k_pos, value. posenc.base counts where
    posenc=rope or rope_half is chosen.
    """
    posenc = request.run.posenc
    base = posenc.base if isinstance(posenc, config.Rope) else config.Rope.base
    rows = scores(base) + rotations(base) + decay(base) + layouts(base)
    table = pd.DataFrame(rows, columns=["claim", "quantity", "variant", "q_pos", "k_pos", "value"])
    return table.astype({"q_pos": "Int64", "k_pos": "Int64"})


def shown(table: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The rows, those of one quantity together."""
    together = table.sort_values("quantity", key=lambda q: q.map(list(q.unique()).index), kind="stable")
    lines: list[tuple[str, str, float]] = []
    for row in together.to_dict("records"):
        label, case = LABELS[row["quantity"]]
        variant = VARIANTS.get(row["variant"], "")
        lines.append((label, case.format(q_pos=row["q_pos"], k_pos=row["k_pos"], variant=variant), row["value"]))
    return {"Scores, lengths, layouts": pd.DataFrame(lines, columns=["quantity", "case", "value"])}


def sentence(table: pd.DataFrame) -> str:
    """Whether the distance alone counts, how scores change with it, and whether the layouts are the same."""
    by = {quantity: lines.value for quantity, lines in table.groupby("quantity", sort=False)}
    moved, added = (by[name].max() - by[name].min() for name in ("rope_score", "added_score"))
    pairs = table[table.quantity == "rope_score"].q_pos
    size, ones = by["rope_score"].abs().max(), by["ones_score"].to_numpy()
    depend = "depend on the distance alone" if moved < ROUNDING * size else "do not depend on the distance alone"
    rises = (ones[1:] > ones[:-1]).any()
    way = "falls" if ones[-1] < ones[0] else "rises"
    layouts = table[table.quantity == "layout_gap"].set_index("variant").value
    between = ", with rises in between" if way == "falls" and rises else ""
    same = number(layouts["permuted"])
    return (
        f"RoPE's scores {depend}: shifting both positions by up to {pairs.max() - pairs.min():,} changes a score by at "
        f"most {number(moved)}, and one with sinusoids added by {number(added)}. The score of ones with ones {way} "
        f"from {number(ones[0])} to {number(ones[-1])} at distance {DISTANCES[-1]:,}{between}; with their dimensions "
        f"permuted the two layouts differ by {same}."
    )
