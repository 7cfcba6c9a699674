"""`lecture04 sample`: what a trained model writes, or documents of the Garden World with their true probabilities."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TextIO, TypeVar

from lecture04.cli.parser import Parser, folder
from lecture04.config import messages
from lecture04.config.errors import UserError
from lecture04.records.config_file import read_run
from lecture04.records.record import Record
from lecture04.records.store import find_run, outputs_of
from lecture04.terminal import width_of, wrapped

if TYPE_CHECKING:
    from lecture04.training.sample import Subject

WORLDS = ("garden", "garden1")
HOW = ("temperature", "top_k", "top_p")
OF_MODELS = ("prompt", "tokens", *HOW, "batch", "score")
"""Options that a world's own documents have no use for."""
TOGETHER = 64
"""The most texts that are drawn at once where --batch says nothing."""

GRAMMATICAL = {True: "grammatical", False: "grammatical so far"}
UNFINISHED = "\ufffd"
"""What stands for a letter of which only some bytes are there."""

Number = TypeVar("Number", int, float)


def parser() -> Parser:
    """The command line."""
    p = Parser("lecture04 sample", description=__doc__)
    p.add_argument(
        "of",
        metavar="RUN",
        help="a run's folder, its name or a part of it; a Hugging Face folder; or garden, garden1: the world itself",
    )
    count = _number(int, "a whole number, 0 or more", lambda n: n >= 0)
    positive = _number(int, "a whole number, 1 or more", lambda n: n >= 1)
    temperature = _number(float, "a number, 0 or more", lambda x: 0 <= x < math.inf)
    share = _number(float, "above 0 and at most 1", lambda x: 0 < x <= 1)
    p.add_argument("-n", type=count, default=5, metavar="N", help="how many texts (default: 5)")
    p.add_argument("--seed", type=count, default=0, help="the same seed writes the same texts (default: 0)")
    p.add_argument(
        "--prompt", metavar="TEXT", help="what each text goes on from; token ids where there is no tokenizer"
    )
    p.add_argument("--tokens", type=positive, metavar="N", help="the most new tokens (default: to a row's end)")
    p.add_argument("--temperature", type=temperature, help="divides the logits; 0: the likeliest token (default: 1)")
    p.add_argument("--top-k", type=positive, metavar="K", help="only from the K likeliest tokens (default: all)")
    p.add_argument(
        "--top-p", type=share, metavar="P", help="only from the fewest tokens of together this probability (default: 1)"
    )
    p.add_argument("--batch", type=positive, metavar="B", help=f"texts drawn at once (default: N, at most {TOGETHER})")
    p.add_argument(
        "--score", action="store_true", default=None, help="say which texts the source's grammar can produce"
    )
    p.add_argument("--world-seed", type=count, metavar="SEED", help="seed of a world's collocations (default: 0)")
    p.add_argument("--outputs", type=folder, default=Path("outputs"), help="where runs lie (default: outputs)")
    return p


def _number(kind: Callable[[str], Number], wanted: str, fits: Callable[[float], bool]) -> Callable[[str], Number]:
    """What reads a number that fits from a command line."""

    def read(text: str) -> Number:
        try:
            found = kind(text)
        except ValueError:
            found = None
        if found is None or not fits(found):
            raise argparse.ArgumentTypeError(f"{text}: must be {wanted}.")
        return found

    return read


def show_world(n_documents: int, seed: int, world_seed: int, world: str) -> None:
    """Print documents, each with its number of tokens, its true log-probability and its perplexity."""
    import numpy as np

    from lecture04.data.garden import garden, garden1

    language = (garden1 if world == "garden1" else garden).language(world_seed)
    rng = np.random.default_rng(seed)
    for _ in range(n_documents):
        document = language.sample(rng)
        words = [
            f"{language.words[token]}({distance})" if distance else language.words[token]
            for token, distance in zip(document.tokens, document.subject_distance, strict=True)
        ]
        total, n_tokens = float(document.log_prob.sum()), len(document.tokens)
        perplexity = math.exp(-total / n_tokens)
        print(wrapped(" ".join(words), width_of(sys.stdout)))
        print(f"    {n_tokens} tokens, log p = {total:.2f} nats, perplexity {perplexity:.2f}")
    print("\nhis(5): the pronoun's subject stands 5 tokens back")


class Lines:
    """A text that is written as it comes, in lines of whole words that fit a stream's width, where it has one."""

    def __init__(self, stream: TextIO) -> None:
        self.stream, self.width = stream, width_of(stream)
        self.column, self.held, self.has_begun = 0, "", False

    def write(self, text: str) -> None:
        """One more piece. Where lines are broken, the last word is held back until it is known where it ends."""
        if self.width is None:
            self.stream.write(text)
        else:
            *words, self.held = (self.held + text).split(" ")
            for word in words:
                self._put(word, self.width)
        self.stream.flush()

    def end(self) -> None:
        """The rest, and the end of the line; what follows is another text."""
        if self.width is not None:
            self._put(self.held, self.width)
        self.stream.write("\n")
        self.stream.flush()
        self.column, self.held, self.has_begun = 0, "", False

    def _put(self, word: str, width: int) -> None:
        first, *more = word.split("\n")
        blank = " " * self.has_begun
        if self.column and self.column + len(blank + first) > width:
            self.stream.write("\n")
            self.column, blank = 0, ""
        self.stream.write(blank + word)
        self.column = len(more[-1]) if more else self.column + len(blank + first)
        self.has_begun = True


class Told:
    """The text of tokens that come one by one, piece by piece: a token may be a part of a letter."""

    def __init__(self, text_of: Callable[[Sequence[int]], str], write: Callable[[str], None]) -> None:
        self.text_of, self.write = text_of, write
        self.tokens, self.told = list[int](), ""

    def add(self, *tokens: int) -> None:
        """Write what is sure with these tokens."""
        self.tokens += tokens
        text = self.text_of(self.tokens)
        if text.startswith(self.told) and not text.endswith(UNFINISHED):
            self.rest()

    def rest(self) -> None:
        """Write all that is left."""
        text = self.text_of(self.tokens)
        self.write(text[len(self.told) :])
        self.told = text


def show(subject: Subject, args: argparse.Namespace) -> None:
    """Print what a model writes: the first text of each batch as it is drawn, the others behind it."""
    from lecture04.nn.generate import Sampling, generate
    from lecture04.training.sample import in_batches

    prompt = subject.prompt(args.prompt or "")
    n_tokens, set_by = subject.room(prompt, args.tokens)
    how = Sampling(**{name: value for name in HOW if (value := getattr(args, name)) is not None})
    given = prompt[subject.start is not None :]  # what every text begins with is not shown
    n_unfinished = n_sound = 0
    lines = Lines(sys.stdout)
    for rows in in_batches(args.n, args.batch or TOGETHER):
        told = Told(subject.text, lines.write)
        told.add(*given)
        texts = generate(
            subject.model,
            prompt,
            n_tokens=n_tokens,
            how=how,
            seed=args.seed,
            rows=rows,
            ends=subject.ends,
            hear=told.add,
        )
        for row, text in enumerate(texts):
            if row:
                told = Told(subject.text, lines.write)
                told.add(*given, *text)
            told.rest()
            lines.end()
            is_finished = text[-1] in subject.ends
            n_unfinished += not is_finished
            if args.score:
                assert subject.fault is not None
                fault = subject.fault([*given, *text])
                n_sound += is_finished and not fault
                print(f"    {f'not grammatical: {fault}' if fault else GRAMMATICAL[is_finished]}")
    if args.score and args.n:
        print(f"\n{n_sound} of {args.n} are grammatical to their end ({n_sound / args.n:.1%})")
    if n_unfinished and subject.ends:
        said = f"{n_unfinished} of {args.n} cut off after {n_tokens} new tokens: {set_by}."
        print(wrapped(said, width_of(sys.stderr)), file=sys.stderr)


def find(args: argparse.Namespace) -> Callable[[], Subject]:
    """What loads the model that is meant. What can be said without torch is said before. Raises UserError."""
    place = Path(args.of).expanduser()
    is_folder = (place / "config.json").is_file() and not (place / "config.yaml").exists()
    data = None
    if is_folder:
        from lecture04.huggingface.files import read_settings

        read_settings(place)
    else:
        place = _run(args.of, args.outputs)
        data = read_run(place).data
    if args.world_seed is not None:
        raise UserError(f"--world-seed: {args.of} is a model; its world is that of its data.")
    if args.score and not (data and data.judges_samples):
        whose = f"data={data.name}" if data else "a Hugging Face folder"
        raise UserError(
            f"--score: {whose} has no grammar that judges texts. Choices: runs of data={', '.join(WORLDS)}."
        )
    from lecture04.training import texts

    found = texts.of_folder(place) if is_folder else texts.of_run(place, outputs_of(place, args.outputs))
    found.room(found.prompt(args.prompt or ""), args.tokens)

    def load() -> Subject:
        from lecture04.training import sample

        return (sample.of_folder if is_folder else sample.of_run)(place, found)

    return load


def _run(name: str, outputs: Path) -> Path:
    """The folder of a finished run. Raises UserError."""
    try:
        found = find_run(outputs, name)
    except UserError as e:
        if Path(name).is_dir():
            raise UserError(f"{name}: holds neither a run (config.yaml) nor a Hugging Face model (config.json).") from e
        raise UserError(f"{e} A Hugging Face folder will do too, and {', '.join(WORLDS)}.") from e
    status = Record(found).status()
    if not status.ended_well:
        raise UserError(f"{found}: the run is {status.value}, not finished, so there is no model to sample from.")
    return found


def main(args: argparse.Namespace) -> None:
    """Do what was asked for. Raises UserError."""
    if not args.of.strip():
        raise UserError(f"RUN: an empty name is no run; name one, a Hugging Face folder, or {', '.join(WORLDS)}.")
    if args.of not in WORLDS:
        show(find(args)(), args)
        return
    if of_model := [name for name in OF_MODELS if getattr(args, name) is not None]:
        option = of_model[0].replace("_", "-")
        raise UserError(f"--{option}: {args.of} is the world itself, not a model; name a run to sample from.")
    show_world(args.n, args.seed, args.world_seed or 0, args.of)


def entry() -> None:
    """The command line."""
    args = parser().parse_args()
    messages.run(lambda: main(args))
