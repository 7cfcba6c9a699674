"""W&B beside real runs: its offline files are read back by its own reader, and it fails in every way it can."""

import http.server
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lecture04.records.tracker import PATIENCE
from lecture04.report import wandb as to_wandb

ROOT = Path(__file__).parents[2]
KEY = "0123456789abcdef" * 2 + "89abcdef"
GOOD = {"""2017 "the first", a=b""": "relu", r"+ SwiGLU, it's 50% \ (β)": "swiglu"}
BROKEN = '''
import torch
from torch import Tensor
from lecture04.nn.ffn import PlainFFN
from lecture04.config.registry import register


@register("ffn", "broken")
class Broken(PlainFFN):
    """Fails when it is used."""

    def activation(self, x: Tensor) -> Tensor:
        raise RuntimeError("boom")
'''
# Runs train.py and says at the end whether its process, the sweep's parent, has imported wandb.
WRAPPER = """
import atexit, runpy, sys
atexit.register(lambda: print("wandb imported:", "wandb" in sys.modules, flush=True))
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def environment(home, **more):
    """That of a user without an account: an empty home, and no settings of W&B."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("WANDB_", "XDG_"))}
    home.mkdir(exist_ok=True)
    return kept | {"HOME": str(home)} | more


@pytest.fixture(scope="module")
def command(small_data):
    """`command(folder, "-m", ...)`: the command in a folder, with the code of `root`; its home lies beside it."""

    def command(folder, *arguments, root=ROOT, wrapper=(), **env):
        path = os.pathsep.join([*filter(None, [env.pop("PYTHONPATH", "")]), str(root / "src")])
        started = time.monotonic()
        done = subprocess.run(
            [sys.executable, *wrapper, str(root / "train.py"), *arguments, *small_data],
            cwd=folder,
            env=environment(folder.parent / "home", PYTHONPATH=path, **env),
            capture_output=True,
            text=True,
            timeout=240,
        )
        return SimpleNamespace(**vars(done), seconds=time.monotonic() - started)

    return command


@dataclass(frozen=True)
class Told:
    """What one offline file says."""

    run: dict[str, Any]
    config: dict[str, Any]
    curves: dict[int, dict[str, Any]]
    summary: dict[str, Any]
    exit_codes: list[int]


def offline_folders(folder):
    return sorted((folder / "outputs" / "wandb").glob("offline-run-*"))


def read_back(folder):
    """Every offline run under a folder's outputs, as `wandb leet inspect --json` reads it."""
    wandb = str(Path(sys.executable).with_name("wandb"))
    told = []
    for path in offline_folders(folder):
        (file,) = path.glob("run-*.wandb")
        read = [wandb, "leet", "inspect", "--json", str(file)]
        env = environment(folder.parent / "reader", WANDB_ERROR_REPORTING="false")
        done = subprocess.run(read, cwd=folder.parent, env=env, capture_output=True, text=True, timeout=60, check=True)
        records = [json.loads(line) for line in done.stdout.splitlines()]
        by_type = {kind: [r[kind] for r in records if r["type"] == kind] for kind in {r["type"] for r in records}}
        (run,) = by_type["run"]
        summary = {}
        for update in by_type["summary"]:
            summary |= update.get("update", {})
        steps = [(item["step"]["num"], item["item"]) for item in by_type.get("history", [])]
        assert len(dict(steps)) == len(steps), "a step is there once"
        told.append(
            Told(
                run={name: value for name, value in run.items() if name != "config"},
                config=run["config"]["update"],
                curves={step: {k: v for k, v in item.items() if not k.startswith("_")} for step, item in steps},
                summary=summary,
                exit_codes=[exit.get("exit_code", 0) for exit in by_type.get("exit", [])],
            )
        )
    return told


def record(folder, ffn, seed):
    (found,) = (folder / "outputs" / "runs").glob(f"*-{ffn}-*-s{seed}-*")
    return found


def curves_of(run):
    """metrics.jsonl as W&B shows it: what was measured at a step, by step."""
    curves = {}
    for line in (run / "metrics.jsonl").read_text().splitlines():
        row = json.loads(line)
        curves.setdefault(row.pop("step"), {}).update(row)
    return curves


def evaluation(run):
    (file,) = (run / "evals").glob("*.json")
    return json.loads(file.read_text())["metrics"]


# -- a sweep read back


@pytest.fixture(
    scope="module", params=["basic", *(pytest.param(name, marks=pytest.mark.slow) for name in ("workers", "joblib"))]
)
def swept(request, tmp_path_factory, command):
    """Two rows with odd names and a broken one, two seeds each; the files that W&B keeps of them."""
    base = tmp_path_factory.mktemp(request.param)
    copy = base / "project"
    for folder in ("src", "conf", "sweeps"):
        shutil.copytree(ROOT / folder, copy / folder, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    shutil.copy(ROOT / "train.py", copy)
    (copy / "src" / "lecture04" / "nn" / "broken.py").write_text(BROKEN)
    (copy / "conf" / "ffn" / "broken.yaml").write_text("name: broken\n")
    rows = {name: [f"ffn={ffn}"] for name, ffn in GOOD.items()} | {"broken": ["ffn=broken"]}
    file = {"sweep": {"design": "star", "seeds": [0, 1], "primary": "test/nll", "rows": rows}}
    (copy / "sweeps" / "odd.yaml").write_text("# @package _global_\n" + json.dumps(file), encoding="utf-8")
    (base / "wrapper.py").write_text(WRAPPER)
    # Two workers even on one core, where joblib would run the jobs in the parent.
    launcher = [f"hydra/launcher={request.param}", *(["hydra.launcher.n_jobs=2"] if request.param != "basic" else [])]
    before = set(copy.iterdir())
    done = command(
        copy,
        *("-m", "sweeps=odd", *launcher),
        root=copy,
        wrapper=[str(base / "wrapper.py")],
        PYTHONDONTWRITEBYTECODE="1",
        WANDB_RUN_ID="myrun",
        WANDB_NAME="mine",
    )
    assert done.returncode == 1, done.stderr  # the broken row
    made = set(copy.iterdir()) - before
    told = read_back(copy)
    runs, tables = ([t for t in told if (t.run["job_type"] == "table") == is_table] for is_table in (False, True))
    return SimpleNamespace(folder=copy, done=done, made=made, launcher=request.param, runs=runs, tables=tables)


@pytest.fixture
def good(swept):
    """(row, seed) -> what W&B was told, of the rows that are not broken."""
    return {(t.config["row"], t.config["seed"]): t for t in swept.runs if t.config["ffn"]["name"] != "broken"}


def test_as_many_runs_as_jobs_each_with_its_exit(swept):
    exits = {(t.config["ffn"]["name"], t.config["seed"]): t.exit_codes for t in swept.runs}
    assert len(swept.runs) == 6
    assert {job for job, codes in exits.items() if codes == [0]} == {(f, s) for f in GOOD.values() for s in (0, 1)}
    assert exits["broken", 0] == exits["broken", 1] == [1]


def test_a_variable_that_names_one_run_names_none_of_a_sweep_and_that_is_said_once(swept):
    """Or a sync would merge them."""
    ids = {t.run["run_id"] for t in swept.runs + swept.tables}
    assert len(ids) == 7
    assert "myrun" not in ids
    (line,) = (line for line in swept.done.stderr.splitlines() if "WANDB" in line)
    assert line.startswith("In a sweep WANDB_RUN_ID, WANDB_NAME counts for nothing")


def test_each_row_is_a_group_by_its_name(swept, good):
    assert set(good) == {(row, seed) for row in GOOD for seed in (0, 1)}
    for (row, seed), told in good.items():
        assert re.fullmatch(rf"{re.escape(row)} [0-9a-f]{{6}}", told.run["run_group"])
        assert told.run["display_name"] == f"{row} s{seed}"
        assert told.config["ffn"]["name"] == GOOD[row]
    groups = {t.run["run_group"] for t in swept.runs}
    assert {group.rpartition(" ")[0] for group in groups} == {*GOOD, "broken"}
    assert len(groups) == len(GOOD) + 1, "all seeds of a row share its group"


def test_job_type_tags_and_config(swept, good):
    for (row, seed), told in good.items():
        assert told.run["job_type"] == "train"
        assert told.run["project"] == "lecture04"
        parts = {"attention=mha", "posenc=sinusoidal", "norm=layernorm", "placement=pre", f"ffn={GOOD[row]}"}
        assert parts <= set(told.run["tags"])
        settled = record(swept.folder, GOOD[row], seed) / "config.yaml"
        assert f"d_ff: {told.config['ffn']['d_ff']}" in settled.read_text()
        assert told.config["trainer"]["steps"] == 30
        assert told.config["attention"]["n_kv_heads"] == 4
        assert told.config["seed"] == seed
        assert told.config["sweep"].startswith("odd")


def test_each_has_its_own_curves_and_they_are_those_of_metrics_jsonl(swept, good):
    for (row, seed), told in good.items():
        expected = curves_of(record(swept.folder, GOOD[row], seed))
        assert set(expected) == {10, 20, 30}
        assert {"train/loss", "val/nll", "lr"} <= set(expected[30])
        assert told.curves == expected
    assert len({told.curves[30]["train/loss"] for told in good.values()}) == 4


def test_the_summary_has_the_evaluation(swept, good):
    for (row, seed), told in good.items():
        metrics = evaluation(record(swept.folder, GOOD[row], seed))
        assert {name: told.summary[name] for name in metrics} == metrics
        assert "test/nll" in metrics
        assert told.summary["status"] == "finished"
        assert told.summary["params"] > 0
    assert all("test/nll" not in t.summary for t in swept.runs if t.config["ffn"]["name"] == "broken")


def test_one_more_run_carries_the_table(swept):
    (table,) = swept.tables
    assert re.fullmatch(r"odd-\w+ table", table.run["display_name"]), "small runs make a table of their own"
    assert table.config["rows"] == [*GOOD, "broken"]
    assert table.exit_codes == [0]
    assert "broken has no result yet" in table.summary["answer"]
    carried = {re.split(r"[./]", name)[0] for name in table.summary}
    assert {"verdicts", "contrasts", "report", "figures"} <= carried


def test_it_writes_under_outputs_and_the_users_cache_and_prints_nothing(swept):
    assert swept.made == {swept.folder / "outputs"}
    home = [path.relative_to(swept.folder.parent / "home") for path in (swept.folder.parent / "home").rglob("*")]
    # matplotlib's list of fonts, and Vega put together
    drawing = {(".cache", "matplotlib"), (".config", "matplotlib"), (".cache", "lecture04")}
    assert {path.parts[:2] for path in home if len(path.parts) > 1} <= {(".cache", "wandb"), *drawing}
    assert "wandb:" not in swept.done.stderr
    assert "wandb:" not in swept.done.stdout


def test_the_parent_of_a_sweep_does_not_import_wandb(swept):
    said = "wandb imported: False" if swept.launcher != "basic" else "wandb imported: True"  # basic: the jobs' process
    assert said in swept.done.stdout.splitlines()


def test_asked_again_nothing_new_is_opened(swept, command):
    before = offline_folders(swept.folder)
    again = command(swept.folder, "-m", "ffn=relu,swiglu", "seed=0,1", root=swept.folder)
    assert again.returncode == 0, again.stderr
    assert "4 there, 0 to train" in again.stderr
    assert offline_folders(swept.folder) == before


@pytest.mark.slow
def test_a_single_diverged_run_is_closed_well_and_the_key_is_nowhere(command, tmp_path):
    folder = tmp_path / "single"
    folder.mkdir()
    done = command(folder, "optim.lr=1e6", "optim.clip=null", "seed=5", WANDB_MODE="offline", WANDB_API_KEY=KEY)
    assert done.returncode == 0, done.stderr
    assert "DIVERGED" in done.stdout
    (told,) = read_back(folder)
    assert told.exit_codes == [0]
    assert told.summary["status"] == "diverged"
    run = record(folder, "relu", 5)
    expected = curves_of(run)
    assert None in expected[max(expected)].values(), "a loss that is not finite"
    nan_as_none = {step: {k: None if v == "NaN" else v for k, v in row.items()} for step, row in told.curves.items()}
    assert nan_as_none == expected
    assert told.run["run_group"].startswith("pre-layernorm-relu-mha-sinusoidal-")
    assert told.config["sweep"] == ""
    written = [path for path in tmp_path.rglob("*") if path.is_file() and not path.is_symlink()]
    assert len(written) > 10
    assert not [path for path in written if KEY.encode() in path.read_bytes()]
    assert KEY not in done.stdout + done.stderr


# -- a W&B that does not work


@pytest.mark.parametrize(
    ("asked", "variables", "said"),
    [
        ("logger.project=a/b", {"WANDB_MODE": "offline"}, "Invalid project name 'a/b'"),
        ("logger.project=x", {"WANDB_MODE": "online"}, "No API key configured"),
        ("logger.project=x", {"WANDB_MODE": "offline", "WANDB_DIR": "/proc/self/fdinfo"}, "/proc/self/fdinfo"),
    ],
)
@pytest.mark.slow
def test_what_keeps_a_sweep_from_wandb_is_said_once_on_the_screen(warm, small_data, tmp_path, asked, variables, said):
    home = {name: "" for name in os.environ if name.startswith(("WANDB_", "XDG_"))} | {"HOME": str(tmp_path / "home")}
    line = ("-m", "seed=0,1", "hydra/launcher=basic", *small_data, asked)
    done = warm(ROOT / "train.py", *line, cwd=tmp_path, **home | variables)
    assert done.returncode == 0, done.stderr
    first, second = done.stderr.splitlines()
    assert first.endswith("2 runs, 0 there, 2 to train")
    assert second.startswith("W&B: none of the 2 runs was sent, nor the table: ")
    assert said in second
    assert "table.md" in done.stdout


@pytest.mark.slow
def test_a_mode_that_does_not_exist_is_said_once_and_the_runs_stay_offline(command, tmp_path):
    folder = tmp_path / "here"
    folder.mkdir()
    done = command(folder, "-m", "seed=0,1", "hydra/launcher=basic", WANDB_MODE="foo")
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("WANDB_MODE=foo") == done.stderr.count("W&B") == 1
    assert len(offline_folders(folder)) == 3, "two runs and their table"


FAKE = """
import sys, time

class Settings:
    def __init__(self, **settings): pass

class Run:
    summary = {}
    def log(self, row, step): pass
    def finish(self, exit_code): pass

def setup(settings): pass

def init(config, **about):
    match config["seed"]:
        case 0: raise RuntimeError("no such host")
        case 1: sys.exit("bye")
        case 2: time.sleep(3600)
    return Run()
"""


@pytest.fixture(scope="module")
def plain(tmp_path_factory, command):
    """Three runs without W&B: what all others must come to."""
    folder = tmp_path_factory.mktemp("plain") / "here"
    folder.mkdir()
    done = command(folder, "-m", "seed=0,1,2", "hydra/launcher=basic", "logger=none")
    assert done.returncode == 0, done.stderr
    assert not (folder / "outputs" / "wandb").exists()
    return SimpleNamespace(folder=folder, seconds=done.seconds)


@pytest.fixture
def elsewhere(tmp_path, plain):
    """A folder that has the corpus already."""
    folder = tmp_path / "here"
    shutil.copytree(plain.folder / "outputs" / "data", folder / "outputs" / "data")
    return folder


def assert_same(folder, plain, seed):
    here, there = record(folder, "relu", seed), record(plain.folder, "relu", seed)
    for name in ("metrics.jsonl", "checkpoint.safetensors"):
        assert (here / name).read_bytes() == (there / name).read_bytes(), name
    assert evaluation(here) == evaluation(there)
    assert json.loads((here / "summary.json").read_text())["status"] == "finished"


def warnings(folder, seed):
    log = (record(folder, "relu", seed) / "train.log").read_text().splitlines()
    return [line.split("[WARNING] ")[1] for line in log if "[WARNING]" in line]


@pytest.mark.slow
def test_one_that_raises_exits_or_hangs_costs_patience_and_nothing_else(command, plain, elsewhere, tmp_path):
    (tmp_path / "fake" / "wandb").mkdir(parents=True)
    (tmp_path / "fake" / "wandb" / "__init__.py").write_text(FAKE)
    fake = {"PYTHONPATH": str(tmp_path / "fake"), "WANDB_MODE": "offline"}
    done = command(elsewhere, "-m", "seed=0,1,2", "hydra/launcher=basic", **fake)
    assert done.returncode == 0, done.stderr
    # Patience with the runs, and with their table at the end; the fake one hangs for much longer than both.
    assert done.seconds < plain.seconds + PATIENCE + to_wandb.PATIENCE + 20
    assert [warnings(elsewhere, seed) for seed in range(3)] == [
        ["W&B: RuntimeError: no such host; metrics.jsonl has everything."],
        ["W&B: SystemExit: bye; metrics.jsonl has everything."],
        [f"W&B: it has not finished in {PATIENCE:g} s and is left behind; metrics.jsonl has everything."],
    ]
    (line,) = (line for line in done.stderr.splitlines() if "W&B" in line)
    assert line.startswith("W&B: none of the 3 runs was sent, nor the table: ")
    assert "(2 other reasons" in line
    for seed in range(3):
        assert_same(elsewhere, plain, seed)


@pytest.mark.slow
def test_one_that_is_missing(command, plain, elsewhere, tmp_path):
    (tmp_path / "fake" / "wandb").mkdir(parents=True)
    (tmp_path / "fake" / "wandb" / "__init__.py").write_text("raise ImportError('not installed')")
    done = command(elsewhere, PYTHONPATH=str(tmp_path / "fake"))
    assert done.returncode == 0, done.stderr
    assert done.stderr.startswith("W&B has not got this run: ImportError: not installed. ")
    assert done.stderr.count("\n") == 1
    assert warnings(elsewhere, 0) == ["W&B: ImportError: not installed; metrics.jsonl has everything."]
    assert_same(elsewhere, plain, 0)


class Unknown(http.server.BaseHTTPRequestHandler):
    """A server on which the entity that is asked for does not exist."""

    def do_POST(self):
        self.rfile.read(int(self.headers.get("content-length") or 0))
        answer = json.dumps({"errors": [{"message": "entity nobody not found"}], "data": None}).encode()
        self.send_response(404)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *args):
        pass


@pytest.mark.slow
def test_an_entity_that_does_not_exist_is_said(command, plain, elsewhere):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Unknown)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}"
    done = command(elsewhere, WANDB_MODE="online", WANDB_BASE_URL=url, WANDB_API_KEY=KEY, WANDB_ENTITY="nobody")
    server.shutdown()
    assert done.returncode == 0, done.stderr
    assert done.stderr.startswith("W&B has not got this run: ")
    assert "entity nobody not found" in done.stderr
    assert done.stderr.count("\n") == 1
    assert_same(elsewhere, plain, 0)


class Silent(http.server.BaseHTTPRequestHandler):
    """A server that lets a run begin and then never answers again."""

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        if b"mutation UpsertBucket" not in body:
            self.server.hung.append(self.path)
            self.server.released.wait(120)
            return
        project = {"id": "cA==", "name": "lecture04", "entity": {"id": "ZQ==", "name": "me"}}
        name = json.loads(body)["variables"].get("name")
        bucket = {"id": "aWQ=", "name": name, "displayName": "x", "config": "{}", "historyLineCount": 0}
        data = {"upsertBucket": {"bucket": bucket | {"project": project}, "inserted": True}}
        answer = json.dumps({"data": data}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *args):
        pass


@pytest.fixture(scope="module")
def silent():
    """Its address, and the paths that it left without an answer."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Silent)
    server.hung, server.released, server.daemon_threads = [], threading.Event(), True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield SimpleNamespace(url=f"http://127.0.0.1:{server.server_port}", hung=server.hung)
    server.released.set()
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def online(tmp_path_factory, command, plain, silent):
    """The same run with the real W&B, online: where the server refuses, and where it falls silent; both at once."""

    def run(url):
        folder = tmp_path_factory.mktemp("online") / "here"
        shutil.copytree(plain.folder / "outputs" / "data", folder / "outputs" / "data")
        done = command(folder, WANDB_MODE="online", WANDB_BASE_URL=url, WANDB_API_KEY=KEY)
        return SimpleNamespace(folder=folder, done=done)

    with ThreadPoolExecutor(2) as pool:
        refused, left = pool.map(run, ("http://127.0.0.1:9", silent.url))
    return {"refuses": refused, "falls silent": left}


@pytest.mark.slow
@pytest.mark.parametrize("server", ["refuses", "falls silent"])
def test_a_server_that_is_not_there_delays_neither_the_run_nor_the_exit(online, plain, server):
    folder, done = online[server].folder, online[server].done
    assert done.returncode == 0, done.stderr
    assert done.stderr.startswith("W&B has not got this run: ")
    assert done.stderr.count("\n") == 1, "and not a word more"
    assert done.seconds < 2 * plain.seconds + PATIENCE + 5
    assert len(warnings(folder, 0)) == 1
    assert warnings(folder, 0)[0].startswith("W&B")
    assert_same(folder, plain, 0)
    assert not [p for p in folder.rglob("*") if p.is_file() and KEY.encode() in p.read_bytes()]


@pytest.mark.slow
def test_what_a_silent_server_did_not_take_can_be_sent_later(online, silent):
    assert any("file_stream" in path for path in silent.hung), "the run had begun"
    assert "is left behind" in warnings(online["falls silent"].folder, 0)[0]
    assert list(online["falls silent"].folder.glob("outputs/wandb/run-*/run-*.wandb"))
