"""What a run writes, or the model in a Hugging Face folder; see training/texts.py for what its tokens mean.

subject = of_run(folder, texts.of_run(folder, outputs)) # or of_folder(folder, texts.of_folder(folder))
prompt = subject.prompt("the king")
n_tokens, why = subject.room(prompt, asked=None)
generate(subject.model, prompt, n_tokens=n_tokens, ends=subject.ends, ...)
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError

from lecture04 import config
from lecture04.config.errors import UserError
from lecture04.data.types import Corpus, row_start
from lecture04.huggingface import folders
from lecture04.nn.generate import Sampling, generate
from lecture04.nn.model import LanguageModel
from lecture04.records.config_file import read_run
from lecture04.training import checkpoint
from lecture04.training.texts import Texts

TOGETHER = 256
"""Samples that are drawn and judged at once."""


@dataclass(frozen=True)
class Subject(Texts):
    """A model, and what its tokens mean."""

    model: LanguageModel


def in_batches(n: int, size: int = TOGETHER) -> Iterator[range]:
    """The numbers of n samples, so many at a time."""
    for first in range(0, n, size):
        yield range(first, min(first + size, n))


def of_run(folder: Path, texts: Texts) -> Subject:
    """A finished run's model, with its texts. Raises UserError for a checkpoint that is not its."""
    run = read_run(folder)
    torch.set_num_threads(run.trainer.threads)
    try:
        model = checkpoint.load(run, folder)
    except (SafetensorError, RuntimeError) as e:
        raise UserError(f"{folder}: its checkpoint does not hold this run's parameters: {e}") from e
    except ValueError as e:
        raise UserError(f"{folder}: {e}") from e
    return Subject(model, **vars(texts))


def of_folder(folder: Path, texts: Texts) -> Subject:
    """The model in a Hugging Face folder, with its texts. Raises UserError as `folders.load` does."""
    _, model = folders.load(folder)
    return Subject(model, **vars(texts))


def judged(model: LanguageModel, corpus: Corpus, run: config.Run, n_samples: int) -> dict[str, float]:
    """The share of documents drawn from the model that the source's grammar can produce, whole ones, and their number.

    They are drawn by the model's own probabilities, with the run's seed. {} where none are asked for.
    """
    if not n_samples:
        return {}
    start, end, longest = row_start(run, corpus), corpus.eos, run.posenc.longest()
    assert corpus.fault is not None
    assert start is not None
    assert end is not None
    n_tokens = min(run.facts.max_len, longest or run.facts.max_len)
    n_right = 0
    for rows in in_batches(n_samples):
        texts = generate(model, [start], n_tokens=n_tokens, how=Sampling(), seed=run.seed, rows=rows, ends=(end,))
        n_right += sum(text[-1] == end and not corpus.fault(text) for text in texts)
    return {"sample/grammatical": n_right / n_samples, "sample/n": n_samples}
