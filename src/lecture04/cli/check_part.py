"""`lecture04 check-part ffn=mine`: what every part must hold to, tried on one, without pytest."""

import sys
from collections.abc import Sequence

from lecture04.config import Request, UserError, flags, messages
from lecture04.config.schema import ARCHITECTURE
from lecture04.terminal import width_of, wrapped

USAGE = """\
Tries what every part must hold to on one of yours, in a small model.

  lecture04 check-part FAMILY=NAME [SETTING=VALUE ...]
                       [parts=[FILE]] [--config-dir DIR]

FAMILY is one of {families}; the other overrides are those of `lecture04 train`.
"""
SMALL = (
    "model.d_model=16",
    "model.n_layers=2",
    "model.n_heads=4",
    "data.vocab_size=15",
    "data.max_len=16",
    "trainer.steps=1",
    "logger=none",
)
# What a part meets in the model; each of these is tried, as far as the config allows it.
COMPANY = (
    (),
    ("placement=post", "norm=rmsnorm", "model.bias=false"),
    ("placement=sandwich", "model.tied=false"),
    ("posenc=rope",),
    ("posenc=t5",),
    ("posenc=shaw",),
    ("attention=mqa",),
    ("attention=mla", "posenc=rope_half"),
)


def entry() -> None:
    """The command line."""
    messages.run(lambda: run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> None:
    """Check what is asked for; exits with 1 where a check fails."""
    if {"-h", "--help"} & set(arguments) or not arguments:
        print(wrapped(USAGE.format(families=", ".join(ARCHITECTURE)), width_of(sys.stdout)), end="")
        return
    flags.refuse(arguments, ("--config-dir", "--help"))
    chosen = [line for line in arguments if line.partition("=")[0] in ARCHITECTURE]
    if not chosen:
        raise UserError(f"No part is named; write FAMILY=NAME, with one of {', '.join(ARCHITECTURE)}.")
    if failed := check(chosen[0].partition("=")[0], arguments):
        sys.exit(f"{chosen[0]}: {failed} checks failed.")
    print(f"{chosen[0]}: every check passed.")


def check(family: str, arguments: Sequence[str]) -> int:
    """Run every check on the part of this family in each company, print what came of it; how many failed."""
    import torch

    from lecture04.cli.train import model_of
    from lecture04.nn.contracts import CHECKS

    torch.set_num_threads(1)  # more would wait for each other in models as small as these
    models: dict[str, Request] = {}
    for company in COMPANY:
        if any(line.startswith(f"{family}=") for line in company):
            continue
        label = " ".join(company) or "the standard model"
        try:
            models[label] = model_of([*SMALL, *company, *arguments])
        except UserError as e:
            if not company:
                raise
            print(f"  left out: {label}: {e}")
    failed = 0
    for name, one in CHECKS.items():
        wrong: dict[str, str] = {}
        for label, request in models.items():
            try:
                one(request.run)
            except Exception as e:
                wrong[label] = " ".join(str(e).split()) or type(e).__name__
        failed += bool(wrong)
        print(f"  {'FAILED' if wrong else 'passed'}  {name.replace('_', ' ')}")
        for why in dict.fromkeys(wrong.values()):
            where = [label for label, one_why in wrong.items() if one_why == why]
            print(f"          {why}")
            print(f"              with {'; '.join(where) if len(where) < len(models) else 'all that was tried'}")
    return failed
