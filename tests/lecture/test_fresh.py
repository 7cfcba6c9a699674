"""When an item has to be run: its result is missing, was made by other code or settings, or is another one."""

import json

import pytest

from lecture04.lecture import fresh
from lecture04.lecture.items import ITEMS

OF = {item.source: item for item in ITEMS}


@pytest.fixture
def made(tmp_path, monkeypatch):
    """`made(item)`: an item with a result that has just been made, in a folder of its own."""
    monkeypatch.chdir(tmp_path)

    def made(source):
        item = OF[source]
        item.folder.mkdir(parents=True)
        (item.folder / fresh.RESULT[item.kind]).write_text("value\n1\n")
        fresh.stamp(item)
        return item

    return made


@pytest.mark.parametrize("source", ["probe:rope", "probe:world", "test:textbook"])
def test_what_was_just_made_is_done(made, source):
    item = made(source)
    assert fresh.has_result(item)
    assert fresh.is_done(item)


def test_a_result_without_a_key_is_made_again(made):
    item = made("probe:rope")
    (item.folder / fresh.KEY).unlink()
    assert not fresh.has_result(item)


def test_the_same_probe_asked_by_hand_with_other_settings_is_not_ours(made):
    item = made("probe:rope")
    (item.folder / "table.csv").write_text("value\n2\n")
    assert not fresh.has_result(item)


def test_other_code_makes_another_result(made, monkeypatch):
    item = made("probe:rope")
    monkeypatch.setattr(fresh, "project", lambda: "other")
    assert not fresh.has_result(item)


def test_other_runs_make_another_result(made):
    item = made("probe:world")
    table = item.needs[0].folder / "sweep.json"
    table.parent.mkdir(parents=True)
    table.write_text(json.dumps({"rows": {"LayerNorm": {"runs": {"0": "a-run"}}}}))
    assert not fresh.has_result(item)
    fresh.stamp(item)
    assert fresh.has_result(item)


def test_the_key_of_an_item_is_its_own():
    probes = [item for item in ITEMS if item.source.startswith("probe:")]
    assert len({fresh.key(item) for item in probes}) == len(probes)


def test_a_table_of_the_plan_is_there_but_not_done_while_runs_are_missing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    item = OF["sweep:norm"]
    fresh.planned.cache_clear()
    with fresh.composing():
        assert not fresh.has_result(item)
        plan = fresh.plan_of(item)
        item.folder.mkdir(parents=True)
        manifest = plan.manifest("python train.py -m sweeps=norm").to_json() | {"environment": {"python": "3"}}
        (item.folder / "sweep.json").write_text(json.dumps(manifest))
        assert fresh.has_result(item)
        assert not fresh.is_done(item)
        (item.folder / "sweep.json").write_text(json.dumps(manifest | {"primary": "test/ppl"}))
        assert not fresh.has_result(item)
    fresh.planned.cache_clear()
