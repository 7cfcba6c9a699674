"""`lecture04 sample`: what is wrong is one sentence without torch, and a text is shown as it comes."""

import io
import json
import re
from pathlib import Path

import pytest

from lecture04.cli import sample
from lecture04.cli.sample import Lines, Told
from lecture04.config.errors import UserError

ROOT = Path(__file__).parents[2]
TINY = ("trainer.steps=3", "trainer.diverged_margin=-9", "data.n_train=16", "data.n_val=4", "data.n_test=8")


@pytest.fixture(scope="module")
def trained(warm, tmp_path_factory):
    """A folder with one run, of three steps."""
    place = tmp_path_factory.mktemp("trained")
    done = warm(ROOT / "train.py", "recipe=llama", "logger=none", *TINY, cwd=place)
    assert done.returncode == 0, done.stderr
    (run,) = (place / "outputs" / "runs").iterdir()
    return place, run


@pytest.fixture
def sampled(warm, trained):
    """`sampled("-n", "2")`: what the command prints of that run."""
    place, run = trained

    def sampled(*words, of=run.name, **env):
        return warm("lecture04.cli.main", "sample", str(of), *words, cwd=place, **env)

    return sampled


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["r", "--temperature", "-1"], "--temperature: -1: must be a number, 0 or more."),
        (["r", "--temperature", "nan"], "--temperature: nan: must be a number, 0 or more."),
        (["r", "--top-p", "0"], "--top-p: 0: must be above 0 and at most 1."),
        (["r", "--top-p", "1.5"], "--top-p: 1.5: must be above 0 and at most 1."),
        (["r", "--top-k", "0"], "--top-k: 0: must be a whole number, 1 or more."),
        (["r", "-n", "much"], "-n: much: must be a whole number, 0 or more."),
        (["r", "--batch", "2.5"], "--batch: 2.5: must be a whole number, 1 or more."),
        ([], "RUN: missing; `lecture04 sample --help` says what stands there."),
    ],
)
def test_an_option_that_cannot_be_is_one_sentence(words, said, capsys):
    with pytest.raises(SystemExit):
        sample.parser().parse_args(words)
    assert capsys.readouterr().err == f"{said}\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["no-such"], "no-such: no run of outputs/runs has this in its name. .* garden, garden1"),
        ([" "], "RUN: an empty name is no run"),
        (["empty"], "empty: holds neither a run .* nor a Hugging Face model"),
        (["garden", "--top-k", "3"], "--top-k: garden is the world itself, not a model; name a run"),
        (["garden1", "--score"], "--score: garden1 is the world itself"),
        (["broken"], "broken/config.json: model_type=bloom: there is no part here"),
    ],
)
def test_what_is_no_run_is_one_sentence_without_torch(forked, tmp_path, words, said):
    (tmp_path / "empty").mkdir()
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "config.json").write_text('{"model_type": "bloom"}')
    done = forked("lecture04.cli.main", "sample", *words, cwd=tmp_path)
    assert done.returncode == 1
    assert "torch" not in done.imported
    assert len(done.stderr.splitlines()) == 1
    assert re.match(said, done.stderr), done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--world-seed", "1"), "--world-seed: .* is a model"),
        (("--prompt", "the kin"), "--prompt: kin: the tokenizer does not know this. Did you mean king"),
        (("--prompt", "the " * 65), "--prompt: has 66 tokens, more than the 64 of a row"),
    ],
)
def test_what_cannot_be_asked_of_a_run_is_one_sentence_without_torch(forked, trained, words, said):
    place, run = trained
    done = forked("lecture04.cli.main", "sample", run.name, *words, cwd=place)
    assert done.returncode == 1
    assert re.match(said, done.stderr), done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert "torch" not in done.imported


@pytest.mark.parametrize("words", [("--prompt", "3 92"), ("--prompt", "the"), ()])
def test_what_is_no_token_of_a_folder_is_one_sentence_without_torch(forked, trained, warm, tmp_path, words):
    _, run = trained
    done = warm("lecture04.cli.main", "convert", "write", str(run), "hf", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (tmp_path / "hf" / "tokenizer.json").unlink()
    settings = json.loads((tmp_path / "hf" / "config.json").read_text())
    (tmp_path / "hf" / "config.json").write_text(json.dumps(settings | {"bos_token_id": None}))
    done = forked("lecture04.cli.main", "sample", "hf", *words, cwd=tmp_path)
    assert done.returncode == 1
    assert re.match(r"--prompt: (92|the|missing).* Choices: ids from 0 to 91\.\n$", done.stderr), done.stderr
    assert "torch" not in done.imported


def test_a_run_that_has_not_finished(trained, forked, tmp_path):
    _, run = trained
    other = tmp_path / "outputs" / "runs" / run.name
    other.mkdir(parents=True)
    (other / "config.yaml").write_text((run / "config.yaml").read_text())
    done = forked("lecture04.cli.main", "sample", run.name[-6:], cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr.endswith("the run is missing, not finished, so there is no model to sample from.\n")
    assert "torch" not in done.imported


def test_a_run_is_named_in_each_way_and_writes_the_same(sampled, trained):
    place, run = trained
    words = ("-n", "3", "--seed", "4", "--score")
    first = sampled(*words)
    assert first.returncode == 0, first.stderr
    texts = first.stdout.split("\n")[:-3:2]
    assert len(texts) == 3
    assert len(set(texts)) == 3
    assert "of 3 are grammatical to their end" in first.stdout.splitlines()[-1]
    for of in (run, run.name[-17:], run.name[:8]):
        assert sampled(*words, of=of).stdout == first.stdout
    assert sampled(*words, "--batch", "1").stdout == first.stdout
    assert sampled("-n", "3", "--seed", "5").stdout.splitlines() != texts


def test_what_is_written_for_hugging_face_writes_the_same(sampled, trained, warm):
    place, run = trained
    done = warm("lecture04.cli.main", "convert", "write", str(run), "hf", cwd=place)
    assert done.returncode == 0, done.stderr
    said = json.loads((place / "hf" / "config.json").read_text())
    assert (said["bos_token_id"], said["eos_token_id"], said["pad_token_id"]) == (1, 2, 0)
    words = ("-n", "2", "--prompt", "the king", "--temperature", "0.7", "--top-k", "20", "--top-p", "0.9")
    texts = sampled(*words).stdout
    assert sampled(*words, of="hf").stdout == texts
    assert all(line.startswith("the king ") for line in texts.splitlines())
    refused = sampled("--score", of="hf")
    assert refused.stderr.startswith("--score: a Hugging Face folder has no grammar that judges texts.")


def test_a_text_that_is_cut_off_is_said_beside_it(sampled):
    done = sampled("-n", "4", "--tokens", "1", "--seed", "1")
    assert "cut off after 1 new tokens: --tokens says so." in done.stderr
    assert "cut off" not in done.stdout
    assert [len(line.split()) for line in done.stdout.splitlines()] == [1] * 4


class Stream(io.StringIO):
    """A stream that remembers what stood there at each flush."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def flush(self):
        self.seen.append(self.getvalue())


def test_a_pipe_gets_each_piece_at_once_as_it_is(monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    lines = Lines(stream := Stream())
    for piece in ("the ca", "t\n", " sees " * 30):
        lines.write(piece)
    lines.end()
    assert stream.seen == ["the ca", "the cat\n", "the cat\n" + " sees " * 30, "the cat\n" + " sees " * 30 + "\n"]


def test_a_terminal_gets_whole_words_in_lines_that_fit(monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    text = (
        "when the man waters this rose near his wall the cat sees the queen and rests by its old pond .\n\n  new " * 3
    )
    lines = Lines(stream := Stream())
    for start in range(0, len(text), 3):
        lines.write(text[start : start + 3])
    lines.end()
    shown = stream.getvalue()
    assert shown.split() == text.split()
    assert all(len(line) <= 40 for line in shown.splitlines())
    assert max(map(len, shown.splitlines())) > 34
    assert shown.count("\n\n") == 3, "its own line breaks stay"
    assert len(set(stream.seen)) > 30, "words are shown as they come"
    lines.write("another")
    lines.end()
    assert stream.getvalue().endswith("\nanother\n")


def test_a_letter_is_told_when_all_its_bytes_are_there():
    sign, told = "aéx€".encode(), []
    by_bytes = Told(lambda tokens: bytes(tokens).decode("utf-8", "replace"), told.append)
    for byte in sign:
        by_bytes.add(byte)
    assert told == ["a", "é", "x", "€"]
    by_bytes.add(0xC3)
    by_bytes.rest()
    assert "".join(told) == "aéx€\ufffd"


def test_the_first_text_is_shown_while_it_is_drawn(monkeypatch, capsys):
    """Each word is out before the next one is drawn; the other texts of the batch stand behind it."""
    from lecture04.nn import generate as module
    from lecture04.training.sample import Subject

    seen = []

    def generate(model, prompt, *, rows, hear, **_):
        for token in (4, 5, 2):
            hear(token)
            seen.append(capsys.readouterr().out)
        return [[4, 5, 2] for _ in rows]

    monkeypatch.setattr(module, "generate", generate)
    monkeypatch.delenv("COLUMNS", raising=False)
    subject = Subject.__new__(Subject)
    for name, value in {"tokenizer": None, "start": 1, "ends": frozenset([2]), "fault": None, "model": None}.items():
        object.__setattr__(subject, name, value)
    monkeypatch.setattr(Subject, "prompt", lambda self, text: [1, 3])
    monkeypatch.setattr(Subject, "room", lambda self, prompt, asked: (3, ""))
    sample.show(subject, sample.parser().parse_args(["run", "-n", "2"]))
    assert seen == ["3 4", " 5", " 2"]
    assert capsys.readouterr().out == "\n3 4 5 2\n"


def test_the_worlds_own_documents(forked):
    done = forked("lecture04.cli.main", "sample", "garden", "-n", "2", cwd=ROOT)
    assert done.stdout.count("perplexity") == 2
    assert "torch" not in done.imported


def test_a_folder_named_like_a_world_is_reached_by_its_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "garden").mkdir()
    with pytest.raises(UserError, match=r"\./garden: holds neither"):
        sample.main(sample.parser().parse_args(["./garden"]))
