"""`data=text`: the prepared arrays of a text as splits, memory-mapped."""

from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

from lecture04 import config
from lecture04.config.registry import register
from lecture04.data.text.prepare import TOKENIZER, about, folder_of
from lecture04.data.types import Split, Splits


@register("data", "text", options=config.Text)
def text(options: config.Text, cache: Path) -> Splits:
    """A text of your own: a file, a folder, a glob; tokenised once, split by document or by the tail."""
    folder = folder_of(options, cache)
    said = about(folder)
    splits = {
        name: Split(
            np.memmap(folder / f"{name}.tokens", dtype=said["dtype"], mode="r"),
            np.fromfile(folder / f"{name}.offsets", dtype=np.int64),
        )
        for name in config.SPLITS
    }
    return Splits(
        train=splits["train"],
        val=splits["val"],
        test=splits["test"],
        vocab_size=said["vocab_size"],
        tokenizer=Tokenizer.from_file(str(folder / TOKENIZER)),
        n_bytes=said["n_bytes"],
        bos=said["end"],
        eos=said["end"],
    )
