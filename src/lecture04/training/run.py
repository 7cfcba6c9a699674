"""One run from a settled config, on disk from beginning to end. The one place that imports torch on a command's way."""

import logging
import math
import time
from pathlib import Path
from typing import Protocol

import torch

from lecture04.config import Root, Uptrain, start_of
from lecture04.config import resolve as settle
from lecture04.config import sizes as counts
from lecture04.config.registry import lookup
from lecture04.data.corpus import Corpus
from lecture04.huggingface import files, folders
from lecture04.nn.init import build
from lecture04.nn.model import LanguageModel
from lecture04.nn.uptrain import start_from
from lecture04.records.identity import evaluation_key
from lecture04.records.record import Record, Status, find
from lecture04.records.tracker import Mirror, mirror
from lecture04.training import checkpoint, memory
from lecture04.training.evaluate import Evaluation, evaluate
from lecture04.training.loop import Row, train

log = logging.getLogger(__name__)


class Progress(Protocol):
    """Whoever shows how far a run is."""

    def __call__(self, step: int, row: Row) -> None: ...


def load_corpus(cfg: Root) -> Corpus:
    """The corpus that `data` names; made on first use and kept under paths.outputs/data."""
    corpus: Corpus = lookup("data", cfg.data.name)(cfg.data, Path(cfg.paths.outputs) / "data")
    if len(corpus.vocab) != cfg.data.vocab_size:
        raise ValueError(f"data.vocab_size={cfg.data.vocab_size}: data={cfg.data.name} has {len(corpus.vocab)} words.")
    return corpus


def run(cfg: Root, record: Record, *, command: str, progress: Progress) -> None:
    """Do what is missing of a settled config's run: nothing, its evaluation, or all of it.

    A failure is written down with its cause and raised again.
    """
    key = evaluation_key(cfg)
    # The order in which sums are taken depends on the number of threads, so it is the run's and not the machine's.
    torch.set_num_threads(cfg.trainer.threads)
    with record.lock():
        if record.is_complete(key):
            log.info("Nothing to do: the run is there, %s.", record.folder)
            return
        try:
            corpus = load_corpus(cfg)
            kept = checkpoint.load_sound(cfg, record.folder) if record.status().is_result else None
            if kept:
                found = evaluate(kept, corpus, cfg)
            else:
                with mirror(cfg) as watcher:
                    _train(cfg, record, corpus, command, progress, watcher)
                    found = evaluate(checkpoint.load(cfg, record.folder), corpus, cfg)
                    watcher.summarise({"status": record.status().value} | record.metrics(key) | found.metrics)
        except Exception as e:
            log.exception("Failed.")
            error = f"{type(e).__name__}: {e}"
            if record.status().is_result:
                record.write_evaluation(key, {"error": f"evaluation: {error}"})
            else:
                record.finish(Status.failed, cfg, command, error=error)
            raise
        record.write_evaluation(key, as_json(found))
        log.info("Evaluated: %s", found.metrics)


def as_json(found: Evaluation) -> dict[str, object]:
    """What evals/KEY.json holds."""
    return {"metrics": found.metrics, **({"curves": found.curves} if found.curves else {})}


def start(cfg: Root) -> LanguageModel:
    """The model before its first step: at its initial values, or at those of the run or folder that it starts from.

    Raises ValueError where that run did not end well, or the folder holds something else than when it was settled.
    """
    model, source = build(cfg), start_of(cfg)
    if source is None:
        return model
    assert isinstance(cfg.init, Uptrain)
    if cfg.init.folder:
        if files.digest(Path(cfg.init.folder)) != cfg.init.digest:
            raise ValueError(f"init.folder={cfg.init.folder}: its files have changed since the run was asked for.")
        parameters = folders.parameters(cfg.init.folder, source)
    else:
        record = find(source)
        if record.status() is not Status.finished:
            raise ValueError(f"init.source: the run {record.folder.name} is {record.status().value}, not finished.")
        parameters = checkpoint.load(source, record.folder).state_dict()
    start_from(model, parameters, cfg.init.merge, cfg.model.d_head)
    return model


def _train(cfg: Root, record: Record, corpus: Corpus, command: str, progress: Progress, watcher: Mirror) -> None:
    started = time.perf_counter()
    memory.reset_peak()
    record.start(cfg, command)
    log.info("%s", command)
    model = start(cfg)

    def keep(row: Row) -> None:
        record.append(row)
        watcher.log(row)

    outcome = train(model, corpus, cfg, log=keep, tick=progress)
    checkpoint.save(model, record.folder)
    metrics = {
        "tokens_per_second": outcome.tokens / outcome.seconds if outcome.seconds else math.nan,
        "peak_mib": memory.peak_mib(),
        "wall_seconds": time.perf_counter() - started,
        "train_seconds": outcome.seconds,
        "steps": outcome.steps,
        "tokens": outcome.tokens,
        "documents": outcome.steps * cfg.trainer.batch_size,
        "params": counts.params(cfg),
        "d_ff": cfg.ffn.d_ff,
        "mismatch": settle.mismatch(cfg),
        "flops_per_token": counts.flops_per_token(cfg),
        "kv_per_token": counts.kv_per_token(cfg),
    }
    status = Status.diverged if outcome.diverged else Status.finished
    if outcome.diverged:
        log.warning("Diverged: %s.", outcome.diverged)
    record.finish(status, cfg, command, why=outcome.diverged, metrics=metrics)
