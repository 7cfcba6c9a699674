"""`lecture04 report --all-seeds`: seeds that other machines ran, found by what their identities were made of."""

import csv
import json
import math
import shutil

import pytest

from lecture04.config.messages import UserError
from lecture04.report import report
from lecture04.report.all_seeds import with_all_seeds
from lecture04.report.results import collect

VERSIONS = {"torch": "2", "numpy": "2"}
PPL = {"base": (3.822, 3.815, 3.824, 3.819, 3.817), "swiglu": (3.790, 3.785, 3.795, 3.788, 3.791)}
OURS, THEIRS = (2, 3, 4), (0, 1)


def write_identity(run, row, seed, *, code="a", versions=None, **config):
    content = {
        "config": {"ffn.name": row, **config, "seed": seed},
        "code": {"f": code},
        "versions": versions or VERSIONS,
    }
    (run / "identity.json").write_text(json.dumps(content))


@pytest.fixture
def merged(table_folder):
    """`merged(values)`: the table of seeds 2, 3, 4, with the runs of 0 and 1 beside its own, as after `cp -r`."""

    def merged(values=PPL, **settings):
        folder = table_folder(values, **settings)
        file = folder / "sweep.json"
        manifest = json.loads(file.read_text())
        for row, about in manifest["rows"].items():
            for seed, name in about["runs"].items():
                if (run := folder.parents[1] / "runs" / name).exists():
                    write_identity(run, row, int(seed))
            about["runs"] = {seed: name for seed, name in about["runs"].items() if int(seed) in OURS}
        manifest["command"] = "python train.py -m sweeps=mine seed=2,3,4"
        manifest["environment"] = VERSIONS | {"commit": "abc", "machine": "2 cores"}
        file.write_text(json.dumps(manifest))
        return folder

    return merged


def run_of(folder, row, seed):
    return folder.parents[1] / "runs" / f"{list(PPL).index(row)}-s{seed}"


def show(folder, manifest):
    """The table as it is printed; its files are written."""
    return "\n".join(report(folder, manifest, verbose=True))


def contrasts(folder):
    with open(folder / "contrasts.csv", newline="") as file:
        return [line for line in csv.DictReader(file) if line["corrected"] == "True"]


def test_all_seeds_are_judged_together_and_it_is_said(merged):
    folder = merged()
    manifest, said = with_all_seeds(folder)
    assert {row: list(about.runs) for row, about in manifest.rows.items()} == dict.fromkeys(PPL, [0, 1, 2, 3, 4])
    assert said[0] == f"mine: added from {folder.parents[1] / 'runs'}: seeds 0, 1 in every row."
    assert len(said) == 2
    text = show(folder, manifest)
    assert "(5)" in text
    assert collect(folder).values("test/ppl") == {row: dict(enumerate(values)) for row, values in PPL.items()}
    assert manifest.command == "python train.py -m sweeps=mine seed=0,1,2,3,4"
    assert manifest.environment == VERSIONS, "the rest was one machine's"


def test_a_look_more_than_declared_is_judged_at_half_the_level_and_said(merged, words):
    from lecture04.report.comparison import judge_all
    from lecture04.report.table import build

    folder = merged()
    manifest, said = with_all_seeds(folder)
    expected = (
        "udged with 5 seeds, 3 were declared (2, 3, 4): this is look 2 at them, and 1 was declared, so it is judged "
    )
    assert f"J{expected}at 2.5 % and not at 5 %." in said
    show(folder, manifest)
    assert {line["alpha"] for line in contrasts(folder)} == {"0.025"}
    results = collect(folder)
    assert f"j{expected}" in words(build(results, judge_all(results))[0])
    assert f"j{expected}" in " ".join("\n".join(report(folder)).split()), "on the first screen too"


def test_declared_looks_are_not_counted_twice(merged):
    folder = merged(looks=2)
    manifest, said = with_all_seeds(folder)
    assert said[1].endswith("this is look 2 of 2 that were declared (sweep.looks), each judged at 2.5 %.")
    show(folder, manifest)
    assert {line["alpha"] for line in contrasts(folder)} == {"0.025"}


def test_a_second_time_adds_nothing_and_is_no_look(merged):
    folder = merged()
    first, _ = with_all_seeds(folder)
    text = show(folder, first)
    again, said = with_all_seeds(folder)
    assert again == first
    assert said == [f"mine: {folder.parents[1] / 'runs'} holds no seed beyond those of the table, 0, 1, 2, 3, 4."]
    assert show(folder, again) == text


def test_a_third_machines_seeds_are_a_third_look(merged):
    folder = merged()
    show(folder, with_all_seeds(folder)[0])
    for row in PPL:
        shutil.copytree(run_of(folder, row, 0), run_of(folder, row, 9))
        write_identity(run_of(folder, row, 9), row, 9)
    manifest, said = with_all_seeds(folder)
    assert manifest.earlier == ((2, 3, 4), (0, 1, 2, 3, 4))
    assert "6 seeds, 3 were declared" in said[1]
    show(folder, manifest)
    assert all(float(line["alpha"]) == pytest.approx(0.05 / 3) for line in contrasts(folder))


def test_a_diverged_run_is_a_seed_like_any_other(merged):
    folder = merged(PPL | {"swiglu": (math.nan, *PPL["swiglu"][1:])})
    manifest, _ = with_all_seeds(folder)
    assert 0 in manifest.rows["swiglu"].runs
    assert "diverged 1/5" in show(folder, manifest)


def test_a_failed_run_is_none(merged):
    folder = merged(PPL | {"swiglu": ("failed", *PPL["swiglu"][1:])})
    manifest, said = with_all_seeds(folder)
    assert list(manifest.rows["swiglu"].runs) == [1, 2, 3, 4]
    assert said[0].endswith(": seeds 0, 1 of base; seed 1 of swiglu.")


@pytest.mark.parametrize("what", [{"code": "b"}, {"versions": {"torch": "3", "numpy": "2"}}], ids=["code", "versions"])
def test_runs_of_other_code_or_versions_are_named_and_not_added(merged, what):
    folder = merged()
    for row in PPL:
        write_identity(run_of(folder, row, 0), row, 0, **what)
    manifest, said = with_all_seeds(folder)
    assert list(manifest.rows["base"].runs) == [1, 2, 3, 4]
    assert "Left out as other code, or other versions of torch and numpy, made them: 0-s0, 1-s0. Why: " in said[2]
    assert f"lecture04 runs explain 0-s2 0-s0 --outputs {folder.parents[1]}" in said[2]


def test_runs_of_another_config_are_nobodys_business(merged):
    folder = merged()
    for seed in THEIRS:
        write_identity(run_of(folder, "base", seed), "base", seed, **{"optim.lr": 1})
    manifest, said = with_all_seeds(folder)
    assert [list(row.runs) for row in manifest.rows.values()] == [[2, 3, 4], [0, 1, 2, 3, 4]]
    assert said[0].endswith(": seeds 0, 1 of swiglu.")
    assert len(said) == 2


def test_a_run_without_the_tables_evaluation_is_named_with_the_command_that_makes_it(merged):
    folder = merged()
    (run_of(folder, "base", 0) / "evals" / "key.json").unlink()
    manifest, said = with_all_seeds(folder)
    assert list(manifest.rows["base"].runs) == [1, 2, 3, 4]
    assert said[2].endswith("evaluation: 0-s0. To make it: python train.py -m sweeps=mine seed=0,1,2,3,4")


def test_a_row_none_of_whose_runs_is_there_is_said(merged):
    folder = merged()
    for seed in OURS:
        shutil.rmtree(run_of(folder, "base", seed))
    manifest, said = with_all_seeds(folder)
    assert list(manifest.rows["base"].runs) == [2, 3, 4]
    assert said[-1] == "None of its own runs is there, so that no seed could be added: base."


def test_a_run_whose_record_says_nothing_of_its_identity_is_left_alone(merged):
    folder = merged()
    for text, seed in (("{", 0), ('{"config": [], "code": {}, "versions": {}}', 1)):
        (run_of(folder, "base", seed) / "identity.json").write_text(text)
    manifest, _ = with_all_seeds(folder)
    assert list(manifest.rows["base"].runs) == [2, 3, 4]


def test_a_table_that_is_not_there_is_one_sentence(merged):
    with pytest.raises(UserError, match="no table lies there. Choices: mine"):
        with_all_seeds(merged().parent / "yours")


def test_names_are_asked_for(forked, merged):
    outputs = merged().parents[1]
    done = forked("lecture04.cli.main", "report", "--all-seeds", "--outputs", str(outputs), cwd=outputs)
    assert done.returncode == 1
    assert done.stderr == "--all-seeds: name the tables; for each it is one more look at its seeds.\n"
    before = (outputs / "sweeps" / "mine" / "sweep.json").read_text()
    named = forked("lecture04.cli.main", "report", "--all-seeds", "mine", "--outputs", str(outputs), cwd=outputs)
    assert named.returncode == 0
    assert "seeds 0, 1 in every row.\n" in named.stdout
    assert "(5)" in named.stdout
    assert "torch" not in named.imported
    assert (outputs / "sweeps" / "mine" / "sweep.json").read_text() != before
