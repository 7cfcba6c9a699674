"""The command `lecture04`: its list, its sentences, and that the scripts are other names for it."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from lecture04.cli import main as dispatcher
from lecture04.config.overrides import command_line

ROOT = Path(__file__).parents[2]
HEAVY = ("torch", "numpy", "pandas", "hydra", "omegaconf", "yaml", "rich", "joblib")


def lecture04(*words, script=None, cwd=ROOT, **env):
    """What the command does, or a script of the checkout."""
    start = ["-m", "lecture04.cli.main"] if script is None else [str(ROOT / script)]
    return subprocess.run([sys.executable, *start, *words], capture_output=True, text=True, cwd=cwd, **env)


@pytest.mark.parametrize("words", [(), ("--help",), ("-h",)])
def test_every_command_is_listed_with_a_line(words):
    done = lecture04(*words)
    assert done.returncode == 0
    for name in dispatcher.COMMANDS:
        assert re.search(rf"^  {name} +\S.{{20,}}$", done.stdout, flags=re.M), name


def test_the_list_imports_nothing_heavy():
    code = (
        "import sys; from lecture04.cli.main import main; main(['--help'])\n"
        f"assert not set({HEAVY}) & set(sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", sorted({*dispatcher.COMMANDS} - {"lecture"}))  # that one reads tables at once
def test_every_command_is_there_and_has_a_help_of_its_own_without_torch(forked, name):
    done = forked("lecture04.cli.main", name, "--help", cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert not {"torch", "pandas"} & set(done.imported)
    assert len(done.stdout) > 100


@pytest.mark.parametrize(
    ("word", "hint"), [("trian", " Did you mean train?"), ("xyz", ""), ("ffn=relu", ""), ("--helb", "")]
)
def test_an_unknown_command_is_one_sentence(word, hint):
    done = lecture04(word)
    assert done.returncode == 1
    assert done.stderr == f"{word}: there is no such command.{hint} Choices: {', '.join(dispatcher.COMMANDS)}.\n"
    assert not done.stdout


@pytest.mark.parametrize("script", ["train.py", "probe.py", "sample.py"])
def test_a_script_is_another_name_for_a_command(forked, script):
    name = script.removesuffix(".py")
    by_command, by_script = forked("lecture04.cli.main", name, "--help", cwd=ROOT), lecture04("--help", script=script)
    assert by_script.returncode == 0
    said = by_script.stdout
    for other in ("train", "probe"):
        said = said.replace(f"python {other}.py", f"lecture04 {other}")
    assert by_command.stdout == said


def test_commands_to_type_next_are_those_that_were_typed(monkeypatch):
    words = ["-m", "ffn=relu,swiglu", "init.source=['attention=mha']"]
    typed = """-m ffn=relu,swiglu "init.source=['attention=mha']\""""
    monkeypatch.setattr(sys, "argv", ["train.py", "ffn=relu"])
    assert command_line("train.py", words) == f"python train.py {typed}"
    assert command_line("train.py", []) == "python train.py"
    monkeypatch.setattr(sys, "argv", ["lecture04", "ffn=relu"])
    assert command_line("train.py", words) == f"lecture04 train {typed}"
    assert command_line("probe.py", ["probe=rope"]) == "lecture04 probe probe=rope"


@pytest.mark.parametrize(("script", "said"), [(None, "lecture04 train -m"), ("train.py", "python train.py -m")])
def test_a_sentence_names_the_command_that_was_typed(script, said):
    words = ["ffn=[relu,gelu]"] if script else ["train", "ffn=[relu,gelu]"]
    assert f"{said} ffn=relu,gelu" in lecture04(*words, script=script).stderr


@pytest.mark.parametrize(
    ("line", "choices"),
    [
        ("lecture04 ", list(dispatcher.COMMANDS)),
        ("lecture04 pr", ["probe"]),
        ("lecture04 train ffn=sw", ["ffn=swiglu", "ffn=swish"]),
        ("lecture04 probe probe=kv", ["probe=kv_cache"]),
    ],
)
def test_tab_completes_commands_and_what_follows(line, choices, monkeypatch):
    monkeypatch.setenv("COMP_LINE", line)
    assert lecture04("-sc", "query=bash").stdout.split() == choices


@pytest.mark.parametrize("words", [("-n", "x"), ("-n", "-1"), ("--seed", "much")])
def test_documents_are_counted_in_whole_numbers(words):
    done = lecture04("sample", "garden", *words)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_a_seed_shows_the_same_documents_again():
    first, again, other = (lecture04("sample", "garden", "-n", "2", "--seed", seed).stdout for seed in ("1", "1", "2"))
    assert first == again != other
    assert first.count("perplexity") == 2


def test_a_script_of_another_folder_is_named_as_it_was_typed(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mein Haus").mkdir()
    monkeypatch.setattr(sys, "argv", ["mein Haus/train.py", "ffn=relu"])
    assert command_line("train.py", ["ffn=relu"]) == "python 'mein Haus/train.py' ffn=relu"
    assert command_line("probe.py", ["probe=rope"]) == "python 'mein Haus/probe.py' probe=rope"
    monkeypatch.chdir(tmp_path / "mein Haus")
    monkeypatch.setattr(sys, "argv", [str(tmp_path / "mein Haus" / "train.py")])
    assert command_line("train.py", []) == "python train.py"


@pytest.mark.parametrize("word", ["Train", "RUNS"])
def test_case_does_not_matter_in_hints(word):
    assert f"Did you mean {word.lower()}?" in lecture04(word).stderr
