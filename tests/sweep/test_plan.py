"""Plans on real configs: every row is checked before anything starts."""

import json
import math
import shlex
from collections import Counter

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser
from hypothesis import given
from hypothesis import strategies as st
from omegaconf import OmegaConf

from lecture04 import stats
from lecture04.config import Design, Table
from lecture04.config.errors import UserError
from lecture04.config.typed import quoted
from lecture04.records.record import Status
from lecture04.report import columns
from lecture04.report.manifest import Manifest
from lecture04.sweep import command, forecast, plan, show_plan
from lecture04.sweep.launch import TRIES, launch, missing


def star(rows, **settings):
    return Table(**{"name": "mine", "design": Design.star, "seeds": [0, 1], "rows": rows, **settings})


def test_jobs_go_seed_by_seed_so_that_a_killed_sweep_leaves_every_row_with_a_seed(plan_of):
    jobs = plan_of(star({"a": ["ffn=relu"], "b": ["ffn=swiglu"]})).jobs
    assert [(job.seed, job.row) for job in jobs] == [(0, "a"), (0, "b"), (1, "a"), (1, "b")]
    assert all(job.request.run.seed == job.seed for job in jobs)
    assert jobs[3].overrides == ("ffn=swiglu", "seed=1")


def test_seeds_typed_replace_those_of_the_file(plan_of):
    assert plan_of(star({"a": []}), "seed=range(0,4)").seeds == (0, 1, 2, 3)
    assert plan_of(star({"a": []})).seeds == (0, 1)


def test_a_plain_multirun_has_seed_zero_where_none_is_typed(plan_of):
    assert plan_of(Table(), "ffn=relu,swiglu").seeds == (0,)


def test_every_rows_errors_come_at_once(plan_of):
    sweep = star({"a": ["model.n_heads=5"], "b": ["attention=gqa", "attention.n_kv_heads=3"], "c": ["ffn=swigl"]})
    with pytest.raises(UserError) as error:
        plan_of(sweep)
    text = str(error.value)
    assert "row 'a': model.n_heads=5" in text
    assert "row 'b': attention.n_kv_heads=3" in text
    assert "row 'c': ffn=swigl" in text
    assert "swiglu" in text


def test_rows_with_the_same_run_are_refused(plan_of):
    with pytest.raises(UserError, match="rows 'a' and 'b'"):
        plan_of(star({"a": ["ffn=swiglu"], "b": ["ffn=swiglu", "ffn.d_ff=170"]}))


def test_no_seeds_are_refused(plan_of):
    with pytest.raises(UserError, match=r"sweep\.seeds"):
        plan_of(star({"a": []}, seeds=[]))


@pytest.mark.parametrize(("field", "value"), [("primary", "test/nl"), ("columns", ["test/pppl"])])
def test_a_metric_that_nobody_measures_is_refused_with_the_nearest(plan_of, field, value):
    with pytest.raises(UserError, match=rf"sweep\.{field}.*Did you mean test/"):
        plan_of(star({"a": []}, **{field: value}))


def test_an_earlier_metrics_name_and_a_declared_column_may_be_asked_for(plan_of, monkeypatch):
    monkeypatch.setattr(columns, "DECLARED", {})
    columns.column("spread", "spread")(lambda results, row: 0.0)
    p = plan_of(star({"a": []}, primary="possessive/accuracy", columns=["possessive/n", "spread", "test/nll@0-63"]))
    assert p.sweep.primary == "pronouns/accuracy"
    assert p.manifest("").columns == ("pronouns/n", "spread", "test/nll@0-63")
    with pytest.raises(UserError, match=r"sweep\.columns=sprad.*Did you mean spread"):
        plan_of(star({"a": []}, columns=["sprad"]))
    with pytest.raises(UserError, match=r"sweep\.primary=spread: nothing measures this"):
        plan_of(star({"a": []}, primary="spread"))


def test_a_primary_that_no_seed_moves_is_refused(plan_of):
    with pytest.raises(UserError, match=r"sweep\.primary=params: seeds do not move it.*test/nll"):
        plan_of(star({"a": []}, primary="params"))


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"delta": 0.0}, r"sweep\.delta=0\.0: must be above 0"),
        ({"delta": -0.1}, r"sweep\.delta=-0\.1: must be above 0"),
        ({"delta": math.inf}, r"sweep\.delta=inf: must be finite"),
        ({"looks": 0}, r"sweep\.looks=0: must be at least 1"),
    ],
)
def test_a_margin_and_looks_that_cannot_be_are_refused(plan_of, settings, said):
    with pytest.raises(UserError, match=said):
        plan_of(star({"a": []}, **settings))


def test_the_manifest_says_all_that_the_report_asks_of_it(plan_of):
    p = plan_of(star({"a": ["ffn=relu"], "b": ["ffn=swiglu"]}, delta=0.01, looks=2, title="Mine"))
    manifest = p.manifest("python train.py -m sweeps=mine")
    assert list(manifest.rows) == ["a", "b"]
    assert [list(row.runs) for row in manifest.rows.values()] == [[0, 1], [0, 1]]
    assert (manifest.delta, manifest.looks, manifest.title) == (0.01, 2, "Mine")
    written = json.loads(json.dumps(manifest.to_json()))
    assert Manifest.from_json(written, file="sweep.json", name="mine") == manifest


def test_what_is_wrong_with_every_row_is_said_once(plan_of):
    with pytest.raises(UserError) as error:
        plan_of(star({"a": ["ffn=relu"], "b": ["ffn=gelu", "attention=gqa"]}), "model.n_heads=5")
    assert str(error.value).startswith("model.n_heads=5: must divide")
    assert len(str(error.value).splitlines()) == 1
    with pytest.raises(UserError, match="row 'b': model.n_heads=5"):
        plan_of(star({"a": ["ffn=relu"], "b": ["model.n_heads=5"]}))


def test_a_setting_that_every_swept_part_has_is_set_of_each(plan_of):
    found = plan_of(Table(), "posenc=rope,rope_half", "posenc.base=500")
    assert [job.request.run.posenc.base for job in found.jobs] == [500, 500]


def test_a_setting_that_one_swept_part_lacks_names_it_and_those_that_have_it(plan_of):
    with pytest.raises(UserError) as error:
        plan_of(Table(), "posenc=rope,alibi", "posenc.base=500")
    assert str(error.value) == (
        "row 'alibi': posenc.base=500: no such setting of posenc=alibi. That is a setting of posenc=rope, rope_half."
    )


def test_a_run_is_repeated_with_the_folder_of_yamls_that_was_typed(plan_of, monkeypatch):
    monkeypatch.setattr("sys.argv", ["lecture04"])
    (job,) = plan_of(Table(), "ffn=swiglu").jobs
    assert command.repeat(job) == "lecture04 train ffn=swiglu seed=0"
    typed = ["-m", "ffn=swiglu", "--config-dir", "my conf"]
    assert shlex.split(command.repeat(job, typed))[2:] == ["--config-dir", "my conf", "ffn=swiglu", "seed=0"]


class Launcher:
    """A launcher whose workers do what `work` says, and may die with everybody's results."""

    def __init__(self, plan, work):
        self.jobs, self.work, self.launches = {job.overrides: job for job in plan.jobs}, work, []

    def launch(self, job_overrides, initial_job_idx):
        told = [[line for line in lines if not line.startswith("origin.")] for lines in job_overrides]
        self.launches.append([self.jobs[tuple(lines)] for lines in told])
        for n, job in enumerate(self.launches[-1]):
            self.work(len(self.launches), n, job)
        return []


def finish(job):
    job.record.start(job.request.run, job.request.evaluation, "")
    job.record.finish(Status.finished, job.request.run, "", metrics={})
    job.record.write_evaluation(job.key, {"metrics": {"test/nll": 1.0}})


def finish_at(job, nll):
    """As `finish`, with a test NLL of one's own and without a launcher."""
    job.record.folder.mkdir(parents=True, exist_ok=True)
    job.record.start(job.request.run, job.request.evaluation, "")
    job.record.finish(Status.finished, job.request.run, "", metrics={})
    job.record.write_evaluation(job.key, {"metrics": {"test/nll": nll, "test/ppl": math.exp(nll)}})


def test_more_seeds_train_only_the_new_ones(plan_of):
    rows = {"a": ["ffn=relu"], "b": ["ffn=swiglu"]}
    for job in plan_of(star(rows)).jobs:
        finish_at(job, 1.3)
    p = plan_of(star(rows), "seed=range(0,4)")
    assert [(job.row, job.seed) for job in missing(p.jobs)] == [("a", 2), ("b", 2), ("a", 3), ("b", 3)]


ROWS = {"a": ["ffn=relu"], "b": ["ffn=swiglu"], "c": ["ffn=gelu"]}
NOISE = (0.0, 0.002, -0.003)


def finished(plan_of, differences, **settings):
    """A plan whose rows' runs are there, each row this much over the first."""
    p = plan_of(star(dict(list(ROWS.items())[: len(differences)]), seeds=[0, 1, 2], **settings))
    for job in p.jobs:
        n = list(ROWS).index(job.row)
        finish_at(job, 1.3 + list(differences)[n] + NOISE[(job.seed + n) % 3])
    return p


@pytest.mark.parametrize("n_rows", [2, 3])
@pytest.mark.parametrize("n", [2, 3, 5])
def test_a_stars_reach_is_that_of_the_statistics(plan_of, n_rows, n):
    p = plan_of(star(dict(list(ROWS.items())[:n_rows])))
    assert forecast.smallest_effects(p, n) == {"star": pytest.approx(stats.smallest_effect(n, n_rows - 1))}
    looked = plan_of(star(dict(list(ROWS.items())[:n_rows]), looks=2))
    assert forecast.smallest_effects(looked, n)["star"] == pytest.approx(
        stats.smallest_effect(n, n_rows - 1, alpha=0.025)
    )


def test_a_paths_reach_has_both_families_and_a_grids_one(plan_of):
    path = forecast.smallest_effects(plan_of(star(ROWS, design=Design.path)), 3)
    assert list(path) == ["step", "total"]
    slices = {"slow": ["optim.lr=1e-4"], "fast": ["optim.lr=1e-3"]}
    grid = forecast.smallest_effects(plan_of(star(ROWS, design=Design.grid, slices=slices)), 3)
    assert list(grid) == ["grid"]
    assert forecast.smallest_effects(plan_of(star(ROWS)), 1) == {"star": math.inf}
    assert not forecast.forecast(plan_of(star({"a": []})))


def test_without_runs_the_reach_is_in_units_of_the_noise(plan_of):
    (table,) = forecast.forecast(plan_of(star(ROWS, seeds=[0, 1, 2])))
    assert table.rows[0][0].text == "3 (planned)"
    assert table.rows[0][1].text == f"{stats.smallest_effect(3, 2):.1f} times the noise"
    assert [row[0].text for row in table.rows] == ["3 (planned)", "5", "10"]


def test_with_runs_the_reach_is_in_percent_and_nats_and_undecided_rows_say_how_many_more(plan_of):
    p = finished(plan_of, (0.0, -0.05, 0.004))
    reach, needs = forecast.forecast(p)
    values = {row: {job.seed: job.record.metrics(job.key)["test/nll"] for job in p.of_row(row)} for row in ROWS}
    better, open_one = stats.judge(values)
    assert (better.verdict, open_one.verdict) == ("better", "within noise")
    nats = forecast.smallest_effects(p, 3)["star"] * open_one.s
    assert f"({nats:.4f} nats)" in reach.rows[0][1].text
    assert f"{100 * math.expm1(nats):.2f} %" in reach.rows[0][1].text
    assert [row[0].text for row in needs.rows] == ["c"], "what is decided needs no more"
    needed = open_one.seeds_needed.n
    said = dict(zip(needs.headings, needs.rows[0], strict=True))
    assert said["seeds needed"].text == f"{needed} (from {open_one.seeds_needed.least})"
    assert said["more seeds"].value == needed - 3
    assert "seeds for margin" not in said


def test_a_declared_margin_comes_first_in_what_is_needed(plan_of):
    p = finished(plan_of, (0.0, -0.05, 0.004), delta=0.002)
    _, needs = forecast.forecast(p)
    assert needs.legend[0].term == "seeds for margin"
    assert needs.headings.index("seeds for margin") < needs.headings.index("seeds needed")
    said = dict(zip(needs.headings, needs.rows[0], strict=True))
    assert said["more seeds"].value == said["seeds for margin"].value - 3 > 0


@pytest.mark.parametrize("columns", ["80", "120"])
def test_the_printed_plan_keeps_the_width_and_every_row(plan_of, monkeypatch, capsys, columns):
    p = finished(plan_of, (0.0, -0.05, 0.004))
    monkeypatch.setattr("rich.console.Console.is_terminal", True)
    monkeypatch.setattr("rich.console.Console.width", int(columns))
    monkeypatch.setenv("NO_COLOR", "1")
    show_plan.print_plan(p, 2)
    printed = capsys.readouterr().out
    table = printed.split("seeds 0, 1, 2; 9 runs, 0 to train, nothing started")[0]
    assert all(len(line) <= int(columns) for line in table.splitlines())
    for text in ("kFLOP/token", "0 1 2", "+0.00%", "What the seeds can find", "Not decided yet"):
        assert text in printed


def test_what_a_dead_worker_left_is_launched_again(plan_of):
    p = plan_of(star({"a": ["ffn=relu"], "b": ["ffn=swiglu"]}))

    def work(launch, n, job):
        if launch == 1 and n == 1:
            job.record.start(job.request.run, job.request.evaluation, "")
            raise RuntimeError("a worker was killed")
        finish(job)

    launcher = Launcher(p, work)
    launch(p, launcher)
    assert [len(jobs) for jobs in launcher.launches] == [4, 2, 1], "the one that had begun is launched by itself"
    assert not missing(p.jobs)


def test_a_run_that_always_kills_its_worker_ends_as_failed(plan_of):
    p = plan_of(star({"a": ["ffn=relu"], "b": ["ffn=swiglu"]}))

    starts = Counter()

    def work(launch, n, job):
        if job.row == "b":
            starts[job.seed] += 1
            job.record.start(job.request.run, job.request.evaluation, "")
            raise RuntimeError("out of memory")
        finish(job)

    launcher = Launcher(p, work)
    launch(p, launcher)
    assert starts == {0: TRIES, 1: TRIES}
    assert {job.row for job in missing(p.jobs)} == {"b"}
    assert all("out of memory" in (job.error or "") for job in missing(p.jobs))


def test_a_launcher_that_never_works_ends_with_every_run_failed(plan_of):
    p = plan_of(star({"a": ["ffn=relu"]}))

    def work(launch, n, job):
        raise RuntimeError("no such queue")

    launch(p, launcher := Launcher(p, work))
    assert len(launcher.launches) == TRIES
    assert all("no such queue" in (job.error or "") for job in p.jobs)


def test_a_failed_run_is_not_launched_again_in_the_same_sweep_but_in_the_next(plan_of):
    p = plan_of(star({"a": ["ffn=relu"], "b": ["ffn=swiglu"]}))

    def work(launch, n, job):
        if job.row == "b":
            job.record.finish(Status.failed, job.request.run, "", error="boom")
        else:
            finish(job)

    for launcher in (Launcher(p, work), Launcher(p, work)):
        launch(p, launcher)
        assert len(launcher.launches) == 1
        assert {job.row for job in launcher.launches[0]} >= {"b"}


def test_status_counts_a_result_only_with_its_evaluation(plan_of):
    (job,) = plan_of(star({"a": []}, seeds=[0])).jobs
    job.record.start(
        job.request.run, job.request.evaluation, ""
    ) if job.record.folder.exists() else job.record.folder.mkdir(parents=True)
    job.record.finish(Status.finished, job.request.run, "", metrics={})
    assert plan.status_of(job) is Status.missing
    job.record.write_evaluation(job.key, {"error": "boom"})
    assert plan.status_of(job) is Status.failed
    job.record.write_evaluation(job.key, {"metrics": {}})
    assert plan.status_of(job) is Status.finished


UPTRAINED = ["attention=mqa", "init=uptrain", "init.source=['attention=mha']", "trainer.steps=3"]


def test_what_a_run_starts_from_is_launched_before_it(plan_of):
    p = plan_of(star({"MQA": UPTRAINED}, common=["data.n_train=80"]))
    sources, own = p.waves
    assert [job.overrides for job in sources] == [("attention=mha", "data.n_train=80", f"seed={i}") for i in (0, 1)]
    assert [
        (job.request.run.attention.name, job.request.run.seed, job.request.run.data.n_train) for job in sources
    ] == [
        ("mha", 0, 80),
        ("mha", 1, 80),
    ]
    launcher = Launcher(p, lambda launch, n, job: finish(job))
    launcher.jobs |= {job.overrides: job for job in sources}
    launch(p, launcher)
    assert launcher.launches == [sources, own]
    assert len(p.runs) == 4


def test_a_source_that_is_a_row_of_the_sweep_is_trained_once(plan_of):
    p = plan_of(star({"MHA": [], "MQA": UPTRAINED}))
    assert len(p.runs) == len(p.jobs) == 4
    launcher = Launcher(p, lambda launch, n, job: finish(job))
    launcher.jobs |= {job.overrides: job for job in p.waves[0]}
    launch(p, launcher)
    assert [len(jobs) for jobs in launcher.launches] == [2, 2]


def test_a_run_has_the_identity_of_its_source(plan_of):
    def folders(*source):
        line = f"init.source=[{','.join(map(repr, source))}]"
        return [job.record.folder.name for job in plan_of(star({"MQA": [*UPTRAINED, line]})).jobs]

    assert folders("attention=mha") == folders("attention=gqa", "attention.n_kv_heads=4", "attention=mha")[:2]
    assert not set(folders("attention=mha")) & set(folders("attention=mha", "trainer.epochs=3"))


def test_uptraining_keeps_its_sources_d_ff(plan_of):
    (job, *_) = plan_of(star({"MQA": [*UPTRAINED, "init.source=['ffn=relu','ffn.d_ff=77']"]})).jobs
    assert job.request.run.ffn.d_ff == 77


# Every third one in the normal suite: Hydra takes its time over each.
SOURCES = [
    pytest.param(*case, marks=[pytest.mark.slow] * (i % 3 > 0))
    for i, case in enumerate(
        [
            (["init=uptrain"], r"init\.source=\[\]: name the run to start from"),
            (["init=uptrain", "init.source=['ffn=gelu']"], r"init\.source: its ffn\.name is gelu, this run's relu"),
            (["init=uptrain", "init.source=['model.n_layers=3']"], r"its model\.n_layers is 3, this run's 2"),
            (["init=uptrain", "init.source=['attention=mqa']"], r"attention\.n_kv_heads=4: must divide its source's 1"),
            (["init=uptrain", "init.source=['attention=mla']"], r"a latent has none"),
            (["init=uptrain", "init.source=['seed=3']"], r"init\.source: seed=3 cannot stand there"),
            (["init=uptrain", "init.source=['ffn=nope']"], r"init\.source: ffn=nope: there is no such choice"),
            (["init=uptrain", "init.source=['optim.lr=-1']"], r"init\.source: optim\.lr=-1"),
        ]
    )
]


@pytest.mark.parametrize(("lines", "said"), SOURCES)
def test_a_source_that_cannot_be_is_said(plan_of, lines, said):
    with pytest.raises(UserError, match=said):
        plan_of(star({"a": lines}))


def test_rows_that_test_one_run_in_two_ways_launch_it_once_at_a_time(plan_of):
    common = ["data=garden_packed", "posenc=rope", "trainer.steps=2"]
    rows = {"short": [], "long": ["eval.length=128"], "linear": ["eval.length=128", "eval.scaling.name=linear"]}
    p = plan_of(star(rows, common=common, seeds=[0]))
    assert len({job.record.folder for job in p.jobs}) == 1
    assert len({job.key for job in p.jobs}) == 3
    launcher = Launcher(p, lambda launch, n, job: finish(job))
    launch(p, launcher)
    assert [[job.row for job in jobs] for jobs in launcher.launches] == [["short"], ["long"], ["linear"]]
    assert len(p.runs) == 1


@given(
    st.text(alphabet=st.characters(blacklist_categories=("C",)), max_size=20)
    | st.text("'\\\"{}=,$[]() ab", max_size=12)
)
def test_any_row_name_survives_hydras_grammar(text):
    (override,) = OverridesParser.create().parse_overrides([f"origin.row={quoted(text)}"])
    assert OmegaConf.create({"row": override.value()}).row == text


def test_the_time_left_takes_what_surrounds_the_training_once_a_run(tmp_path):
    assert show_plan.pace(tmp_path) is None
    for name, documents, train, wall in (("short", 100, 1.0, 16.0), ("long", 10_000, 100.0, 110.0)):
        folder = tmp_path / "runs" / f"{name}-s0-0123456789-abcdef"
        folder.mkdir(parents=True)
        metrics = {"documents": documents, "flops_per_token": 10, "train_seconds": train, "wall_seconds": wall}
        (folder / "summary.json").write_text(json.dumps({"status": "finished", "metrics": metrics}))
    found = show_plan.pace(tmp_path)
    assert found.minutes([100_000], 1) == pytest.approx((100 + 12.5) / 60)
    assert found.minutes([100_000, 1_000], 2) == pytest.approx((101 + 25) / 120)


def test_a_manifest_says_nothing_of_the_session(plan_of):
    """Typed with a logger or without, it is the same table."""
    rows = {"a": ["ffn=relu"], "b": ["ffn=swiglu"]}
    plain, logged = (plan_of(star(rows), *typed).manifest("") for typed in ((), ("logger=none", "paths.outputs=x")))
    assert plain.rows["b"].overrides == logged.rows["b"].overrides == ("ffn=swiglu",)
