"""Files that are written whole or not at all, and files that turn out to be torn."""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

log = logging.getLogger(__name__)


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """A place to write a file to; it gets its name when the block has ended well, so half of it is never read."""
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        yield part
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def write_whole(path: Path, text: str) -> None:
    """Write a text whole."""
    with whole(path) as part:
        part.write_text(text, encoding="utf-8")


def rename_unreadable(path: Path, why: object) -> None:
    """Give a file that cannot be read another name, so that it counts for nothing, and say so."""
    aside = path.with_name(f"{path.name}.unreadable")
    path.replace(aside)
    log.warning("%s could not be read (%s); it lies now at %s and does not count.", path, why, aside)
