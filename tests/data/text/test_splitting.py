"""Splits of a text: nothing in two of them, nothing moves, nothing lost."""

import numpy as np
import pytest

from lecture04.config import Boundary, SplitBy
from lecture04.data.text.splitting import parts, survey
from tests.data.text.conftest import lines, options


def split_of(text_options, path):
    """{document: the splits that it is in}, from the pieces alone."""
    found = survey(text_options, [path])
    where = {}
    for piece in parts(text_options, [path], found):
        where.setdefault(piece.text, set()).add(piece.split)
    return where


@pytest.mark.parametrize("how", SplitBy)
def test_no_document_is_in_two_splits_and_none_is_lost(text_file, how):
    where = split_of(options(text_file, split=how), text_file)
    assert list(where) == lines(200)
    assert all(len(splits) == 1 for splits in where.values())
    assert set().union(*where.values()) == {0, 1, 2}


def test_shares_are_what_was_asked_for(tmp_path):
    file, n = tmp_path / "a.txt", 4000
    file.write_text("\n".join(lines(n)))
    found = np.bincount(survey(options(file, val=0.1, test=0.3), [file]).split_D) / n
    three_sds = 3 * np.sqrt(np.array([0.6, 0.1, 0.3]) * np.array([0.4, 0.9, 0.7]) / n)
    assert np.all(np.abs(found - [0.6, 0.1, 0.3]) < three_sds)


def test_a_corpus_that_grows_moves_no_document(tmp_path, text_file):
    before = split_of(options(text_file), text_file)
    larger = tmp_path / "larger.txt"
    larger.write_text("\n".join([*lines(50, seed=9), *lines(200)[::-1]]))
    after = split_of(options(larger), larger)
    assert {document: after[document] for document in before} == before


def test_identical_documents_stay_together_and_are_counted(tmp_path):
    file = tmp_path / "a.txt"
    file.write_text("\n".join(lines(100) * 2 + ["more"] * 3))
    where = split_of(options(file), file)
    assert all(len(splits) == 1 for splits in where.values())
    assert survey(options(file), [file]).n_identical == 102


def test_the_tail_is_the_last_of_the_text(tmp_path):
    file = tmp_path / "a.txt"
    file.write_text("\n".join(["ten signs!"] * 100))
    found = survey(options(file, split=SplitBy.tail, val=0.1, test=0.3), [file]).split_D
    assert found.tolist() == [0] * 60 + [1] * 10 + [2] * 30


def test_a_stream_is_cut_by_characters(tmp_path):
    file = tmp_path / "a.txt"
    text = "".join(chr(97 + i % 26) + "\n" * (i % 7 == 0) for i in range(1000))
    file.write_text(text)
    asked = options(file, documents=Boundary.stream, split=SplitBy.tail, val=0.05, test=0.05)
    pieces = list(parts(asked, [file], survey(asked, [file])))
    found = ["".join(piece.text for piece in pieces if piece.split == split) for split in range(3)]
    assert "".join(found) == text
    assert len(found[0]) == round(0.9 * len(text))
    assert [sum(piece.begins for piece in pieces if piece.split == split) for split in range(3)] == [1, 1, 1]


@pytest.mark.parametrize(
    ("text", "changed", "said"),
    [
        ("one document", {"documents": Boundary.file}, "it has 1 document, of which the"),
        ("a\nb\n", {"val": 0.01, "test": 0.01}, "it has 2 documents, of which the"),
        ("a\nb\n", {"val": 0.5, "test": 0.5}, "data.val=0.5, data.test=0.5: leave nothing for training."),
        ("", {}, "there is no text in it"),
        ("\n\n", {}, "there is no text in it"),
        ("abc", {"documents": Boundary.stream}, "a stream has no documents"),
        ("abc", {"documents": Boundary.stream, "split": SplitBy.tail}, "3 characters are too few for three splits"),
    ],
)
def test_what_cannot_be_split_is_said(tmp_path, text, changed, said):
    file = tmp_path / "a.txt"
    file.write_text(text)
    with pytest.raises(ValueError, match="^[^\n]*$") as caught:
        survey(options(file, **changed), [file])
    assert said in str(caught.value)
