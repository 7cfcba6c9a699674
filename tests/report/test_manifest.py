"""The manifest comes back from its file as it was written, and an incomplete one is one sentence."""

import json
from dataclasses import replace

import pytest

from lecture04.config.messages import UserError
from lecture04.report.manifest import Manifest, ManifestRow

ROW = ManifestRow("key", 0.01, {0: "a-s0", 1: "a-s1"}, (1,), ("ffn=swiglu",))
STAR = Manifest("mine", "Mine", "star", "test/nll", ("test/ppl", "params"), None, 1, "make it", {"a": ROW, "b": ROW})
GRID = replace(STAR, design="grid", delta=0.01, rows={"a": replace(ROW, slice="x"), "b": replace(ROW, slice="y")})


def read(content):
    return Manifest.from_json(content, file="sweep.json", name="mine")


@pytest.mark.parametrize("manifest", [STAR, GRID, replace(STAR, environment={"torch": "2.6"})])
def test_a_manifest_comes_back_from_its_file(manifest):
    content = json.loads(json.dumps(manifest.to_json()))
    assert read(content) == manifest
    assert ("environment" in content) == (manifest.environment is not None)
    assert all(("slice" in row) == (manifest.design == "grid") for row in content["rows"].values())


def test_what_older_files_do_not_have_need_not_be_there():
    content = STAR.to_json()
    for row in content["rows"].values():
        del row["overrides"]
    assert read(content) == replace(STAR, rows={name: replace(ROW, overrides=()) for name in "ab"})


def test_all_that_is_missing_is_said_at_once():
    content = GRID.to_json()
    del content["looks"], content["rows"]["b"]["runs"], content["rows"]["a"]["slice"]
    with pytest.raises(UserError, match=r"sweep\.json: says nothing of looks, slice, runs; `make it` writes it again"):
        read(content)
