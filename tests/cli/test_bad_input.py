"""What a user gets wrong, typed as users type it: one sentence an error, and nothing trained."""

import difflib
import json
import os
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from lecture04.records.metrics import METRICS

ROOT = Path(__file__).parents[2]
SMALL = (
    "trainer.steps=30",
    "trainer.log_every=10",
    "trainer.batch_size=8",
    "trainer.diverged_margin=-9",
    "data.n_train=80",
    "data.n_val=20",
    "data.n_test=40",
    "logger=none",
    "hydra/launcher=basic",
)
LONGEST = 800  # characters; the choices of a metric are the longest


def names(folder: Path) -> list[str]:
    return sorted(path.stem for path in folder.glob("*.yaml"))


DEFAULTS = yaml.safe_load((ROOT / "conf" / "config.yaml").read_text())["defaults"]
FOLDERS = {group: ROOT / "conf" / group for entry in DEFAULTS if isinstance(entry, dict) for group in entry}
GROUPS = {group: names(folder) for group, folder in FOLDERS.items() if folder.exists()}
GROUPS["sweeps"] = names(ROOT / "sweeps")


@dataclass(frozen=True)
class Case:
    """What was typed, what the message must say, and the sweep file (its name is `mine`) that goes with it."""

    command: str
    words: tuple[str, ...]
    file: str | None = None
    n_lines: int = 1

    def __str__(self) -> str:
        return self.command if self.file is None else repr(self.file)[:60]


def typed(command: str, *words: str, n_lines: int = 1) -> Case:
    """A bad command; its last word, the field and the value, must be in the message if no words are given."""
    return Case(command, words or (shlex.split(command)[-1],), n_lines=n_lines)


def unknown_part(group: str) -> Case:
    wrong = f"{GROUPS[group][-1]}x"
    (hit,) = difflib.get_close_matches(wrong, GROUPS[group], n=1)
    return typed(
        f"{group}={wrong}", f"{group}={wrong}: ", f"Did you mean {hit}?", f"Choices: {', '.join(GROUPS[group])}."
    )


DIVISORS = "Choices: 1, 2, 4, 8, 16, 32, 64."
TOP_LEVEL = "Choices: ffn, norm, placement, attention, posenc, init, optim, data, layout, logger, model,"
SINGLE = [
    *map(unknown_part, GROUPS),
    # Keys that are not there.
    typed("foo=1", "foo=1: no such setting", TOP_LEVEL),
    typed("lr=-1", "lr=-1: no such setting. Did you mean optim.lr?"),
    typed("trainer.lr=3", "trainer.lr=3: no such setting. Did you mean optim.lr?"),
    typed("model.LR=3", "model.LR=3: no such setting. Did you mean optim.lr?"),
    typed("FFN=swiglu", "FFN=swiglu: no such setting. Did you mean ffn?"),
    typed("ffn=SwiGLU", "ffn=SwiGLU: there is no such choice. Did you mean swiglu?"),
    typed("hydra/launcher=Joblib", "Did you mean joblib?"),
    typed("ffn=größe", "ffn=größe: there is no such choice."),
    typed("'optim.lr=(1'", "optim.lr=(1: ", "write `\"optim.lr='(1'\"`"),
    typed("--lr=0.01", "--lr=0.01: settings have no dashes here; write optim.lr=0.01."),
    typed("model.d_modle=32", "model.d_modle=32: no such setting. Did you mean d_model?", "n_layers, n_heads"),
    typed("posenc.width=4", "posenc.width=4: no such setting of posenc=sinusoidal", "posenc=rope, rope_half."),
    typed("optim=sgd optim.beta1=0.5", "optim.beta1=0.5: no such setting of optim=sgd", "optim=adamw."),
    # Wrong types.
    typed("model.d_model=abc", "model.d_model=abc: must be a whole number."),
    typed("model.d_model=3.5", "model.d_model=3.5: must be a whole number."),
    typed("model.n_layers=[1,2]", "model.n_layers=[1,2]: must be a whole number."),
    typed("optim.lr=fast", "optim.lr=fast: must be a number."),
    typed("model.bias=maybe", "model.bias=maybe: must be true or false."),
    typed("optim.schedule=cosin", "optim.schedule=cosin: ", "Did you mean cosine?", "constant, linear, cosine."),
    typed("ffn.match=modle", "ffn.match=modle: ", "Did you mean model?", "Choices: ffn, model."),
    typed("sweep.seeds=3", "sweep.seeds=3: must be a list."),
    typed("sweep.seeds=[a]", "sweep.seeds=[a]: must be a whole number."),
    typed("sweep.rows=[a]"),
    typed("optim.lr=null", "optim.lr=null: cannot be null."),
    typed(
        "posenc=rope posenc.scaling=yarn", "posenc.scaling=yarn: it has settings of its own; write posenc.scaling.name"
    ),
    typed("posenc=rope posenc.scaling.name=yar", "Did you mean yarn?", "Choices: none, linear, ntk, dynamic, yarn"),
    typed("init=uptrain", "init.source=[]: name the run to start from"),
    typed("init=uptrain init.source=[ffn=gelu]", "init.source=[ffn=gelu]: write a list of overrides, each in quotes"),
    typed("init=uptrain \"init.source=['ffn=gelu']\"", "init.source: its ffn.name is gelu, this run's relu"),
    typed("data=garden_packed trainer.steps=0", "trainer.steps=0: must be at least 1"),
    typed("eval.length=512", "eval.length=512: layout=documents tests whole documents"),
    typed("seed=abc", "seed=abc: must be a whole number."),
    # Out of bounds.
    typed("optim.lr=-1", "optim.lr=-1.0: must be above 0."),
    typed("optim.lr=nan", "optim.lr=nan: must be finite and above 0."),
    typed("optim.lr=inf", "optim.lr=inf: must be finite and above 0."),
    typed("trainer.steps=0", "trainer.steps=0: must be at least 1;"),
    typed("trainer.epochs=null", "trainer.steps=null, trainer.epochs=null"),
    typed("seed=-1", "seed=-1: must be at least 0."),
    typed("optim.beta2=1.5", "optim.beta2=1.5: must be at least 0 and below 1."),
    typed("optim.warmup_steps=-3", "optim.warmup_steps=-3: must be at least 0."),
    typed("optim.lr=-1 trainer.steps=0 seed=-1", "optim.lr=-1.0", "trainer.steps=0", "seed=-1", n_lines=3),
    # Sizes and pairs that cannot be.
    typed("attention=gqa attention.n_kv_heads=3", "attention.n_kv_heads=3: ", "model.n_heads=4", "Choices: 1, 2, 4."),
    typed("attention=mha attention.n_kv_heads=2", "attention.n_kv_heads=2: mha has 4", "attention=gqa"),
    typed("model.n_heads=5", "model.n_heads=5: must divide model.d_model=64.", DIVISORS),
    typed("posenc=rope model.d_model=20", "model.n_heads=4: posenc=rope", "an even d_head", "is 5."),
    typed("posenc=rope_half model.d_model=12", "model.n_heads=4: posenc=rope_half", "an even d_head", "is 3."),
    typed("posenc=rope posenc.width=3", "posenc.width=3: must be an even number of at most d_head=16"),
    typed("posenc=rope posenc.width=64", "posenc.width=64: must be an even number of at most d_head=16"),
    typed("posenc=learned posenc.n_positions=8", "posenc.n_positions=8: ", "64"),
    typed("attention.causal=false", "attention.causal=false: "),
    typed("posenc=t5 attention.causal=false", "attention.causal=false: posenc=t5", n_lines=2),
    typed("optim=sgd optim.momentum=0 optim.nesterov=true", "optim.nesterov=true: ", "optim.momentum"),
    # Overrides that Hydra would take in another sense, or misname.
    typed("ffn=", "ffn=: ", ", ".join(GROUPS["ffn"])),
    typed("ffn=null", "ffn=null: ", ", ".join(GROUPS["ffn"])),
    typed("ffn=3", "ffn=3: ", ", ".join(GROUPS["ffn"])),
    typed("ffn=[relu,gelu]", "ffn=[relu,gelu]: ", "-m ffn=relu,gelu"),
    typed("ffn=relu,gelu", "ffn=relu,gelu: ", "add -m"),
    typed("seed=0,0", "seed=0,0: ", "add -m"),
    typed("ffn.name=swiglu", "ffn.name=swiglu: ", "write ffn=swiglu."),
    typed("~ffn"),
    typed("+ffn=swiglu", "+ffn=swiglu: ", "write ffn=swiglu."),
    typed("+foo=1", "+foo=1: "),
    typed("ffn@norm=relu", "ffn@norm=relu: ", "write ffn=relu."),
    typed("=3", "=3: ", "GROUP=CHOICE"),
    typed("swiglu", "swiglu: ", "GROUP=CHOICE"),
    typed("'ffn=(relu'", "ffn=(relu: ", "GROUP=CHOICE"),
    typed("seed='${foo}'", "seed: ", "'foo' not found"),
    typed("sweeps=recipe", "sweeps=recipe ", "-m"),
    typed("hydra/launcher=slurm", "hydra/launcher=slurm: ", "Choices: basic, joblib, workers."),
    typed("paths.outputs=/dev/null/results", "paths.outputs=/dev/null/results: /dev/null is a file"),
]
MULTIRUN = [
    typed("-m sweeps=recipes", "sweeps=recipes: ", "Did you mean recipe?", ", ".join(GROUPS["sweeps"])),
    typed("-m sweeps=recipe,norm", "sweeps=recipe,norm: "),
    typed("-m sweeps=recipe ffn=relu,gelu", "ffn=relu,gelu: sweeps=recipe", "seed="),
    typed("-m sweeps=recipe norm=rmsnorm", "norm=rmsnorm: row '+ RMSNorm' of sweeps=recipe"),
    typed("-m sweeps=norm sweep.primary=test/nl", "sweep.primary=test/nl: ", "mean test/nll?", ", ".join(METRICS)),
    typed(
        "-m sweeps=norm sweep.columns=[test/pppl]", "sweep.columns=test/pppl: ", "mean test/ppl?", ", ".join(METRICS)
    ),
    typed("-m sweeps=norm sweep.seeds=[]", "sweep.seeds: sweeps=norm"),
    typed("-m sweeps=norm sweep.seeds=[0,0]", "sweep.seeds=[0, 0]: "),
    typed("-m sweeps=norm seed=0,-1", "seed=-1: "),
    typed("-m seed=0,x", "seed=x: "),
    typed("-m seed='range(0,0)'", "seed=range(0,0): "),
    typed("-m ffn=relu,relu", "ffn=relu,relu: "),
    typed("-m ffn='range(1,2)'", "ffn=1: ", ", ".join(GROUPS["ffn"])),
    typed("-m ffn=relu,swigl", "row 'swigl': ffn=swigl: ", "Did you mean swiglu?", ", ".join(GROUPS["ffn"])),
    typed("-m posenc=rope,sinusoidal posenc.base=500", "row 'sinusoidal': posenc.base=500: no such setting of"),
    typed("-m 'optim.lr=interval(1e-4,1e-2)'", "optim.lr=interval(1e-4,1e-2): an interval has no list of values"),
    typed("-m foo=1,2", "row 'foo=1': foo=1: no such setting", TOP_LEVEL, n_lines=2),
    typed("-m ffn=relu,gelu foo=1", "foo=1: no such setting", TOP_LEVEL),
    typed("-m lr=1,2", "row 'lr=1': lr=1: ", "Did you mean optim.lr?", n_lines=2),
    typed("-m optim.lr=0.1,-1", "row 'optim.lr=-1': optim.lr=-1.0: must be above 0."),
    typed("-m model.d_model=64,abc", "row 'model.d_model=abc': model.d_model=abc: must be a whole number."),
    typed("-m ffn.d_ff=256,null", "rows 'ffn.d_ff=256' and 'ffn.d_ff=null'"),
    typed("-m posenc=none,t5 attention.causal=false", "row 't5': attention.causal=false: posenc=t5", n_lines=2),
    typed("-m ffn=relu,gelu hydra/launcher=jobli", "hydra/launcher=jobli: ", "mean joblib?", "basic, joblib, workers."),
    typed("-m ffn=relu,gelu hydra.launcher.n_jobs=two", "hydra.launcher.n_jobs=two: must be a whole number."),
    typed("-m ffn=relu,gelu paths.outputs=/dev/null/results", "paths.outputs=/dev/null/results: /dev/null is a file"),
]


def mine(text: str, *words: str, n_lines: int = 1) -> Case:
    """`-m sweeps=mine`, for a wrong sweeps/mine.yaml."""
    return Case("-m sweeps=mine", words, text, n_lines)


def rows(text: str) -> str:
    return f"# @package _global_\nsweep:\n  seeds: [0]\n  rows: {text}\n"


FILES = [
    mine("sweep:\n  titel: T\n  rows: {a: []}\n", "mine.yaml", "sweep.titel: ", "Did you mean title?", "design, seeds"),
    mine("sweep:\n  rows: {a: []}\nseed: 3\n", "mine.yaml", "one top-level key", "seed"),
    mine("sweep: [a\nb: }\n", "mine.yaml", "not a YAML file", "line 2"),
    mine("", "mine.yaml", "`sweep:`"),
    mine(rows("{a: ffn=relu}"), "mine.yaml", "sweep.rows.a: ", "[ffn=relu]"),
    mine(rows("[a, b]"), "mine.yaml"),
    mine(rows("{2017: [ffn=relu]}"), "mine.yaml", "sweep.rows.2017: ", "'2017'"),
    mine(rows("{a: [ffn=relu], a: [ffn=gelu]}"), "mine.yaml", "duplicate key a"),
    mine(rows("{a: [seed=3]}"), "row 'a': 'seed=3' "),
    mine(rows("{a: ['ffn=relu,gelu']}"), "row 'a': 'ffn=relu,gelu' "),
    mine(rows("{a: [swiglu]}"), "row 'a': ", "swiglu", "GROUP=CHOICE"),
    mine(rows("{a: [], b: [ffn=swigl]}"), "row 'b': ffn=swigl: ", "Did you mean swiglu?", ", ".join(GROUPS["ffn"])),
    mine(rows("{a: [ffn=relu], b: [ffn=relu]}"), "rows 'a' and 'b'"),
    mine(rows("{}"), "sweep.rows: sweeps=mine has none."),
    mine("sweep:\n  rows: {a: []}\n", "sweep.seeds: sweeps=mine has none."),
    mine("sweep:\n  design: stra\n  rows: {a: []}\n", "sweep.design: ", "Did you mean star?", "star, path, grid."),
]
CASES = [*SINGLE, *MULTIRUN, *FILES]


def start(train: Path, folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run `python train.py ...` in a folder."""
    return subprocess.run(
        [sys.executable, str(train), *arguments],
        cwd=folder,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=120,
    )


def project_with(folder: Path, sweep_file: str) -> Path:
    """A copy of the project with sweeps/mine.yaml; code and parts are linked."""
    folder.mkdir()
    for shared in ("src", "conf"):
        (folder / shared).symlink_to(ROOT / shared)
    shutil.copytree(ROOT / "sweeps", folder / "sweeps")
    shutil.copy(ROOT / "train.py", folder)
    (folder / "sweeps" / "mine.yaml").write_text(sweep_file)
    return folder


def project_of(folder: Path, case: Case) -> Path:
    """The folder that a case is typed in, with its sweep file as the own one of the project that lies there."""
    if case.file is not None:
        (folder / "lecture04.yaml").write_text("parts: []\n")
        (folder / "sweeps").mkdir()
        (folder / "sweeps" / "mine.yaml").write_text(case.file)
    return folder


def test_the_table_is_long_and_names_each_input_once():
    assert len(CASES) >= 45
    assert len({(case.command, case.file) for case in CASES}) == len(CASES)


# Every sixth one in the normal suite: neighbours in the list are of a kind.
EVERY_CASE = [pytest.param(case, id=str(case), marks=[pytest.mark.slow] * (i % 6 > 0)) for i, case in enumerate(CASES)]


@pytest.mark.parametrize("case", EVERY_CASE)
def test_bad_input_gets_one_sentence_an_error_and_trains_nothing(forked, tmp_path, case):
    folder = project_of(tmp_path, case)
    before = list(folder.rglob("*"))
    done = forked(ROOT / "train.py", *shlex.split(case.command), cwd=folder)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    assert not done.stdout
    lines = done.stderr.splitlines()
    assert len(lines) == case.n_lines, done.stderr
    assert all(line.strip() and len(line) <= LONGEST for line in lines), done.stderr
    assert "Warning" not in done.stderr
    for word in case.words:
        assert word in done.stderr
    assert list(folder.rglob("*")) == before, "nothing is made, above all no outputs/runs"


@pytest.mark.parametrize("command", ["foo=1", "-m seed=0,x", "--help"])
def test_a_command_of_its_own_process_says_the_same(forked, tmp_path, command):
    words = shlex.split(command)
    real, done = start(ROOT / "train.py", tmp_path, *words), forked(ROOT / "train.py", *words, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (real.returncode, real.stdout, real.stderr)
    assert not list(tmp_path.iterdir())


def test_a_wrong_sweep_file_of_ours_is_named_too(tmp_path):
    """As those of a project, where it lies among the package's own."""
    case = FILES[-1]
    copy = project_with(tmp_path / "copy", case.file)
    done = start(copy / "train.py", tmp_path, *shlex.split(case.command), PYTHONPATH=str(copy / "src"))
    assert done.returncode == 1
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == case.n_lines
    assert all(word in done.stderr for word in case.words)
    assert list(tmp_path.iterdir()) == [copy]


@pytest.fixture(scope="session")
def with_wrong_file(tmp_path_factory):
    """A copy of the project one of whose sweep files is wrong."""
    return project_with(tmp_path_factory.mktemp("copy") / "project", "sweep: [")


@pytest.mark.parametrize(
    "command",
    ["ffn=swiglu --cfg job", pytest.param("-m sweeps=norm sweep.plan=true", marks=pytest.mark.slow), "--help"],
)
def test_a_wrong_sweep_file_bothers_nobody_who_does_not_ask_for_it(with_wrong_file, tmp_path, command):
    copy = with_wrong_file
    done = start(copy / "train.py", tmp_path, *shlex.split(command), PYTHONPATH=str(copy / "src"))
    assert done.returncode == 0, done.stderr
    assert done.stdout
    assert not done.stderr


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("--help", "swiglu"),
        ("--cfg job", "d_model: 64"),
        ("ffn=swigl", "Did you mean swiglu?"),
        ("model.n_heads=5", "must divide"),
        ("-m ffn=relu,gelu model.n_heads=5", "model.n_heads=5: must divide"),
        ("-m sweeps=norm norm=rmsnorm", "cannot be fixed"),
    ],
)
def test_help_config_and_errors_import_nothing_heavy(forked, tmp_path, command, said):
    done = forked(ROOT / "train.py", *shlex.split(command), cwd=tmp_path)
    assert said in done.stdout + done.stderr
    assert not done.imported


@pytest.mark.parametrize(
    ("line", "completions"),
    [
        ("ffn=", [f"ffn={name}" for name in GROUPS["ffn"]]),
        ("ffn=swi", ["ffn=swiglu", "ffn=swish"]),
        ("-m sweeps=", [f"sweeps={name}" for name in GROUPS["sweeps"]]),
        ("model.d_", ["model.d_model="]),
    ],
)
def test_tab_completes_names_and_imports_nothing_heavy(forked, tmp_path, line, completions):
    line = f"train.py {line}"
    words = ("-sc", "query=bash")
    done = forked(ROOT / "train.py", *words, cwd=tmp_path, COMP_LINE=line, COMP_POINT=str(len(line)))
    assert done.stdout.split() == completions
    assert not done.stderr
    assert not done.imported


def test_heavy_imports_are_seen(forked, tmp_path):
    """The watch itself: numpy, imported in train.py's place, is named."""
    script = tmp_path / "train.py"
    script.write_text("import numpy")
    assert forked(script, cwd=tmp_path).imported == ["numpy"]


TWO_BY_TWO = ("-m", "ffn=relu,swiglu", "seed=0,1", *SMALL)


@pytest.fixture(scope="session")
def torn(warm, tmp_path_factory):
    """A finished sweep of four runs, its output, and the same after two records are torn."""
    folder = tmp_path_factory.mktemp("torn")
    before = warm(ROOT / "train.py", *TWO_BY_TWO, cwd=folder)
    runs = sorted((folder / "outputs" / "runs").iterdir())
    (evaluation,) = (runs[1] / "evals").iterdir()
    files = [runs[0] / "summary.json", evaluation]
    checkpoints = {run: (run / "checkpoint.safetensors").stat().st_mtime_ns for run in runs}
    for file in files:
        file.write_bytes(file.read_bytes()[:40])
    for run in runs:
        with open(run / "metrics.jsonl", "a") as file:
            file.write('{"step": 40, "trai')
    return before, warm(ROOT / "train.py", *TWO_BY_TWO, cwd=folder), folder, files, checkpoints


def test_a_torn_record_is_set_aside_and_said(torn):
    _, again, folder, files, _ = torn
    for file in files:
        aside = file.with_name(f"{file.name}.unreadable")
        (line,) = [line for line in again.stderr.splitlines() if f"{file.relative_to(folder)} " in line]
        assert str(aside.relative_to(folder)) in line
        assert len(aside.read_bytes()) == 40


def test_what_a_torn_record_held_is_done_again_and_the_table_is_the_same(torn):
    before, again, _, files, checkpoints = torn
    assert before.returncode == again.returncode == 0, again.stderr
    assert "2 there, 1 to train, 1 to evaluate" in again.stderr
    assert "Traceback" not in again.stderr
    assert again.stdout == before.stdout
    assert all(json.loads(file.read_text()) for file in files)
    trained = [run for run, time in checkpoints.items() if (run / "checkpoint.safetensors").stat().st_mtime_ns != time]
    assert trained == [files[0].parent], "a torn evaluation is made again, without training"
