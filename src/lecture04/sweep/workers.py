"""Jobs in worker processes: a pool of one process for each place, so that one that dies breaks no other's pool.

A worker lives through many jobs, since torch takes its seconds to load. It ends with its parent, however that ends.
"""

import os
import signal
import threading
import time
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import suppress
from pathlib import Path
from typing import Any

from hydra.core.hydra_config import HydraConfig
from hydra.core.singleton import Singleton
from hydra.core.utils import JobReturn, JobStatus, configure_log, run_job, setup_globals
from hydra.types import HydraContext, TaskFunction
from loky import ProcessPoolExecutor
from loky.process_executor import TerminatedWorkerError
from omegaconf import DictConfig, open_dict

from lecture04 import interrupts

WATCHED = 0.5
"""Seconds between two looks at whether the parent lives, and at whether a signal has come."""
LAST_WORDS = 30.0
"""Seconds that a worker has to write down where it stands, once it is asked to end."""


def n_workers(n_jobs: int, n_todo: int) -> int:
    """How many places there are: one a core where n_jobs is -1 and no more than there is to do."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(cores if n_jobs < 0 else n_jobs, n_todo)


class Place:
    """One place for a worker: its pool, and the job that runs in it."""

    def __init__(self) -> None:
        self.pool: ProcessPoolExecutor | None = None
        self.job: int | None = None

    def submit(self, job: int, *about: object) -> Future[JobReturn | None]:
        """Run a job here: `_work` of what it is about."""
        self.job = job
        if self.pool is None:
            self.pool = ProcessPoolExecutor(max_workers=1, initializer=_begin, initargs=(os.getpid(),))
        return self.pool.submit(_work, *about)

    def signal(self, number: int) -> None:
        """Send its worker a signal."""
        for process in self._processes():
            with suppress(ProcessLookupError):
                os.kill(process, number)

    def renew(self) -> None:
        """A new pool for the next job: the worker has died."""
        if self.pool is not None:
            self.pool.shutdown(wait=False, kill_workers=True)
        self.pool = None

    def _processes(self) -> list[int]:
        return list(self.pool._processes or {}) if self.pool is not None else []  # pyright: ignore[reportPrivateUsage]


def launch(
    n_jobs: int,
    context: HydraContext,
    task: TaskFunction,
    config: DictConfig,
    overrides: Sequence[Sequence[str]],
    first: int,
) -> list[JobReturn]:
    """Run every job. A signal that asks to end is handed to the workers, and raised when they have ended."""
    setup_globals()
    configure_log(config.hydra.hydra_logging, config.hydra.verbose)
    Path(str(config.hydra.sweep.dir)).mkdir(parents=True, exist_ok=True)
    shared = (context, task, config, Singleton.get_state())
    places = [Place() for _ in range(n_workers(n_jobs, len(overrides)))]
    waiting, done = list(range(len(overrides)))[::-1], dict[int, JobReturn]()
    running = dict[Future[Any], Place]()
    try:
        with interrupts.held():
            while waiting or running:
                free = [place for place in places if place.job is None]
                while free and waiting and not interrupts.asked():
                    job, place = waiting.pop(), free.pop()
                    running[place.submit(job, first + job, list(overrides[job]), *shared)] = place
                if interrupts.asked():
                    _end(places, running)
                    break
                ended, _ = wait(running, timeout=WATCHED, return_when=FIRST_COMPLETED)
                for future in ended:
                    place = running.pop(future)
                    assert place.job is not None
                    done[place.job] = _outcome(future, place)
                    place.job = None
    finally:
        for place in places:
            place.renew()
    return [done[job] for job in range(len(overrides))]


def _outcome(future: Future[Any], place: Place) -> JobReturn:
    try:
        return future.result() or _failed(ChildProcessError("the worker was asked to end"))
    except TerminatedWorkerError as e:
        place.renew()
        return _failed(ChildProcessError(_cause(str(e))))
    except Exception as e:
        place.renew()
        return _failed(e)


def _failed(error: Exception) -> JobReturn:
    outcome = JobReturn(status=JobStatus.FAILED)
    outcome.return_value = error
    return outcome


def _cause(said: str) -> str:
    """Of what a worker died."""
    if "SIGKILL" in said:
        return "its worker was killed (SIGKILL), as a system does that has no memory left"
    name = said.rpartition("{")[2].partition("}")[0]
    return f"its worker died ({name})" if name else "its worker died"


def _end(places: Sequence[Place], running: dict[Future[Any], Place]) -> None:
    """Ask the workers to write down where they stand, and wait until they have."""
    for place in places:
        place.signal(signal.SIGTERM)
    wait(running, timeout=LAST_WORDS)


def _begin(parent: int) -> None:
    """A worker's start: signals wait until a job asks for them, and the parent is watched."""
    interrupts.listen()
    interrupts.hold(True)
    threading.Thread(target=_watch, args=(parent,), name="parent", daemon=True).start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(WATCHED)
    os.kill(os.getpid(), signal.SIGTERM)
    end = time.monotonic() + LAST_WORDS
    while interrupts.is_busy() and time.monotonic() < end:
        time.sleep(WATCHED / 5)
    os._exit(128 + signal.SIGTERM)


def _work(
    number: int,
    overrides: list[str],
    context: HydraContext,
    task: TaskFunction,
    config: DictConfig,
    singletons: dict[Any, Any],
) -> JobReturn | None:
    """One job, in the worker; None where it was asked to end."""
    try:
        with interrupts.busy():
            setup_globals()
            Singleton.set_state(singletons)
            composed = context.config_loader.load_sweep_config(config, overrides)
            with open_dict(composed):
                composed.hydra.job.id, composed.hydra.job.num = f"{composed.hydra.job.name}_{number}", number
            HydraConfig.instance().set_config(composed)
            return run_job(
                hydra_context=context,
                config=composed,
                task_function=task,
                job_dir_key="hydra.sweep.dir",
                job_subdir_key="hydra.sweep.subdir",
            )
    except interrupts.Stopped:
        return None
