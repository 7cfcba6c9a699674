"""Files to documents: what `data.path` names, opened whatever it is compressed with, its documents one after the other.

Nothing is read that is not asked for: a document at a time, and of a stream a piece at a time.
"""

import glob
import gzip
import io
import json
import zlib
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import BinaryIO

import zstandard

from lecture04.config import Boundary, Text

PIECE = 1 << 20
"""Characters that are tokenised at a time, about."""
RECORDS = (".jsonl", ".ndjson", ".parquet")
TEXTS = (".txt", ".md", ".rst", ".py", ".tex", ".html", ".csv")
"""What is read of a folder, beside records; a file that is named itself may be called anything."""
COMPRESSED = (".gz", ".zst")


def files(path: str) -> list[Path]:
    """The files that `data.path` names, in the order of their names.

    Raises ValueError where there are none.
    """
    if (inside := _in_package(path)) is not None:
        return [inside]
    here = Path(path)
    if here.is_file():
        return [here]
    if here.is_dir():
        known = (*RECORDS, *TEXTS)
        found = [file for file in here.rglob("*") if _suffix(file) in known and not _is_hidden(file.relative_to(here))]
        wanted = f"none of its files ends with {', '.join(known)} (nor with .gz or .zst behind that)"
    else:
        found, wanted = [Path(name) for name in glob.glob(path, recursive=True)], "there is no such file or folder"
    found = sorted(file for file in found if file.is_file())
    if not found:
        raise ValueError(f"data.path={path}: {wanted}.")
    return found


def documents(options: Text, paths: Iterable[Path]) -> Iterator[str]:
    """Each document that is not empty, as text.

    Raises ValueError in a sentence with the file and the place where it cannot be read.
    """
    for path in paths:
        with _said_of(path):
            match _suffix(path):
                case ".parquet":
                    yield from filter(None, _parquet(path, options.field))
                case ".jsonl" | ".ndjson":
                    yield from filter(None, _json_lines(path, options.field))
                case _:
                    yield from filter(None, _text(path, options))


def pieces(options: Text, paths: Iterable[Path]) -> Iterator[str]:
    """A stream's text, a piece at a time, cut behind a line's end; nothing stands between files."""
    for path in paths:
        if _suffix(path) in RECORDS:
            raise ValueError(
                f"data.documents=stream: {path} holds records, each of them a document; it is for files of text."
            )
        with (
            _said_of(path),
            _opened(path) as file,
            io.TextIOWrapper(file, encoding="utf-8", newline="") as text,
        ):
            yield from cut(iter(lambda text=text: text.read(PIECE), ""))


def cut(texts: Iterable[str]) -> Iterator[str]:
    """The same text in pieces that end behind a line's end, where there is one: a word is never cut in two."""
    left = ""
    for text in texts:
        left += text
        if end := left.rfind("\n") + 1:
            yield left[:end]
            left = left[end:]
        elif len(left) > 4 * PIECE:
            yield left
            left = ""
    if left:
        yield left


@contextmanager
def _said_of(path: Path) -> Generator[None]:
    """What keeps a file from being read, in one sentence with its name and the place."""
    try:
        yield
    except UnicodeDecodeError as e:
        place = f"byte {e.object[e.start]:#04x} in line {_line_of_fault(path)}"
        raise ValueError(f"{path}: not UTF-8: {place}; `iconv -f LATIN1 -t UTF-8` converts what is Latin-1.") from e
    except (OSError, EOFError, zlib.error, zstandard.ZstdError) as e:
        raise ValueError(f"{path}: {getattr(e, 'strerror', None) or e}.") from e


def _line_of_fault(path: Path) -> int:
    """The first line of a file that is not UTF-8; what is read in pieces does not say where a piece began."""
    with _opened(path) as file:
        for number, line in enumerate(file, start=1):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError:
                return number
    return 0


def _in_package(path: str) -> Path | None:
    """The file that PACKAGE:FILE names; None for any other path."""
    package, colon, file = path.partition(":")
    if not colon or not package.replace(".", "").isidentifier() or Path(path).exists():
        return None
    try:
        spec = find_spec(package)
    except (ImportError, ValueError):
        spec = None
    if spec is None or not spec.submodule_search_locations:
        raise ValueError(f"data.path={path}: no package {package} is installed.")
    found = Path(spec.submodule_search_locations[0]) / file
    if not found.is_file():
        raise ValueError(f"data.path={path}: the package {package} has no file {file}.")
    return found


def _is_hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)


def _suffix(path: Path) -> str:
    """What a file's name ends with, less that of its compression."""
    return Path(path.stem).suffix.lower() if path.suffix in COMPRESSED else path.suffix.lower()


def _opened(path: Path) -> BinaryIO:
    if path.suffix == ".gz":
        return gzip.open(path, "rb")  # pyright: ignore[reportReturnType]
    if path.suffix == ".zst":
        return zstandard.open(path, "rb")  # pyright: ignore[reportReturnType]
    return path.open("rb")


def _text(path: Path, options: Text) -> Iterator[str]:
    with _opened(path) as file, io.TextIOWrapper(file, encoding="utf-8", newline="") as text:
        match options.documents:
            case Boundary.line:
                yield from (line.rstrip("\r\n") for line in text)
            case Boundary.separator:
                yield from _separated(text, options.separator)
            case _:
                yield text.read()


def _separated(text: io.TextIOWrapper, separator: str) -> Iterator[str]:
    left = ""
    while piece := text.read(PIECE):
        *whole, left = (left + piece).split(separator)
        yield from (document.strip("\n") for document in whole)
    yield left.strip("\n")


def _json_lines(path: Path, field: str) -> Iterator[str]:
    with _opened(path) as file, io.TextIOWrapper(file, encoding="utf-8") as lines:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                record = json.loads(line)
            except json.JSONDecodeError as e:
                raise ValueError(f"{path}:{number}: not JSON: {e.msg} at column {e.colno}.") from e
            found = record.get(field) if isinstance(record, dict) else None
            if not isinstance(found, str):
                has = f"the record has {', '.join(record)}" if isinstance(record, dict) else "the line is no record"
                raise ValueError(f"{path}:{number}: no text below data.field={field}; {has}.")
            yield found


def _parquet(path: Path, field: str) -> Iterator[str]:
    if path.suffix in COMPRESSED:
        raise ValueError(f"{path}: a .parquet file is compressed inside; unpack it first.")
    try:
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile
    except ImportError as e:
        raise ValueError(f"{path}: a .parquet file is read by pyarrow: pip install 'lecture04[parquet]'.") from e
    try:
        with ParquetFile(path) as file:
            names = file.schema_arrow.names
            if field not in names:
                raise ValueError(f"{path}: no column data.field={field}; it has {', '.join(names)}.")
            n_read = 0
            for batch in file.iter_batches(columns=[field], batch_size=1024):
                for found in batch.column(0).to_pylist():
                    n_read += 1
                    if not isinstance(found, str):
                        raise ValueError(f"{path}: record {n_read} has no text below data.field={field}.")
                    yield found
    except ArrowException as e:
        raise ValueError(f"{path}: not a .parquet file: {e}.") from e
