"""A folder that the user named for a run (hydra.run.dir): whether that run may lie there. No torch is imported."""

from pathlib import Path

from lecture04.config import Run
from lecture04.records.explain import differences, stated
from lecture04.records.identity import recorded

OF_A_START = {"train.log"}
"""What a run leaves that has not begun: Hydra's log."""


def trouble(folder: str, run: Run) -> str | None:
    """Why a run cannot lie in a folder, or None: it must be new, empty, or hold this very run.

    Other folders are looked up by the identity in their names; this one's is read. A run empties its folder of what an
    earlier try left, so that what is somebody else's must not lie there.
    """
    place = Path(folder)
    if not folder.strip():
        return "an empty name is no folder; write its path."
    if place.exists() and not place.is_dir():
        return "a file of that name is there; name a folder."
    if not place.is_dir() or not {path.name for path in place.iterdir()} - OF_A_START:
        return None
    try:
        apart = differences(recorded(run), stated(place))
    except ValueError:
        return "the folder holds files that are of no run; name a new or an empty one."
    return f"another run lies there ({apart[0].replace(' there', ' in it')}); name another folder." if apart else None
