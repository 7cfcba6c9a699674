"""One sentence for what a user got wrong, with the nearest name and the choices; no traceback."""

import difflib
import os
import sys
from collections.abc import Callable, Iterable

from hydra.errors import HydraException, MissingConfigException
from omegaconf.errors import ConfigAttributeError, ConfigKeyError, OmegaConfBaseException, ValidationError


class UserError(Exception):
    """Something that the user can mend; its text is the whole message."""


def nearest(name: object, choices: Iterable[str]) -> str:
    """ "Did you mean ...? Choices: ..." for a name that is none of the choices."""
    choices = list(choices)
    hit = difflib.get_close_matches(str(name), choices, n=1)
    return (f" Did you mean {hit[0]}?" if hit else "") + f" Choices: {', '.join(choices)}."


def explain(error: BaseException) -> str:
    """The sentence for an error of Hydra's or OmegaConf's."""
    if isinstance(error, MissingConfigException) and error.options is not None:
        group, _, name = (error.missing_cfg_file or "").rpartition("/")
        return f"{group}={name}: no such {group}." + nearest(name, error.options)
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, OmegaConfBaseException):
        cause = cause.__cause__
    if isinstance(cause, ConfigKeyError | ConfigAttributeError) and cause.parent_node is not None:
        return f"{cause.full_key}: no such setting." + nearest(cause.key, map(str, cause.parent_node))
    if isinstance(cause, ValidationError):
        return f"{cause.full_key}: {(cause.msg or str(cause)).splitlines()[0]}"
    return str(error)


def run(main: Callable[[], object]) -> None:
    """Call a command's main function; what the user got wrong ends it with one sentence and exit code 1."""
    os.environ["HYDRA_FULL_ERROR"] = "1"  # Hydra then raises instead of printing a trimmed traceback of its own
    try:
        main()
    except UserError as e:
        sys.exit(str(e))
    except (HydraException, OmegaConfBaseException) as e:
        sys.exit(explain(e))
    except KeyboardInterrupt:
        print("Interrupted. What is finished is kept; the same command goes on from there.", file=sys.stderr)
        sys.exit(130)
