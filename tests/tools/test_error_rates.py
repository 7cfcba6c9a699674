"""The protocol's own error rates, by running `judge` on simulated tables: a minute or two on one core."""

import numpy as np
import pytest
from error_rates import CALLS, Scenario, main, rates

from lecture04.stats import judge, seeds_needed
from lecture04.stats.power import Plan, star

TABLES = 4000  # standard errors: .35 points at 5 %, .8 at 50 %

pytestmark = pytest.mark.slow


def simulated(scenario):
    return rates(scenario, TABLES, np.random.default_rng(11))


@pytest.mark.parametrize("matched", [True, False])
@pytest.mark.parametrize("n", [3, 5])
def test_tables_of_equal_rows_are_seldom_called(n, matched):
    """Nominally 5 %. The lower bound says that the simulation can call at all."""
    assert 0.025 < simulated(Scenario(n, matched=matched)).false <= 0.07


@pytest.mark.parametrize("matched", [True, False])
@pytest.mark.parametrize(("noisy", "row", "stated"), [(3, -1, 0.078), (8, -1, 0.08), (3, 0, 0.092)])
def test_one_noisy_row_costs_no_more_than_stated(noisy, row, stated, matched):
    assert simulated(Scenario(3, noisy=noisy, noisy_row=row, matched=matched)).false < stated + 0.02


@pytest.mark.parametrize(
    ("scenario", "stated"),
    [
        (Scenario(3, effect=2), 0.27),
        (Scenario(3, effect=4), 0.86),
        (Scenario(3, effect=2, shared=0.5, matched=True), 0.56),
        (Scenario(2, effect=4), 0.28),
    ],
)
def test_power_is_as_stated(scenario, stated):
    assert simulated(scenario).found == pytest.approx(stated, abs=0.03)


@pytest.mark.parametrize("effect", [1.5, 2.5])
def test_seeds_needed_has_the_power_that_it_promises(effect):
    n = seeds_needed(effect, 6)
    predicted = Plan(star(6), 7, 0.05).power(effect, n)
    assert simulated(Scenario(n, effect=effect)).found == pytest.approx(predicted, abs=0.03)
    assert 0.795 <= predicted < 0.9


def test_a_paths_families_and_a_grid_keep_their_level_each():
    rng = np.random.default_rng(12)
    called = {"step": 0, "total": 0, "grid": 0}
    for _ in range(TABLES):
        values = {f"row{i}": dict(enumerate(run)) for i, run in enumerate(rng.normal(size=(6, 3)).tolist())}
        slices = {row: int(row[-1]) % 2 for row in values}
        verdicts = judge(values, design="path") + judge(values, design="grid", slices=slices)
        for family in {v.family for v in verdicts if v.verdict in CALLS}:
            called[family] += 1
    assert all(0.025 < count / TABLES <= 0.07 for count in called.values())


def test_the_programs_table_prints_a_row_a_design(capsys):
    main(20)
    printed = capsys.readouterr().out
    assert printed.count("\n| ") == 7
    assert "not paired: found" in printed
