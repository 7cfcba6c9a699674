"""The corpora that `data=` can name."""

from pathlib import Path

from lecture04 import config
from lecture04.config.registry import register
from lecture04.data import corpus
from lecture04.data.batches import Documents


@register("data", "garden")
def garden(options: config.Garden, folder: Path) -> corpus.Corpus:
    """The Garden World: a synthetic language whose true distribution is known (people, animals and plants)."""
    return corpus.load(
        folder,
        n_train=options.n_train,
        n_val=options.n_val,
        n_test=options.n_test,
        world_seed=options.world_seed,
        layout=Documents(options.max_len),
    )
