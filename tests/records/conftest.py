"""What a command line comes to, for the tests of a run's identity."""

import pytest

from lecture04.cli import train as cli


@pytest.fixture(scope="session")
def asked():
    """`asked("ffn=swiglu")`: the run, evaluation and session of a command line."""
    return lambda *overrides: cli.resolved_settings(cli.composed(list(overrides)))
