"""What a run writes, or the model in a Hugging Face folder: how its texts begin and end, and their tokens as text.

subject = of_run(folder, outputs)                       # or of_folder(folder)
prompt = subject.prompt("the king")
n_tokens, why = subject.room(prompt, asked=None)
generate(subject.model, prompt, n_tokens=n_tokens, ends=subject.ends, ...)
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError
from tokenizers import Tokenizer

from lecture04 import config
from lecture04.config.errors import UserError, nearest
from lecture04.data.tokenizer import unknown_words
from lecture04.data.types import Corpus, load, row_start
from lecture04.huggingface import files, folders
from lecture04.nn.generate import Sampling, generate
from lecture04.nn.model import LanguageModel
from lecture04.records.config_file import read_run
from lecture04.training import checkpoint

TOGETHER = 256
"""Samples that are drawn and judged at once."""
MOST_BY_ITSELF = 512
"""The tokens of a text where nobody said how many, and rows are longer."""
MOST_CHOICES = 200
"""The words of a vocabulary that are all named to somebody who typed another."""


@dataclass(frozen=True)
class Subject:
    """A model, and what its tokens mean.

    `start` is what every text begins with, `ends` what ends it; `fault` says why a grammar cannot produce a text.
    """

    model: LanguageModel
    architecture: config.Architecture
    tokenizer: Tokenizer | None
    start: int | None
    ends: frozenset[int]
    fault: Callable[[Sequence[int]], str] | None = None

    def text(self, tokens: Sequence[int]) -> str:
        """Tokens as text; their ids where there is no tokenizer."""
        if self.tokenizer is None:
            return " ".join(map(str, tokens))
        return self.tokenizer.decode(list(tokens), skip_special_tokens=False)

    def prompt(self, text: str) -> list[int]:
        """The tokens of a prompt behind the one that every text begins with.

        Raises UserError for what is no token, and for nothing where nothing is known to begin with.
        """
        tokens = self._ids(text) if self.tokenizer is None else self._tokens(self.tokenizer, text)
        if self.start is not None and tokens[:1] != [self.start]:
            tokens = [self.start, *tokens]
        if not tokens:
            raise UserError(f"--prompt: missing, and no token is known that texts begin with. {self._choices}")
        return tokens

    @property
    def _choices(self) -> str:
        return f"Choices: {'text' if self.tokenizer else f'ids from 0 to {self.architecture.vocab_size - 1}'}."

    def _ids(self, text: str) -> list[int]:
        size = self.architecture.vocab_size
        for word in text.split():
            if not (word.isdecimal() and int(word) < size):
                raise UserError(f"--prompt: {word}: no token, and there is no tokenizer for text. {self._choices}")
        return [int(word) for word in text.split()]

    def _tokens(self, tokenizer: Tokenizer, text: str) -> list[int]:
        if unknown := unknown_words(tokenizer, text):
            words = sorted(tokenizer.get_vocab())
            hint = nearest(unknown[0], words) if len(words) <= MOST_CHOICES else ""
            raise UserError(f"--prompt: {', '.join(unknown)}: the tokenizer does not know this.{hint}")
        tokens = tokenizer.encode(text).ids
        if beyond := [token for token in tokens if token >= self.architecture.vocab_size]:
            raise UserError(
                f"--prompt: {self.text(beyond[:1])}: is token {beyond[0]}, and the model has "
                f"{self.architecture.vocab_size} tokens."
            )
        return tokens

    def room(self, prompt: Sequence[int], asked: int | None) -> tuple[int, str]:
        """How many tokens are drawn behind a prompt, and what sets this number. The last one is never read.

        Raises UserError for a prompt that is longer than what the model can read.
        """
        c, longest = self.architecture, self.architecture.posenc.longest()
        if longest is not None and len(prompt) > longest:
            raise UserError(
                f"--prompt: has {len(prompt)} tokens; posenc={c.posenc.name} has posenc.n_positions={longest}."
            )
        if asked is None and len(prompt) > c.n_ctx:
            raise UserError(
                f"--prompt: has {len(prompt)} tokens, more than the {c.n_ctx} of a row; --tokens N goes on behind it."
            )
        wanted = asked if asked is not None else min(c.n_ctx + 1 - len(prompt), MOST_BY_ITSELF)
        if longest is not None and wanted > longest + 1 - len(prompt):
            return longest + 1 - len(prompt), f"posenc={c.posenc.name} has posenc.n_positions={longest}"
        return wanted, "--tokens says so" if asked is not None else "--tokens says how many where it is set"


def in_batches(n: int, size: int = TOGETHER) -> Iterator[range]:
    """The numbers of n samples, so many at a time."""
    for first in range(0, n, size):
        yield range(first, min(first + size, n))


def of_run(folder: Path, outputs: Path) -> Subject:
    """What a finished run writes; its data lie in OUTPUTS/data. Raises UserError for a checkpoint that is not its."""
    run = read_run(folder)
    torch.set_num_threads(run.trainer.threads)
    try:
        model, corpus = checkpoint.load(run, folder), load(run, outputs)
    except (SafetensorError, RuntimeError) as e:
        raise UserError(f"{folder}: its checkpoint does not hold this run's parameters: {e}") from e
    except ValueError as e:
        raise UserError(f"{folder}: {e}") from e
    ends = frozenset() if corpus.eos is None else frozenset([corpus.eos])
    return Subject(model, run, corpus.tokenizer, row_start(run, corpus), ends, corpus.fault)


def of_folder(folder: Path) -> Subject:
    """What the model in a Hugging Face folder writes. Raises UserError as `folders.load` does."""
    c, model = folders.load(folder)
    start, ends = files.first_and_last(folder, c.vocab_size)
    return Subject(model, c, files.tokenizer(folder), start, ends)


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
