"""The commands that are not Hydra's: one sentence for what is wrong."""

from pathlib import Path

import pytest

from lecture04.cli import convert, report, runs, sample


@pytest.mark.parametrize(
    ("command", "words", "said"),
    [
        (runs, ["lst"], "lst: there is no such choice. Did you mean list? Choices: list, show, explain, prune."),
        (runs, ["LIST"], "LIST: there is no such choice. Did you mean list?"),
        (runs, ["show"], "run: missing; `lecture04 runs show --help` says what stands there."),
        (runs, ["list", "--outputs", ""], "--outputs: an empty name is no folder; write its path."),
        (report, ["--htmll"], "--htmll: `lecture04 report` has no such option. Did you mean --html?"),
        (report, ["--outputs= "], "--outputs: an empty name is no folder; write its path."),
        (convert, ["read", ""], "HF_FOLDER: an empty name is no folder; write its path."),
        (sample, ["garden", "6"], "6: `lecture04 sample` takes no such word"),
        (sample, ["garden", "-n", "x"], "-n: x: must be a whole number, 0 or more."),
    ],
)
def test_one_sentence(command, words, said, capsys):
    with pytest.raises(SystemExit) as ended:
        command.parser().parse_args(words)
    assert ended.value.code == 2
    printed = capsys.readouterr()
    assert not printed.out
    assert len(printed.err.splitlines()) == 1
    assert said in printed.err


def test_home_is_home():
    assert runs.parser().parse_args(["list", "--outputs", "~/x"]).outputs == Path.home() / "x"


def test_help_breaks_no_path(monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    text = report.parser().format_help()
    assert "OUTPUTS/sweeps" in text
    assert all(len(line) <= 60 for line in text.splitlines())
