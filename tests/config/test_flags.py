"""What begins with a dash: Hydra's options, and habits of other tools. One sentence says what to type."""

import pytest

from lecture04.config.overrides import complaints
from lecture04.config.typed import understood


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--lr=0.01", "--lr=0.01: settings have no dashes here; write optim.lr=0.01."),
        ("--lr 0.01", "--lr: settings have no dashes here; write optim.lr=0.01."),
        ("-lr 0.01", "-lr: settings have no dashes here; write optim.lr=0.01."),
        ("--optim.lr=0.01", "write optim.lr=0.01."),
        ("--batch-size 8", "write trainer.batch_size=8."),
        ("--seed 3", "write seed=3."),
        ("--FFN swiglu", "write ffn=swiglu."),
        ("--ffn --norm", "write ffn=VALUE."),
        ("--multi", "--multi: there is no such option. Did you mean --multirun?"),
        ("--resume", "--resume: there is no such option; the same command goes on"),
        ("--nonsense", "--nonsense: there is no such option. Choices: -m, --multirun"),
        ("--experimental-rerun x", "--experimental-rerun: not offered; a run is repeated by its own command"),
        ("-cn probe", "--config-name: not offered"),
        ("--config-path=/tmp", "--config-path: not offered"),
        ("--cfg jobb", "--cfg jobb: there is no such choice. Did you mean job?"),
        ("--cfg", "--cfg/-c: expected one argument."),
        ("--info nothing", "nothing: there is no such choice. Choices: all, config"),
        ("--resolve", "--resolve: goes with --cfg job"),
        ("--config-dir=", "--config-dir: an empty name is no folder"),
        ("-r -m", "--run and --multirun: one of them at a time."),
        ("-m --cfg job", "--cfg shows the settings of a single run; leave -m away."),
        ("-sc foo", "-sc: write install=SHELL"),
        ("ffn=relu ffn=gelu", "ffn=gelu: ffn=relu is chosen already; to compare them write -m ffn=relu,gelu."),
        ("+trainer.steps=3", "to change one, write trainer.steps=3."),
        ("-sc install=tcsh", "-sc: write install=SHELL"),
    ],
)
def test_one_sentence_says_what_to_type(words, said):
    (sentence,) = complaints(words.split())
    assert said in sentence


@pytest.mark.parametrize(
    "words",
    [
        "",
        "-m ffn=relu,gelu",
        "--cfg job -p ffn",
        "--config-dir conf ffn=relu",
        "ffn=relu -m seed=0,1",
        "ffn=relu ffn=relu",
        "trainer.steps=30 trainer.steps=60",
        "-sc install=bash",
        "--info",
        "--version",
    ],
)
def test_options_that_there_are_pass(words):
    assert complaints(words.split()) == []


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("paths.outputs=", "paths.outputs=: no value stands there"),
        ("paths.outputs='  '", "no value stands there"),
        ("init.folder=", "init.folder=: no value stands there"),
        ("logger.project=", "logger.project=: no value stands there"),
        ("hydra.run.dir=", "hydra.run.dir=: no value stands there"),
        (
            "optim.lr=interval(1e-4,1e-2)",
            "an interval has no list of values; name those to compare, as in `-m optim.lr=",
        ),
        ("hydra.mode=MULTIRUN", "hydra.mode=MULTIRUN: a table is asked for by -m"),
        ("sweep.name=../../x", "sweep.name=../../x: not to be typed; a table has the name of its sweep file."),
        ("origin.row=x", "origin.row=x: not to be typed"),
        ("init.digest=x", "init.digest=x: not to be typed"),
    ],
)
@pytest.mark.parametrize("more", [[], ["-m"]])
def test_a_value_that_cannot_be_is_said_before_hydra_sees_it(word, said, more):
    (sentence,) = complaints([*more, understood(word, multirun=bool(more))])
    assert said in sentence
