"""Sweeps made by hand, on disk as a real one leaves them: with configs, learning curves and curves by position."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from lecture04.records.record import Record
from lecture04.report.html import write

EVIL = """<script>document.title="run"</script><img src=x onerror="document.title='run'">"""
AWKWARD = """a & b < "c" 'd' | $x_1$ {{ 7*7 }} ̈ß漢 </script>"""
DRAWN = "body[data-drawn=yes]"
STEPS = (10, 20, 30, 40, 50)
FLOOR = 1.1
"""The true distribution's NLL on the test split; .1 more on the validation split, .03 less on the training split."""


def measured(ppl):
    """What the evaluation of a run of a perplexity holds; its accuracy falls as the perplexity rises."""
    nll = math.log(ppl)
    accuracy = 0.9 if math.isnan(ppl) else round(500 * min(1, 1.2 - ppl / 20)) / 500
    found = {"test/ppl": ppl, "test/nll": nll, "train/nll": nll - 0.03, "possessive/accuracy": accuracy}
    found |= {"val/nll": nll + 0.1, "test/excess": nll - FLOOR, "val/excess": nll - FLOOR, "train/excess": nll - FLOOR}
    return {name: None if math.isnan(x) else x for name, x in found.items()} | {"possessive/n": 500}


def write_run(folder: Path, request, ppl, *, positions):
    """A run's folder, as training and evaluation leave it."""
    folder.mkdir(parents=True)
    record, ended = Record(folder), not math.isnan(ppl)
    record.start(request.run, request.evaluation, "python train.py")
    for step in STEPS:
        loss = math.log(ppl) + 20 / step if ended else (5.0 if step < 30 else math.nan)
        record.append({"step": step, "train/loss": loss, "lr": 1e-3})
        record.append({"step": step, "val/nll": loss + 0.1})
    metrics = {"params": 105_984, "d_ff": 256, "steps": STEPS[-1]}
    (folder / "summary.json").write_text(
        json.dumps({"status": "finished" if ended else "diverged", "seed": request.run.seed, "metrics": metrics})
    )
    (folder / "evals").mkdir()
    content = {"metrics": measured(ppl)}
    if positions and ended:
        excess = [0.5 / (1 + p) + math.log(ppl) / 10 for p in range(positions)]
        content["curves"] = {"position": list(range(positions)), "nll": [1 + e for e in excess], "excess": excess}
    (folder / "evals" / "key.json").write_text(json.dumps(content))


@pytest.fixture(scope="session")
def make_sweep(tmp_path_factory, small_request):
    """`make_sweep({row: perplexities}, design=..., slices=..., positions=...)`: a table's folder with all its runs.

    A perplexity of NaN is a diverged run, None one that is not there. `overrides` are those of single rows.
    """

    def make(values, *, slices=None, positions=0, overrides=None, outputs=None, name="mine", **settings):
        outputs = outputs or tmp_path_factory.mktemp("outputs")
        rows = {}
        for i, (row, seeds) in enumerate(values.items()):
            own = (overrides or {}).get(row, [])
            runs = {str(seed): f"{name}-row{i}-s{seed}" for seed in range(len(seeds))}
            rows[row] = {"overrides": own, "evaluation": "key", "mismatch": 0.0, "other_code": [], "runs": runs}
            if slices:
                rows[row]["slice"] = slices[row]
            for seed, ppl in enumerate(seeds):
                if ppl is not None:
                    folder = outputs / "runs" / runs[str(seed)]
                    write_run(folder, small_request(*own, f"seed={seed}"), ppl, positions=positions)
        folder = outputs / "sweeps" / name
        folder.mkdir(parents=True)
        manifest = {
            "name": name,
            "title": "Which is better?",
            "design": "star",
            "primary": "test/nll",
            "columns": ["test/ppl", "possessive/accuracy", "params", "d_ff", "train/nll"],
            "delta": None,
            "looks": 1,
            "command": f"python train.py -m sweeps={name}",
            "rows": rows,
        }
        (folder / "sweep.json").write_text(json.dumps(manifest | settings))
        return folder

    return make


def draw(rng, centre, n=3, noise=0.01):
    """Perplexities of n seeds round a centre."""
    return tuple(float(x) for x in centre * np.exp(noise * rng.standard_normal(n)))


@pytest.fixture(scope="session")
def star(make_sweep):
    """Rows better, worse and equal, one diverged in a seed, one not there; names that would run if they could."""
    rng = np.random.default_rng(5)
    rows = {
        "base": draw(rng, 3.8),
        AWKWARD: draw(rng, 3.3),
        EVIL: draw(rng, 4.3),
        "the same": draw(rng, 3.8),
        "wild": (4.0, math.nan, math.nan),
        "later": (None, None, None),
    }
    overrides = {AWKWARD: ["ffn=swiglu"], EVIL: ["norm=rmsnorm", "optim.lr=0.01"]}
    title = f"Is this & that <b>better</b>? {EVIL}"
    return make_sweep(rows, overrides=overrides, positions=64, title=title, delta=0.03)


@pytest.fixture(scope="session")
def path(make_sweep):
    """A path of four rows."""
    rng = np.random.default_rng(6)
    centres = {"start": 3.8, "+ a": 3.4, "+ b": 3.41, "+ c": 3.9}
    return make_sweep({row: draw(rng, centre) for row, centre in centres.items()}, design="path")


@pytest.fixture(scope="session")
def recipe(make_sweep):
    """A path of seven rows and three seeds, each adding a part: as large as the tables of the lecture."""
    rng = np.random.default_rng(6)
    parts = {
        "2017": (3.815, []),
        "+ pre-norm": (3.853, ["placement=pre"]),
        "+ RMSNorm": (3.862, ["norm=rmsnorm"]),
        "+ SwiGLU": (3.846, ["ffn=swiglu"]),
        "+ RoPE": (3.796, ["posenc=rope"]),
        "+ GQA": (3.795, ["attention=gqa"]),
        "+ no biases": (3.790, ["model.bias=false"]),
    }
    overrides, so_far = {}, ["recipe=transformer_2017"]
    for row, (_, more) in parts.items():
        so_far = [*so_far, *more]
        overrides[row] = so_far
    rows = {row: draw(rng, centre, noise=0.004) for row, (centre, _) in parts.items()}
    return make_sweep(rows, design="path", overrides=overrides, name="recipe", title="From the 2017 recipe to Llama's")


@pytest.fixture(scope="session")
def grid(make_sweep):
    """Two rows in each of two slices."""
    rng = np.random.default_rng(7)
    rows = {
        f"{lr}: {row}": draw(rng, 3.8 + 0.5 * (row == "post")) for lr in ("1e-3", "1e-2") for row in ("pre", "post")
    }
    return make_sweep(rows, design="grid", slices={row: row.split(":")[0] for row in rows})


@pytest.fixture(scope="session")
def recall(make_sweep):
    """Three widths for 4, 8 and 16 pairs, as sweeps/mqar.yaml has them; one run diverged."""
    rng = np.random.default_rng(9)
    centres = {
        f"{pairs} pairs: width {width}": 1 + pairs / 4 + (128 - width) / 32
        for pairs in (4, 8, 16)
        for width in (128, 64, 32)
    }
    rows = {row: draw(rng, centre) for row, centre in centres.items()}
    rows["8 pairs: width 32"] = (5.0, math.nan, 5.1)
    slices = {row: row.split(":")[0] for row in rows}
    return make_sweep(rows, design="grid", slices=slices, name="recall", title="Recall by the width of the model")


@pytest.fixture(scope="session")
def hundred(make_sweep):
    """A hundred rows of three seeds."""
    rng = np.random.default_rng(8)
    rows = {f"row number {i}": draw(rng, 3.8 + 0.01 * (i % 7)) for i in range(100)}
    return make_sweep(rows, name="hundred")


@pytest.fixture
def visit(browser):
    """`visit(file, size=..., **context)`: the page, drawn; at the end no error was said and nothing was fetched."""
    contexts, complaints, fetched = [], [], []

    def visit(file, size=(1280, 900), **options):
        context = browser.new_context(viewport={"width": size[0], "height": size[1]}, **options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(60_000)
        page.on("console", lambda message: complaints.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: fetched.append(request.url))
        page.goto(file.as_uri())
        if file.name != "index.html":
            page.wait_for_selector(DRAWN)
        return page

    yield visit
    for context in contexts:
        context.close()
    assert not complaints
    assert [url for url in fetched if not url.startswith("data:")] == [url for url in fetched if ".html" in url]
    assert all(url.startswith(("file:", "data:")) for url in fetched)


@pytest.fixture(scope="session")
def pages(star, path, grid, recipe):
    folders = {"star": star, "path": path, "grid": grid, "recipe": recipe}
    return {name: write(folder) for name, folder in folders.items()}


@pytest.fixture
def choose():
    """`choose(page, "#metric", "train/nll")`: choose it, and wait until all is drawn."""

    def choose(page, what, value):
        page.select_option(what, value)
        page.wait_for_selector(DRAWN)

    return choose
