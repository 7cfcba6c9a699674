"""Peak memory of a run, not of the process: workers live through many runs."""

import contextlib
import resource
import sys
from pathlib import Path


def reset_peak() -> None:
    """Start measuring anew (Linux; elsewhere the peak is that of the process's whole life)."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def peak_mib() -> float:
    """The largest resident set since `reset_peak`, in MiB."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1024 * 1024 if sys.platform == "darwin" else 1024)
