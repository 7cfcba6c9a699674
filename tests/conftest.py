"""What all tests share: a composed and settled config, and a corpus small enough to train on in a second."""

import os
from collections.abc import Callable
from copy import deepcopy
from functools import cache

import numpy as np
import pytest
from hydra import compose as hydra_compose
from hydra import initialize_config_dir

from lecture04.cli import train as cli
from lecture04.config import Root
from lecture04.config.resolve import settle

# Read when torch is imported: small models are fastest on one thread, and tests run side by side.
os.environ.setdefault("OMP_NUM_THREADS", "1")

PAD, BOS, EOS = 0, 1, 2
PEOPLE, PRONOUNS, CYCLE, OBJECTS = (3, 4, 5), (6, 7, 8), (9, 10, 11), (12, 13, 14)
MOST_STEPS = 8


@cache
def _composed(overrides: tuple[str, ...]) -> Root:
    with initialize_config_dir(str(CONF), version_base="1.3"):
        return settle(cli.to_root(hydra_compose("config", overrides=list(overrides))))


@pytest.fixture(scope="session")
def compose() -> Callable[..., Root]:
    """`compose("ffn=swiglu", "model.d_model=32")`: the settled config of a command line."""
    return lambda *overrides: deepcopy(_composed(overrides))


@pytest.fixture(scope="session")
def small(compose) -> Callable[..., Root]:
    """`compose` for a model of a few thousand parameters on `tiny_corpus`; further overrides win."""
    sizes = (
        "model.d_model=16",
        "model.n_layers=2",
        "model.n_heads=4",
        "ffn.d_ff=24",
        "data.vocab_size=15",
        "data.max_len=16",
        "data.n_train=64",
        "trainer.batch_size=8",
        "trainer.steps=24",
        "trainer.log_every=5",
        "optim.warmup_steps=4",
    )
    return lambda *overrides: compose(*sizes, *overrides)


def _split(n_docs: int, seed: int) -> dict[str, np.ndarray]:
    """<bos> person, 1 to 8 steps round a cycle of three words, the person's pronoun, an object, <eos>.

    How many steps there are, the person, the object and where the cycle begins are uniform, so that the true
    probability of each token can be written down as it is drawn.
    """
    rng = np.random.default_rng(seed)
    tokens, log_prob, distance, offsets = [], [], [], [0]
    for _ in range(n_docs):
        person, start, thing, n = rng.integers(3), rng.integers(3), rng.integers(3), rng.integers(1, MOST_STEPS + 1)
        steps = [CYCLE[(start + i) % 3] for i in range(n)]
        stop = 1 / (MOST_STEPS + 1 - np.arange(1, n + 1))  # P(no further step | so many steps)
        goes_on = np.log(1 - stop[:-1])
        tokens += [BOS, PEOPLE[person], *steps, PRONOUNS[person], OBJECTS[thing], EOS]
        log_prob += [0.0, np.log(1 / 3), np.log(1 / 3), *goes_on, np.log(stop[-1]), np.log(1 / 3), 0.0]
        distance += [0, *[0] * (n + 1), n + 1, 0, 0]
        offsets.append(len(tokens))
    return {
        "tokens": np.array(tokens, np.int16),
        "offsets": np.array(offsets, np.int64),
        "log_prob": np.array(log_prob),
        "subject_distance": np.array(distance, np.int16),
    }


@pytest.fixture(scope="session")
def tiny_corpus():
    """64, 24 and 32 documents of 5 to 12 predicted tokens over 15 words; ids 6 to 8 are the possessives."""
    from lecture04.data.batches import Documents
    from lecture04.data.corpus import Corpus, Split

    splits = {name: Split(**_split(n, seed)) for name, n, seed in (("train", 64, 1), ("val", 24, 2), ("test", 32, 3))}
    words = ("<pad>", "<bos>", "<eos>", *"abc", *"ABC", *"xyz", *"uvw")
    return Corpus(**splits, vocab=words, layout=Documents(16))
