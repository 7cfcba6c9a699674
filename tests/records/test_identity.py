"""When two runs are the same, on real configs. Which code counts: tests/config/test_code.py and test_mutations.py."""

import subprocess
import sys
from dataclasses import replace

import pytest

from lecture04.config import registry
from lecture04.records import identity as module
from lecture04.records.identity import (
    evaluation_code,
    evaluation_key,
    identity,
    machine,
    own_folders,
    recorded,
    run_code,
    run_name,
    versions,
)


@pytest.fixture
def run(asked):
    """`run("ffn=swiglu")`: the run of a command line."""
    return lambda *overrides: asked(*overrides).run


@pytest.mark.parametrize(
    "override", ["seed=1", "ffn=swiglu", "optim.lr=0.1", "model.d_model=32", "trainer.steps=7", "data.world_seed=1"]
)
def test_what_makes_other_parameters_is_another_run(run, override):
    assert identity(run(override)).config != identity(run()).config


@pytest.mark.parametrize(
    "override",
    ["eval.window=9", "paths.outputs=elsewhere", "runs.reuse=config", "sweep.title=x", "logger=wandb"]
    + ["trainer.log_every=7"],
)
def test_how_a_run_is_kept_and_measured_is_no_part_of_it(run, override):
    assert identity(run(override)) == identity(run())


def test_a_matched_and_a_pinned_d_ff_are_the_same_run(run):
    pinned, matched = run("ffn=swiglu", "ffn.d_ff=170"), run("ffn=swiglu", "ffn.match=model")
    assert pinned.ffn.d_ff == matched.ffn.d_ff
    assert identity(pinned) == identity(matched)


def test_epochs_and_the_steps_they_come_to_are_the_same_run(run):
    assert identity(run("trainer.epochs=2")) == identity(run("trainer.steps=500"))


def test_evaluation_has_a_key_of_its_own(asked):
    def key(*overrides):
        request = asked(*overrides)
        return evaluation_key(request.run, request.evaluation)

    assert key("eval.window=9") != key()
    assert key("optim.lr=0.1") == key()


@pytest.mark.parametrize("package", ["torch", "numpy"])
def test_the_versions_of_what_computes_count(run, monkeypatch, package):
    before, real = identity(run()), versions()
    monkeypatch.setattr(module, "_version", lambda name: "0" if name == package else real[name])
    assert identity(run()).config != before.config


def test_the_folders_name_says_the_parts_and_the_seed(run):
    own = replace(run("ffn=swiglu", "posenc=rope"), seed=3)
    assert run_name(own) == f"pre-layernorm-swiglu-mha-rope-s3-{identity(own)}"


def test_the_same_identity_in_another_process(run):
    script = (
        "from lecture04.cli import train as cli\n"
        "from lecture04.records.identity import identity\n"
        "print(identity(cli.resolved_settings(cli.composed(['ffn=swiglu'])).run))\n"
    )
    printed = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert printed.strip() == str(identity(run("ffn=swiglu")))


def test_the_processor_is_written_down_and_no_part_of_it(run, monkeypatch):
    import torch  # noqa: F401

    before = identity(run())
    assert set(machine()) == {"architecture", "processor", "kernels"}, "kernels where torch is loaded"
    monkeypatch.setattr(module, "_processor", lambda: "abacus")
    assert identity(run()) == before
    assert recorded(run())["machine"]["processor"] == "abacus"


def test_what_is_recorded_covers_all_of_the_identity(run):
    content = recorded(run("ffn=swiglu", "posenc=rope"))
    assert content["config"]["posenc.scaling.name"] == "none"
    assert content["config"]["ffn.d_ff"] == 170
    assert {"nn/ffn.py::SwiGLU", "nn/rope.py::RoPE", "config/parts/posenc.py::Scaling"} < set(content["code"])
    assert set(content["versions"]) == {"torch", "numpy"}


def test_the_code_is_that_of_the_chosen_parts(asked):
    relu, swiglu = (set(run_code(asked(f"ffn={name}").run).definitions) for name in ("relu", "swiglu"))
    assert relu - swiglu == {"nn/ffn.py::ReLU"}
    assert {key for key in swiglu - relu if key.startswith("nn/")} == {"nn/ffn.py::SwiGLU", "nn/ffn.py::GatedFFN"}
    assert not any(key.startswith(("records/", "huggingface/")) and "on import" not in key for key in relu)
    assert "training/evaluate.py::mean_nll" in relu, "the loop decides with it"
    assert "training/evaluate.py::evaluate" not in relu
    request = asked()
    evaluated = evaluation_code(request.run, request.evaluation).definitions
    assert {"training/evaluate.py::evaluate", "data/garden/source.py::PronounAccuracy"} < set(evaluated)
    assert "data/garden/source.py::PronounAccuracy" not in relu, "what is measured makes no other run"


def test_a_part_from_outside_brings_its_file_and_what_lies_beside_it(tmp_path, run, monkeypatch):
    """Case 19: base and helper are followed, by whatever spelling."""
    monkeypatch.setattr(registry, "_outside", {"mine_here": tmp_path / "mine_here.py"})
    (tmp_path / "mine_here.py").write_text(
        "import lecture04.nn.ffn as f\nimport helper_here\nfrom lecture04 import register\n"
        "@register('ffn', 'mine_here')\nclass Mine(f.ReLU):\n    gain = helper_here.gain()\n"
    )
    (tmp_path / "helper_here.py").write_text("def gain():\n    return 2\n")
    own = run()
    own = replace(own, ffn=replace(own.ffn, name="mine_here"))
    assert own_folders() == (tmp_path,)
    assert {"mine_here.py::Mine", "helper_here.py::gain", "nn/ffn.py::ReLU"} < set(run_code(own).definitions)


def test_of_an_installed_package_its_own_folder_alone_is_followed(tmp_path, monkeypatch):
    folder = tmp_path / "site-packages"
    files = {
        "pack.parts": folder / "pack/parts.py",
        "single": folder / "single.py",
        "free.parts": tmp_path / "free/x.py",
    }
    monkeypatch.setattr(registry, "_outside", files)
    assert own_folders() == (folder / "pack", folder / "single.py", tmp_path)
