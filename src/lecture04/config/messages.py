"""One sentence for what a user got wrong, with the nearest name and the choices; no traceback."""

import os
import re
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import NoReturn

from hydra.errors import HydraException, MissingConfigException, OverrideParseException
from omegaconf import Container, DictConfig
from omegaconf.errors import ConfigAttributeError, ConfigKeyError, OmegaConfBaseException

from lecture04.config.errors import UserError, nearest
from lecture04.config.registry import names
from lecture04.config.schema import PARTS
from lecture04.config.settings import INTERNAL, owners, settings
from lecture04.config.typed import in_shell, quoted, read
from lecture04.interrupts import Stopped, listen
from lecture04.terminal import width_of, wrapped


def explain(error: BaseException) -> str:
    """The sentence for an error of Hydra's or OmegaConf's."""
    if isinstance(error, MissingConfigException) and error.options is not None:
        group, _, name = (error.missing_cfg_file or "").rpartition("/")
        if name in names(group):
            return f"{group}={name}: its class is registered, but conf/{group}/{name}.yaml is missing."
        shown = [option for option in error.options if not option.startswith(".")]
        return f"{group}={name}: there is no such choice." + nearest(name, shown)
    if isinstance(error, OverrideParseException):
        return _unread(str(error.override))
    if several := re.match(r"(?:Ambiguous value for argument|Sweep parameters) '(.*)'", _first_line(error)):
        return f"{several[1]}: several values; add -m to compare them."
    typed, cause = "", error
    while cause is not None and not isinstance(cause, OmegaConfBaseException):
        said = re.search(r"(?:Error merging override |To append to your config use \+)(.*)", str(cause))
        typed, cause = typed or (said[1] if said else ""), cause.__cause__
    if cause is None or not (typed or cause.full_key):
        return _first_line(error) + "."
    if isinstance(cause, ConfigKeyError | ConfigAttributeError) and cause.parent_node is not None:
        key = str(cause.full_key)
        missing = typed if typed.startswith(f"{key}=") else key
        return f"{missing}: no such setting{_of_part(key, cause.parent_node)}." + _nearest_setting(
            key, cause.parent_node
        )
    if re.match(r"Invalid type assigned: \w+ is not a subclass of", _first_line(cause)):
        key, _, value = typed.partition("=")
        return f"{typed or cause.full_key}: it has settings of its own; write {key}.name={value} or another of them."
    return f"{typed or cause.full_key}: {_reason(cause)}"


# What OmegaConf says in terms of Python, and how it is said here.
PLAINLY = (
    (r"KeyError raised while resolving interpolation: \"(.*)\"", r"\1"),
    (r"Value .* could not be converted to Integer", "must be a whole number"),
    (r"Value .* could not be converted to Float", "must be a number"),
    (r"Value .* is not a valid bool.*", "must be true or false"),
    (r".* is not Optional", "cannot be null"),
    (r"Invalid value assigned: .* is not a ListConfig.*", "must be a list"),
    (r"Value '(.*)' \(str\) is incompatible with type hint 'typing.List.*", r"must be a list; write [\1]"),
    (r"'DictConfig' is incompatible with type hint.*", "must be a list of overrides; write [GROUP=CHOICE, ...]"),
    (r"Key (.*) \(.*\) is incompatible with \(str\)", r"must be a text; write '\1' in quotes"),
)


def _reason(error: OmegaConfBaseException) -> str:
    text = _first_line(error)
    if choice := re.fullmatch(r"Invalid value '(.*)', expected one of \[(.*)\]", text):
        return "there is no such choice." + nearest(choice[1], choice[2].split(", "))
    for theirs, ours in PLAINLY:
        if said := re.fullmatch(theirs, text):
            return said.expand(ours) + "."
    return f"{text}."


def _first_line(error: BaseException) -> str:
    text = getattr(error, "msg", None) or str(error)
    return text.strip().splitlines()[0].rstrip(".") if text.strip() else type(error).__name__


def _unread(override: str) -> str:
    """What is said of an override that Hydra's grammar does not take."""
    key, equals, value = override.partition("=")
    if not equals or read(f"{key}=x") is None:
        return f"{override}: not an override; write GROUP=CHOICE or SETTING=VALUE."
    line = f"{key}={quoted(value)}"
    return f"{override}: not GROUP=CHOICE or SETTING=VALUE; if the value is one text, write `{in_shell(line)}`."


def _of_part(key: str, parent: Container) -> str:
    """Which part it is that has no such setting."""
    family = key.partition(".")[0]
    if family not in PARTS or not isinstance(parent, DictConfig) or "name" not in parent:
        return ""
    return f" of {family}={parent['name']}"


def _nearest_setting(key: str, parent: Container) -> str:
    """The setting that may be meant: of the same name in another group (lr is optim.lr) or part, or the nearest beside.

    Case does not matter.
    """
    if not isinstance(parent, DictConfig):
        return ""
    beside = [str(name) for name in parent if name not in ("hydra", "origin")]
    if "seed" in beside:  # the top: recipes and sweep files are chosen there too
        beside += ["recipe", "sweeps"]
    family, name = key.partition(".")[0], key.rpartition(".")[2]
    if having := owners(key):
        return f" That is a setting of {family}={', '.join(having)}."
    if name.lower() not in [one.lower() for one in beside]:
        same = [path for path in settings() if path.rpartition(".")[2].lower() == name.lower()]
        typed = [path for path in same if not path.startswith(INTERNAL)]
        if typed:
            return f" Did you mean {typed[0]}?" + nearest("", beside)
    return nearest(name, beside)


def or_exit(check: Callable[[], object]) -> None:
    """Call a check; what the user got wrong ends the program with its sentences.

    For Hydra's callbacks, whose other exceptions it turns into warnings.
    """
    try:
        check()
    except UserError as e:
        leave(str(e))
    except OmegaConfBaseException as e:
        leave(explain(e))


def leave(sentences: str) -> NoReturn:
    """End the program with what is to be said of it, at the terminal's width."""
    sys.exit(wrapped(sentences, width_of(sys.stderr)))


def run(main: Callable[[], object]) -> None:
    """Call a command's main function; what the user got wrong ends it with one sentence and exit code 1."""
    listen()
    os.environ["HYDRA_FULL_ERROR"] = "1"  # Hydra then raises instead of printing a trimmed traceback of its own
    try:
        main()
    except UserError as e:
        leave(str(e))
    except (HydraException, OmegaConfBaseException) as e:
        leave(explain(e))
    except BrokenPipeError:
        raise  # whoever read our output has gone: `terminal.readers_may_go` ends quietly
    except OSError as e:
        leave(f"{e.filename}: {e.strerror}." if e.filename and e.strerror else str(e))
    except KeyboardInterrupt as e:
        with suppress(OSError):  # the terminal may be the one that was closed
            print("Interrupted. What is done is kept; the same command goes on from there.", file=sys.stderr)
        sys.exit(e.exit_code if isinstance(e, Stopped) else 130)
