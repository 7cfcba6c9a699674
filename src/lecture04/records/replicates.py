"""Replicates: runs that differ in their seed alone, told by their records. No torch is imported.

A seed stands in a run's identity, so that the identities of two replicates have nothing in common. What is compared is
what the identities were made of (identity.json), without the seed.
"""

import json
from dataclasses import dataclass
from typing import Any

from lecture04.config import UserError
from lecture04.records.config_file import read_plain
from lecture04.records.identity import digest
from lecture04.records.record import Record


@dataclass(frozen=True)
class Replicate:
    """A run as one seed of its configuration: two are replicates where both digests are equal.

    config  of every setting but the seed
    code    of the code that it executed, and of the versions of what computes
    """

    record: Record
    seed: int
    config: str
    code: str


def replicate(record: Record) -> Replicate | None:
    """A run as a replicate; None where its folder does not say what its identity was made of."""
    try:
        content = json.loads((record.folder / "identity.json").read_text(encoding="utf-8"))
        config, code = dict(content["config"]), [content["code"], content["versions"]]
        seed = config.pop("seed")
        if source := config.pop(
            "init.run", None
        ):  # the identity of the run that it starts from, which has the seed too
            config["init.run"] = _seedless(read_plain(record.folder)["init"]["start"])
            code.append(source.rpartition("-")[2])
    except (OSError, ValueError, KeyError, TypeError, AttributeError, UserError):
        return None
    return Replicate(record, seed, digest(config, 16), digest(code, 16)) if isinstance(seed, int) else None


def _seedless(run: dict[str, Any]) -> dict[str, Any]:
    """A run's settings without the seed, its own and those of the runs that it starts from."""
    rest = {name: value for name, value in run.items() if name != "seed"}
    init = rest["init"]
    if isinstance(init.get("start"), dict):
        rest["init"] = {name: init[name] for name in ("name", "merge", "digest")} | {"start": _seedless(init["start"])}
    return rest
