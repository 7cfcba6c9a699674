"""What a user can fix, and the nearest of the names that would do."""

import difflib
from collections.abc import Iterable


class UserError(Exception):
    """Something that the user can fix; its text is the whole message."""


def nearest(name: object, choices: Iterable[str]) -> str:
    """ " Did you mean ...? Choices: ..." for a name that is none of the choices."""
    choices = list(choices)
    hit = difflib.get_close_matches(str(name), choices, n=1)
    return (f" Did you mean {hit[0]}?" if hit else "") + (f" Choices: {', '.join(choices)}." if choices else "")
