"""What all tests share: a command line resolved, and a corpus small enough to train on in a second."""

import importlib.util
import os
import shutil
import sys
from collections.abc import Callable
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hydra import compose as hydra_compose
from hydra import initialize_config_dir
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from lecture04 import config
from lecture04.cli import train as cli
from lecture04.config import Request, Run, registry
from lecture04.config.places import CONF
from lecture04.config.resolve import resolve

# Read when torch is imported: small models are fastest on one thread, and tests run side by side.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# pytest imports readline, which tells every child that its terminal has 80 columns, behind os.environ's back.
os.environ.pop("COLUMNS", None)
os.unsetenv("COLUMNS")

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
PAD, BOS, EOS = 0, 1, 2
PEOPLE, PRONOUNS, CYCLE, OBJECTS = (3, 4, 5), (6, 7, 8), (9, 10, 11), (12, 13, 14)
MOST_STEPS = 8
# A model of a few thousand parameters on `tiny_corpus`.
SMALL = (
    "model.d_model=16",
    "model.n_layers=2",
    "model.n_heads=4",
    "ffn.d_ff=24",
    "data.vocab_size=15",
    "data.max_len=16",
    "data.n_train=64",
    "trainer.batch_size=8",
    "trainer.steps=24",
    "trainer.log_every=5",
    "optim.warmup_steps=4",
)


@cache
def _composed(overrides: tuple[str, ...]) -> DictConfig:
    with initialize_config_dir(str(CONF), version_base="1.3"):
        return hydra_compose("config", overrides=list(overrides))


@cache
def _chosen(choices: tuple[str, ...]) -> DictConfig:
    """As `_composed`; parts that go together freely are taken from the compositions of each alone."""
    parts = dict(line.split("=", 1) for line in choices)
    if len(parts) < 2 or any((family, name) not in registry.entries() for family, name in parts.items()):
        return _composed(choices)
    cfg = deepcopy(_composed(()))
    for family, name in parts.items():
        cfg[family] = _composed((f"{family}={name}",))[family]
    return cfg


@cache
def _settings(overrides: tuple[str, ...]) -> Any:
    """What Hydra composes. It takes 0.2 s, so that lines of the same choices share one composition.

    Their single values are set as Hydra sets them; what cannot be set it is left to say itself.
    """
    values = [line for line in overrides if "." in line.partition("=")[0] or line.startswith("seed=")]
    try:
        cfg = deepcopy(_chosen(tuple(line for line in overrides if line not in values)))
        for value in OverridesParser.create().parse_overrides(values):
            OmegaConf.update(cfg, value.key_or_group, value.value(), merge=True)
    except (HydraException, OmegaConfBaseException):
        cfg = _composed(overrides)
    return cli.settings_of(cfg)


@cache
def _requested(overrides: tuple[str, ...]) -> Request:
    return resolve(_settings(overrides))


@pytest.fixture(scope="session")
def settings() -> Callable[..., Any]:
    """`settings("ffn=swiglu")`: what a command line is composed to, still open, to be changed at will."""
    return lambda *overrides: deepcopy(_settings(overrides))


@pytest.fixture(scope="session")
def requested() -> Callable[..., Request]:
    """`requested("ffn=swiglu", "eval.window=2")`: the run, evaluation and session of a command line."""
    return lambda *overrides: _requested(overrides)


@pytest.fixture(scope="session")
def compose(requested) -> Callable[..., Run]:
    """`compose("ffn=swiglu", "model.d_model=32")`: the resolved run of a command line."""
    return lambda *overrides: requested(*overrides).run


@pytest.fixture(scope="session")
def small_request(requested) -> Callable[..., Request]:
    """`requested` for a model of a few thousand parameters on `tiny_corpus`; further overrides win."""
    return lambda *overrides: requested(*SMALL, *overrides)


@pytest.fixture(scope="session")
def small(small_request) -> Callable[..., Run]:
    """The run of `small_request`."""
    return lambda *overrides: small_request(*overrides).run


# What the commands need that take no torch, and beside it what training and a table need.
LIGHT = ("lecture04.cli.train", "lecture04.cli.help", "lecture04.sweep.command")
WARM = (
    *LIGHT,
    *("lecture04.training.run", "lecture04.cli.progress", "lecture04.nn.contracts", "torch._dynamo", "torch.func"),
    *("lecture04.report", "lecture04.report.comparison", "lecture04.report.latex", "lecture04.sweep.show_plan"),
)


@cache
def _program(name: str) -> Any:
    """A file of tests/ that is a program as well: forking.py, in_terminal.py."""
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    assert spec is not None
    assert spec.loader is not None
    sys.modules[name] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def forked():
    """`forked(train_py, "ffn=x", cwd=folder)`: a command without its half a second of imports; see forking.py."""
    commands = _program("forking").Commands(*LIGHT)
    yield commands
    commands.close()


@pytest.fixture(scope="session")
def reading():
    """As `forked`, for commands that read a text: without torch."""
    commands = _program("forking").Commands(*LIGHT, "lecture04.data.text.prepare", "lecture04.huggingface.files")
    yield commands
    commands.close()


@pytest.fixture(scope="session")
def warm():
    """As `forked`, for commands that train: torch's four seconds are spent once."""
    commands = _program("forking").Commands(*WARM)
    yield commands
    commands.close()


@pytest.fixture(scope="session")
def browser():
    """A headless Chromium of this machine."""
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        program = None
    if program is None:
        absent = pytest.fail if os.environ.get("BROWSER_TESTS") == "required" else pytest.skip
        absent("no Chromium is installed, or no playwright")
    with sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture
def in_terminal(tmp_path):
    """`in_terminal(run, script, "-m", ..., columns=80, lines=24, cwd=folder)`: a command whose stderr is a terminal.

    `run` is `forked`, `warm`, or what is called like them. It comes with the screens that the terminal showed.
    """

    def in_terminal(run, script, *arguments, columns="80", lines="24", cwd, **environment):
        file, program = tmp_path / "terminal", Path(__file__).with_name("in_terminal.py")
        done = run(program, columns, lines, str(file), str(script), *arguments, cwd=cwd, **environment)
        raw, width = file.read_bytes(), max(map(int, columns.split("-")))
        return done, _program("in_terminal").screens(raw, width, int(lines)), raw.decode()

    return in_terminal


def _split(n_docs: int, seed: int) -> dict[str, Any]:
    """<bos> person, 1 to 8 steps round a cycle of three words, the person's pronoun, an object, <eos>.

    How many steps there are, the person, the object and where the cycle begins are uniform, so that the true
    probability of each token can be written down as it is drawn.
    """
    rng = np.random.default_rng(seed)
    tokens, log_prob, distance, offsets = [], [], [], [0]
    for _ in range(n_docs):
        person, start, thing, n = rng.integers(3), rng.integers(3), rng.integers(3), rng.integers(1, MOST_STEPS + 1)
        steps = [CYCLE[(start + i) % 3] for i in range(n)]
        stop = 1 / (MOST_STEPS + 1 - np.arange(1, n + 1))  # P(no further step | so many steps)
        goes_on = np.log(1 - stop[:-1])
        tokens += [BOS, PEOPLE[person], *steps, PRONOUNS[person], OBJECTS[thing], EOS]
        log_prob += [0.0, np.log(1 / 3), np.log(1 / 3), *goes_on, np.log(stop[-1]), np.log(1 / 3), 0.0]
        distance += [0, *[0] * (n + 1), n + 1, 0, 0]
        offsets.append(len(tokens))
    facts = {"log_prob": np.array(log_prob), "subject_distance": np.array(distance, np.int16)}
    return {"tokens": np.array(tokens, np.int16), "offsets": np.array(offsets, np.int64), "facts": facts}


@pytest.fixture
def text_lines(tmp_path):
    """What data=text needs to be told, for a text of 200 lines."""
    (tmp_path / "text.txt").write_text("\n".join(f"line {i} of a text" for i in range(200)))
    return f"data.path={tmp_path}/text.txt", "data.documents=line", f"paths.outputs={tmp_path}"


@pytest.fixture(scope="session")
def tiny_corpus():
    """64, 24 and 32 documents of 5 to 12 predicted tokens over 15 words; ids 6 to 8 are the possessives."""
    from lecture04.data.documents import Documents
    from lecture04.data.garden.source import PronounAccuracy
    from lecture04.data.tokenizer import of_words
    from lecture04.data.types import Corpus, Split

    splits = {name: Split(**_split(n, seed)) for name, n, seed in (("train", 64, 1), ("val", 24, 2), ("test", 32, 3))}
    words = ("<pad>", "<bos>", "<eos>", *"abc", *"ABC", *"xyz", *"uvw")
    layout = Documents(config.Layout(name="documents", length=16))
    return Corpus(
        **splits,
        vocab_size=len(words),
        tokenizer=of_words(words, unknown="<pad>"),
        measures=(PronounAccuracy,),
        layout=layout,
    )
