"""A text of lines, and options to read it with."""

import random

import pytest

from lecture04.config import Boundary, SplitBy, Text

OPTIONS = {
    "name": "text",
    "documents": Boundary.line,
    "separator": "<|endoftext|>",
    "field": "text",
    "tokenizer": "bytes",
    "vocab_size": 300,
    "split": SplitBy.hash,
    "val": 0.2,
    "test": 0.2,
}


def options(path, **changed):
    return Text(**OPTIONS | {"path": str(path)} | changed)


def lines(n, seed=0):
    """So many different lines, with letters of several bytes among them."""
    rng = random.Random(seed)
    words = ["the", "rose", "Mädchen", "naïve", "Übung", "花园", "cat", "wall,", "Go!", "x = 1"]
    return [f"{i} " + " ".join(rng.choices(words, k=rng.randint(3, 12))) for i in range(n)]


@pytest.fixture
def text_file(tmp_path):
    file = tmp_path / "text.txt"
    file.write_text("\n".join(lines(200)) + "\n", encoding="utf-8")
    return file
