"""`python probe.py`: what it prints, writes and refuses."""

import subprocess
import sys

import pandas as pd
import pytest
import yaml

from lecture04.config import registry
from lecture04.config.places import CONF, ROOT
from lecture04.lecture.probes import command, options
from lecture04.lecture.probes import text as text_of
from lecture04.lecture.probes.options import PROBES


def probe(*arguments, cwd=ROOT):
    return subprocess.run([sys.executable, str(ROOT / "probe.py"), *arguments], capture_output=True, text=True, cwd=cwd)


def test_registry_and_conf_offer_the_same_probes():
    files = {path.stem: yaml.safe_load(path.read_text())["name"] for path in (CONF / "probe").glob("*.yaml")}
    assert set(files) == set(PROBES.names()) >= set(options.OPTIONS)
    assert all(stem == name for stem, name in files.items())


def test_a_probe_lies_in_a_file_of_its_name_and_says_what_it_asks():
    for name in PROBES.names():
        entry = registry.entry("probe", name)
        assert entry.module == f"lecture04.lecture.probes.{name}"
        assert 20 < len(entry.about) <= 110, name
        assert entry.about.endswith("."), name


def test_options_are_those_of_the_probe(resolved):
    for name in (*options.OPTIONS, "rope"):
        assert type(resolved(f"probe={name}")[1]) is options.OPTIONS.get(name, options.Probe)


def test_a_probe_has_the_parts_of_a_run():
    """Two lists in two files, since a schema cannot be exchanged: held together here."""

    def parts(file):
        defaults = yaml.safe_load((CONF / file).read_text())["defaults"]
        return {k: v for line in defaults if isinstance(line, dict) for k, v in line.items() if "override" not in k}

    run, asked = parts("config.yaml"), parts("probe.yaml")
    for ours in ("logger", "sweeps", "probe"):
        run.pop(ours, None)
        asked.pop(ours, None)
    assert asked == run


def test_what_lies_in_the_folder(resolved, tmp_path):
    text = command.perform(*resolved("probe=activations"), tmp_path / "new", "python probe.py probe=activations")
    folder = tmp_path / "new"
    assert {path.name for path in folder.iterdir()} == {"table.csv", "table.md", "plot.png"}
    assert text.endswith(f"{folder}/table.csv, table.md, plot.png")
    assert (folder / "plot.png").read_bytes().startswith(b"\x89PNG")
    table = pd.read_csv(folder / "table.csv")
    assert list(table.columns) == ["claim", "quantity", "function", "x", "value"]
    markdown = (folder / "table.md").read_text()
    assert "Made by `python probe.py probe=activations`." in markdown
    assert "-0.16997" in markdown
    assert "-0.16997" in text


def test_cells():
    values = (6738415616.0, -1.89562, 0.0, float("nan"), None, "a")
    assert [text_of.cell(value) for value in values] == ["6,738,415,616", "-1.8956", "0", "", "", "a"]


def test_one_from_the_command_line(tmp_path):
    done = probe("probe=t5_buckets", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    folder = tmp_path / "outputs" / "probes" / "t5_buckets"
    assert {path.name for path in folder.iterdir()} == {"table.csv", "table.md"}
    assert str(folder) in done.stdout
    assert f"Made by `python {ROOT}/probe.py probe=t5_buckets`." in (folder / "table.md").read_text()


@pytest.mark.slow
def test_several_from_the_command_line(tmp_path):
    done = probe("probe=t5_buckets,models", "-m", "seed=0,1", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    tables = sorted(str(path.parent.relative_to(tmp_path / "outputs/probes")) for path in tmp_path.rglob("table.csv"))
    assert tables == ["models/seed=0", "models/seed=1", "t5_buckets/seed=0", "t5_buckets/seed=1"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["probe=grad_norm"],
            "probe=grad_norm: there is no such choice. Did you mean grad_norms? Choices: activations, ",
        ),
        (["seed=1"], "No probe is named; write probe=NAME. Choices: activations, "),
        (["probe=kv_cache", "probe.n_ctx=0"], "probe.n_ctx=0: must be at least 1."),
        (["probe=grad_norms", "probe.depths=[2,0]"], "probe.depths=[2, 0]: numbers of layers, each at least 1."),
    ],
)
def test_what_is_wrong_is_one_sentence_and_leaves_no_folder(forked, tmp_path, arguments, said):
    done = forked(ROOT / "probe.py", *arguments, cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith(said)
    assert done.stderr.count("\n") == 1
    assert not done.stdout
    assert not list(tmp_path.iterdir())


def test_help_lists_every_probe_with_a_line():
    done = probe("--help")
    assert done.stdout == command.help_text() + "\n"
    for name in PROBES.names():
        assert f"  {name} " in done.stdout


def test_a_composed_probe_imports_nothing_heavy():
    code = (
        "import sys\nfrom hydra import compose, initialize_config_dir\n"
        "from lecture04.config.places import CONF\nfrom lecture04.lecture.probes import command\n"
        "with initialize_config_dir(str(CONF), version_base='1.3'):\n"
        "    command.resolved(compose('probe', overrides=['probe=grad_norms']))\n"
        "command.help_text()\n"
        "bad = {'torch', 'numpy', 'pandas', 'matplotlib', 'wandb', 'rich'} & set(sys.modules); assert not bad, bad"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_run_has_no_probe_in_it(compose):
    """So that probes change no run's identity."""
    assert not hasattr(compose(), "probe")
