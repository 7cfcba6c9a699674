"""One run on disk from beginning to end. The one place that imports torch on a command's way."""

import logging
import math
from typing import Protocol

import torch

from lecture04 import interrupts
from lecture04.config import Request, sizes
from lecture04.data import types as data
from lecture04.data.types import Corpus
from lecture04.nn.model import LanguageModel
from lecture04.records.identity import evaluation_key, identity
from lecture04.records.lease import LeaseLostError, check, lease
from lecture04.records.metrics import MEASURES
from lecture04.records.record import Record, Status
from lecture04.records.tracker import Tracker, tracker
from lecture04.training import checkpoint, memory, resume
from lecture04.training.evaluate import Evaluation, evaluate
from lecture04.training.loop import Row, Standing, train
from lecture04.training.start import begin

log = logging.getLogger(__name__)


class Progress(Protocol):
    """A progress display."""

    def __call__(self, step: int, row: Row) -> None: ...


def run(request: Request, record: Record, *, command: str, progress: Progress) -> None:
    """Do what is missing of a run: nothing, its evaluation, or all of it.

    A failure is written down with its cause and raised again.
    """
    wanted, evaluation, session = request.run, request.evaluation, request.session
    key = evaluation_key(wanted, evaluation)
    # The order in which sums are taken depends on the number of threads, so it is the run's and not the machine's.
    torch.set_num_threads(wanted.trainer.threads)
    # A sweep has other jobs to do meanwhile, and comes back to this one.
    with lease(record.folder, wait=not session.origin.sweep) as is_ours:
        if not is_ours:
            log.info("Another process works on the run.")
            return
        if record.is_complete(key):
            log.info("Nothing to do: the run is there, %s.", record.folder)
            return
        record.clear_torn()
        try:
            corpus, extra = data.load(wanted, session.outputs), tuple(MEASURES.values())
            kept = checkpoint.load_sound(wanted, record.folder) if record.status().is_result else None
            if kept:
                resume.clear(record.folder)  # a run that was killed between its summary and this
                found = evaluate(kept, corpus, wanted, evaluation, extra)
            else:
                with tracker(request, record.note_untracked) as watcher:
                    _train(request, record, corpus, command, progress, watcher)
                    found = evaluate(checkpoint.load(wanted, record.folder), corpus, wanted, evaluation, extra)
                    watcher.summarise({"status": record.status().value} | record.metrics(key) | found.metrics)
        except LeaseLostError:
            raise
        except Exception as e:
            log.exception("Failed.")
            error = f"{type(e).__name__}: {e}"
            if record.status().is_result:
                record.write_evaluation(key, {"error": f"evaluation: {error}"})
            else:
                record.finish(Status.failed, wanted, command, error=error)
            raise
        record.write_evaluation(key, as_json(found))
        log.info("Evaluated: %s", found.metrics)


def as_json(found: Evaluation) -> dict[str, object]:
    """What evals/KEY.json holds."""
    return {"metrics": found.metrics, **({"curves": found.curves} if found.curves else {})}


def _train(
    request: Request, record: Record, corpus: Corpus, command: str, progress: Progress, watcher: Tracker
) -> None:
    run, own = request.run, str(identity(request.run))
    memory.reset_peak()
    with torch.random.fork_rng(devices=[]):
        kept = resume.latest(record, own)
        if kept is None:
            torch.manual_seed(run.seed)
            record.start(run, request.evaluation, command)
            at, model = Standing(), begin(run, request.session)
        else:
            at, model = kept.at, LanguageModel(run)
            model.load_state_dict(kept.parameters)
            torch.set_rng_state(kept.random)
            log.info("Going on behind step %d.", at.step)
        log.info("%s", command)
        for row in record.rows():
            watcher.log(row)

        def log_row(row: Row) -> None:
            record.append(row)
            watcher.log(row)

        keeper = resume.Keeper(record, own, request.session.checkpoint_every, kept.wall if kept else 0.0)
        with interrupts.held():
            outcome = train(
                model,
                corpus,
                run,
                log=log_row,
                tick=progress,
                log_every=request.session.log_every,
                start=at,
                pause=keeper,
            )
    check(record.folder)
    checkpoint.save(model, record.folder)
    metrics = {
        "tokens_per_second": outcome.tokens / outcome.seconds if outcome.seconds else math.nan,
        "peak_mib": memory.peak_mib(),
        "wall_seconds": keeper.wall,
        "train_seconds": outcome.seconds,
        "steps": outcome.steps,
        "tokens": outcome.tokens,
        "documents": outcome.steps * run.trainer.batch_size,
        "params": sizes.params(run),
        "d_ff": run.ffn.d_ff,
        "mismatch": request.mismatch,
        "flops_per_token": sizes.flops_per_token(run),
        "kv_per_token": sizes.kv_per_token(run),
    }
    if outcome.why:
        log.warning("%s: %s.", outcome.status.in_words.capitalize(), outcome.why)
    record.finish(outcome.status, run, command, why=outcome.why, metrics=metrics)
    resume.clear(record.folder)
