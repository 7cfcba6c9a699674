"""Corpora as arrays: made once from the Garden World, kept on disk with a checksum, loaded in milliseconds."""

import ast
import hashlib
import json
import logging
import os
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING
from zipfile import BadZipFile

import numpy as np
from filelock import FileLock

from lecture04.config.code import statements
from lecture04.data import garden, grammar

if TYPE_CHECKING:
    from lecture04.data.batches import Layout

logger = logging.getLogger(__name__)

SPLIT_SEEDS = {"train": 1, "val": 2, "test": 3}
_ARRAYS = ("tokens", "offsets", "log_prob", "subject_distance", "given")


@dataclass(frozen=True)
class Split:
    """Documents end to end, each as <bos> w ... <eos>; document i is `tokens[offsets[i]:offsets[i + 1]]`.

    Attributes:
        tokens: int16 [n_tokens], token ids.
        offsets: int64 [n_docs + 1].
        log_prob: float64 [n_tokens], the true log p(token | prefix) in nats, 0 at <bos>.
        subject_distance: int16 [n_tokens]; at a possessive pronoun, how many tokens back the head noun of its subject
            stands, and 0 at any other token.
        given: int16 [n_tokens], the id of the word that the token was drawn for (a verb for its subject, an object for
            its verb), -1 where there is none; by the derivation that made the document, which may be one of several.
            None where nobody says.
    """

    tokens: np.ndarray
    offsets: np.ndarray
    log_prob: np.ndarray
    subject_distance: np.ndarray
    given: np.ndarray | None = None

    @property
    def n_docs(self) -> int:
        return len(self.offsets) - 1

    @property
    def n_predicted(self) -> int:
        """The tokens that a model predicts: all but <bos>."""
        return len(self.tokens) - self.n_docs

    @property
    def predicted(self) -> np.ndarray:
        """bool [n_tokens], False at each <bos>."""
        mask = np.ones(len(self.tokens), dtype=bool)
        mask[self.offsets[:-1]] = False
        return mask

    def first(self, n_docs: int) -> "Split":
        """Its first documents alone; all where there are no more."""
        offsets = self.offsets[: n_docs + 1]
        arrays = {f.name: a[: offsets[-1]] for f in fields(self) if (a := getattr(self, f.name)) is not None}
        return Split(**arrays | {"offsets": offsets})


@dataclass(frozen=True)
class Corpus:
    """Training, validation and test documents of one world, and how they become batches."""

    train: Split
    val: Split
    test: Split
    vocab: tuple[str, ...]
    layout: "Layout"

    def true_nll(self, split: str) -> float:
        """The entropy rate on a split: mean -log p of the true distribution, in nats per predicted token."""
        chosen = self._split(split)
        return float(-chosen.log_prob.sum() / chosen.n_predicted)

    def unigram_nll(self, split: str) -> float:
        """Nats per predicted token of the training set's word frequencies, with one added to every word's count."""
        counts = np.bincount(self.train.tokens[self.train.predicted], minlength=len(self.vocab)) + 1
        chosen = self._split(split)
        return float(-np.log(counts / counts.sum())[chosen.tokens[chosen.predicted]].mean())

    def _split(self, name: str) -> Split:
        if name not in SPLIT_SEEDS:
            raise ValueError(f"split is {name!r}, must be one of {', '.join(SPLIT_SEEDS)}")
        return getattr(self, name)


def load(folder: Path, *, n_train: int, n_val: int, n_test: int, world_seed: int, layout: "Layout") -> Corpus:
    """The corpus of so many documents, made on first use and kept in `folder`.

    A larger split begins with the documents of a smaller one. The file's name carries a hash of the settings and of the
    grammar's code, so that a changed grammar makes a new file. One that is torn or altered is set aside with a warning,
    and made again; processes that want the same corpus at once wait for the one that makes it.

    Raises:
        ValueError: a split without documents.
    """
    sizes = {"train": n_train, "val": n_val, "test": n_test}
    if empty := [f"n_{name} is {size}" for name, size in sizes.items() if size < 1]:
        raise ValueError(f"{', '.join(empty)}: must be at least 1")
    settings = {"sizes": sizes, "world_seed": world_seed, "seeds": SPLIT_SEEDS, "code": _code_hash()}
    key = hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:16]
    path = Path(folder) / f"garden-{key}.npz"
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(path.with_suffix(".lock")):
        arrays = _read(path)
        if arrays is None:
            arrays = _make(sizes, world_seed)
            _write(path, arrays)
    splits = {name: Split(**{array: arrays[f"{name}.{array}"] for array in _ARRAYS}) for name in sizes}
    return Corpus(**splits, vocab=garden.VOCAB, layout=layout)


def _make(sizes: dict[str, int], world_seed: int) -> dict[str, np.ndarray]:
    arrays = {}
    for name, n_docs in sizes.items():
        world, rng = garden.Garden(world_seed), np.random.default_rng([SPLIT_SEEDS[name], world_seed])
        documents = [world.sample(rng) for _ in range(n_docs)]
        bos = garden.TOKEN_ID[garden.BOS]
        arrays |= {
            f"{name}.tokens": np.array([t for doc in documents for t in (bos, *doc.tokens)], dtype=np.int16),
            f"{name}.offsets": np.cumsum([0, *(1 + len(doc.tokens) for doc in documents)], dtype=np.int64),
            f"{name}.log_prob": np.concatenate([part for doc in documents for part in ([0.0], doc.log_prob)]),
            f"{name}.subject_distance": np.array(
                [d for doc in documents for d in (0, *doc.subject_distance)], dtype=np.int16
            ),
            f"{name}.given": np.array([g for doc in documents for g in (-1, *doc.given)], dtype=np.int16),
        }
    return arrays


def _read(path: Path) -> dict[str, np.ndarray] | None:
    """The arrays of a sound file; None where there is none, or where it was not sound and has been set aside."""
    if not path.exists():
        return None
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        if str(arrays.pop("sha256")) == _checksum(arrays):
            return arrays
        problem = "its checksum does not match"
    except (OSError, ValueError, KeyError, EOFError, BadZipFile) as error:
        problem = f"it cannot be read ({error})"
    aside = path.with_suffix(".damaged")
    path.replace(aside)
    logger.warning("%s is damaged, %s: set aside as %s and made again", path, problem, aside.name)
    return None


def _write(path: Path, arrays: dict[str, np.ndarray]) -> None:
    # Renamed into place when it is whole: whoever reads without the lock sees the old file, the new one or none.
    part = path.with_suffix(f".{os.getpid()}.tmp")
    try:
        with part.open("wb") as file:
            np.savez(file, **arrays, sha256=np.array(_checksum(arrays)))  # pyright: ignore[reportArgumentType]
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def _checksum(arrays: dict[str, np.ndarray]) -> str:
    digest = hashlib.sha256()
    for name in sorted(arrays):
        digest.update(f"{name} {arrays[name].dtype.str} {arrays[name].shape}".encode())
        digest.update(np.ascontiguousarray(arrays[name]).tobytes())
    return digest.hexdigest()


@cache
def _code_hash() -> str:
    """A hash of the code that makes documents; comments, docstrings and layout do not count."""
    files = [Path(str(module.__file__)) for module in (grammar, garden)]
    return hashlib.sha256(
        "\n".join(ast.unparse(node) for file in files for node in statements(file)).encode()
    ).hexdigest()
