"""Commands without their start-up: a process that has imported what they need forks a child for each.

As a program it is that process: for each line of JSON on stdin, what to run, it forks and answers with a line. The
child runs the script as `python SCRIPT ...` does, in its own folder and environment; its output goes to files. The
modules named on the command line are imported once. A child says which heavy packages it has, those of the parent among
them.
"""

import atexit
import ctypes
import gc
import importlib
import json
import os
import runpy
import signal
import subprocess
import sys
import tempfile
import threading
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HEAVY = ("torch", "numpy", "pandas", "scipy", "matplotlib", "wandb", "safetensors")
SECONDS = 120


@dataclass(frozen=True)
class Done:
    """What a command left: as subprocess.CompletedProcess, and the heavy packages that it imported."""

    returncode: int
    stdout: str
    stderr: str
    imported: list[str]


class Commands:
    """Runs commands in children of one process; one at a time."""

    def __init__(self, *modules: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, __file__, *modules], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def __call__(
        self, script: Path | str, *arguments: str, cwd: Path, is_bound: bool = False, **environment: str
    ) -> Done:
        """`python SCRIPT ...`, or for a name that is not a file's `python -m NAME ...`.

        With `is_bound` files' permissions bind it, whoever runs the tests.
        """
        assert self.process.stdin
        assert self.process.stdout
        asked = {
            "argv": [str(script), *arguments],
            "cwd": str(cwd),
            "env": dict(os.environ | environment),
            "is_bound": is_bound,
        }
        self.process.stdin.write(json.dumps(asked) + "\n")
        self.process.stdin.flush()
        return Done(**json.loads(self.process.stdout.readline()))

    def close(self) -> None:
        """End the process."""
        self.process.communicate()


def be_bound() -> None:
    """Give up, for good, what lets root write where nobody may: the capabilities to override permissions (Linux)."""
    libc = ctypes.CDLL(None, use_errno=True)
    overriding = (1, 2)  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
    for capability in overriding:
        libc.prctl(24, capability, 0, 0, 0)  # PR_CAPBSET_DROP: programs that are started have none either
    header, sets = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
    assert libc.capget(header, sets) == 0
    for i in range(3):  # effective, permitted, inheritable
        sets[i] &= ~sum(1 << capability for capability in overriding)
    assert libc.capset(header, sets) == 0


def perform(asked: dict[str, Any]) -> None:
    """Run the script in this process, to its end."""
    if asked["is_bound"] and os.geteuid() == 0:
        be_bound()
    os.chdir(asked["cwd"])
    os.environ.clear()
    os.environ.update(asked["env"])
    script, *_ = sys.argv = asked["argv"]
    if script.endswith(".py"):
        sys.path[0] = str(Path(script).parent)
        runpy.run_path(script, run_name="__main__")
    else:
        sys.path[0] = asked["cwd"]
        sys.modules.pop(script, None)  # what is run with -m is not there yet
        runpy.run_module(script, run_name="__main__", alter_sys=True)


def child(asked: dict[str, Any], files: list[Any]) -> None:
    """`perform`, and what Python does around it: codes, tracebacks, atexit. Does not return."""
    code = 1
    try:
        signal.alarm(SECONDS)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(files[0].fileno(), 1)
        os.dup2(files[1].fileno(), 2)
        try:
            perform(asked)
            code = 0
        except SystemExit as e:
            code = e.code if isinstance(e.code, int) else int(e.code is not None)
            if isinstance(e.code, str):
                print(e.code, file=sys.stderr)
        except BaseException:
            traceback.print_exc()
        threading._shutdown()  # as Python ends: first threads, joblib's workers with them
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os.write(files[2].fileno(), " ".join(sorted(set(HEAVY) & set(sys.modules))).encode())
    finally:
        os._exit(code)


def read_ahead() -> None:
    """What every command would do anew, and finds done: to follow the package's code, and to make its language.

    Neither depends on a command's folder or environment. What is imported already is used and nothing else.
    """
    if "lecture04.records.identity" in sys.modules:
        from lecture04.config import closure, code, registry
        from lecture04.records import identity

        ours = [(e.module, e.attribute) for e in registry.entries().values() if e.family != "probe"]
        roots = [*identity.RUN, *identity.EVALUATION, *ours]
        code.code_of(closure.sources(registry.PACKAGE.resolve(), ()), roots, identity.BESIDE_A_RUN, measures=True)
    if "lecture04.training.run" in sys.modules:
        from lecture04.data.garden import garden

        for withhold in (True, False):
            garden.language(0, withhold=withhold)


def serve(*modules: str) -> None:
    """Import the modules; then a child for each line on stdin."""
    for module in modules:
        importlib.import_module(module)
    read_ahead()
    if "hydra" in sys.modules:
        from hydra.core.plugins import Plugins

        Plugins.instance()  # looks through every installed plugin
    gc.freeze()  # a child need not look through what it has from here
    for line in sys.stdin:
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err, tempfile.TemporaryFile() as heavy:
            files = [out, err, heavy]
            if not (pid := os.fork()):
                child(json.loads(line), files)
            _, status = os.waitpid(pid, 0)
            for file in files:
                file.seek(0)
            said, complained, imported = (file.read().decode() for file in files)
        code = os.waitstatus_to_exitcode(status)
        done = {"returncode": code, "stdout": said, "stderr": complained, "imported": imported.split()}
        print(json.dumps(done), flush=True)


if __name__ == "__main__":
    serve(*sys.argv[1:])
