"""Section 5: the parts together."""

from lecture04.lecture.claims import Claim
from lecture04.lecture.evidence import Evidence, NotYetError, curve, mean, n_diverged, numbers, seeds_of, validation
from lecture04.lecture.finding import Finding, by_readings, judges, weigh
from lecture04.lecture.judges.compare import Difference, family
from lecture04.lecture.judges.figures import spread, within
from lecture04.lecture.judges.shares import EVERY, MOST, collapses, share

PARTS = ["ffn", "attention", "norm", "placement", "position", "bias"]


@judges("models_table")
def models_table(claim: Claim, evidence: Evidence) -> Finding:
    table = evidence.probe("models")
    empty = int(table[[*PARTS, "source"]].isna().sum().sum())
    absent = [name for name in claim.bounds["named"] if not table["model"].str.startswith(name).any()]
    return weigh(
        f"{len(table)} models, {len(PARTS)} parts each, every one with its source",
        (len(table) >= claim.bounds["n_models"], f"{len(table)} models"),
        (not empty, f"{empty} cells are empty"),
        (not absent, f"there is no {', '.join(absent)}"),
    )


@judges("recipe_path")
def recipe_path(claim: Claim, evidence: Evidence) -> Finding:
    results = evidence.sweep("recipe")
    steps = family(results, "test/nll", "step")
    return weigh(
        f"{spread([mean(results, 'test/ppl', row) for row in results.rows], '.3f')}; "
        + ", ".join(f"{d.row} {d.written()}" for d in steps),
        *((d.is_within_noise, f"step {d.row} is {d.verdict}, {d.written()}, {d.beside_the_lecture()}") for d in steps),
        because="The lecture's path has, as far as it says, one run a row.",
    )


@judges("recipe_ends")
def recipe_ends(claim: Claim, evidence: Evidence) -> Finding:
    results = evidence.sweep("recipe")
    total = family(results, "test/nll", "total")[-1]
    first, last = results.rows[0], results.rows[-1]
    shown = numbers(results, "test/ppl", first, last)
    ours = " against ".join(" ".join(f"{x:.3f}" for x in shown[row].values()) for row in (first, last))
    return weigh(
        f"{ours}: {total.written()}",
        (
            total.is_within_noise,
            f"the ends are {total.written()} apart ({total.verdict}), {total.beside_the_lecture()}",
        ),
    )


@judges("possessives")
def possessives(claim: Claim, evidence: Evidence) -> Finding:
    results = evidence.sweep("recipe")
    metric = "pronouns/accuracy"
    end = family(results, metric, "total")[-1]
    rope = next(d for d in family(results, metric, "step") if d.row == "+ RoPE")
    shown = numbers(results, metric, rope.reference, rope.row, results.rows[0], results.rows[-1])
    share = {row: sum(seeds.values()) / len(seeds) for row, seeds in shown.items()}
    n = int(next(iter(results.values("pronouns/n")[rope.row].values())))

    def reason(what: str, d: Difference) -> str:
        wrong = [round((1 - share[row]) * n) for row in (d.reference, d.row)]
        return (
            f"{what} takes the share from {share[d.reference]:.4f} to {share[d.row]:.4f} ({d.verdict}): of {n} such "
            f"pronouns about {wrong[0]} and {wrong[1]} are wrong, so that a few items decide"
        )

    return weigh(
        f"{spread(shown[results.rows[0]].values(), '.3f')} against {spread(shown[results.rows[-1]].values(), '.3f')}; "
        f"{share[rope.reference]:.3f} to {share[rope.row]:.3f} at RoPE's step",
        (end.holds(above=True), reason("the whole path", end)),
        (rope.holds(above=True), reason("RoPE's step", rope)),
    )


@judges("possessives_level")
def possessives_level(claim: Claim, evidence: Evidence) -> Finding:
    results = evidence.sweep("recipe")
    first = results.rows[0]
    shares = list(numbers(results, "pronouns/accuracy", first)[first].values())
    level = sum(shares) / len(shares)
    return weigh(f"{level:.4f} ({spread(shares, '.4f')})", (within(level, claim.bounds), f"the mean is {level:.4f}"))


def epoch_losses(evidence: Evidence, row: str, seed: int, n_steps: int) -> list[float]:
    """A run's mean training loss in each epoch of so many steps."""
    points = curve(evidence.sweep("stability"), row, seed, "train/loss")
    last = max(step for step, _ in points)
    spans = [(start, start + n_steps) for start in range(0, last, n_steps)]
    inside = [[loss for step, loss in points if low < step <= high] for low, high in spans]
    return [sum(losses) / len(losses) for losses in inside if losses]


@judges("stability")
def stability(claim: Claim, evidence: Evidence) -> Finding:
    results = evidence.sweep("stability")
    if min(len(seeds_of(results, row)) for row in ("2017", "Llama")) < 2:
        raise NotYetError("one seed a recipe; what collapses is to be seen in two at least")
    said: list[str] = []
    best: dict[str, list[float]] = {}
    for row in ("2017", "Llama"):
        seeds = seeds_of(results, row)
        best[row] = [min(validation(results, row, seed)) for seed in seeds]
        losses = epoch_losses(evidence, row, seeds[0], claim.bounds["epoch_steps"])
        said.append(
            f"{row} {spread(best[row], '.3f')} (loss {' to '.join(f'{x:.3f}' for x in losses)} in seed {seeds[0]})"
        )
    few, n_lost = share(results, "2017"), n_diverged(results, "Llama")
    found = collapses(evidence, few, "Llama")
    return by_readings(
        f"best validation perplexity {'; '.join(said)}; {few.m} of {few.n} and {n_lost} diverged{found.said}",
        {EVERY: [found.every], MOST: [found.most]},
        (not n_lost, f"{n_lost} runs of Llama's recipe diverged"),
        (max(best["Llama"]) < claim.bounds["trained"], f"Llama's recipe reaches {max(best['Llama']):.2f} only"),
    )


@judges("kv_per_token")
def kv_per_token(claim: Claim, evidence: Evidence) -> Finding:
    results = evidence.sweep("recipe")
    found = [mean(results, "kv_per_token", row) for row in (results.rows[0], results.rows[-1])]
    ours = ", ".join(f"{x:.0f}" for x in found)
    return weigh(ours, (found == claim.bounds["numbers"], f"the caches keep {ours}"))
