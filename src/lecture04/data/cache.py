"""Arrays that are made once: kept on disk with a checksum, loaded in milliseconds."""

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
from filelock import FileLock

from lecture04.config.code import Root, code
from lecture04.config.registry import PACKAGE
from lecture04.files import rename_unreadable, whole

Arrays = dict[str, np.ndarray]


def cached(folder: Path, name: str, settings: Mapping[str, object], make: Callable[[], Arrays]) -> Arrays:
    """The arrays that `make` gives, made on first use and kept in `folder`.

    The file's name carries a hash of the settings, which should say all that the arrays depend on, code included. One
    that is torn or altered is renamed with a warning, and made again; processes that want the same arrays at once wait
    for the one that makes them. Where nothing can be written, what lies there is read all the same.
    """
    key = hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:16]
    path = Path(folder) / f"{name}-{key}.npz"
    lock = FileLock(path.with_suffix(".lock"))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock.acquire()
    except OSError:
        if (arrays := _read(path)) is None:
            raise
        return arrays
    try:
        if (arrays := _read(path)) is None:
            arrays = make()
            _write(path, arrays)
        return arrays
    finally:
        lock.release()


def code_of(*roots: Root, package: Path = PACKAGE) -> str:
    """A hash of the code that makes what is cached, for `settings`; comments, docstrings and layout do not count."""
    return code(package, roots).digest


def _read(path: Path) -> Arrays | None:
    """The arrays of a sound file; None where there is none, or where it was not sound and has been renamed."""
    if not path.exists():
        return None
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        if str(arrays.pop("sha256")) == _checksum(arrays):
            return arrays
        problem = "its checksum does not match"
    except (OSError, ValueError, KeyError, EOFError, BadZipFile) as error:
        problem = str(error)
    rename_unreadable(path, problem)
    return None


def _write(path: Path, arrays: Arrays) -> None:
    with whole(path) as part, part.open("wb") as file:
        np.savez(file, **arrays, sha256=np.array(_checksum(arrays)))  # pyright: ignore[reportArgumentType]


def _checksum(arrays: Arrays) -> str:
    digest = hashlib.sha256()
    for name in sorted(arrays):
        digest.update(f"{name} {arrays[name].dtype.str} {arrays[name].shape}".encode())
        digest.update(np.ascontiguousarray(arrays[name]).tobytes())
    return digest.hexdigest()
