import itertools
import logging
import math
import shutil
import subprocess
import sys
from dataclasses import fields

import numpy as np
import pytest

from lecture04 import config
from lecture04.config import UserError
from lecture04.config.registry import PACKAGE
from lecture04.config.resolve import resolve
from lecture04.data.garden import source
from lecture04.data.garden.garden import WORDS, language
from lecture04.data.garden.source import garden, garden1
from lecture04.data.garden.words import POSSESSIVES
from lecture04.data.types import Corpus

SMALL = {"n_train": 60, "n_val": 20, "n_test": 30, "world_seed": 0}
SPLITS = ("train", "val", "test")


TOKEN_ID = {word: token for token, word in enumerate(WORDS)}


def load(folder, **options):
    splits = garden(config.Garden(name="garden", **options), folder)
    return Corpus(**{f.name: getattr(splits, f.name) for f in fields(splits)}, layout=None)


def arrays(split):
    return {"tokens": split.tokens, "offsets": split.offsets, **split.facts}


def files(folder):
    return sorted(path.name for path in folder.iterdir() if path.suffix != ".lock")


def same(a, b):
    pairs = [(arrays(getattr(a, split)), arrays(getattr(b, split))) for split in SPLITS]
    return all(x.keys() == y.keys() and all(np.array_equal(x[name], y[name]) for name in x) for x, y in pairs)


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    return load(tmp_path_factory.mktemp("small"), **SMALL)


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    return load(tmp_path_factory.mktemp("large"), n_train=2500, n_val=1000, n_test=1000, world_seed=0)


def test_the_arrays_hold_documents_end_to_end(small):
    assert small.vocab_size == 92
    assert small.tokenizer.encode(" ".join(WORDS)).ids == list(range(92))
    for name, n_docs in zip(SPLITS, (60, 20, 30), strict=True):
        split = getattr(small, name)
        assert split.n_docs == n_docs
        assert split.offsets[0] == 0
        assert split.offsets[-1] == len(split.tokens)
        assert {len(fact) for fact in split.facts.values()} == {len(split.tokens)}
        assert split.n_predicted == split.predicted.sum() == len(split.tokens) - n_docs
        first, last = split.offsets[:-1], split.offsets[1:] - 1
        assert (split.tokens[first] == TOKEN_ID["<bos>"]).all()
        assert (split.tokens[last] == TOKEN_ID["<eos>"]).all()
        assert (split.facts["log_prob"][first] == 0).all()
        assert (split.facts["log_prob"][split.predicted] < 0).any()
        possessive = np.isin(split.tokens, [TOKEN_ID[word] for word in POSSESSIVES])
        np.testing.assert_array_equal(split.facts["subject_distance"] > 0, possessive)


def test_the_log_probabilities_are_the_worlds(small):
    """Of the language that a split is drawn from: training and validation lack pairings that test has."""
    for name in SPLITS:
        split, true = getattr(small, name), language(0, withhold=name != "test")
        for i in range(split.n_docs):
            document = slice(split.offsets[i] + 1, split.offsets[i + 1])
            np.testing.assert_array_equal(split.facts["log_prob"][document], true.log_prob(split.tokens[document]))


def test_splits_differ_and_a_larger_one_begins_with_the_smaller(small, tmp_path):
    more = load(tmp_path, n_train=90, n_val=20, n_test=31, world_seed=0)
    for name in SPLITS:
        few, many = getattr(small, name), getattr(more, name)
        np.testing.assert_array_equal(many.tokens[: len(few.tokens)], few.tokens)
    starts = [tuple(getattr(small, name).tokens[:40]) for name in SPLITS]
    assert len(set(starts)) == 3


def test_nll_in_nats_per_predicted_token(small):
    counts, n_tokens = dict.fromkeys(range(len(WORDS)), 1), len(WORDS)
    for token in small.train.tokens.tolist():
        if token != TOKEN_ID["<bos>"]:
            counts[token] += 1
            n_tokens += 1
    tokens = [token for token in small.val.tokens.tolist() if token != TOKEN_ID["<bos>"]]
    expected = -sum(math.log(counts[token] / n_tokens) for token in tokens) / len(tokens)
    assert small.unigram_nll("val") == pytest.approx(expected)
    assert small.true_nll("test") == pytest.approx(-small.test.facts["log_prob"].sum() / small.test.n_predicted)
    with pytest.raises(ValueError, match="'validation', must be one of train, val, test"):
        small.true_nll("validation")


@pytest.mark.slow
def test_the_world_is_like_the_lectures(large):
    assert 24 <= large.train.n_predicted / large.train.n_docs <= 26
    assert 3.55 <= math.exp(large.true_nll("test")) <= 3.72
    assert 42 <= math.exp(large.unigram_nll("val")) <= 47


def test_the_first_editions_world_is_there_as_it_was(tmp_path):
    """The first document that the first edition's test split had: its draws and their order are the same."""
    splits = garden1(config.Garden1(name="garden1", **SMALL), tmp_path)
    first = splits.test.tokens[: splits.test.offsets[1]]
    said = splits.tokenizer.decode(first.tolist(), skip_special_tokens=False)
    assert said == "<bos> the father shows the uncle the bucket behind his gate . <eos>"


def test_it_is_made_once(tmp_path, monkeypatch):
    made = load(tmp_path, **SMALL)
    assert len(files(tmp_path)) == 1
    monkeypatch.setattr(source, "_make", lambda *_: pytest.fail("made again"))
    assert same(load(tmp_path, **SMALL), made)


def test_other_settings_and_other_code_make_another_file(tmp_path, monkeypatch):
    load(tmp_path, **SMALL)
    load(tmp_path, **SMALL | {"world_seed": 1})
    load(tmp_path, **SMALL | {"n_val": 21})
    monkeypatch.setattr(source, "code_of_the_language", lambda name: "changed")
    load(tmp_path, **SMALL)
    assert len(files(tmp_path)) == 4


def _cut(path):
    path.write_bytes(path.read_bytes()[:-500])


def _empty(path):
    path.write_bytes(b"")


def _alter(path):
    with np.load(path) as file:
        arrays = dict(file)
    arrays["test.log_prob"][5] -= 1e-9
    np.savez(path, **arrays)


def _without_checksum(path):
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files if name != "sha256"}
    np.savez(path, **arrays)


@pytest.mark.parametrize("damage", [_cut, _empty, _alter, _without_checksum])
def test_a_damaged_file_is_renamed_and_made_again(tmp_path, caplog, damage):
    made = load(tmp_path, **SMALL)
    (path,) = tmp_path.glob("*.npz")
    damage(path)
    damaged = path.read_bytes()
    with caplog.at_level(logging.WARNING):
        assert same(load(tmp_path, **SMALL), made)
    assert len(caplog.records) == 1
    assert "could not be read" in caplog.text
    assert files(tmp_path) == sorted([path.name, f"{path.name}.unreadable"])
    assert path.with_name(f"{path.name}.unreadable").read_bytes() == damaged


def test_other_processes_make_the_same_arrays_and_two_at_once_make_one_file(small, tmp_path):
    imports = (
        "from pathlib import Path; from lecture04.config import Garden; from lecture04.data.garden.source import garden"
    )
    code = f"{imports}; garden(Garden(name='garden', **{SMALL}), Path({str(tmp_path)!r}))"
    processes = [
        subprocess.Popen([sys.executable, "-c", code], env={"PYTHONHASHSEED": seed}, stderr=subprocess.PIPE)
        for seed in ("1", "2")
    ]
    assert [(process.communicate()[1], process.returncode) for process in processes] == [(b"", 0)] * 2
    assert len(files(tmp_path)) == 1
    assert same(load(tmp_path, **SMALL), small)


def test_comments_and_docstrings_do_not_count_as_code(tmp_path):
    text, copies = (PACKAGE / "data" / "garden" / "grammar.py").read_text(), itertools.count()

    def hashed(text):
        copy = tmp_path / str(next(copies)) / "lecture04"  # a process remembers what it has hashed
        shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
        (copy / "data" / "garden" / "grammar.py").write_text(text)
        return source.code_of_the_language("garden", copy)

    original = hashed(text)
    assert original == source.code_of_the_language("garden")
    assert hashed(text.replace('"""One text,', '"""A single text,')) == original
    assert hashed("# a comment\n\n" + text) == original
    assert hashed(text.replace("prob * weight / total", "prob * total / weight")) != original


@pytest.mark.parametrize("name", ["n_train", "n_val", "n_test"])
def test_a_split_without_documents_is_refused(settings, name):
    asked = settings()
    setattr(asked.data, name, 0)
    with pytest.raises(UserError, match=rf"data\.{name}=0: must be at least 1"):
        resolve(asked)


def test_every_document_is_one_of_the_grammar_and_a_changed_one_is_not(small):
    """Whole or not; the first and the last token of each are those that the source names."""
    for split in (small.train, small.test):
        for start, end in itertools.pairwise(split.offsets):
            first, *document = split.tokens[start:end].tolist()
            assert (first, document[-1]) == (small.bos, small.eos)
            assert small.fault(document) == small.fault(document[:3]) == ""
            assert small.fault([*document, small.eos]).startswith("no document goes on with token 2")
            assert small.fault([document[0], *document]).startswith(f"no document goes on with token {document[0]}")
    assert small.tokenizer.id_to_token(small.pad) == "<pad>"
