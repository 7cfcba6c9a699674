"""With what results were made: versions, commit, machine. Nothing that names a person or a host."""

import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKAGES = ("lecture04", "torch", "numpy", "scipy")
HERE = Path(__file__).parent


def environment() -> dict[str, str]:
    """{what: its version}, of the process that asks."""
    found = {name: told for name in PACKAGES if (told := _version(name))}
    if commit := _commit():
        found["commit"] = commit
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    machine = f"{cores} {'core' if cores == 1 else 'cores'}, {platform.machine()}, {platform.system()}"
    return found | {"Python": platform.python_version(), "machine": machine}


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _commit() -> str | None:
    """The commit that the package's sources are of, and whether they differ from it; None where there is no git."""
    head, changes = _git("rev-parse", "--short=10", "HEAD"), _git("status", "--porcelain", "--", str(HERE.parent))
    return head and (f"{head}, with changes" if changes else head)


def _git(*arguments: str) -> str | None:
    command = ["git", "-C", str(HERE), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=5, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
