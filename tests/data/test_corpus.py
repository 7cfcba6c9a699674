import logging
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from lecture04.config.code import statements
from lecture04.data import corpus, garden, grammar
from lecture04.data.batches import Documents
from lecture04.data.corpus import load
from lecture04.data.garden import TOKEN_ID, VOCAB, Garden

LAYOUT = Documents(64)
SMALL = {"n_train": 60, "n_val": 20, "n_test": 30, "world_seed": 0, "layout": LAYOUT}
SPLITS = ("train", "val", "test")
ARRAYS = ("tokens", "offsets", "log_prob", "subject_distance")


def files(folder):
    return sorted(path.name for path in folder.iterdir() if path.suffix != ".lock")


def same(a, b):
    return all(
        np.array_equal(getattr(getattr(a, split), name), getattr(getattr(b, split), name))
        for split in SPLITS
        for name in ARRAYS
    )


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    return load(tmp_path_factory.mktemp("small"), **SMALL)


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    return load(tmp_path_factory.mktemp("large"), n_train=2500, n_val=1000, n_test=1000, world_seed=0, layout=LAYOUT)


def test_the_arrays_hold_documents_end_to_end(small):
    assert small.vocab == VOCAB
    for name, n_docs in zip(SPLITS, (60, 20, 30), strict=True):
        split = getattr(small, name)
        assert split.n_docs == n_docs
        assert split.offsets[0] == 0
        assert split.offsets[-1] == len(split.tokens) == len(split.log_prob) == len(split.subject_distance)
        assert split.n_predicted == split.predicted.sum() == len(split.tokens) - n_docs
        first, last = split.offsets[:-1], split.offsets[1:] - 1
        assert (split.tokens[first] == TOKEN_ID["<bos>"]).all()
        assert (split.tokens[last] == TOKEN_ID["<eos>"]).all()
        assert (split.log_prob[first] == 0).all()
        assert (split.log_prob[split.predicted] < 0).any()
        possessive = np.isin(split.tokens, [TOKEN_ID[word] for word in garden.POSSESSIVES])
        np.testing.assert_array_equal(split.subject_distance > 0, possessive)


def test_the_log_probabilities_are_the_worlds(small):
    world = Garden(0)
    for i in range(small.test.n_docs):
        document = slice(small.test.offsets[i] + 1, small.test.offsets[i + 1])
        np.testing.assert_array_equal(small.test.log_prob[document], world.log_prob(small.test.tokens[document]))


def test_splits_differ_and_a_larger_one_begins_with_the_smaller(small, tmp_path):
    more = load(tmp_path, n_train=90, n_val=20, n_test=31, world_seed=0, layout=LAYOUT)
    for name in SPLITS:
        few, many = getattr(small, name), getattr(more, name)
        np.testing.assert_array_equal(many.tokens[: len(few.tokens)], few.tokens)
    starts = [tuple(getattr(small, name).tokens[:40]) for name in SPLITS]
    assert len(set(starts)) == 3


def test_nll_in_nats_per_predicted_token(small):
    counts, n_tokens = dict.fromkeys(range(len(VOCAB)), 1), len(VOCAB)
    for token in small.train.tokens.tolist():
        if token != TOKEN_ID["<bos>"]:
            counts[token] += 1
            n_tokens += 1
    tokens = [token for token in small.val.tokens.tolist() if token != TOKEN_ID["<bos>"]]
    expected = -sum(math.log(counts[token] / n_tokens) for token in tokens) / len(tokens)
    assert small.unigram_nll("val") == pytest.approx(expected)
    assert small.true_nll("test") == pytest.approx(-small.test.log_prob.sum() / small.test.n_predicted)
    with pytest.raises(ValueError, match="'validation', must be one of train, val, test"):
        small.true_nll("validation")


def test_the_world_is_like_the_lectures(large):
    assert 24 <= large.train.n_predicted / large.train.n_docs <= 26
    assert 3.60 <= math.exp(large.true_nll("test")) <= 3.72
    assert 42 <= math.exp(large.unigram_nll("val")) <= 47


def test_it_is_made_once(tmp_path, monkeypatch):
    made = load(tmp_path, **SMALL)
    assert len(files(tmp_path)) == 1
    monkeypatch.setattr(corpus, "_make", lambda *_: pytest.fail("made again"))
    assert same(load(tmp_path, **SMALL), made)


def test_other_settings_and_other_code_make_another_file(tmp_path, monkeypatch):
    load(tmp_path, **SMALL)
    load(tmp_path, **SMALL | {"world_seed": 1})
    load(tmp_path, **SMALL | {"n_val": 21})
    monkeypatch.setattr(corpus, "_code_hash", lambda: "changed")
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
def test_a_damaged_file_is_set_aside_and_made_again(tmp_path, caplog, damage):
    made = load(tmp_path, **SMALL)
    (path,) = tmp_path.glob("*.npz")
    damage(path)
    damaged = path.read_bytes()
    with caplog.at_level(logging.WARNING):
        assert same(load(tmp_path, **SMALL), made)
    assert len(caplog.records) == 1
    assert "damaged" in caplog.text
    assert files(tmp_path) == sorted([path.name, path.with_suffix(".damaged").name])
    assert path.with_suffix(".damaged").read_bytes() == damaged


def test_other_processes_make_the_same_arrays_and_two_at_once_make_one_file(small, tmp_path):
    imports = (
        "from pathlib import Path; from lecture04.data.batches import Documents; from lecture04.data.corpus import load"
    )
    code = f"{imports}; load(Path({str(tmp_path)!r}), **{SMALL})"
    processes = [
        subprocess.Popen([sys.executable, "-c", code], env={"PYTHONHASHSEED": seed}, stderr=subprocess.PIPE)
        for seed in ("1", "2")
    ]
    assert [(process.communicate()[1], process.returncode) for process in processes] == [(b"", 0)] * 2
    assert len(files(tmp_path)) == 1
    assert same(load(tmp_path, **SMALL), small)


def test_comments_and_docstrings_do_not_count_as_code(tmp_path, monkeypatch):
    source = Path(grammar.__file__).read_text()

    def hashed(text):
        (tmp_path / "grammar.py").write_text(text)
        monkeypatch.setattr(grammar, "__file__", str(tmp_path / "grammar.py"))
        corpus._code_hash.cache_clear()
        statements.cache_clear()
        return corpus._code_hash()

    original = hashed(source)
    assert hashed(source.replace('"""One text,', '"""A single text,')) == original
    assert hashed("# a comment\n\n" + source) == original
    assert hashed(source.replace("prob * weight / total", "prob * total / weight")) != original
    corpus._code_hash.cache_clear()


@pytest.mark.parametrize("name", ["n_train", "n_val", "n_test"])
def test_a_split_without_documents_is_refused(tmp_path, name):
    with pytest.raises(ValueError, match=f"{name} is 0"):
        load(tmp_path, **SMALL | {name: 0})
