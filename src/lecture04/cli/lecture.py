"""`lecture04 lecture [SECTION ...]`."""

import sys

from lecture04.config.places import IS_CHECKOUT


def entry() -> None:
    """The command line."""
    if not IS_CHECKOUT:
        sys.exit("The lecture runs scripts and tests of the repository: clone it, then `make lecture`.")
    from lecture04.lecture import command

    command.entry(sys.argv[1:])
