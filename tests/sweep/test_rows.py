"""Rows from what was typed: pure text, no config is composed."""

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser

from lecture04.config import Design, Table
from lecture04.config.errors import UserError
from lecture04.sweep.rows import asked, file_rows, plain_rows, table_name, title

GROUPS = {"ffn", "norm", "placement", "posenc", "recipe"}


def ask(*lines):
    return asked(OverridesParser.create().parse_overrides(list(lines)))


def is_group(key):
    return key in GROUPS


def rows_of(design, rows, *lines, common=(), slices=None):
    sweep = Table(name="mine", design=design, rows=rows, common=list(common), slices=slices or {}, seeds=[0])
    return {row.name: list(row.overrides) for row in file_rows(sweep, ask(*lines), is_group)}


def test_plain_rows_are_every_combination_of_the_swept_choices_but_the_seed():
    rows = plain_rows(ask("norm=rmsnorm", "ffn=relu,swiglu", "optim.lr=0.1,0.2", "seed=0,1"), is_group)
    assert [row.name for row in rows] == [
        "relu, optim.lr=0.1",
        "relu, optim.lr=0.2",
        "swiglu, optim.lr=0.1",
        "swiglu, optim.lr=0.2",
    ]
    assert rows[1].overrides == ("norm=rmsnorm", "ffn=relu", "optim.lr=0.2")


def test_one_row_alone_is_named_by_the_parts_it_chose():
    (row,) = plain_rows(ask("ffn=swiglu", "norm=rmsnorm", "optim.lr=0.1", "seed=0,1"), is_group)
    assert row.name == "swiglu, rmsnorm"
    assert plain_rows(ask("seed=0,1"), is_group)[0].name == "standard"


@pytest.mark.parametrize(
    ("text", "seeds"), [("seed=0,1,2", (0, 1, 2)), ("seed=7", (7,)), ("seed=range(0,4)", (0, 1, 2, 3))]
)
def test_seeds_are_read_from_every_form_hydra_knows(text, seeds):
    assert ask(text).seeds == seeds


def test_no_seed_typed_is_not_seed_zero():
    assert ask("ffn=relu").seeds is None


@pytest.mark.parametrize("text", ["seed=abc", "seed=-1", "seed=1.5", "seed=0,0", "seed=0,x"])
def test_seeds_that_are_no_distinct_whole_numbers_are_refused(text):
    with pytest.raises(UserError, match=r"seed="):
        ask(text)


def test_a_path_adds_up_and_a_star_does_not():
    rows = {"base": [], "+ a": ["ffn=swiglu"], "+ b": ["norm=rmsnorm"]}
    assert rows_of(Design.path, rows)["+ b"] == ["ffn=swiglu", "norm=rmsnorm"]
    assert rows_of(Design.star, rows)["+ b"] == ["norm=rmsnorm"]


def test_choosing_a_group_again_drops_what_was_set_inside_it():
    rows = {"a": ["posenc=rope", "posenc.base=500"], "b": ["posenc=sinusoidal"], "c": ["posenc.x=1"]}
    path = rows_of(Design.path, rows, common=["posenc.kept=1"])
    assert path["b"] == ["posenc.kept=1", "posenc=sinusoidal"]
    assert path["c"] == ["posenc.kept=1", "posenc=sinusoidal", "posenc.x=1"]


def test_choosing_a_recipe_drops_the_path_so_far():
    rows = {"a": ["placement=pre"], "b": ["recipe=llama"], "c": ["norm=layernorm"]}
    assert rows_of(Design.path, rows)["c"] == ["recipe=llama", "norm=layernorm"]


def test_the_command_line_wins_over_common_and_rows_win_over_both():
    rows = rows_of(Design.star, {"a": ["ffn=swiglu"]}, "optim.lr=0.1", common=["optim.lr=0.2", "ffn=relu"])
    assert rows["a"] == ["optim.lr=0.1", "ffn=swiglu"]


def test_what_a_row_sets_cannot_be_fixed_for_all():
    with pytest.raises(UserError, match=r"ffn=relu: row 'a' of sweeps=mine sets this itself"):
        rows_of(Design.star, {"a": ["ffn=swiglu"]}, "ffn=relu")


def test_a_second_swept_key_beside_a_sweep_file_is_refused():
    with pytest.raises(UserError, match=r"norm=layernorm,rmsnorm: sweeps=mine sets the rows"):
        rows_of(Design.star, {"a": ["ffn=swiglu"]}, "norm=layernorm,rmsnorm")


def test_a_sweep_file_without_rows_is_refused():
    with pytest.raises(UserError, match=r"sweep\.rows: sweeps=mine has none"):
        rows_of(Design.star, {})


@pytest.mark.parametrize(
    "line", ["seed=1", "ffn=relu,swiglu", "sweep.plan=true", "hydra/launcher=basic", "no equals sign"]
)
def test_what_is_no_setting_of_one_run_cannot_stand_in_a_row(line):
    with pytest.raises(UserError, match="row 'a'"):
        rows_of(Design.star, {"a": [line]})


def test_a_table_keeps_its_folder_over_seeds_and_leaves_it_for_other_settings():
    sweep = Table(name="mine", title="Mine", rows={"a": ["ffn=swiglu"]})

    def name(*lines):
        return table_name(sweep, ask(*lines), file_rows(sweep, ask(*lines), is_group))

    assert name() == name("seed=0,1,2") == name("logger=none", "paths.outputs=there") == "mine"
    assert name("optim.lr=0.1") == name("optim.lr=0.1", "logger=none")
    assert len({name(), name("optim.lr=0.1"), name("optim.lr=0.2")}) == 3
    assert title(sweep, ask("seed=0,1", "logger=none")) == "Mine"
    assert title(sweep, ask("optim.lr=0.1")) == "Mine (optim.lr=0.1)"


SLICES = {"slow": ["optim.lr=0.1"], "fast": ["optim.lr=0.2", "optim.clip=1"]}


def test_a_grid_has_every_row_in_every_slice_and_a_row_wins_over_its_slice():
    grid = rows_of(Design.grid, {"a": [], "b": ["ffn=swiglu", "optim.clip=2"]}, common=["norm=rmsnorm"], slices=SLICES)
    assert grid == {
        "slow: a": ["norm=rmsnorm", "optim.lr=0.1"],
        "slow: b": ["norm=rmsnorm", "optim.lr=0.1", "ffn=swiglu", "optim.clip=2"],
        "fast: a": ["norm=rmsnorm", "optim.lr=0.2", "optim.clip=1"],
        "fast: b": ["norm=rmsnorm", "optim.lr=0.2", "optim.clip=2", "ffn=swiglu"],
    }


def test_a_grids_rows_know_their_slice():
    sweep = Table(name="mine", design=Design.grid, rows={"a": [], "b": ["ffn=gelu"]}, slices=SLICES)
    assert [row.slice for row in file_rows(sweep, ask(), is_group)] == ["slow", "slow", "fast", "fast"]


@pytest.mark.parametrize(
    ("design", "slices", "line", "said"),
    [
        (Design.grid, {}, (), r"sweep\.slices: sweeps=mine is a grid and has none"),
        (Design.star, SLICES, (), r"sweep\.slices: sweeps=mine is a star; slices are for design: grid"),
        (Design.grid, SLICES, ("optim.lr=1",), r"optim\.lr=1: slice 'slow' of sweeps=mine sets this itself"),
        (Design.grid, {"x": ["seed=3"]}, (), r"slice 'x': 'seed=3' cannot stand in a row"),
    ],
)
def test_slices_that_do_not_fit_are_said(design, slices, line, said):
    with pytest.raises(UserError, match=said):
        rows_of(design, {"a": ["ffn=gelu"]}, *line, slices=slices)


SESSION_LINES = (
    *("logger=none", "logger.project=mine", "paths.outputs=there", "runs.reuse=config", "parts=[mine.py]"),
    "trainer.log_every=3",
)


@pytest.mark.parametrize("line", SESSION_LINES)
def test_the_session_names_no_row_and_no_table(line):
    def named(*lines):
        rows = plain_rows(ask("trainer.steps=5", "seed=0,1", *lines), {*GROUPS, "logger"}.__contains__)
        table = Table()
        return [row.name for row in rows], table_name(table, ask("trainer.steps=5", *lines), rows)

    assert named(line) == named()
    assert named()[0] == ["standard"]
    assert named("trainer.steps=6") != named()


def test_a_row_of_a_file_has_its_texts_as_they_stand_there():
    rows = rows_of(Design.star, {"a": ["init.folder=mein Ordner=1"]})
    assert rows["a"] == ["init.folder='mein Ordner=1'"]
