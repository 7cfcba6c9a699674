"""Does the identity cover what a run executes? Each statement of a copy of the sources is changed in turn.

Where a mutant leaves a run's identity as it was, the run is made with it, and must come out the same bit for bit. A
mutant that crashes, or never ends, gives no result that could be taken for another. What changes no result but the
identity costs a run for nothing; of that there is a test for each kind in tests/config/test_code.py.

Runs are made by this file itself as a program: a process that has loaded torch and forks a child for each mutant, which
imports the mutated copy.
"""

import ast
import hashlib
import json
import os
import pickle
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src/lecture04"
TRAINS = ("nn/", "data/", "training/", "huggingface/")  # rooms that no config is made of
SECONDS = 20  # that a mutant may take: the sound one takes one
SAMPLE = 6
SMALL = (
    *("model.d_model=8", "model.n_layers=1", "model.n_heads=2", "ffn.d_ff=12", "optim.warmup_steps=2"),
    *("data.n_train=24", "data.n_val=8", "data.n_test=8"),
    *("trainer.batch_size=8", "trainer.steps=4", "trainer.log_every=2", "logger=none"),
)
RUNS = {
    "standard": SMALL,
    "llama": (*SMALL, "recipe=llama", "posenc.scaling.name=yarn", "posenc.scaling.factor=4", "attention.n_kv_heads=1"),
    "latent": (*SMALL, "placement=sandwich", "attention=mla", "attention.d_latent=4", "attention.d_rope=2", "seed=1"),
}


def asked(overrides: tuple[str, ...], outputs: str = "outputs") -> Any:
    """What a command line comes to, by whatever `lecture04` Python imports."""
    from lecture04.cli import train as cli

    return cli.resolved_settings(cli.composed([*overrides, f"paths.outputs={outputs}"]))


def small_run(request: Any) -> tuple[str, str]:
    """A small run's config as far as it is its identity, and its parameters, metrics and state, hashed."""
    from lecture04.config import sizes
    from lecture04.data import types as data
    from lecture04.records.identity import identified
    from lecture04.training.loop import train
    from lecture04.training.start import begin

    run, rows = request.run, []
    corpus = data.load(run, request.session.outputs)
    model = begin(run, request.session)
    outcome = train(model, corpus, run, log=rows.append, tick=lambda step, row: None, log_every=2)
    counted = [sizes.params(run), sizes.flops_per_token(run), sizes.kv_per_token(run), request.mismatch]
    digest = hashlib.sha256()
    for name, value in sorted(model.state_dict().items()):
        digest.update(f"{name} {tuple(value.shape)}".encode() + value.numpy().tobytes())
    digest.update(repr((rows, outcome.status.value, outcome.steps, outcome.tokens, counted)).encode())
    return hashlib.sha256(repr(identified(run)).encode()).hexdigest(), digest.hexdigest()


def begins_of(overrides: tuple[str, ...]) -> tuple[list[Any], list[str]]:
    """Where a run's code begins, and where following it ends."""
    from lecture04.records import identity

    roots, stops = identity.begins(asked(overrides).run)
    return roots, list(stops)


def serve(source: str, outputs: str) -> None:
    """For each line [composes, run, ...] on stdin one with {run: what small_run says}, made by a child; first as it is.

    Where `composes` is false the child takes what was composed here, since that is what takes longest.
    """
    os.environ["OMP_NUM_THREADS"] = "1"
    sys.path.insert(0, source)
    # Once here, so that no child loads, compiles or warms up anything but what is changed.
    requests = {name: asked(overrides, outputs) for name, overrides in RUNS.items()}
    print(json.dumps({name: small_run(request) for name, request in requests.items()}), flush=True)
    sys.dont_write_bytecode = True
    pickled = {name: pickle.dumps(request) for name, request in requests.items()}
    for line in sys.stdin:
        reader, writer = os.pipe()
        if not (child := os.fork()):
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            os.dup2(1, 2)
            signal.alarm(SECONDS)
            for name in [name for name in sys.modules if name.partition(".")[0] == "lecture04"]:
                del sys.modules[name]
            try:
                composes, *names = json.loads(line)
                for name in names:
                    request = asked(RUNS[name], outputs) if composes else pickle.loads(pickled[name])
                    os.write(writer, f"{name} {' '.join(small_run(request))}\n".encode())
            finally:
                os._exit(0)
        os.close(writer)
        with os.fdopen(reader) as said:
            found = {name: rest for name, *rest in (text.split() for text in said)}
        os.waitpid(child, 0)
        print(json.dumps(found), flush=True)


class Trainer:
    """Makes runs with a copy of the sources, in children of one process."""

    def __init__(self, source: Path, outputs: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, __file__, str(source), str(outputs)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | {"OMP_NUM_THREADS": "1"},
        )

    def sound(self) -> dict[str, list[str]]:
        """What the runs are with nothing changed; said once, first."""
        assert self.process.stdout
        return json.loads(self.process.stdout.readline())

    def __call__(self, runs: Iterable[str], *, composes: bool) -> dict[str, list[str]]:
        """{run: its config's identity and its digest} of those that came to an end; in order, up to the first crash.

        `composes`: the run's config is made anew, by the sources as they are now.
        """
        assert self.process.stdin
        self.process.stdin.write(json.dumps([composes, *runs]) + "\n")
        self.process.stdin.flush()
        return self.sound()


def statements_of(tree: ast.Module) -> list[ast.stmt]:
    """Every statement of a file, those in functions and classes too."""
    return [node for node in ast.walk(tree) if isinstance(node, ast.stmt)]


OPERATORS = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult}
COMPARISONS = {
    **{ast.Lt: ast.GtE, ast.GtE: ast.Lt, ast.Gt: ast.LtE, ast.LtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq},
    **{ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In},
}


def own_nodes(statement: ast.stmt) -> Iterator[ast.AST]:
    """A statement's expressions, without the statements that stand in it."""
    waiting = [child for child in ast.iter_child_nodes(statement) if not isinstance(child, ast.stmt)]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += [child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.stmt)]


def change(node: ast.AST) -> bool:
    """Change a constant, an operator or a comparison; False where the node is none."""
    match node:
        case ast.Constant(value=bool()):
            node.value = not node.value
        case ast.Constant(value=int() | float()):
            node.value += 1
        case ast.Constant(value=str()):
            node.value += "x"
        case ast.BinOp(op=op) if type(op) in OPERATORS:
            node.op = OPERATORS[type(op)]()
        case ast.Compare(ops=[op, *_]) if type(op) in COMPARISONS:
            node.ops[0] = COMPARISONS[type(op)]()
        case ast.BoolOp(op=op):
            node.op = ast.Or() if isinstance(op, ast.And) else ast.And()
        case ast.IfExp():
            node.body, node.orelse = node.orelse, node.body
        case _:
            return False
    return True


def mutant(source: str, which: int, seed: str) -> tuple[str, str]:
    """The source with one statement changed or taken out, and what it was."""
    tree = ast.parse(source)
    statement = statements_of(tree)[which]
    rng = random.Random(f"{seed}/{which}")
    said = f"line {statement.lineno}: {ast.unparse(statement).splitlines()[0]}"
    nodes = list(own_nodes(statement))
    rng.shuffle(nodes)
    if rng.random() < 0.6 and any(change(node) for node in nodes):
        return ast.unparse(tree), f"{said} -> {ast.unparse(statement).splitlines()[0]}"
    for parent in ast.walk(tree):
        for name in ("body", "orelse", "finalbody"):
            if isinstance(body := getattr(parent, name, None), list) and statement in body:
                body[body.index(statement)] = ast.copy_location(ast.Pass(), statement)
                return ast.unparse(tree), f"{said} -> pass"
    raise AssertionError(said)


class Workshop:
    """A copy of the package, its runs as they are, and what comes of changing it."""

    def __init__(self, folder: Path) -> None:
        from lecture04.config import closure
        from lecture04.config.code import code_of

        self.package, self.code_of, self.closure = folder / "src/lecture04", code_of, closure
        shutil.copytree(PACKAGE, self.package, ignore=shutil.ignore_patterns("__pycache__"))
        for beside in ("conf", "sweeps"):
            shutil.copytree(ROOT / beside, folder / beside)
        self.trained = Trainer(folder / "src", folder / "outputs")
        self.begins = {name: begins_of(overrides) for name, overrides in RUNS.items()}
        self.sources = closure.Sources(self.package)
        self.codes = {name: code_of(self.sources, *begins).digest for name, begins in self.begins.items()}
        _, files = self.sources.reached(
            [d for roots, _ in self.begins.values() for d in self.definitions(roots)],
            closure.Stops(self.sources, []),
        )
        self.files = sorted(files)
        self.sound = self.trained.sound()
        for composes in (True, False):
            assert self.trained(RUNS, composes=composes) == self.sound, "a child makes the same of the same sources"

    def definitions(self, roots: list) -> list:
        from lecture04.config.code import definitions_of

        return definitions_of(self.sources, roots)

    def statements(self) -> list[tuple[Path, int]]:
        """Every statement of the import closure."""
        counted = ((file, len(statements_of(ast.parse(file.read_text())))) for file in self.files)
        return [(file, i) for file, n in counted for i in range(n)]

    def try_mutant(self, file: Path, which: int, runs: tuple[str, ...]) -> tuple[str, list[str], list[str]]:
        """What was changed, the runs that kept their identity, and those of them that came out otherwise."""
        original = file.read_text(encoding="utf-8")
        label = file.relative_to(self.package).as_posix()
        source, said = mutant(original, which, label)
        cached = file.parent / "__pycache__" / f"{file.stem}.{sys.implementation.cache_tag}.pyc"
        before, compiled = file.stat(), cached.read_bytes() if cached.exists() else b""
        try:
            file.write_text(source, encoding="utf-8")
            cached.unlink(missing_ok=True)  # it may be of the same second and size
            kept = [name for name in runs if self.code(file, name) == self.codes[name]]
            found = self.trained(kept, composes=not label.startswith(TRAINS)) if kept else {}
        finally:
            file.write_text(original, encoding="utf-8")
            os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
            if compiled:
                cached.write_bytes(compiled)
        differ = [
            name
            for name, (config, digest) in found.items()
            if config == self.sound[name][0] and digest != self.sound[name][1]
        ]
        return f"{label}, {said}", kept, differ

    def code(self, file: Path, name: str) -> str | None:
        """The digest of a run's code with one file changed; None where it is no longer to be found."""
        sources = self.sources.with_changed(file)
        try:
            return self.code_of(sources, *self.begins[name]).digest
        except (ValueError, SyntaxError):
            return None


@pytest.fixture(scope="module")
def workshop(tmp_path_factory):
    workshop = Workshop(tmp_path_factory.mktemp("mutations"))
    yield workshop
    workshop.trained.process.kill()
    workshop.trained.process.wait()


def test_a_sample_of_mutants(workshop):
    """One run a mutant; the others in the slow test."""
    rng = random.Random(4)
    failed, kept = [], 0
    for file, which in rng.sample(workshop.statements(), SAMPLE):
        said, same, differ = workshop.try_mutant(file, which, (rng.choice(list(RUNS)),))
        kept += len(same)
        failed += [f"{name}: {said}" for name in differ]
    print(f"{SAMPLE} mutants, {kept} of which kept the identity")
    assert not failed, "\n".join(failed)


ROOMS = ("config", "nn", "data", "training", "records", "huggingface")
FILES = [p.relative_to(PACKAGE).as_posix() for room in ROOMS for p in sorted((PACKAGE / room).rglob("*.py"))]


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_every_mutant_of_a_file(workshop, name):
    """All runs of all mutants: half an hour for all files on one quiet core."""
    tried = [(file, which) for file, which in workshop.statements() if file == workshop.package / name]
    failed, kept = [], 0
    for file, which in tried:
        said, same, differ = workshop.try_mutant(file, which, tuple(RUNS))
        kept += bool(same)
        failed += [f"{run}: {said}" for run in differ]
    print(f"{len(tried)} mutants, {kept} of which kept the identity of a run")
    assert not failed, "\n".join(failed)


if __name__ == "__main__":
    serve(*sys.argv[1:])
