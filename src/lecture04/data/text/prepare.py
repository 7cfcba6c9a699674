"""A text as memory-mapped arrays, made once: `settle` says what they hold before anything is trained.

    OUTPUTS/data/text/DIGEST/    train.tokens, val.tokens, test.tokens (uint16 or uint32), SPLIT.offsets (int64),
                                 tokenizer.json, about.json (what is there, with checksums)
    OUTPUTS/data/text/asked/     for every way in which a text was asked for, the digest that it came to

A folder gets its name when it is whole: what was interrupted is made again and never read. The digest is that of the
tokens, so that the same text is the same data wherever it lies and whatever it is compressed with.
"""

import contextlib
import hashlib
import json
import shutil
import sys
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import asdict, replace
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock
from rich.console import Console
from rich.progress import Progress
from tokenizers import Tokenizer

from lecture04.config import SPLITS, Prepared, SplitBy, Text
from lecture04.config.code import code
from lecture04.config.errors import nearest
from lecture04.config.registry import PACKAGE, register
from lecture04.data.text import tokens
from lecture04.data.text.reading import files
from lecture04.data.text.splitting import TRAIN, Piece, parts, survey
from lecture04.files import rename_unreadable, write_whole

TOKENIZER, ABOUT = "tokenizer.json", "about.json"
AT_ONCE = 64
"""Pieces that are handed to the tokenizers package together; it works on them side by side."""


FEW_DOCUMENTS = 5
"""A split with fewer is said."""


@register("settle", "text")
def settle(options: Text, cache: Path) -> Text:
    """A text with what it comes to; read, split and tokenised where that is not done yet.

    Raises ValueError, a sentence, where it cannot be read, split or tokenised.
    """
    paths = files(options.path)
    home = Path(cache) / "text"
    home.mkdir(parents=True, exist_ok=True)
    asked = home / "asked" / f"{_request(options, paths, home)}.json"
    asked.parent.mkdir(exist_ok=True)
    with FileLock(asked.with_suffix(".lock")):
        if (about := _kept(home, asked)) is None:
            about = _prepare(options, paths, home)
            write_whole(asked, json.dumps(about["digest"]))
    return replace(options, found=Prepared(**{name: about[name] for name in Prepared.__dataclass_fields__}))


def folder_of(options: Text, cache: Path) -> Path:
    """Where the arrays of a settled text lie; they are made again where they are gone.

    Raises ValueError where the text is another by now.
    """
    folder = Path(cache) / "text" / options.prepared.digest
    if _sound(folder) is None:
        now = settle(options, cache).prepared
        if now.digest != options.prepared.digest:
            raise ValueError(f"data.path={options.path}: the text is another than when the run was made.")
    return folder


def about(folder: Path) -> dict[str, Any]:
    """What about.json says."""
    return json.loads((folder / ABOUT).read_text(encoding="utf-8"))


def _request(options: Text, paths: list[Path], home: Path) -> str:
    """A hash of all that the arrays depend on: the files' content, how they are read, and the code that does it."""
    own = {name: value for name, value in asdict(options).items() if name not in ("path", "found")}
    read = [*paths, *([Path(options.tokenizer)] if _is_file(options) else [])]
    content = {
        "options": own,
        "files": _digests(read, home),
        "code": code(PACKAGE, [("lecture04.data.text.prepare", "_prepare")]).digest,
        "tokenizers": version("tokenizers"),
    }
    said = json.dumps(content, sort_keys=True, default=lambda choice: choice.name)
    return hashlib.sha256(said.encode()).hexdigest()[:16]


def _is_file(options: Text) -> bool:
    return options.tokenizer not in ("bytes", "char", "bpe")


def _digests(paths: Iterable[Path], home: Path) -> list[str]:
    """The SHA-256 of each file; read again only where its size or its time has changed."""
    memo_file = home / "files.json"
    memo: dict[str, Any] = {}
    with contextlib.suppress(OSError, ValueError):
        memo = json.loads(memo_file.read_text(encoding="utf-8"))
    found, changed = list[str](), False
    for path in paths:
        try:
            stat = path.stat()
        except OSError as e:
            choices = nearest(path.name, ("bytes", "char", "bpe", "a tokenizer.json"))
            raise ValueError(f"data.tokenizer={path}: {e.strerror}.{choices}") from e
        name, seen = str(path.resolve()), [stat.st_size, stat.st_mtime_ns]
        kept = memo.get(name)
        if not isinstance(kept, list) or kept[:2] != seen:
            with path.open("rb") as file:
                kept = [*seen, hashlib.file_digest(file, "sha256").hexdigest()]
            memo[name], changed = kept, True
        found.append(kept[2])
    if changed:
        write_whole(memo_file, json.dumps(memo))
    return found


def _kept(home: Path, asked: Path) -> dict[str, Any] | None:
    """What was made for the same request, where it is still sound."""
    with contextlib.suppress(OSError, ValueError):
        return _sound(home / json.loads(asked.read_text(encoding="utf-8")))
    return None


def _sound(folder: Path) -> dict[str, Any] | None:
    """What a folder holds; None where there is none, or where a file of it is torn (it is renamed then)."""
    if not folder.is_dir():
        return None
    try:
        found = about(folder)
        for name, size in found["sizes"].items():
            if (folder / name).stat().st_size != size:
                raise ValueError(f"{name} has another size than when it was made")
        if _digest_of(folder) != found["tokenizer"]:
            raise ValueError(f"{TOKENIZER} is not the one that was made")
    except (OSError, ValueError, KeyError) as e:
        rename_unreadable(folder, e)
        return None
    return found


def _digest_of(folder: Path) -> str:
    """A checksum of the tokenizer."""
    return hashlib.sha256((folder / TOKENIZER).read_bytes()).hexdigest()[:16]


def _prepare(options: Text, paths: list[Path], home: Path) -> dict[str, Any]:
    with _progress() as progress:
        reading = progress.add_task(f"reading {options.path}", total=None)
        found = survey(options, paths)
        progress.update(reading, total=1, completed=1)

        def again(what: str) -> Iterator[Piece]:
            """The text once more, with a bar."""
            task = progress.add_task(what, total=found.n_chars)
            for piece in parts(options, paths, found):
                yield piece
                progress.advance(task, len(piece.text))

        match options.tokenizer:
            case "bytes":
                tokenizer = tokens.of_bytes()
            case "char":
                tokenizer = tokens.of_characters(found.alphabet)
            case "bpe":
                training = (piece.text for piece in again("training the tokenizer") if piece.split == TRAIN)
                tokenizer = tokens.trained_bpe(training, options.vocab_size)
            case path:
                tokenizer = tokens.of_file(Path(path))
        part = home / f"{hashlib.sha256(str(paths).encode()).hexdigest()[:12]}.part"
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir()
        try:
            writers = _write(part, again("tokenising"), tokenizer, options)
            made = _finish(part, writers, tokenizer)
            if (folder := home / made["digest"]).exists():
                shutil.rmtree(part)  # the same text, asked for in another way
            else:
                part.replace(folder)
        finally:
            shutil.rmtree(part, ignore_errors=True)
    n_tokens, vocab_size = sum(writer.n_tokens for writer in writers), made["vocab_size"]
    counts = ", ".join(
        f"{w.n_docs:,} {name} ({w.n_tokens / n_tokens:.0%} of the tokens)"
        for name, w in zip(SPLITS, writers, strict=True)
    )
    identical = f"; {found.n_identical:,} documents are equal to an earlier one" if found.n_identical else ""
    n_empty = sum(path.stat().st_size == 0 for path in paths)
    empty = f"; {n_empty:,} files are empty" if n_empty else ""
    said = f"data=text: {n_tokens:,} tokens, a vocabulary of {vocab_size:,}; documents: {counts}{identical}{empty}."
    print(said, home / made["digest"], file=sys.stderr)
    few = [f"{name} ({w.n_docs})" for name, w in zip(SPLITS, writers, strict=True) if w.n_docs < FEW_DOCUMENTS]
    if few and options.split is SplitBy.hash:
        print(
            f"data=text: few documents in {', '.join(few)}, and a verdict rests on those of the test: "
            "larger shares (data.val, data.test), or data.documents=stream data.split=tail for the last of the text.",
            file=sys.stderr,
        )
    return made


def _progress() -> Progress:
    """Bars on a terminal, nothing in a pipe."""
    return Progress(console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty())


class _Writer:
    """The arrays of one split, written as they come."""

    def __init__(self, folder: Path, name: str, dtype: type, end: int) -> None:
        self.file, self.dtype, self.end = (folder / f"{name}.tokens").open("wb"), dtype, end
        self.offsets, self.n_tokens, self.n_bytes, self.sha = array("q", [0]), 0, 0, hashlib.sha256()

    def add(self, piece: Piece, ids: np.ndarray) -> None:
        """One piece; a document is closed where the next begins."""
        if piece.begins:
            self.close_document()
            self._write(np.array([self.end]))
        self._write(ids)
        self.n_bytes += len(piece.text.encode())

    def close_document(self) -> None:
        """END behind the document that is open."""
        if self.n_tokens > self.offsets[-1]:
            self._write(np.array([self.end]))
            self.offsets.append(self.n_tokens)

    def _write(self, ids: np.ndarray) -> None:
        raw = ids.astype(self.dtype).tobytes()
        self.file.write(raw)
        self.sha.update(raw)
        self.n_tokens += len(ids)

    @property
    def n_docs(self) -> int:
        """Closed documents."""
        return len(self.offsets) - 1


def _write(part: Path, pieces: Iterator[Piece], tokenizer: Tokenizer, options: Text) -> list[_Writer]:
    vocab_size, end = tokenizer.get_vocab_size(), tokenizer.token_to_id(tokens.END)
    assert end is not None
    dtype = np.uint16 if vocab_size <= 1 << 16 else np.uint32
    writers = [_Writer(part, name, dtype, end) for name in SPLITS]
    try:
        while batch := list(islice(pieces, AT_ONCE)):
            texts = [piece.text for piece in batch]
            if _is_file(options):
                tokens.check_covers(tokenizer, texts, options.tokenizer)
            for piece, found in zip(batch, tokenizer.encode_batch_fast(texts, add_special_tokens=False), strict=True):
                writers[piece.split].add(piece, np.array(found.ids, dtype=np.int64))
        for writer in writers:
            writer.close_document()
    finally:
        for writer in writers:
            writer.file.close()
    return writers


def _finish(part: Path, writers: list[_Writer], tokenizer: Tokenizer) -> dict[str, Any]:
    """Write what is not tokens, and what all of it is."""
    tokenizer.save(str(part / TOKENIZER))
    of_tokenizer = _digest_of(part)
    digest = hashlib.sha256(of_tokenizer.encode())
    for name, writer in zip(SPLITS, writers, strict=True):
        np.asarray(writer.offsets).tofile(part / f"{name}.offsets")
        digest.update(writer.sha.digest() + writer.offsets.tobytes())
    train = writers[TRAIN]
    found = Prepared(
        digest=digest.hexdigest()[:16],
        tokenizer=of_tokenizer,
        vocab_size=tokenizer.get_vocab_size(),
        max_len=max(int(np.diff(np.asarray(writer.offsets)).max()) - 1 for writer in writers),
        n_documents=train.n_docs,
        n_tokens=train.n_tokens - train.n_docs,
    )
    said = {
        **asdict(found),
        "end": tokenizer.token_to_id(tokens.END),
        "dtype": np.dtype(train.dtype).name,
        "n_bytes": {name: writer.n_bytes for name, writer in zip(SPLITS, writers, strict=True)},
        "sha256": {name: writer.sha.hexdigest() for name, writer in zip(SPLITS, writers, strict=True)},
        "sizes": {file.name: file.stat().st_size for file in sorted(part.iterdir())},
    }
    write_whole(part / ABOUT, json.dumps(said, indent=1))
    return said
