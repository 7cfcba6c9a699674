"""Parts from a file of one's own: counted without formulas, found by file, and refused with a sentence."""

import importlib
import sys
from dataclasses import replace

import pytest

from lecture04.config import FFN, UserError, asked, registry, sizes
from lecture04.config.resolve import resolve
from lecture04.records.config_file import written
from lecture04.records.identity import identity

# A copy of each of our own parts that has parameters, registered without options: nothing says how many it has.
COPIES = """
import torch
from lecture04 import register
from lecture04.nn.attention import Attention
from lecture04.nn.block import SandwichNorm
from lecture04.nn.ffn import SwiGLU
from lecture04.nn.norm import RMSNorm
from lecture04.nn.posenc import ALiBi

@register("ffn", "own_swiglu")
class OwnSwiGLU(SwiGLU):
    \"\"\"A copy of swiglu.\"\"\"

@register("norm", "own_rmsnorm")
class OwnRMSNorm(RMSNorm):
    \"\"\"A copy of rmsnorm.\"\"\"

@register("attention", "own_gqa")
class OwnAttention(Attention):
    \"\"\"A copy of gqa.\"\"\"

@register("posenc", "own_alibi")
class OwnALiBi(ALiBi):
    \"\"\"A copy of alibi.\"\"\"
"""
FAMILIES = {"ffn": "swiglu", "norm": "rmsnorm", "attention": "gqa", "posenc": "alibi"}

WITH_OPTIONS = """
from dataclasses import dataclass
from lecture04 import config, register
from lecture04.config import bounded, opened
from lecture04.nn import PlainFFN

@dataclass(frozen=True, kw_only=True)
class Thrifty(config.FFN):
    share: float = bounded(0.5, above=0)
    n_kept: int = opened(lambda own, c: c.model.d_model // 2)
    n_matrices = 2

    def errors(self, c):
        return [f"ffn.share={self.share}: more than there is."] if self.share > 1 else []

@register("ffn", "thrifty", options=Thrifty)
class ThriftyFFN(PlainFFN):
    \"\"\"Of one's own.\"\"\"

    def activation(self, x):
        return x
"""


@pytest.fixture
def load(monkeypatch, tmp_path):
    """`load("name", text)`: a file of one's own, known until the end of the test."""
    importlib.import_module("lecture04.nn.model")  # or it would register into the copy that is thrown away
    for name in ("_outside", "_registered", "_options"):
        monkeypatch.setattr(registry, name, dict(getattr(registry, name)))
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setenv("PYTHONPATH", "")

    def load(name, text):
        path = tmp_path / f"{name}.py"
        path.write_text(text)
        registry.load([str(path)])
        return path

    yield load
    for name, module in list(sys.modules.items()):
        if str(tmp_path) in (getattr(module, "__file__", None) or ""):
            del sys.modules[name]


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("match", ["ffn", "model"])
def test_a_part_without_options_is_built_and_counted(load, settings, family, match):
    load("copies_of_ours", COPIES)
    found = settings(f"{family}={FAMILIES[family]}", f"ffn.match={match}", "model.bias=false")
    declared = resolve(found)
    getattr(found, family).name = f"own_{FAMILIES[family]}"
    counted = resolve(found)
    assert not sizes.is_declared(family, f"own_{FAMILIES[family]}")
    assert sizes.params_by_part(counted.run) == sizes.params_by_part(declared.run)
    assert sizes.ffn_params(counted.run) == sizes.ffn_params(declared.run)
    assert counted.run.ffn.d_ff == declared.run.ffn.d_ff
    assert counted.mismatch == declared.mismatch
    assert sizes.flops_per_token(counted.run) == sizes.flops_per_token(declared.run)
    assert sizes.kv_per_token(counted.run) == sizes.kv_per_token(declared.run)


def test_nothing_of_a_part_without_options_is_executed_before_it_is_built(load):
    load("fails_when_run", '1 / 0\n@register("ffn", "late")\nclass Late:\n    """Not yet."""\n')
    assert registry.entry("ffn", "late").about == "Not yet."
    assert "fails_when_run" not in sys.modules
    with pytest.raises(UserError, match="division by zero"):
        registry.Family("ffn").lookup("late")


def test_options_of_ones_own_are_resolved_and_checked_as_ours_are(load, settings):
    path = load("of_my_own", WITH_OPTIONS)
    assert registry.outside() == {"of_my_own": path}
    cls = registry.options_of("ffn", "thrifty", FFN)
    found = settings()
    found.ffn = asked(cls, name="thrifty", bias=True)
    run = resolve(found).run
    assert (type(run.ffn), run.ffn.n_kept, run.ffn.d_ff) == (cls, 32, 256)
    assert sizes.is_declared("ffn", "thrifty")
    found.ffn.share = 2.0
    with pytest.raises(UserError, match=r"^ffn\.share=2\.0: more than there is\.$"):
        resolve(found)
    found.ffn.share = 0.0
    with pytest.raises(UserError, match=r"^ffn\.share=0\.0: must be above 0\.$"):
        resolve(found)


def test_loading_twice_is_loading_once(load, tmp_path):
    path = load("once", '@register("ffn", "once")\nclass Once: ...\n')
    before = sys.path.copy()
    registry.load([str(path)])
    registry.load(["once.py"], folder=tmp_path)
    assert sys.path == before
    assert registry.names("ffn").count("once") == 1


def refused(load, name, text):
    before = registry.outside()
    with pytest.raises(UserError) as caught:
        load(name, text)
    assert registry.outside() == before, "what was refused is not known"
    return str(caught.value)


def test_a_file_that_is_not_there(load, tmp_path):
    for part, kind in (("nowhere.py", "file"), ("sub/nowhere", "file"), ("nowhere_at_all", "module")):
        with pytest.raises(UserError, match=rf"^parts={part}: there is no such {kind}\.$"):
            registry.load([part], folder=tmp_path)


def test_a_file_that_is_no_python(load):
    assert refused(load, "torn", "x = 1\n@register('ffn', 'torn'\n").endswith("torn.py: line 2: '(' was never closed.")


def test_a_file_whose_name_is_taken(load):
    said = refused(load, "json", '@register("ffn", "x")\nclass X: ...\n')
    assert "a module called json is there already" in said
    assert said.endswith("give the file another name.")


def test_a_part_whose_name_is_taken(load):
    said = refused(load, "taken", '@register("ffn", "relu")\nclass Mine: ...\n')
    assert "taken.py: ffn=relu is registered twice, the second time in " in said
    assert registry.entry("ffn", "relu").ours


def test_a_file_whose_options_cannot_be_made(load):
    text = 'from lecture04 import register\n@register("ffn", "broken", options=missing)\nclass Broken: ...\n'
    assert "name 'missing' is not defined" in refused(load, "broken", text)


def test_a_part_is_in_a_runs_identity_and_folder(load, requested):
    path = load("mine_too", '@register("ffn", "mine_too")\nclass Mine:\n    """One."""\n')
    request = requested()
    own = replace(request.run, ffn=replace(request.run.ffn, name="mine_too"))
    assert identity(own).config != identity(request.run).config
    assert written(own, request.evaluation)["parts"] == [str(path)]
    assert "parts" not in written(request.run, request.evaluation)
