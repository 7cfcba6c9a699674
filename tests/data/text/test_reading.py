"""Files to documents."""

import gzip
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from lecture04.config import Boundary
from lecture04.data.text.reading import PIECE, cut, documents, files, pieces
from tests.data.text.conftest import lines, options

DOCUMENTS = lines(30)


def write(folder, name):
    """The same documents as a file of this name."""
    file = folder / name
    inner = name.removesuffix(".gz").removesuffix(".zst")
    if inner.endswith(".parquet"):
        pq.write_table(pa.table({"text": DOCUMENTS, "id": range(len(DOCUMENTS))}), file, row_group_size=7)
        return file
    as_json = "\n".join(json.dumps({"id": i, "text": text}) for i, text in enumerate(DOCUMENTS))
    raw = (as_json if inner.endswith("jsonl") else "\n".join(DOCUMENTS)).encode()
    if name.endswith(".gz"):
        raw = gzip.compress(raw)
    elif name.endswith(".zst"):
        raw = zstandard.compress(raw)
    file.write_bytes(raw)
    return file


@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz", "a.txt.zst", "a.jsonl", "a.jsonl.zst", "a.parquet"])
def test_every_format_holds_the_same_documents(tmp_path, name):
    file = write(tmp_path, name)
    assert list(documents(options(file), files(str(file)))) == DOCUMENTS


def test_a_folder_and_a_glob_are_read_in_the_order_of_their_names(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / ".git").mkdir()
    for name in ("b.txt", "a.txt", "sub/c.jsonl", "picture.png", ".git/d.txt", "a.txt~"):
        (tmp_path / name).write_text("x")
    assert [file.name for file in files(str(tmp_path))] == ["a.txt", "b.txt", "c.jsonl"]
    assert [file.name for file in files(f"{tmp_path}/*.txt")] == ["a.txt", "b.txt"]


def test_a_file_inside_an_installed_package():
    (file,) = files("lecture04:data/text/tinyshakespeare.txt.gz")
    assert next(pieces(options(file), [file])).startswith("First Citizen:\n")


def test_what_a_document_of_a_text_file_is(tmp_path):
    file = tmp_path / "a.txt"
    file.write_text("one\ntwo\n###\nthree\n")

    def read(**changed):
        return list(documents(options(file, **changed), [file]))

    assert read(documents=Boundary.file) == ["one\ntwo\n###\nthree\n"]
    assert read(documents=Boundary.line) == ["one", "two", "###", "three"]
    assert read(documents=Boundary.separator, separator="###") == ["one\ntwo", "three"]
    assert "".join(pieces(options(file), [file, file])) == 2 * "one\ntwo\n###\nthree\n"


def test_a_separator_may_lie_across_what_is_read_at_once(tmp_path):
    file = tmp_path / "a.txt"
    file.write_text("a" * (PIECE - 2) + "####" + "b")
    found = list(documents(options(file, documents=Boundary.separator, separator="####"), [file]))
    assert found == ["a" * (PIECE - 2), "b"]


def test_a_stream_is_cut_at_the_end_of_lines_and_loses_nothing():
    texts = ["no end yet ", "here it is\nand", " so\non", " it goes"]
    found = list(cut(texts))
    assert "".join(found) == "".join(texts)
    assert all(piece.endswith("\n") for piece in found[:-1])
    long = ["x" * PIECE] * 9
    assert "".join(cut(long)) == "".join(long)
    assert max(map(len, cut(long))) <= 5 * PIECE


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("latin.txt", b"abc\xff", "latin.txt: not UTF-8: byte 0xff in line 1; `iconv -f LATIN1 -t UTF-8` converts"),
        ("long.txt", b"abcd\n" * 30_000 + b"\xe9t\xe9\n", "long.txt: not UTF-8: byte 0xe9 in line 30001; "),
        (
            "a.jsonl",
            b'{"text": "a"}\n{"body": "b"}\n',
            "a.jsonl:2: no text below data.field=text; the record has body",
        ),
        ("a.jsonl", b'{"text": 5}\n', "a.jsonl:1: no text below data.field=text"),
        ("a.jsonl", b"[1]\n", "a.jsonl:1: no text below data.field=text; the line is no record."),
        ("a.jsonl", b'{"text": \n', "a.jsonl:1: not JSON: Expecting value at column 1."),
        ("a.txt.gz", gzip.compress(b"some text", mtime=0)[:12], "a.txt.gz: Compressed file ended before"),
        ("a.txt.zst", b"no zstd", "a.txt.zst: "),
        ("a.parquet", b"no parquet", "a.parquet: not a .parquet file"),
    ],
)
def test_what_cannot_be_read_is_one_sentence_with_its_place(tmp_path, name, content, said):
    file = tmp_path / name
    file.write_bytes(content)
    with pytest.raises(ValueError, match="^[^\n]*$") as caught:
        list(documents(options(file), [file]))
    assert said in str(caught.value)


def test_a_parquet_file_without_the_field_says_which_it_has(tmp_path):
    file = write(tmp_path, "a.parquet")
    with pytest.raises(ValueError, match="no column data.field=body; it has text, id"):
        list(documents(options(file, field="body"), [file]))


@pytest.mark.parametrize("path", ["nothing.txt", "json:no.txt", "no_such_package:a.txt"])
def test_a_path_that_names_nothing(tmp_path, monkeypatch, path):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=f"data.path={path}: "):
        files(path)
