"""Why two runs are not the same one, in sentences."""

import json

import pytest

from lecture04.records.explain import explain
from lecture04.records.identity import recorded


@pytest.fixture
def folder(tmp_path, asked):
    """`folder("a", {"config": {"seed": 3}})`: a run's folder with its identity, some of it changed."""

    def folder(name, changed=None, *overrides):
        content = recorded(asked(*overrides).run)
        for part, values in (changed or {}).items():
            content[part] |= values
        (tmp_path / name).mkdir()
        (tmp_path / name / "identity.json").write_text(json.dumps(content))
        return tmp_path / name

    return folder


def test_a_run_is_the_same_as_itself(folder):
    assert explain(folder("a"), folder("b")) == ["They are the same run."]


def test_settings_are_named_with_both_values(folder):
    lines = explain(folder("a"), folder("b", None, "ffn.d_ff=171", "optim.clip=null"))
    assert lines == ["ffn.d_ff: 256 here, 171 there", "optim.clip: 1.0 here, null there"]


def test_a_setting_that_one_of_them_lacks_is_said(folder):
    lines = explain(folder("a"), folder("b", None, "ffn=swish", "ffn.d_ff=256"))
    assert lines[:2] == ["ffn.name: relu here, swish there", "ffn.beta: not set here, 1.0 there"]
    assert len(lines) == 2, "that Swish is executed there alone goes without saying"


def test_code_is_named_by_file_and_definition(folder):
    changed = {
        "code": {"nn/ffn.py::ReLU": "x", "nn/ffn.py::PlainFFN": "y", "nn/init.py::build": "z", "mine.py::f": "w"}
    }
    assert explain(folder("a"), folder("b", changed)) == [
        "mine.py: f is executed there alone",
        "nn/ffn.py: PlainFFN, ReLU differ",
        "nn/init.py: build differs",
    ]


def test_versions_are_part_of_it_and_the_processor_is_not(folder):
    changed = {"versions": {"torch": "0.0.1"}, "machine": {"processor": "abacus"}}
    first, second = explain(folder("a"), folder("b", changed))
    assert first.startswith("torch: ")
    assert first.endswith(" here, 0.0.1 there (version)")
    assert second.endswith("abacus there (no part of the identity, but bits may differ)")


def test_a_folder_that_does_not_say_is_named(folder, tmp_path):
    with pytest.raises(ValueError, match=r"identity\.json: there is no such file"):
        explain(folder("a"), tmp_path)
    (tmp_path / "identity.json").write_text("[]")
    with pytest.raises(ValueError, match="does not hold config, code"):
        explain(tmp_path, tmp_path / "a")
