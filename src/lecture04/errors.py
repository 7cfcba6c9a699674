"""One sentence for what a user got wrong, with the nearest name and the choices; no traceback."""

import difflib
import os
import sys
from collections.abc import Callable, Iterable, Iterator

from hydra.errors import HydraException, MissingConfigException, OverrideParseException
from omegaconf import Container, DictConfig, OmegaConf
from omegaconf.errors import (
    ConfigAttributeError,
    ConfigKeyError,
    InterpolationKeyError,
    OmegaConfBaseException,
    ValidationError,
)


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
        return f"{group}={name}: there is no such choice." + nearest(name, error.options)
    if isinstance(error, OverrideParseException):
        return f"{error.override}: not an override; write GROUP=CHOICE or SETTING=VALUE ({_first_line(error)})."
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, OmegaConfBaseException):
        cause = cause.__cause__
    if isinstance(cause, ConfigKeyError | ConfigAttributeError) and cause.parent_node is not None:
        return f"{cause.full_key}: no such setting." + _nearest_setting(str(cause.key), cause.parent_node)
    if isinstance(cause, InterpolationKeyError):
        return f"{cause.full_key}: {_first_line(cause)}."
    if isinstance(cause, ValidationError):
        return f"{cause.full_key}: {_first_line(cause)}."
    return _first_line(error)


def _first_line(error: BaseException) -> str:
    text = getattr(error, "msg", None) or str(error)
    return text.strip().splitlines()[0].rstrip(".") if text.strip() else type(error).__name__


def _nearest_setting(key: str, parent: Container) -> str:
    """The nearest setting beside the missing one, or one of that name deeper down: lr is optim.lr."""
    if not isinstance(parent, DictConfig):
        return ""
    beside = [str(name) for name in parent if name != "hydra"]
    deeper = [path for path in _leaves(parent, "") if path.rpartition(".")[2] == key]
    return f" Did you mean {deeper[0]}?" + nearest("", beside) if deeper else nearest(key, beside)


def _leaves(node: DictConfig, path: str) -> Iterator[str]:
    for name in node:
        if name == "hydra" or OmegaConf.is_missing(node, name):
            continue
        child = node._get_node(name)  # as it stands: an interpolation need not resolve here
        if isinstance(child, DictConfig) and not child._is_none():
            yield from _leaves(child, f"{path}{name}.")
        else:
            yield f"{path}{name}"


def run(main: Callable[[], object]) -> None:
    """Call a command's main function; what the user got wrong ends it with one sentence and exit code 1."""
    os.environ["HYDRA_FULL_ERROR"] = "1"  # Hydra then raises instead of printing a trimmed traceback of its own
    try:
        main()
    except UserError as e:
        sys.exit(str(e))
    except (HydraException, OmegaConfBaseException) as e:
        sys.exit(explain(e))
    except OSError as e:
        sys.exit(f"{e.filename}: {e.strerror}." if e.filename and e.strerror else str(e))
    except KeyboardInterrupt:
        print("Interrupted. What is finished is kept; the same command goes on from there.", file=sys.stderr)
        sys.exit(130)
