"""When two runs are the same, on real configs. Which code counts: tests/config/test_code.py and test_mutations.py."""

import subprocess
import sys
from dataclasses import replace

import pytest

from lecture04.records.identity import (
    evaluation_code,
    evaluation_key,
    fingerprint,
    machine,
    run_code,
    run_name,
    versions,
    written,
)


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


@pytest.mark.parametrize("package", ["torch", "numpy"])
def test_the_versions_of_what_computes_count(compose, monkeypatch, package):
    before, real = fingerprint(compose()), versions()
    monkeypatch.setattr("lecture04.records.identity.version", lambda name: "0" if name == package else real[name])
    assert fingerprint(compose()).config != before.config


def test_the_folders_name_says_the_parts_and_the_seed(compose):
    cfg = replace(compose("ffn=swiglu", "posenc=rope"), seed=3)
    assert run_name(cfg) == f"pre-layernorm-swiglu-mha-rope-s3-{fingerprint(cfg)}"


def test_the_same_fingerprint_in_another_process(compose):
    script = (
        "from hydra import compose, initialize_config_dir\n"
        "from lecture04.cli import train as cli\n"
        "from lecture04.records.identity import fingerprint\n"
        "with initialize_config_dir(str(cli.ROOT / 'conf'), version_base='1.3'):\n"
        "    print(fingerprint(cli.settled(compose('config', overrides=['ffn=swiglu']))))\n"
    )
    printed = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert printed.strip() == str(fingerprint(compose("ffn=swiglu")))


def test_the_processor_is_written_down_and_no_part_of_it(compose, monkeypatch):
    before = fingerprint(compose())
    import torch  # noqa: F401

    assert set(machine()) == {"architecture", "processor", "kernels"}, "kernels where torch is loaded"
    monkeypatch.setattr("lecture04.records.identity._processor", lambda: "abacus")
    assert fingerprint(compose()) == before
    assert written(compose())["machine"]["processor"] == "abacus"


def test_what_is_written_covers_all_of_the_identity(compose):
    content = written(compose("ffn=swiglu", "posenc=rope"))
    assert content["config"]["posenc.scaling.name"] == "none"
    assert content["config"]["ffn.d_ff"] == 170
    assert {"nn/ffn.py::SwiGLU", "nn/rope.py::RoPE", "config/schema.py::Scaling"} < set(content["code"])
    assert set(content["versions"]) == {"torch", "numpy"}


def test_the_code_is_that_of_the_chosen_parts(compose):
    relu, swiglu = (set(run_code(compose(f"ffn={name}")).definitions) for name in ("relu", "swiglu"))
    assert relu ^ swiglu == {"nn/ffn.py::ReLU", "nn/ffn.py::SwiGLU", "nn/ffn.py::GatedFFN"}
    assert not any(key.startswith(("records/", "huggingface/")) and "on import" not in key for key in relu)
    assert "training/evaluate.py::mean_nll" in relu, "the loop decides with it"
    assert "training/evaluate.py::evaluate" not in relu
    assert "training/evaluate.py::evaluate" in evaluation_code(compose()).definitions
