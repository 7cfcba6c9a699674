"""A folder that the user named: it must be new, empty, or hold that very run."""

import json

import pytest

from lecture04.records.explain import NAME
from lecture04.records.identity import recorded
from lecture04.records.named import trouble


@pytest.fixture
def of_run(compose, tmp_path):
    """A folder with what a run of relu says of itself."""
    (tmp_path / NAME).write_text(json.dumps(recorded(compose("ffn=relu"))))
    return tmp_path


def test_a_run_is_known_again(of_run, compose):
    assert trouble(str(of_run), compose("ffn=relu")) is None


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("ffn=swiglu", "ffn.name: swiglu here, relu in it"),
        ("seed=1", "seed: 1 here, 0 in it"),
        ("trainer.steps=3", "trainer.steps"),
    ],
)
def test_another_run_is_named_by_what_differs(of_run, compose, line, said):
    assert f"another run lies there ({said}" in trouble(str(of_run), compose(line))


def test_another_version_of_torch_is_another_run(of_run, compose):
    content = json.loads((of_run / NAME).read_text())
    (of_run / NAME).write_text(json.dumps(content | {"versions": content["versions"] | {"torch": "1.0"}}))
    assert "torch" in trouble(str(of_run), compose("ffn=relu"))


@pytest.mark.parametrize("files", [(), ("train.log",)])
def test_a_new_folder_an_empty_one_and_one_of_a_start_will_do(tmp_path, compose, files):
    for file in files:
        (tmp_path / file).write_text("")
    assert trouble(str(tmp_path), compose()) is None
    assert trouble(str(tmp_path / "new"), compose()) is None


@pytest.mark.parametrize("content", ["mine: 1", "{}", "[", '{"config": 3}'])
@pytest.mark.parametrize("name", ["config.yaml", NAME])
def test_somebody_elses_files_are_left_alone(tmp_path, compose, name, content):
    (tmp_path / name).write_text(content)
    assert trouble(str(tmp_path), compose()) == "the folder holds files that are of no run; name a new or an empty one."
    assert (tmp_path / name).read_text() == content


def test_a_file_and_an_empty_name_are_no_folder(tmp_path, compose):
    (tmp_path / "file").write_text("")
    assert trouble(str(tmp_path / "file"), compose()) == "a file of that name is there; name a folder."
    assert "an empty name" in trouble(" ", compose())
