"""What is typed is what is meant: paths and texts of any signs, and commands that can be pasted back."""

import os
import shlex

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from lecture04.config.overrides import as_hydra_reads, command_line
from lecture04.config.typed import PATHS, in_shell, quoted, understood

SIGNS = st.text(st.characters(exclude_categories=("C", "Zl", "Zp")), min_size=1, max_size=12)
ODD = (
    "a=b",
    "x#y",
    "~x/y"[1:],
    "mein Ordner",
    " a  b ",
    "größe/日本",
    "it's",
    'a"b',
    "(x)",
    "[1]",
    "{a:1}",
    "a:b",
    "a\\",
)
ODD += ("\\'", "123", "1e3", "true", "-x", "@", "%", "a;b", "a&b", "$HOME", "☃")
# What is not a text as it stands: quotes, an interpolation, a function of Hydra's, nothing, a missing value.
PLAIN = SIGNS.filter(
    lambda text: text.strip() and text[0] not in "'\"~" and "${" not in text and text.lower() != "null"
)


CHEAP = hypothesis_settings(max_examples=40, deadline=None)


def value_of(line):
    (override,) = OverridesParser.create().parse_overrides([line])
    assert not override.is_sweep_override()
    return override.value()


@pytest.mark.parametrize("key", PATHS)
@pytest.mark.parametrize("text", [*ODD, "a,b"])
def test_a_path_is_what_was_typed(key, text):
    assert value_of(understood(f"{key}={text}")) == text


@CHEAP
@given(PLAIN)
def test_a_text_of_any_signs_is_what_was_typed(text):
    line = understood(f"paths.outputs={text}")
    assert value_of(line) == text
    assert understood(line) == line, "what is printed can be typed"


@CHEAP
@given(st.lists(PLAIN, min_size=1, max_size=3))
def test_what_a_command_prints_can_be_pasted_back(texts):
    words = as_hydra_reads(["-m", "ffn=relu,swiglu", *(f"logger.project={text}" for text in texts)])
    typed = shlex.split(command_line("train.py", words))
    assert typed[-len(words) :] == words == as_hydra_reads(words)


@CHEAP
@given(st.text(st.characters(exclude_characters="\x00", exclude_categories=("Cs",)), min_size=1, max_size=12))
def test_a_word_for_a_shell_is_read_as_it_was(word):
    assert shlex.split(in_shell(word)) == [word]


def test_home_is_home():
    assert value_of(understood("paths.outputs=~/results")) == os.path.expanduser("~/results")


@pytest.mark.parametrize(
    "line",
    [
        "paths.outputs='a=b'",
        'init.folder="a b"',
        "paths.outputs=${oc.env:HOME}/x",
        "init.folder=choice(a,b)",
        "paths.outputs=",
        "ffn=relu,swiglu",
        "optim.lr=1e-3",
        "init.source=['attention=mha']",
        "ffn=(relu",
        "=3",
        "swiglu",
    ],
)
def test_what_is_no_bare_text_stays_as_it_is(line):
    assert understood(line) == line
    assert understood(line, multirun=True) == line


def test_with_m_a_comma_stands_between_values_but_the_session_has_only_one():
    assert understood("init.folder=a b,c=d", multirun=True) == "init.folder=a b,'c=d'"
    assert value_of(understood("paths.outputs=a,b", multirun=True)) == "a,b"
    assert value_of(understood("sweep.title=one, two", multirun=True)) == "one, two"


def test_parts_of_any_name_are_a_list():
    assert value_of(understood("parts=[größe.py,mein teil.py]")) == ["größe.py", "mein teil.py"]


def test_a_choice_outside_ascii_reaches_the_sentence_on_choices():
    assert understood("ffn=größe") == f"ffn={quoted('größe')}"
