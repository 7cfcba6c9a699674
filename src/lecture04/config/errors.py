"""What a user can fix, and the nearest of the names that would do."""

import difflib
from collections.abc import Iterable


class UserError(Exception):
    """Something that the user can fix; its text is the whole message."""


def nearest(name: object, choices: Iterable[str]) -> str:
    """ " Did you mean ...? Choices: ..." for a name that is none of the choices; case does not matter."""
    choices = list(choices)
    small = {choice.lower(): choice for choice in reversed(choices)}
    hit = difflib.get_close_matches(str(name).lower(), small, n=1)
    return (f" Did you mean {small[hit[0]]}?" if hit else "") + (f" Choices: {', '.join(choices)}." if choices else "")
