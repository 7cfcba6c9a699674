"""How fast tokens are drawn beside transformers' `generate`, on one folder: `python tools/generate_speed.py`.

The folder is that of a run (`--run`), or of a model of the standard sizes with the parts of Llama and no training. Both
read it, and draw as many tokens by the model's own probabilities, through a cache, from the same first token. Rounds
alternate, so that a noisy machine meets both alike.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import transformers
from hydra import compose, initialize_config_dir

from lecture04.cli import train as cli
from lecture04.cli.parser import Parser, folder
from lecture04.config.places import CONF
from lecture04.huggingface import folders
from lecture04.nn.generate import Sampling, generate
from lecture04.nn.init import build
from lecture04.records.config_file import read_run
from lecture04.training import checkpoint

BATCHES, ROUNDS, START = (1, 64), 5, 1


def parser() -> argparse.ArgumentParser:
    """The command line."""
    p = Parser("python tools/generate_speed.py", description=__doc__)
    p.add_argument("--run", type=folder, metavar="RUN_FOLDER", help="a run's folder; none: a model without training")
    p.add_argument("--tokens", type=int, default=63, help="new tokens of each text (default: 63)")
    p.add_argument("--threads", type=int, default=1, help="of torch (default: 1)")
    return p


def write(run_folder: Path | None, hf: Path) -> None:
    """The model as a Hugging Face folder."""
    if run_folder is not None:
        run = read_run(run_folder)
        folders.save(checkpoint.load(run, run_folder), run, hf)
        return
    with initialize_config_dir(str(CONF), version_base="1.3"):
        run = cli.resolved(compose("config", overrides=["recipe=llama"])).run
    folders.save(build(run), run, hf)  # of either no end token is known, so that every text has its full length


def seconds(draw: Callable[[], object]) -> float:
    """What one call takes."""
    started = time.perf_counter()
    draw()
    return time.perf_counter() - started


def main() -> None:
    """Print tokens a second of each, and the ratio."""
    args = parser().parse_args()
    torch.set_num_threads(args.threads)
    transformers.logging.set_verbosity_error()
    with tempfile.TemporaryDirectory() as place:
        write(args.run, Path(place) / "hf")
        _, ours = folders.load(Path(place) / "hf")
        theirs: Any = transformers.AutoModelForCausalLM.from_pretrained(Path(place) / "hf").eval()
    n = args.tokens

    def draw_ours(batch: int) -> object:
        return generate(ours, [START], n_tokens=n, how=Sampling(), seed=0, rows=range(batch))

    def draw_theirs(batch: int) -> object:
        prompt = torch.full((batch, 1), START)
        kwargs = {"do_sample": True, "top_k": 0, "max_new_tokens": n, "pad_token_id": 0}
        return theirs.generate(prompt, attention_mask=torch.ones_like(prompt), use_cache=True, **kwargs)

    for batch in BATCHES:
        rounds = [(seconds(lambda: draw_ours(batch)), seconds(lambda: draw_theirs(batch))) for _ in range(ROUNDS + 1)]  # noqa: B023
        own, their = (statistics.median(times) for times in zip(*rounds[1:], strict=True))  # the first warms up
        ratio = statistics.median(b / a for a, b in rounds[1:])
        print(
            f"batch {batch:3d}: ours {batch * n / own:8,.0f} tokens/s, transformers {batch * n / their:8,.0f}; "
            f"{ratio:.1f} times as fast"
        )
    print(
        f"{ROUNDS} alternating rounds of {n} tokens a text, medians; {args.threads} threads, torch {torch.__version__}"
    )


if __name__ == "__main__":
    main()
