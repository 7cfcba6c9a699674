"""What lies in a Hugging Face folder: its config.json as ours, which tensors its files hold, its digest; no torch.

Everything that is wrong is a UserError whose lines name the file and the setting or tensor, and nothing is loaded here.
"""

import hashlib
import json
import os
import stat
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from safetensors import SafetensorError, safe_open
from tokenizers import Tokenizer

from lecture04 import config
from lecture04.config.errors import UserError
from lecture04.config.resolve import data_of, part
from lecture04.huggingface import ARCHITECTURES
from lecture04.huggingface.missing import why
from lecture04.huggingface.settings import Conversion, Theirs

CONFIG, WEIGHTS, INDEX = "config.json", "model.safetensors", "model.safetensors.index.json"
TOKENIZER, TOKENIZER_CONFIG = "tokenizer.json", "tokenizer_config.json"
OTHER_WEIGHTS = ("pytorch_model.bin", "pytorch_model.bin.index.json", "tf_model.h5", "flax_model.msgpack")

MOST_SETTINGS, MOST_INDEX = 10_000_000, 200_000_000
"""Bytes that no config.json and no index come near."""


def regular(path: Path, most: int | None = None) -> None:
    """Raises UserError where there is no regular file: opening a pipe would wait for ever, and a device has no end."""
    try:
        found = path.stat()
    except NotADirectoryError as e:
        raise UserError(f"{path.parent}: is a file, and a folder with {path.name} is needed.") from e
    except FileNotFoundError as e:
        whole = "there is no such file" if path.parent.is_dir() else "there is no such folder"
        raise UserError(f"{path}: {whole}, so no model lies there.") from e
    except (OSError, ValueError) as e:
        raise UserError(f"{path}: cannot be read: {_reason(e)}.") from e
    if not stat.S_ISREG(found.st_mode):
        raise UserError(f"{path}: is {_kind(found.st_mode)}, not a file that can be read.")
    if most is not None and found.st_size > most:
        raise UserError(f"{path}: has {found.st_size:,} bytes; no {path.name} is so long.")


def _kind(mode: int) -> str:
    kinds = {stat.S_IFDIR: "a folder", stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}
    return kinds.get(stat.S_IFMT(mode), "a device")


def _reason(error: Exception) -> str:
    said = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return " ".join(said.split())


def read_json(path: Path, most: int = MOST_SETTINGS) -> dict[str, Any]:
    """A JSON file of settings. Raises UserError where it is not there, or is none."""
    regular(path, most)
    try:
        content = json.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as e:
        raise UserError(f"{path}: cannot be read: {_reason(e)}.") from e
    except RecursionError as e:
        raise UserError(f"{path}: not a JSON file: its brackets stand too deep in each other.") from e
    except ValueError as e:
        raise UserError(f"{path}: not a JSON file: {_reason(e)}.") from e
    if not isinstance(content, dict):
        raise UserError(f"{path}: must be settings below keys, not {type(content).__name__}.")
    return content


def conversion(folder: Path | str) -> tuple[Conversion, Theirs]:
    """How a folder's model is read, and its config.json. Raises UserError where no part here makes it up."""
    path = Path(folder) / CONFIG
    theirs = read_json(path)
    their = ARCHITECTURES.get(str(theirs.get("model_type")))
    if their is None:
        raise UserError(f"{path}: {why(theirs.get('model_type'), list(ARCHITECTURES))}")
    return their, theirs


def read_settings(folder: Path) -> tuple[Conversion, config.Architecture]:
    """How a folder's model is read, and what its config.json describes.

    Raises UserError naming each setting that is missing, is not what it should be, or that no part here follows.
    """
    path = Path(folder) / CONFIG
    their, theirs = conversion(folder)
    try:
        return their, their.read(theirs)
    except ValueError as e:
        raise UserError("\n".join(f"{path}: {line}" for line in shortened(str(e).splitlines()))) from e


def shortened(lines: list[str]) -> list[str]:
    """The first of many lines."""
    return lines if len(lines) <= SAID else [*lines[:SAID], f"and {len(lines) - SAID} more like these."]


SAID = 10
"""So many lines of a long list of errors are said."""


def source(folder: Path, settings: Any) -> config.Architecture:
    """What a run of these settings starts from, the model in `init.folder`; RoPE's layout is the run's.

    `settings` are those of the run, still open. Raises UserError as `read_settings`, and where the vocabulary or the
    length does not fit (see `fits` and `other_tokens`).
    """
    folder, (_, found) = Path(folder), read_settings(folder)
    try:
        data, facts = data_of(settings)
    except UserError:
        return found  # `resolve` says it of the run itself
    n_ctx = part("layout", settings.layout, SimpleNamespace(facts=facts)).length
    if errors := fits(found, facts.vocab_size, n_ctx):
        raise UserError("\n".join(f"{folder / CONFIG}: {line}" for line in errors))
    if isinstance(data, config.Text) and (said := other_tokens(folder, data, Path(settings.paths.outputs))):
        raise UserError(said)
    posenc = found.posenc
    if isinstance(posenc, config.Rope) and settings.posenc.name in ("rope", "rope_half"):
        posenc = replace(posenc, name=settings.posenc.name)  # either layout is read exactly
        if posenc.scaling.name is config.RopeScaling.none:  # nothing is scaled, so its length is that of any row
            posenc = replace(posenc, scaling=replace(posenc.scaling, n_original=n_ctx))
    return replace(found, posenc=posenc)


def fits(c: config.Architecture, vocab_size: int, n_ctx: int) -> list[str]:
    """What keeps a run with this vocabulary and rows of this length from starting with the model, a sentence each."""
    errors = list[str]()
    if c.vocab_size != vocab_size:
        errors.append(f"vocab_size={c.vocab_size}: must be {vocab_size}, the words of data.")
    if c.n_ctx < n_ctx:
        errors.append(f"{c.n_ctx} positions: must be at least {n_ctx}, the length of a row (layout.length).")
    return errors


def other_tokens(folder: Path, data: config.Text, outputs: Path) -> str:
    """The first token of a folder's tokenizer.json that is another in a text of as many tokens, said; else empty."""
    from lecture04.data.text.prepare import folder_of

    if (theirs := tokenizer(folder)) is None or (ours := tokenizer(folder_of(data, outputs / "data"))) is None:
        return ""
    by_id = {token: word for word, token in ours.get_vocab().items()}
    for word, token in sorted(theirs.get_vocab().items(), key=lambda entry: entry[1]):
        if by_id.get(token, word) != word:
            return (
                f"{folder / TOKENIZER}: its token {token} is {word!r}, and that of data.tokenizer={data.tokenizer} "
                f"{by_id[token]!r}; data.tokenizer={folder / TOKENIZER} reads a text as this model does."
            )
    return ""


@dataclass(frozen=True)
class Held:
    """A tensor in a file: where, and what its header says."""

    file: Path
    name: str
    shape: tuple[int, ...]
    dtype: str


def held(folder: Path) -> dict[str, Held]:
    """Every tensor of a folder by name, from the headers of its files, one or many (by the index).

    Raises UserError with every file that is missing or torn, and every tensor that the index puts in a wrong file.
    """
    folder = Path(folder)
    if os.path.lexists(folder / WEIGHTS):
        return _header(folder / WEIGHTS)
    if not (folder / INDEX).exists():
        other = next((name for name in OTHER_WEIGHTS if (folder / name).exists()), None)
        hint = f"; {other} is not read, save it as safetensors" if other else ""
        raise UserError(f"{folder}: neither {WEIGHTS} nor {INDEX} is there{hint}.")
    index = folder / INDEX
    file_of = read_json(index, MOST_INDEX).get("weight_map")
    if not isinstance(file_of, dict) or not file_of or not all(_is_file_name(name) for name in file_of.values()):
        raise UserError(f"{index}: weight_map must name a file of this folder for each tensor.")
    found, errors = dict[str, Held](), list[str]()
    for name in sorted(set(file_of.values())):
        try:
            tensors = _header(folder / name)
        except UserError as e:
            errors.append(str(e))
            continue
        errors += [
            f"{folder / name}: {tensor}: not in this file, where {INDEX} puts it."
            for tensor, file in file_of.items()
            if file == name and tensor not in tensors
        ]
        errors += [
            f"{folder / name}: {tensor}: {INDEX} puts it in {file_of.get(tensor, 'no file')}."
            for tensor in tensors
            if file_of.get(tensor) != name
        ]
        found |= tensors
    if errors:
        raise UserError("\n".join(shortened(errors)))
    return found


def _is_file_name(name: object) -> bool:
    return isinstance(name, str) and name == Path(name).name and name.endswith(".safetensors")


def _header(file: Path) -> dict[str, Held]:
    regular(file)
    try:
        with safe_open(file, framework="np") as tensors:
            slices = {name: tensors.get_slice(name) for name in tensors.keys()}  # noqa: SIM118 - it is no dict
            return {name: Held(file, name, tuple(s.get_shape()), s.get_dtype()) for name, s in slices.items()}
    except (SafetensorError, OSError) as e:
        raise UserError(f"{file}: torn, or no safetensors file: {e}.") from e


def tokenizer(folder: Path) -> Tokenizer | None:
    """What turns text into a folder's tokens; None without a tokenizer.json. Raises UserError for one that is bad."""
    path = Path(folder) / TOKENIZER
    if not path.exists():
        return None
    regular(path, MOST_INDEX)
    try:
        return Tokenizer.from_file(str(path))
    except Exception as e:  # the package raises plain Exceptions
        raise UserError(f"{path}: no tokenizer: {_reason(e)}.") from e


def first_and_last(folder: Path, vocab_size: int) -> tuple[int | None, frozenset[int]]:
    """The token that texts begin with, and those that they end with, as a folder's config.json says; often none."""
    theirs = read_json(Path(folder) / CONFIG)

    def tokens(name: str) -> list[int]:
        said = theirs.get(name)
        listed = said if isinstance(said, list) else [said]
        return [token for token in listed if isinstance(token, int) and 0 <= token < vocab_size]

    return next(iter(tokens("bos_token_id")), None), frozenset(tokens("eos_token_id"))


def digest(folder: Path) -> str:
    """What a folder is: a hash of its config.json and its tensors' files, whatever it and they are called."""
    files = sorted({tensor.file for tensor in held(folder).values()})
    regular(Path(folder) / CONFIG, MOST_SETTINGS)
    stats = {path: path.stat() for path in (Path(folder) / CONFIG, *files)}
    hashes = [_sha256(path, stat.st_size, stat.st_mtime_ns) for path, stat in stats.items()]
    return hashlib.sha256("".join(hashes).encode()).hexdigest()[:16]


@cache
def _sha256(path: Path, size: int, changed: int) -> str:
    """Of a file as it was then: a sweep asks for it once a row."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
