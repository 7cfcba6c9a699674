"""Outputs that are not as expected: read-only, with others' files and links in them, and with names that are taken."""

import itertools
import json
import shlex
import shutil
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TINY = (
    "trainer.steps=5",
    "trainer.batch_size=8",
    "trainer.diverged_margin=-9",
    "optim.warmup_steps=0",
    "data.n_train=80",
    "data.n_val=20",
    "data.n_test=40",
    "logger=none",
    "hydra/launcher=basic",
)
ROWS = ("-m", *TINY, "ffn=relu,swiglu")
COMMAND = "lecture04.cli.main"


@pytest.fixture(scope="session")
def finished(warm, tmp_path_factory):
    """A folder whose outputs hold a finished table, and what the sweep printed."""
    folder = tmp_path_factory.mktemp("finished")
    done = warm(ROOT / "train.py", *ROWS, "seed=0,1", cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder, done.stdout


@pytest.fixture
def place(finished, tmp_path):
    """A copy of the folder of `finished`."""
    return Path(shutil.copytree(finished[0], tmp_path / "place"))


def table_of(folder):
    (table,) = (folder / "outputs" / "sweeps").glob("ffn-*/sweep.json")
    return table.parent


def a_run(folder, part="relu", seed=0):
    (run,) = (folder / "outputs" / "runs").glob(f"pre-*-{part}-*-s{seed}-*")
    return run


def listing(folder):
    """Everything below a folder, links not followed."""
    return sorted(path.relative_to(folder) for path in folder.rglob("*"))


@contextmanager
def read_only(folder):
    """Nothing in a folder can be written while the block runs, by whoever is bound by permissions."""
    paths = [folder, *folder.rglob("*")]
    for path in paths:
        path.chmod(0o555 if path.is_dir() else 0o444)
    try:
        yield
    finally:
        for path in paths:
            path.chmod(0o755 if path.is_dir() else 0o644)


def one_sentence(done):
    assert done.returncode == 1, done.stdout + done.stderr
    assert not done.stdout
    (line,) = done.stderr.splitlines()
    return line


# Read-only


def test_permissions_bind_the_commands_of_these_tests(place, warm):
    script = place / "touch.py"
    script.write_text("open('outputs/new', 'w')")
    with read_only(place / "outputs"):
        assert "Permission denied" in warm(script, cwd=place, is_bound=True).stderr
    assert warm(script, cwd=place, is_bound=True).returncode == 0


def test_a_finished_run_is_there_already_where_nothing_can_be_written(place, warm):
    line = (*TINY, "ffn=swiglu", "seed=1")
    free = warm(ROOT / "train.py", *line, cwd=place)
    with read_only(place / "outputs"):
        done = warm(ROOT / "train.py", *line, cwd=place, is_bound=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, free.stdout, "")
    assert done.stdout.startswith("there already, nothing trained\n")


def test_a_finished_sweep_prints_its_table_where_nothing_can_be_written(finished, place, warm):
    shutil.rmtree(table_of(place))  # what it prints comes from the runs
    with read_only(place / "outputs"):
        done = warm(ROOT / "train.py", *ROWS, "seed=0,1", cwd=place, is_bound=True)
    assert done.returncode == 0, done.stderr
    assert "swiglu" in done.stdout
    assert done.stdout == finished[1].partition("page: ")[0]
    count, why = done.stderr.splitlines()
    assert "4 there, 0 to train" in count
    assert why.startswith("The table is shown here alone, its files could not be written (outputs/sweeps/")
    assert why.endswith(": Permission denied).")


@pytest.mark.parametrize("name", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_a_table_is_printed_again_where_nothing_can_be_written(finished, place, warm, name):
    (table_of(place) / "table.txt").unlink()
    with read_only(place / "outputs"):
        done = warm(COMMAND, "report", *[table_of(place).name] * name, cwd=place, is_bound=True)
    assert (done.returncode, done.stdout.strip()) == (0, finished[1].partition("page: ")[0].strip())
    (why,) = done.stderr.splitlines()
    assert "/table.txt: Permission denied" in why


def test_what_need_not_be_written_is_not_missed_where_nothing_can_be(finished, place, warm):
    with read_only(place / "outputs"):
        done = warm(COMMAND, "report", cwd=place, is_bound=True)
    said = finished[1].strip().replace("table.verbose=true", "--verbose")
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, said, "")


@pytest.mark.parametrize("what", [pytest.param("--html", marks=pytest.mark.slow), "--figures"])
def test_what_is_only_written_is_one_sentence_where_nothing_can_be(place, warm, what):
    with read_only(place / "outputs"):
        said = one_sentence(warm(COMMAND, "report", what, cwd=place, is_bound=True))
    assert said.startswith("outputs/sweeps/")
    assert said.endswith(": Permission denied.")
    assert ".part" not in said


def test_runs_are_listed_where_nothing_can_be_written(place, warm):
    free = warm(COMMAND, "runs", "list", cwd=place)
    with read_only(place / "outputs"):
        done = warm(COMMAND, "runs", "list", cwd=place, is_bound=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, free.stdout, "")
    assert "4 runs in outputs/runs" in done.stdout


@pytest.mark.parametrize("line", [(*TINY, "seed=7"), (*ROWS, "seed=0,7"), (*TINY, "ffn=relu", "eval.window=2")])
def test_what_is_left_to_do_is_refused_where_nothing_can_be_written(place, forked, line):
    with read_only(place / "outputs"):
        said = one_sentence(forked(ROOT / "train.py", *line, cwd=place, is_bound=True))
    assert said.startswith("paths.outputs=outputs: outputs/runs")
    assert "may not be written to, and something is left to train or to evaluate" in said


@pytest.mark.slow
def test_a_plan_is_shown_where_nothing_can_be_written(place, warm):
    with read_only(place / "outputs"):
        done = warm(ROOT / "train.py", *ROWS, "seed=0,1,2", "sweep.plan=true", cwd=place, is_bound=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert "6 runs, 2 to train" in done.stdout


def test_a_torn_record_that_cannot_be_renamed_does_not_count_and_is_said(place, warm):
    (a_run(place) / "summary.json").write_text("{")
    with read_only(place / "outputs"):
        done = warm(COMMAND, "runs", "list", cwd=place, is_bound=True)
    assert done.returncode == 0
    assert "missing" in done.stdout
    assert "summary.json could not be read" in done.stderr
    assert done.stderr.count("it does not count") == len(done.stderr.splitlines())


def test_a_record_of_somebody_who_lets_nobody_read_it_does_not_count(place, warm):
    file = a_run(place) / "summary.json"
    file.chmod(0)
    done = warm(COMMAND, "report", cwd=place, is_bound=True)
    assert done.returncode == 0
    assert "(1 of 2)" in done.stdout
    assert f"{file.relative_to(place)} could not be read (Permission denied); it does not count." in done.stderr
    assert file.exists(), "it keeps its name: it is sound"


# Files of somebody else


def scatter(place):
    """Lay what systems, editors and people leave into every folder of the outputs. Returns what lies there now."""
    outputs = place / "outputs"
    folders = [outputs, *(path for path in outputs.rglob("*") if path.is_dir())]
    for folder in folders:
        for name in (".DS_Store", "Thumbs.db", "desktop.ini", "notes.txt"):
            (folder / name).write_bytes(b"\x00\xffmine")
        (folder / "gone").symlink_to("nowhere")
        (folder / "loop").symlink_to("loop")
        (folder / "round").symlink_to(".")
        for path in [path for path in folder.iterdir() if path.suffix or path.is_dir()]:
            if not path.name.startswith("."):
                (folder / f"._{path.name}").write_bytes(b"\x00\x05\x16\x07\x00")  # as macOS leaves on other disks
    for folder in (outputs / "runs" / "notes", outputs / "sweeps" / "notes", outputs / "sweeps" / ".trash"):
        folder.mkdir()
        (folder / "summary.json").write_text('{"mine": 1}')
    (outputs / "sweeps" / ".trash" / "sweep.json").write_text("{}")
    (outputs / "sweeps" / "notes" / "sweep.json").mkdir()
    (a_run(place) / "evals" / "notes.json").write_text('{"mine": 1}')
    (table_of(place) / "figures").mkdir(exist_ok=True)
    (table_of(place) / "figures" / "mine.png").write_bytes(b"mine")
    taken = a_run(place)
    (taken.parent / f"a-{taken.name}").write_text("a file whose name ends in a run's identity")
    return listing(outputs)


READING = {
    "plan": ("train.py", *ROWS, "seed=0,1,2", "sweep.plan=true"),
    "sweep": ("train.py", *ROWS, "seed=0,1"),
    "run": ("train.py", *TINY, "ffn=relu"),
    "report": (COMMAND, "report"),
    "all seeds": (COMMAND, "report", "--all-seeds", "NAME"),
    "no such table": (COMMAND, "report", "nonesuch"),
    "page": (COMMAND, "report", "--html"),
    "figures": (COMMAND, "report", "--figures"),
    "list": (COMMAND, "runs", "list"),
    "show": (COMMAND, "runs", "show", "relu-mha-sinusoidal-s0"),
    "explain": (COMMAND, "runs", "explain", "relu-mha-sinusoidal-s0", "swiglu-mha-sinusoidal-s0"),
    "prune": (COMMAND, "runs", "prune", "--all-unused", "--yes"),
    "no such run": (COMMAND, "runs", "show", "nonesuch"),
}
OFTEN_TRIED = ("report", "list", "prune")


@pytest.mark.parametrize(
    "what", [pytest.param(what, marks=[pytest.mark.slow] * (what not in OFTEN_TRIED)) for what in READING]
)
def test_files_of_somebody_else_are_ignored_and_stay(place, warm, what):
    script, *arguments = (table_of(place).name if word == "NAME" else word for word in READING[what])
    script = ROOT / script if script.endswith(".py") else script
    clean = warm(script, *arguments, cwd=place)
    index = place / "outputs" / "sweeps" / "index.html"
    before = index.read_text() if what == "page" else ""
    there = scatter(place)
    done = warm(script, *arguments, cwd=place)
    assert (done.returncode, done.stdout, done.stderr) == (clean.returncode, clean.stdout, clean.stderr)
    assert listing(place / "outputs") == there
    assert not before or index.read_text() == before


@pytest.mark.slow
def test_all_seeds_of_two_machines_are_judged_together_whatever_lies_beside_them(finished, place, warm):
    scatter(place)
    theirs = warm(ROOT / "train.py", *ROWS, "seed=2", cwd=place)  # the table that came last names its own seeds
    assert theirs.returncode == 0, theirs.stderr
    assert "0 there, 2 to train" in theirs.stderr
    assert len(theirs.stderr.splitlines()) == 1
    name = table_of(place).name
    done = warm(COMMAND, "report", "--all-seeds", name, cwd=place)
    assert (done.returncode, done.stderr) == (0, "")
    first, second, _, table = done.stdout.split("\n", 3)
    assert "this is look 2" in " ".join(table.split())
    assert first == f"{name}: added from outputs/runs: seeds 0, 1 in every row."
    assert second.startswith("Judged with 3 seeds, 1 was declared (2): this is look 2")
    assert "(3)" in table
    command = json.loads((table_of(place) / "sweep.json").read_text())["command"]
    assert command.endswith(" seed=0,1,2")
    again = warm(ROOT / "train.py", *shlex.split(command)[2:], cwd=place)
    assert "6 there, 0 to train" in again.stderr
    assert again.stdout.strip() == table.strip().replace("--verbose prints", "table.verbose=true prints"), (
        "what is said to make the table makes it, looks and all"
    )
    page = warm(COMMAND, "report", "--html", "--all-seeds", name, cwd=place)
    assert "holds no seed beyond those of the table, 0, 1, 2." in page.stdout
    assert page.stdout.splitlines()[-1].endswith("index.html  (all tables)")


# Links


def test_outputs_may_be_a_link_and_so_may_a_run(finished, place, warm, tmp_path):
    (place / "outputs").rename(tmp_path / "elsewhere")
    (place / "outputs").symlink_to(tmp_path / "elsewhere")
    run = a_run(place)
    run.rename(tmp_path / "a run")
    run.symlink_to(tmp_path / "a run")
    done = warm(ROOT / "train.py", *ROWS, "seed=0,1", cwd=place)
    assert (done.returncode, done.stdout) == (0, finished[1])
    assert "4 there, 0 to train" in done.stderr


def test_of_a_linked_run_the_link_is_pruned_and_the_run_stays(place, warm, tmp_path):
    shutil.rmtree(table_of(place))
    run = a_run(place)
    run.rename(tmp_path / "a run")
    run.symlink_to(tmp_path / "a run")
    done = warm(COMMAND, "runs", "prune", "--all-unused", "--yes", cwd=place)
    assert (done.returncode, done.stderr) == (0, "")
    assert "4 runs" in done.stdout
    assert not list((place / "outputs" / "runs").iterdir())
    assert (tmp_path / "a run" / "summary.json").exists()


def obstruct(path, how):
    """Put a file, a link that leads nowhere or one that leads to itself where a folder should be."""
    if path.is_dir():
        shutil.rmtree(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    if how == "file":
        path.write_text("mine")
    else:
        path.symlink_to({"dangling": "nowhere", "loop": path.name}[how])


SAID = {
    "file": "is a file, and a folder has to be there",
    "dangling": "is a link to nowhere, which is not there",
    "loop": "which cannot be followed (",
}


def a_third_fast(*axes):
    """Every combination; every third of them in the normal suite, so that each value of an axis is."""
    combined = list(itertools.product(*axes))
    return [
        pytest.param(*one, marks=[pytest.mark.slow] * (sum(divmod(i, 3)) % 3 > 0)) for i, one in enumerate(combined)
    ]


LINES = {"run": TINY, "sweep": (*ROWS, "seed=0")}


@pytest.mark.parametrize(
    ("line", "where", "how"), a_third_fast(LINES, ["outputs", "outputs/runs", "outputs/data", "RUN"], SAID)
)
def test_a_name_that_is_taken_is_refused_before_anything_starts(finished, forked, tmp_path, how, where, line):
    path = tmp_path / ("outputs" if where == "RUN" else where)
    path = path / "runs" / a_run(finished[0]).name if where == "RUN" else path
    obstruct(path, how)
    before = listing(tmp_path)
    done = forked(ROOT / "train.py", *LINES[line], cwd=tmp_path)
    said = one_sentence(done)
    assert said.startswith(f"paths.outputs=outputs: {path.relative_to(tmp_path)} is a ")
    assert SAID[how] in said
    assert listing(tmp_path) == before
    assert "torch" not in done.imported


@pytest.mark.parametrize(("where", "how"), a_third_fast(["outputs/sweeps", "TABLE"], SAID))
def test_a_tables_name_that_is_taken_is_refused_before_anything_starts(finished, forked, tmp_path, how, where):
    path = tmp_path / ("outputs/sweeps" if where == "TABLE" else where)
    path = path / table_of(finished[0]).name if where == "TABLE" else path
    obstruct(path, how)
    before = listing(tmp_path)
    said = one_sentence(forked(ROOT / "train.py", *ROWS, "seed=0", cwd=tmp_path))
    assert SAID[how] in said
    assert "the table could not be kept" in said
    assert listing(tmp_path) == before


def test_a_finished_table_whose_name_is_taken_is_printed_all_the_same(finished, place, warm):
    folder = table_of(place)
    obstruct(folder, "file")
    done = warm(ROOT / "train.py", *ROWS, "seed=0,1", cwd=place)
    assert done.returncode == 0
    assert done.stdout.startswith(finished[1].partition("page: ")[0])
    assert f"(outputs/sweeps/{folder.name} is a file, and a folder has to be there)" in done.stderr
    assert folder.read_text() == "mine"


@pytest.mark.parametrize(
    ("words", "where", "how"),
    [
        *a_third_fast(["report", "report mine"], ["outputs", "outputs/sweeps"], SAID),
        *a_third_fast(["runs list", "runs show mine"], ["outputs", "outputs/runs"], SAID),
    ],
)
def test_what_is_only_read_says_which_name_is_taken(warm, tmp_path, words, where, how):
    obstruct(tmp_path / where, how)
    said = one_sentence(warm(COMMAND, *words.split(), cwd=tmp_path))
    assert f"{where} is a " in said
    assert SAID[how] in said


@pytest.mark.slow
def test_another_table_of_the_same_name_gives_way_and_is_said(place, warm):
    file = table_of(place) / "sweep.json"
    manifest = json.loads(file.read_text())
    manifest["rows"] = {f"my {row}": about for row, about in manifest["rows"].items()}
    file.write_text(json.dumps(manifest))
    done = warm(ROOT / "train.py", *ROWS, "seed=0,1", cwd=place)
    said = f"{table_of(place).relative_to(place)} holds another table, of my relu, my swiglu: this one takes its place"
    assert said in done.stderr
    assert list(json.loads(file.read_text())["rows"]) == ["relu", "swiglu"]


# What is brought from outside


def test_hidden_yamls_of_a_project_are_no_choices(forked, tmp_path):
    (tmp_path / "lecture04.yaml").write_text("parts: []\n")
    for group in ("conf/ffn", "conf/.ipynb_checkpoints", "sweeps"):
        (tmp_path / group).mkdir(parents=True)
    clean = [
        forked(ROOT / "train.py", *words, cwd=tmp_path) for words in (["--help"], ["ffn=relux"], ["-m", "sweeps=normx"])
    ]
    for group in ("conf", "conf/ffn", "sweeps"):
        for name in (".DS_Store", "notes.txt", "._mine.yaml"):
            (tmp_path / group / name).write_bytes(b"\x00\xffmine")
        (tmp_path / group / ".#mine.yaml").symlink_to("me@here:1")  # Emacs's mark of a file that is being edited
        (tmp_path / group / ".hidden.yaml").write_text("name: relu\nparts: [nonesuch.py]\n")
    (tmp_path / "conf" / ".ipynb_checkpoints" / "mine.yaml").write_text("parts: [nonesuch.py]\n")
    for words, before in zip((["--help"], ["ffn=relux"], ["-m", "sweeps=normx"]), clean, strict=True):
        done = forked(ROOT / "train.py", *words, cwd=tmp_path)
        assert (done.returncode, done.stdout, done.stderr) == (before.returncode, before.stdout, before.stderr)
    assert forked(ROOT / "train.py", "--cfg", "job", cwd=tmp_path).returncode == 0
