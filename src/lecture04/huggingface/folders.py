"""Models in Hugging Face folders: config.json and safetensors, written whole and read whole or not at all.

    save(model, c, "hf")                  # in the first architecture that has a place for every part
    c, model = load("hf")                 # any of ARCHITECTURES, in one file or in many; c is a config.Architecture

What is read is float32, as everything here is trained: bfloat16 and float16 become it exactly, float64 is rounded.
What is written has the type that the model has.
"""

import json
import math
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from tokenizers import Tokenizer
from torch import Tensor

from lecture04 import config
from lecture04.config import sizes
from lecture04.config.errors import UserError, nearest
from lecture04.huggingface import ARCHITECTURES, Conversion, files, read_state, write_state
from lecture04.huggingface.files import CONFIG, TOKENIZER, TOKENIZER_CONFIG, WEIGHTS, Held, held, read_settings
from lecture04.huggingface.mapping import NameMap
from lecture04.nn.model import LanguageModel

FLOATS = ("F64", "F32", "F16", "BF16")
MARK = {"written_by": "lecture04"}
"""What `save` knows its own files by. transformers keeps it in a config.json, and adds a transformers_version."""
SETTINGS = (CONFIG, TOKENIZER_CONFIG)
SPECIAL_TOKENS = ("bos_token_id", "eos_token_id", "pad_token_id")
"""What transformers would fill in by itself where a config.json does not say it."""


def load(folder: Path | str) -> tuple[config.Architecture, LanguageModel]:
    """The model in a folder, and what it is.

    Raises:
        UserError: the folder is not whole, or holds what no part here expresses; a line for each problem, naming file
            and setting or tensor. Nothing has been loaded then.
    """
    _, c = read_settings(Path(folder))
    state = parameters(folder, c)
    model = LanguageModel(c)
    model.load_state_dict(state)
    return c, model


def parameters(folder: Path | str, c: config.Architecture) -> dict[str, Tensor]:
    """A folder's parameters under our names, float32, for the model of `c`, which is as its config was read.

    Raises UserError as `load` does.
    """
    folder, where, (their, _) = Path(folder), check(folder, c), files.conversion(folder)
    theirs = dict[str, Tensor]()
    try:
        for file in {tensor.file for tensor in where.values()}:
            with safe_open(file, framework="pt") as tensors:
                for name, tensor in where.items():
                    if tensor.file == file:
                        theirs[name] = tensors.get_tensor(tensor.name).float()
        return read_state(their.table, theirs, c)
    except (ValueError, SafetensorError) as e:
        raise UserError(f"{folder}: {e}") from e


def check(folder: Path | str, c: config.Architecture) -> dict[str, Held]:
    """The tensors of a folder that are parameters, by the architecture's names; only the files' headers are read.

    Raises UserError with a line for each tensor that is missing, has no place, or is of another shape or type than the
    model of `c` has.
    """
    folder, (their, _) = Path(folder), files.conversion(folder)
    where = folder / WEIGHTS if (folder / WEIGHTS).exists() else folder
    found = _as_in_the_model(held(folder), their.table)
    if error := _another_size(found, c) or _with_prefix(found, their.table):
        raise UserError(f"{where}: {error}")
    expected = shapes(their.table, c)
    may_lack = {their.table.head} if c.model.tied else set[str]()
    errors = [
        f"{where}: {_on_disk(name, their.table)}: missing; expected {_size(shape)}."
        for name, shape in expected.items()
        if name not in found and name not in may_lack
    ]
    for name, tensor in found.items():
        if name not in expected:
            if not their.table.is_ignored(name):
                errors.append(f"{tensor.file}: {tensor.name}: no parameter of the model that {CONFIG} describes.")
        elif tensor.shape != expected[name]:
            errors.append(f"{tensor.file}: {tensor.name}: is {_size(tensor.shape)}, expected {_size(expected[name])}.")
        elif tensor.dtype not in FLOATS:
            errors.append(f"{tensor.file}: {tensor.name}: is of type {tensor.dtype}. Choices: {', '.join(FLOATS)}.")
    if errors:
        raise UserError("\n".join(files.shortened(errors)))
    return {name: tensor for name, tensor in found.items() if name in expected}


def _another_size(tensors: Mapping[str, Held], c: config.Architecture) -> str:
    """Where the files hold another order of parameters than the config describes; empty where they do not.

    Said before a model is built, even one without numbers: a config.json may describe any size.
    """
    described, there = sizes.params(c), sum(math.prod(tensor.shape) for tensor in tensors.values())
    if c.model.n_layers <= len(tensors) and described <= 100 * there + 10**6:
        return ""
    layers = f"{c.model.n_layers:,} layer{'s' * (c.model.n_layers != 1)}"
    return (
        f"holds {len(tensors):,} tensors of {there:,} numbers, but {CONFIG} describes {layers} of "
        f"{described:,} parameters."
    )


WRAPPERS = {
    "_orig_mod.": "torch.compile puts there; save the model that it wraps, model._orig_mod",
    "module.": "DataParallel and DistributedDataParallel put there; save the model that they wrap, model.module",
}


def _with_prefix(tensors: Mapping[str, Held], table: NameMap) -> str:
    """What stands before the names of all tensors and does not belong there; empty where nothing does."""
    if table.embed in tensors:
        return ""
    of_body = table.embed.partition(".")[2]  # as a model without a head has it
    ends = [(name, end) for end in (table.embed, of_body) for name in tensors if name.endswith(f".{end}")]
    prefix = ends[0][0].removesuffix(ends[0][1]) if ends else ""
    if not prefix or not all(name.startswith(prefix) for name in tensors):
        return ""
    of_whom = next((text for start, text in WRAPPERS.items() if prefix.startswith(start)), "")
    what = of_whom or "does not belong there; save the model with names that begin as in " + table.embed
    return f'the name of every tensor begins with "{prefix}", which {what}.'


def shapes(table: NameMap, c: config.Architecture) -> dict[str, tuple[int, ...]]:
    """The shape of every parameter under their names, the head's too where it is tied; no model is built."""
    with torch.device("meta"):
        ours = LanguageModel(c).state_dict()
    # Zeros that take no memory, since a layout may ask for their values.
    zeros = {name: torch.zeros(()).expand(tensor.shape) for name, tensor in ours.items()}
    found = {name: tuple(tensor.shape) for name, tensor in write_state(table, zeros, c).items()}
    return found | {table.head: found[table.embed]}


def _as_in_the_model(tensors: dict[str, Held], table: NameMap) -> dict[str, Held]:
    """Tensors by the names that the model has for them, where files have others.

    A model without a head (GPT-2 as it was published, say) lacks the first part of every name.
    """
    prefix, _, bare = table.embed.partition(".")
    lacks_prefix = table.embed not in tensors and bare in tensors
    named = dict[str, Held]()
    for name, tensor in tensors.items():
        if name == table.head_on_disk and table.head not in tensors:
            named[table.head] = tensor
        else:
            named[f"{prefix}.{name}" if lacks_prefix and name != table.head else name] = tensor
    return named


def _on_disk(name: str, table: NameMap) -> str:
    """What a parameter is called in files."""
    return table.head_on_disk or name if name == table.head else name


def _size(shape: tuple[int, ...]) -> str:
    return " x ".join(map(str, shape)) or "a single number"


def save(
    model: LanguageModel,
    c: config.Architecture,
    folder: Path | str,
    architecture: str | None = None,
    special_tokens: Mapping[str, int] | None = None,
    tokenizer: Tokenizer | None = None,
) -> Conversion:
    """Write a model into a folder, and say as which of their architectures: the first that has all its parts.

    The folder appears whole, by rename. One that `save` wrote before, with nothing else in it, is replaced.
    `special_tokens` are ids by their names in a config.json (SPECIAL_TOKENS); null where they are unknown. With a
    tokenizer the folder is one that transformers' AutoTokenizer reads too.

    Raises:
        UserError: the architecture (or each of them) has no place for one of the parts, other things lie there, or
            nothing can be written there.
    """
    folder = Path(folder)
    their, settings = as_theirs(c, architecture)
    try:
        _refuse_to_overwrite(folder)
    except OSError as e:
        raise UserError(f"{folder}: cannot be written: {e.strerror}.") from e
    try:
        tensors = write_state(their.table, model.state_dict(), c)
    except ValueError as e:
        raise UserError(f"{their.model_type}: {e}") from e
    dtype = str(model.embed.weight.dtype).removeprefix("torch.")
    head = {"architectures": [their.class_name], "model_type": their.model_type, "torch_dtype": dtype}
    target = folder.resolve()
    part, before = (target.with_name(f".{target.name}.{os.getpid()}.{end}") for end in ("part", "before"))
    try:
        part.mkdir(parents=True)
        text = json.dumps(
            MARK | head | settings | dict.fromkeys(SPECIAL_TOKENS) | dict(special_tokens or {}),
            indent=2,
            sort_keys=True,
        )
        (part / CONFIG).write_text(text + "\n", encoding="utf-8")
        in_file = {_on_disk(name, their.table): tensor.contiguous() for name, tensor in tensors.items()}
        save_file(in_file, part / WEIGHTS, metadata={"format": "pt"})
        if tokenizer is not None:
            _write_tokenizer(tokenizer, part, special_tokens or {}, c.n_ctx)
        if target.exists():
            target.replace(before)
        part.replace(target)
    except (OSError, SafetensorError) as e:
        reason = e.strerror if isinstance(e, OSError) and e.strerror else e
        raise UserError(f"{folder}: cannot be written: {reason}.") from e
    finally:
        if before.exists() and not target.exists():
            before.replace(target)
        for left in (part, before):
            shutil.rmtree(left, ignore_errors=True)
    return their


def _write_tokenizer(tokenizer: Tokenizer, folder: Path, special_tokens: Mapping[str, int], n_ctx: int) -> None:
    """The tokenizer's own file, and what transformers wants to know beside it."""
    (folder / TOKENIZER).write_text(tokenizer.to_str(pretty=True) + "\n", encoding="utf-8")
    named = {name.removesuffix("_id"): tokenizer.id_to_token(token) for name, token in special_tokens.items()}
    about = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": n_ctx,
        "clean_up_tokenization_spaces": False,  # it would take the blanks before full stops
    }
    text = json.dumps(MARK | about | named, indent=2, sort_keys=True)
    (folder / TOKENIZER_CONFIG).write_text(text + "\n", encoding="utf-8")


def as_theirs(c: config.Architecture, architecture: str | None = None) -> tuple[Conversion, dict[str, Any]]:
    """Which of their architectures a model is written as, and its settings.

    Raises UserError with what the architecture has no place for; where none was named and none will do, with what the
    nearest lacks.
    """
    if architecture is not None and architecture not in ARCHITECTURES:
        raise UserError(f"{architecture}: no such architecture." + nearest(architecture, ARCHITECTURES))
    lacking = dict[str, list[str]]()
    for name in [architecture] if architecture else ARCHITECTURES:
        try:
            return ARCHITECTURES[name], ARCHITECTURES[name].write_config(c)
        except ValueError as e:
            lacking[name] = str(e).splitlines()
    closest = min(lacking, key=lambda name: len(lacking[name]))
    if architecture is None:
        lacking[closest].insert(0, f"No architecture has a place for all parts; the nearest is {closest}:")
    raise UserError("\n".join(lacking[closest]))


def _refuse_to_overwrite(folder: Path) -> None:
    if folder.resolve() == Path.cwd():
        raise UserError(f"{folder}: is the folder that the command is run in; name a new one.")
    if not folder.exists():
        return
    if not folder.is_dir():
        raise UserError(f"{folder}: is a file, and the name of a new folder is needed.")
    there = sorted(path.name for path in folder.iterdir())
    ours = [CONFIG, WEIGHTS] if TOKENIZER_CONFIG not in there else [CONFIG, WEIGHTS, TOKENIZER, TOKENIZER_CONFIG]
    if there and not (there == ours and all(_is_ours(folder / name) for name in there if name in SETTINGS)):
        shown = ", ".join(there[:3]) + (", ..." if len(there) > 3 else "")
        raise UserError(f"{folder}: holds {shown}, which was not written here; name a new or an empty folder.")


def _is_ours(file: Path) -> bool:
    try:
        said = files.read_json(file)
    except UserError:
        return False
    return said.items() >= MARK.items() and "transformers_version" not in said
