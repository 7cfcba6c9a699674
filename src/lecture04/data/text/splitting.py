"""Which split each document of a text belongs to, and the text again in pieces that say so.

    hash   by SHA-256 of the document: where a corpus grows no document moves, and identical ones never part
    tail   the last `test` share of the text is tested on, the `val` share before it validates; by characters

A stream, which is one document, is cut by characters.
"""

import hashlib
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from lecture04.config import Boundary, SplitBy, Text
from lecture04.data.text.reading import PIECE, cut, documents, pieces

TRAIN, VAL, TEST = range(3)


class Piece(NamedTuple):
    """A document's text or a part of it, the split that it belongs to, and whether a document begins with it."""

    split: int
    begins: bool
    text: str


@dataclass(frozen=True)
class Survey:
    """What one reading of a text finds out.

    split_D      the split of each document, uint8; of a stream that of its three parts
    n_chars      characters in all
    n_identical  documents that are equal to an earlier one
    alphabet     the characters that occur, where they were asked for
    ends         of a stream alone: the character at which each of the splits ends
    """

    split_D: np.ndarray
    n_chars: int
    n_identical: int
    alphabet: frozenset[str]
    ends: tuple[int, ...] = ()


def survey(options: Text, paths: list[Path]) -> Survey:
    """Read a text once and split it.

    Raises ValueError where a split would be left without a document, or where a stream should be split by a hash.
    """
    if options.val + options.test >= 1:
        raise ValueError(f"data.val={options.val}, data.test={options.test}: leave nothing for training.")
    if options.documents is Boundary.stream:
        if options.split is SplitBy.hash:
            raise ValueError(
                "data.split=hash: a stream has no documents that could be split by it; use data.split=tail."
            )
        return _survey_of_stream(options, paths)
    hashes, lengths, alphabet = array("Q"), array("q"), set[str]()
    for document in documents(options, paths):
        hashes.append(int.from_bytes(hashlib.sha256(document.encode()).digest()[:8], "big"))
        lengths.append(len(document))
        if options.tokenizer == "char":
            alphabet.update(document)
    n_docs, length_D, hash_D = len(lengths), np.asarray(lengths), np.asarray(hashes)
    if not n_docs:
        raise ValueError(f"data.path={options.path}: there is no text in it.")
    if options.split is SplitBy.hash:
        place_D = hash_D / 2.0**64  # uniform in [0, 1), of the document alone
        split_D = np.select([place_D < options.test, place_D < options.test + options.val], [TEST, VAL], TRAIN)
    else:
        begin_D = np.cumsum(length_D) - length_D
        split_D = np.searchsorted(_ends(options, int(length_D.sum()))[:2], begin_D, side="right")
    _check_all_there(options, split_D)
    n_identical = n_docs - len(np.unique(hash_D))
    return Survey(split_D.astype(np.uint8), int(length_D.sum()), n_identical, frozenset(alphabet))


def _survey_of_stream(options: Text, paths: list[Path]) -> Survey:
    n_chars, alphabet = 0, set[str]()
    for text in pieces(options, paths):
        n_chars += len(text)
        if options.tokenizer == "char":
            alphabet.update(text)
    if not n_chars:
        raise ValueError(f"data.path={options.path}: there is no text in it.")
    ends = _ends(options, n_chars)
    if any(end == start for start, end in zip((0, *ends), ends, strict=False)):
        raise ValueError(f"data.path={options.path}: {n_chars} characters are too few for three splits.")
    return Survey(np.arange(3, dtype=np.uint8), n_chars, 0, frozenset(alphabet), ends)


def _ends(options: Text, n_chars: int) -> tuple[int, ...]:
    """The character at which each split of the tail ends."""
    return tuple(round(n_chars * share) for share in (1 - options.val - options.test, 1 - options.test, 1))


def _check_all_there(options: Text, split_D: np.ndarray) -> None:
    counts = np.bincount(split_D, minlength=3)
    if counts.all():
        return
    empty = ("training", "validation", "test")[int(np.argmin(counts))]
    n_docs = f"{len(split_D)} document{'s' * (len(split_D) != 1)}"
    raise ValueError(
        f"data.path={options.path}: it has {n_docs}, of which the {empty} split gets none "
        f"(data.documents={options.documents.name}, data.split={options.split.name}); smaller documents "
        "(data.documents=line), larger shares (data.val, data.test) or data.documents=stream data.split=tail would do."
    )


def parts(options: Text, paths: list[Path], found: Survey) -> Iterator[Piece]:
    """The whole text again in pieces, in its order, each with the split that it belongs to."""
    if options.documents is Boundary.stream:
        yield from _parts_of_stream(options, paths, found.ends)
        return
    for document, split in zip(documents(options, paths), found.split_D.tolist(), strict=True):
        begins = True
        for text in cut([document]) if len(document) > PIECE else [document]:
            yield Piece(split, begins, text)
            begins = False


def _parts_of_stream(options: Text, paths: list[Path], ends: tuple[int, ...]) -> Iterator[Piece]:
    split, begins, at = 0, True, 0
    for text in pieces(options, paths):
        left = text
        while left:
            here = left[: ends[split] - at]
            if here:
                yield Piece(split, begins, here)
            begins, at, left = False, at + len(here), left[len(here) :]
            if at == ends[split] and split < TEST:
                split, begins = split + 1, True
