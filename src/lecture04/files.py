"""Files that are written whole, files that turn out to be torn, and places where nothing can be written."""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

log = logging.getLogger(__name__)


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """A place to write a file to; it gets its name when the block has ended well, so half of it is never read.

    What goes wrong with that place is raised as an OSError of the file that was meant.
    """
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        yield part
        part.replace(path)
    except OSError as e:
        if e.filename != str(part):
            raise
        raise OSError(e.errno, e.strerror, str(path)) from e
    finally:
        # Where nothing can be written there is nothing to take away.
        if os.path.lexists(part):
            part.unlink()


def write_whole(path: Path, text: str) -> None:
    """Write a text whole."""
    with whole(path) as part:
        part.write_text(text, encoding="utf-8")


def rename_unreadable(path: Path, why: object) -> None:
    """Give a file that cannot be read another name, so that it counts for nothing, and say so.

    Where it cannot be renamed either it stays, and does not count all the same.
    """
    aside = path.with_name(f"{path.name}.unreadable")
    try:
        path.replace(aside)
    except OSError:
        log.warning("%s could not be read (%s); it does not count.", path, why)
        return
    log.warning("%s could not be read (%s); it lies now at %s and does not count.", path, why, aside)


def not_a_folder(folder: Path) -> str:
    """Why there can be no folder at a path: a file is in its way, or a link that leads nowhere. Else empty."""
    place = _nearest(folder)
    if place.is_symlink() and not os.path.exists(place):
        return f"{place} is a link to {os.readlink(place)}, which {_fault(place)}"
    return "" if os.path.isdir(place) else f"{place} is a file, and a folder has to be there"


def not_writable(folder: Path) -> str:
    """Why nothing can be written into a folder, which need not be there yet. Else empty."""
    if why := not_a_folder(folder):
        return why
    place = _nearest(folder)
    return "" if os.access(place, os.W_OK | os.X_OK) else f"{place} may not be written to"


def _nearest(folder: Path) -> Path:
    """The nearest of a path and the folders above it where anything lies."""
    return next(place for place in (folder, *folder.parents, folder.cwd()) if os.path.lexists(place) and place.name)


def _fault(link: Path) -> str:
    try:
        os.stat(link)
    except FileNotFoundError:
        return "is not there"
    except OSError as e:
        return f"cannot be followed ({e.strerror})"
    return "is there"
