"""Tables that are no wider than a page."""

from dataclasses import replace

import pandas as pd

from lecture04.lecture.items import Item, Kind
from lecture04.lecture.pages import tables
from lecture04.lecture.probes import text
from lecture04.report.model import Table


def columns(folded):
    return [cell.strip() for cell in folded.markdown.splitlines()[0].strip("|").split("|")]


def test_no_table_of_a_sweep_has_more_columns_than_a_page_holds(evidence):
    results = evidence.sweep("relu_high_lr")
    found = tables.of_sweep(results)
    most = 1 + max(tables.FIGURES, tables.DIFFERENCES, tables.SEEDS)
    assert max(len(columns(folded)) for folded in found) <= most
    for folded in found:
        assert columns(folded)[0] == "row"
        assert len(folded.markdown.splitlines()) == 2 + len(results.rows)
    seeds = [name for folded in found for name in columns(folded) if name.startswith("seed ")]
    assert seeds == [f"seed {seed}" for seed in results.seeds]


def test_a_path_has_a_table_for_its_steps_and_one_for_its_totals(evidence):
    first, second, *_ = tables.of_sweep(evidence.sweep("recipe"))
    assert first.title.endswith("each row against the row before")
    assert second.title.endswith("each row against the first")
    assert "vs row before" in columns(first)[2]
    assert columns(second)[-1] == "verdict"


def test_a_legend_is_not_below_a_table(evidence):
    for folded in tables.of_sweep(evidence.sweep("recipe")):
        assert all(line.startswith("|") for line in folded.markdown.splitlines())


def test_what_is_odd_about_a_row_is_kept(kit):
    statuses = {("b", seed): "diverged" for seed in range(3)}
    results = kit.made_up("x", {"test/ppl": {row: kit.around(3.8) for row in "abc"}}, statuses=statuses)
    (note,) = tables.notes(results)
    assert note.startswith("b: 3 of 3 seeds diverged")


def test_a_probes_sentence_is_apart_from_its_tables(tmp_path):
    item = Item(Kind.probe, "x", ("probe.py", "probe=x"), tmp_path)
    frames = {"A": pd.DataFrame({"a": range(40)}), "B": pd.DataFrame({"b": [1]})}
    (tmp_path / "table.md").write_text(f"# X\n\n{text.markdown(frames, 'A rises.')}\nMade by `probe.py`.\n")
    found, sentence = tables.of_probe(item)
    assert sentence == "A rises."
    assert [folded.title for folded in found] == ["A", "B"]
    assert len(found[0].markdown.splitlines()) == 42


def test_folding_keeps_the_title():
    table = replace(Table.of_text("T | x", ["a", "b"], [["1", "2"]]), legend=())
    assert tables.folded(table).title == "T \\| x"
