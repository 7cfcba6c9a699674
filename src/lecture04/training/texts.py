"""How the texts of a run, or of the model in a Hugging Face folder, begin and end, and their tokens as text; no torch.

texts = of_run(folder, outputs)                         # or of_folder(folder)
prompt = texts.prompt("the king")
n_tokens, why = texts.room(prompt, asked=None)
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tokenizers import Tokenizer

from lecture04 import config
from lecture04.config.errors import UserError, nearest
from lecture04.data.tokenizer import unknown_words
from lecture04.data.types import row_start, splits
from lecture04.huggingface import files
from lecture04.records.config_file import read_run

MOST_BY_ITSELF = 512
"""The tokens of a text where nobody said how many, and rows are longer."""
MOST_CHOICES = 200
"""The words of a vocabulary that are all named to somebody who typed another."""


@dataclass(frozen=True, kw_only=True)
class Texts:
    """What a model's tokens mean.

    `start` is what every text begins with, `ends` what ends it; `fault` says why a grammar cannot produce a text.
    """

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
                f"{self.architecture.vocab_size} tokens. Choices: text of ids from 0 to "
                f"{self.architecture.vocab_size - 1}."
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


def of_run(folder: Path, outputs: Path) -> Texts:
    """The texts of a run, whose data lie in OUTPUTS/data. Raises UserError where they are another's."""
    run = read_run(folder)
    try:
        made = splits(run, outputs)
    except ValueError as e:
        raise UserError(f"{folder}: {e}") from e
    ends = frozenset[int]() if made.eos is None else frozenset([made.eos])
    return Texts(architecture=run, tokenizer=made.tokenizer, start=row_start(run, made), ends=ends, fault=made.fault)


def of_folder(folder: Path) -> Texts:
    """The texts of a Hugging Face folder. Raises UserError for settings or a tokenizer that are bad."""
    _, c = files.read_settings(folder)
    start, ends = files.first_and_last(folder, c.vocab_size)
    return Texts(architecture=c, tokenizer=files.tokenizer(folder), start=start, ends=ends)
