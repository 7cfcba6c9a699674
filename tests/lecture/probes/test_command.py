"""`python probe.py`: what it prints, writes and refuses."""

import subprocess
import sys

import pandas as pd
import pytest
import yaml

from lecture04.config import UserError, registry
from lecture04.config.places import CONF, ROOT
from lecture04.lecture.probes import activations, command, options
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
    sentence = activations.sentence(PROBES.lookup("activations")(*resolved("probe=activations")))
    assert f"\n\n- {sentence}\n\nMade by" in markdown.replace("\\_", "_")
    last, where = text.split("\n\n")[-2:]
    assert last.replace("\n  ", " ") == sentence
    assert where.startswith(str(folder))


def test_cells():
    values = (6738415616.0, -1.89562, 0.0, -0.0, 8.8818e-15, 2e20, float("nan"), None, "a")
    written = ["6,738,415,616", "-1.8956", "0", "0", "8.9e-15", "2e20", "", "", "a"]
    assert [text_of.cell(value) for value in values] == written


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


WRONG = [
    (
        ["probe=grad_norm"],
        "probe=grad_norm: there is no such choice. Did you mean grad_norms? Choices: activations, ",
    ),
    (["seed=1"], "No probe is named; write probe=NAME. Choices: activations, "),
    (["probe=kv_cache", "probe.n_ctx=0"], "probe.n_ctx=0: must be at least 1."),
    *(
        (
            ["probe=grad_norms", f"probe.depths=[{asked.replace(' ', '')}]"],
            f"probe.depths=[{asked}]: numbers of layers, each from 1 to 500 and named once.",
        )
        for asked in ("", "2, 0", "2, 2", "1000000")
    ),
    (
        ["probe=grad_norms", "probe.n_seeds=1000000000"],
        "probe.n_seeds=1000000000: must be at least 2 and below 1000.",
    ),
    (["probe=kv_cache", "probe.n_tokens=100000"], "probe.n_tokens=100000: must be at least 1 and below 5000."),
    (["probe=kv_cache", "probe.dtype=int8"], "probe.dtype=int8: there is no such choice. Choices: fp32, bf16, "),
    (
        ["probe=position_shift", "probe.shift=100000000"],
        "probe.shift=100000000: must be at least 1 and below 1000000.",
    ),
    (["probe=position_shift", "probe.n_tokens=a"], "probe.n_tokens=a: must be a whole number."),
    (
        ["probe=residual_paths", "model.d_model=1024"],
        "model.d_model=1024: probe=residual_paths takes the derivative ",
    ),
    (
        ["probe=t5_buckets", "posenc=t5", "posenc.max_distance=10000000000"],
        "posenc.max_distance=10000000000: probe=t5_buckets lists every distance; at most 1,000,000.",
    ),
    (["probe=sparsity", "probe.n_docs=-1"], "probe.n_docs=-1: must be at least 1."),
    (["probe=rope", "probe.name=rop"], "probe.name=rop: there is no such probe. Did you mean rope? Choices: "),
    (
        ["probe=rope", "probe.name=kv_cache"],
        "probe.name=kv_cache: it has settings of its own (n_ctx, batch, dtype, n_tokens); write probe=kv_cache.",
    ),
]
# Every third one in the normal suite.
EVERY_WRONG = [pytest.param(*case, marks=[pytest.mark.slow] * (i % 3 > 0)) for i, case in enumerate(WRONG)]


@pytest.mark.parametrize(("arguments", "said"), EVERY_WRONG)
def test_what_is_wrong_is_one_sentence_and_leaves_no_folder(forked, tmp_path, arguments, said):
    done = forked(ROOT / "probe.py", *arguments, cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith(said)
    assert done.stderr.count("\n") == 1
    assert not done.stdout
    assert not list(tmp_path.iterdir())


TOO_LARGE = ("probe=ffn_params", "model.d_model=100000000")
SAID = "probe=ffn_params: these sizes take more memory than this machine has; take smaller ones."


def test_sizes_that_no_memory_holds_are_said_to_be(resolved, tmp_path):
    with pytest.raises(UserError, match=f"^{SAID}$"):
        command.perform(*resolved(*TOO_LARGE), tmp_path, "")


@pytest.mark.slow
def test_what_goes_wrong_in_a_probe_is_one_sentence_too(warm, tmp_path):
    """Without Hydra's own line about it."""
    done = warm(ROOT / "probe.py", *TOO_LARGE, cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr == f"{SAID}\n"


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
