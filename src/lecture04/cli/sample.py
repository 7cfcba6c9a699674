"""`lecture04 sample`: documents of the Garden World with their true probabilities."""

import argparse
import math
import sys

from lecture04.cli.parser import Parser
from lecture04.config import messages
from lecture04.terminal import width_of, wrapped

WORLDS = ("garden", "garden1")


def parser() -> Parser:
    """The command line."""
    p = Parser("lecture04 sample", description=__doc__)
    p.add_argument("documents", nargs="?", type=_count, default=5, metavar="N", help="how many (default: 5)")
    p.add_argument("--seed", type=_count, default=0, help="seed of the documents (default: 0)")
    p.add_argument("--world-seed", type=_count, default=0, help="seed of the collocations (default: 0)")
    p.add_argument("--data", choices=WORLDS, default="garden", help="of which world (default: garden)")
    return p


def _count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text}: must be a whole number, 0 or more.")
    return int(text)


def show(n_documents: int, seed: int, world_seed: int, world: str = "garden") -> None:
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


def entry() -> None:
    """The command line."""
    args = parser().parse_args()
    messages.run(lambda: show(args.documents, args.seed, args.world_seed, args.data))
