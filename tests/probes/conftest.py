"""A probe's table, by its name and overrides."""

from collections.abc import Callable
from functools import cache

import pandas as pd
import pytest
from hydra import compose, initialize_config_dir

from lecture04 import cli, registry
from lecture04.probes import command


@cache
def _settled(overrides: tuple[str, ...]):
    with initialize_config_dir(str(cli.ROOT / "conf"), version_base="1.3"):
        return command.settled(compose("probe", overrides=list(overrides)))


@cache
def _asked(overrides: tuple[str, ...]) -> pd.DataFrame:
    cfg = _settled(overrides)
    return registry.lookup("probe", cfg.probe.name)(cfg)


@pytest.fixture(scope="session")
def settled() -> Callable:
    """`settled("probe=rope", "posenc=rope")`: the settled config of a probe's command line."""
    return lambda *overrides: _settled(overrides)


@pytest.fixture(scope="session")
def ask() -> Callable[..., pd.DataFrame]:
    """`ask("rope", "posenc=rope")`: the table of a probe; asked once for all tests."""
    return lambda name, *overrides: _asked((f"probe={name}", *overrides)).copy()


@pytest.fixture(scope="session")
def value(ask) -> Callable[..., float]:
    """`value("rope", quantity="|R_m q|", case="m = 3")`: the one figure that fits."""

    def value(name: str, *overrides: str, **where: object) -> float:
        table = ask(name, *overrides)
        for column, wanted in where.items():
            table = table[table[column] == wanted]
        (found,) = table["value"]
        return float(found)

    return value
