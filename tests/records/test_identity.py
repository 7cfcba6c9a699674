"""When two runs are the same: the config's part on real configs, the code's part on a small package."""

import subprocess
import sys
from dataclasses import replace

import pytest

from lecture04.config.code import statements
from lecture04.records.identity import RUN_CODE, code_hash, evaluation_key, fingerprint, run_name

SOURCE = '''
"""Feed-forward layers."""
from lecture04.config.registry import register
def helper(x):
    """Says what it does."""
    return x  # as it is
class Plain:
    def forward(self, x):
        return helper(x)
@register("ffn", "relu")
class ReLU(Plain):
    """The 2017 FFN."""
    def forward(self, x):
        return max(x, 0)
@register("ffn", "relu2")
class ReLU2(ReLU):
    def forward(self, x):
        return super().forward(x) ** 2
@register("ffn", "gelu")
class GELU(Plain):
    def forward(self, x):
        return 3 * x
'''


@pytest.fixture
def hash_of(tmp_path):
    made = iter(range(100))

    def hash_of(source, *chosen):
        package = tmp_path / str(next(made))
        (package / "nn").mkdir(parents=True)
        (package / "nn" / "ffn.py").write_text(source)
        return code_hash(package, RUN_CODE, frozenset(("ffn", name) for name in chosen))

    return hash_of


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("# as it is", "# another comment"),
        ("The 2017 FFN.", "Another docstring."),
        ("\nclass", "\n\n\nclass"),
        ("3 * x", "4 * x"),
    ],
    ids=["comment", "docstring", "blank lines", "a part not chosen"],
)
def test_what_the_run_does_not_execute_does_not_count(hash_of, old, new):
    assert old in SOURCE
    assert hash_of(SOURCE, "relu") == hash_of(SOURCE.replace(old, new), "relu")


@pytest.mark.parametrize(
    ("old", "new"), [("max(x, 0)", "max(x, 1)"), ("return x  #", "return x + 1  #")], ids=["the part", "its helper"]
)
def test_what_the_run_executes_counts(hash_of, old, new):
    assert old in SOURCE
    assert hash_of(SOURCE, "relu") != hash_of(SOURCE.replace(old, new), "relu")


def test_a_part_brings_the_registered_part_it_builds_on(hash_of):
    changed = SOURCE.replace("max(x, 0)", "max(x, 1)")
    assert hash_of(SOURCE, "relu2") != hash_of(changed, "relu2")
    assert hash_of(SOURCE, "gelu") == hash_of(changed, "gelu")


MINE = """
from torch import Tensor
from lecture04.nn.ffn import Plain
from lecture04.nn.helpers import double
from lecture04.config.registry import register
@register("ffn", "mine")
class Mine(Plain):
    def forward(self, x: Tensor):
        return double(x)
"""


def test_a_part_in_a_file_of_its_own_changes_the_runs_that_chose_it_alone(tmp_path):
    """As docs/add-a-part.md has it: a new file costs nobody else a run, nor does taking it away again."""
    nn = tmp_path / "nn"
    nn.mkdir()

    def hashed(*chosen):
        code_hash.cache_clear()
        statements.cache_clear()
        return code_hash(tmp_path, RUN_CODE, frozenset(("ffn", name) for name in chosen))

    (nn / "ffn.py").write_text(SOURCE)
    before = hashed("relu")
    (nn / "mine.py").write_text(MINE)
    (nn / "helpers.py").write_text("def double(x):\n    return 2 * x\n")
    (nn / "empty.py").write_text("")
    assert hashed("relu") == before
    mine = hashed("mine")
    assert mine != before
    (nn / "helpers.py").write_text("def double(x):\n    return x + x\n")
    assert hashed("mine") != mine, "what a part imports is executed with it"
    assert hashed("relu") == before


@pytest.mark.parametrize(
    "override", ["seed=1", "ffn=swiglu", "optim.lr=0.1", "model.d_model=32", "trainer.steps=7", "data.world_seed=1"]
)
def test_what_makes_other_parameters_is_another_run(compose, override):
    assert fingerprint(compose(override)).config != fingerprint(compose()).config


@pytest.mark.parametrize("override", ["eval.window=9", "paths.outputs=elsewhere", "runs.reuse=config", "sweep.title=x"])
def test_how_a_run_is_kept_and_measured_is_no_part_of_it(compose, override):
    assert fingerprint(compose(override)) == fingerprint(compose())


def test_a_matched_and_a_pinned_d_ff_are_the_same_run(compose):
    pinned, matched = compose("ffn=swiglu", "ffn.d_ff=170"), compose("ffn=swiglu", "ffn.match=model")
    assert pinned.ffn.d_ff == matched.ffn.d_ff
    assert fingerprint(pinned) == fingerprint(matched)


def test_epochs_and_the_steps_they_come_to_are_the_same_run(compose):
    assert fingerprint(compose("trainer.epochs=2")) == fingerprint(compose("trainer.steps=500"))


def test_evaluation_has_a_key_of_its_own(compose):
    cfg = compose()
    assert evaluation_key(compose("eval.window=9")) != evaluation_key(cfg)
    assert evaluation_key(compose("optim.lr=0.1")) == evaluation_key(cfg)


def test_torchs_version_counts(compose, monkeypatch):
    before = fingerprint(compose())
    monkeypatch.setattr("lecture04.records.identity.version", lambda package: "0.0.0")
    assert fingerprint(compose()).config != before.config


def test_the_folders_name_says_the_parts_and_the_seed(compose):
    cfg = replace(compose("ffn=swiglu", "posenc=rope"), seed=3)
    assert run_name(cfg) == f"pre-layernorm-swiglu-mha-rope-s3-{fingerprint(cfg)}"


def test_the_same_fingerprint_in_another_process(compose):
    script = (
        "from hydra import compose, initialize_config_dir\n"
        "from lecture04 import cli\n"
        "from lecture04.records.identity import fingerprint\n"
        "with initialize_config_dir(str(CONF), version_base='1.3'):\n"
        "    print(fingerprint(cli.settled(compose('config', overrides=['ffn=swiglu']))))\n"
    )
    printed = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert printed.strip() == str(fingerprint(compose("ffn=swiglu")))
