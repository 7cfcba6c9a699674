"""A run that lies on the disk, as Python has it: `lecture04.load(...)`. Without torch until its model is asked for."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from lecture04.config import Run, UserError
from lecture04.records.config_file import read_run
from lecture04.records.metrics import METRICS
from lecture04.records.record import Record
from lecture04.records.store import find_run

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from lecture04.nn.model import LanguageModel
    from lecture04.training.sample import Subject


@dataclass(frozen=True, repr=False)
class TrainedRun:
    """A run: what it was asked for and what it reached.

    folder      its files
    config      all that it was asked for, with nothing open
    outputs     the folder that its source of data keeps its files in
    evaluation  the key of the evaluation that `metrics` has; empty for the one that was made last
    """

    folder: Path
    config: Run
    outputs: Path
    evaluation: str = ""

    @property
    def status(self) -> str:
        """How the training ended: finished, undertrained, diverged or failed; missing where it has not ended."""
        return self._record.status().value

    @property
    def metrics(self) -> dict[str, float]:
        """Everything that was measured, by name: {"test/ppl": 3.83, "params": 105984, ...}; empty without a result."""
        return self._record.metrics(self.evaluation) if self.evaluation else self._record.latest_metrics()

    @cached_property
    def model(self) -> LanguageModel:
        """The trained model, in evaluation mode; loaded on first use. Raises UserError where there is no checkpoint."""
        from lecture04.training import checkpoint

        try:
            return checkpoint.load(self.config, self.folder).eval()
        except FileNotFoundError as e:
            raise UserError(f"{self.folder}: no {checkpoint.NAME} is there; the run is {self.status}.") from e

    @cached_property
    def tokenizer(self) -> Tokenizer | None:
        """Text to token ids and back; None for a source of data whose tokens are no text."""
        from lecture04.data import types as data

        return data.load(self.config, self.outputs).tokenizer

    def sample(
        self,
        prompt: str = "",
        *,
        n: int = 1,
        temperature: float = 1.0,
        top_k: int | None = None,
        top_p: float = 1.0,
        seed: int = 0,
        max_tokens: int | None = None,
    ) -> list[str]:
        """What the model writes: n texts that begin with the prompt, as `lecture04 sample` draws them.

        max_tokens  new ones, at most; None: as many as a row of training has room for

        Raises UserError for a prompt whose words are no tokens or that is too long.
        """
        from lecture04.nn.generate import Sampling, generate
        from lecture04.training.sample import in_batches

        subject = self._subject
        tokens = subject.prompt(prompt)
        n_tokens, _ = subject.room(tokens, max_tokens)
        given, how = tokens[subject.start is not None :], Sampling(temperature, top_k, top_p)
        texts = list[str]()
        for rows in in_batches(n):
            drawn = generate(subject.model, tokens, n_tokens=n_tokens, how=how, seed=seed, rows=rows, ends=subject.ends)
            texts += [subject.text([*given, *text]) for text in drawn]
        return texts

    @cached_property
    def _subject(self) -> Subject:
        """The model with what its tokens mean; loaded on first use."""
        from lecture04.training import sample, texts

        return sample.of_run(self.folder, texts.of_run(self.folder, self.outputs))

    @property
    def _record(self) -> Record:
        return Record(self.folder)

    def __repr__(self) -> str:
        reached, shown = self.metrics, METRICS["test/ppl"]
        figure = f", {shown.label} {reached[shown.name]:{shown.format}}" if shown.name in reached else ""
        return f"<run {self.folder.name}: {self.status}{figure}>"


def load(path: str | Path, outputs: str | Path = "outputs") -> TrainedRun:
    """A run that was trained before, by its folder, its name, or a part of its name that no other has.

    path     `outputs/runs/NAME`, or NAME for one of OUTPUTS/runs
    outputs  where results lie

    It has `.model` (a torch module in evaluation mode, loaded on first use), `.tokenizer`, `.metrics`, `.config`,
    `.status` and `.folder`; `.sample(...)` lets the model write.

    >>> import lecture04 as l4
    >>> tiny = ["trainer.steps=20", "data.n_train=80", "data.n_val=20", "data.n_test=40", "logger=none"]
    >>> trained = l4.train(["ffn=swiglu", "seed=1", *tiny])
    >>> run = l4.load(trained.folder)
    >>> run.config == trained.config, run.metrics == trained.metrics
    (True, True)
    >>> tokens = run.tokenizer.encode("the king waits .").ids
    >>> import torch
    >>> run.model(torch.tensor([tokens])).shape == (1, len(tokens), run.config.vocab_size)
    True
    >>> texts = run.sample("the king", n=3, temperature=0.8, max_tokens=5)
    >>> len(texts), {text[:8] for text in texts}
    (3, {'the king'})

    Raises UserError where there is no such run, or more than one, and where its config cannot be read.
    """
    folder = find_run(Path(outputs), str(path))
    around = folder.absolute().parent
    return TrainedRun(folder, read_run(folder), around.parent if around.name == "runs" else Path(outputs))
