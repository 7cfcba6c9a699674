"""A text, a tokenizer or a folder that does not fit `data=text`: one sentence, and nothing trained."""

import gzip
import json
import random
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from safetensors.numpy import save_file
from tokenizers import Regex, Tokenizer, models, pre_tokenizers

from lecture04.data.text.tokens import of_characters

ROOT = Path(__file__).parents[2]
LINES = [f"line {i} of a text" for i in range(200)]
LETTERS = sorted(set("".join(LINES)))


def letters(ids: dict[str, int], unknown: str = " ") -> Callable[[Path], None]:
    """What writes a tokenizer.json of single characters with these ids."""

    def write(path: Path) -> None:
        made = Tokenizer(models.WordLevel({character: i for i, character in enumerate(ids)}, unk_token=unknown))
        made.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
        said = json.loads(made.to_str())
        said["model"]["vocab"] = ids  # as no library would write it
        path.write_text(json.dumps(said))

    return write


def without_unknown(path: Path) -> None:
    Tokenizer(models.BPE(vocab={"l": 0, "i": 1}, merges=[])).save(str(path))


def llama(characters: list[str] | None, vocab_size: int) -> Callable[[Path], None]:
    """What writes a Hugging Face folder, with a tokenizer.json of these characters where there are any."""

    def write(path: Path) -> None:
        path.mkdir()
        said = {
            "model_type": "llama", "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 1,
            "num_attention_heads": 2, "num_key_value_heads": 2, "vocab_size": vocab_size,
            "max_position_embeddings": 512, "rms_norm_eps": 1e-6, "hidden_act": "silu",
        }  # fmt: skip
        (path / "config.json").write_text(json.dumps(said))
        save_file({}, path / "model.safetensors")
        if characters:
            of_characters(characters).save(str(path / "tokenizer.json"))

    return write


def torn_gzip() -> bytes:
    rng = random.Random(1)
    whole = bytearray(gzip.compress("\n".join(str(rng.random()) for _ in range(5000)).encode()))
    whole[5000:5400] = bytes(400)
    return bytes(whole)


FILES: dict[str, bytes | str | Callable[[Path], None]] = {
    "good.txt": "\n".join(LINES),
    "empty.txt": "",
    "one.txt": "one document, whatever its length",
    "two.txt": "a\nb\n",
    "long.txt": "\n".join([*LINES, "long " * 200]),
    "latin.txt": b"abc\xff\n",
    "latin.jsonl": b'{"text": "a\xff"}\n',
    "torn.txt.gz": torn_gzip(),
    "no_field.jsonl": '{"text": "a"}\n{"body": "b", "id": 1}\n',
    "no_record.jsonl": "[1]\n",
    "no_json.jsonl": "{'text': 'a'}\n",
    "pictures": lambda path: (path.mkdir(), (path / "a.png").touch()),
    "no_unknown.json": without_unknown,
    "unknown_is_none.json": letters({"l": 0, "i": 1}, unknown="[UNK]"),
    "holes.json": letters({character: 2 * i for i, character in enumerate(LETTERS)}),
    "beyond.json": letters({character: i + 5 for i, character in enumerate(LETTERS)}),
    "twice.json": letters({character: min(i, 3) for i, character in enumerate(LETTERS)}),
    "smaller": llama(None, 92),
    "other": llama([*LETTERS[:-1], "z"], len(LETTERS) + 1),
}  # what a command below names is written for it
SIZE = len(LETTERS)
IDS = f"its {SIZE} tokens must have the ids 0 to {SIZE - 1}, each of them once; none has "


@dataclass(frozen=True)
class Case:
    """What is typed behind `train.py data=text`, and what the sentence says: where, the value, what would do."""

    command: str
    words: tuple[str, ...]

    def __str__(self) -> str:
        return self.command


def typed(command: str, *words: str) -> Case:
    return Case(command, words)


def of_lines(command: str, *words: str) -> Case:
    return typed(f"data.path=good.txt data.documents=line {command}", *words)


CASES = [
    typed("", "data.path: has no value; write data.path=VALUE."),
    typed("data.path=nothing.txt", "data.path=nothing.txt: there is no such file or folder."),
    typed("data.path=json:a.txt", "data.path=json:a.txt: the package json has no file a.txt."),
    typed("data.path=pictures", "data.path=pictures: none of its files ends with .jsonl,", ".txt"),
    # What cannot be read.
    typed("data.path=latin.txt", "latin.txt: not UTF-8: byte 0xff in line 1; "),
    typed("data.path=latin.txt data.documents=stream data.split=tail", "latin.txt: not UTF-8: byte 0xff in line 1; "),
    typed("data.path=latin.jsonl", "latin.jsonl: not UTF-8: byte 0xff in line 1; "),
    typed("data.path=torn.txt.gz", "torn.txt.gz: Error -3 while decompressing data"),
    typed("data.path=no_field.jsonl", "no_field.jsonl:2: no text below data.field=text; the record has body, id."),
    typed("data.path=no_field.jsonl data.field=body", "no_field.jsonl:1: no text below data.field=body", "has text."),
    typed("data.path=no_record.jsonl", "no_record.jsonl:1: no text below data.field=text; the line is no record."),
    typed("data.path=no_json.jsonl", "no_json.jsonl:1: not JSON: "),
    # Splits without documents.
    typed("data.path=empty.txt", "data.path=empty.txt: there is no text in it."),
    typed("data.path=one.txt", "it has 1 document, of which the validation split gets none", "data.documents=line"),
    typed("data.path=two.txt data.documents=line", "it has 2 documents, of which the ", "data.val", "data.test"),
    typed("data.path=two.txt data.documents=stream data.split=tail", "4 characters are too few for three splits."),
    of_lines("data.val=0.5 data.test=0.5", "data.val=0.5, data.test=0.5: leave nothing for training."),
    of_lines("data.val=0", "data.val=0.0: must be above 0 and below 1."),
    of_lines("data.documents=stream", "data.split=hash: a stream has no documents", "use data.split=tail."),
    of_lines("data.documents=lines", "data.documents=lines: ", "mean line?", "Choices: file, line, separator, stream."),
    # Documents and rows.
    typed(
        "data.path=long.txt data.documents=line layout=documents",
        "layout.length=128: the longest document has 1,001 tokens to predict",
        "set at least that, or layout=windows or stream.",
    ),
    typed("data.path=good.txt data.documents=line layout.length=9999", "layout.length=9999: the training split has "),
    # Tokenizers.
    of_lines("data.tokenizer=none.json", "data.tokenizer=none.json: No such file or directory."),
    of_lines("data.tokenizer=byte", "data.tokenizer=byte: ", "mean bytes?"),
    of_lines("data.tokenizer=good.txt", "data.tokenizer=good.txt: no tokenizer.json: "),
    of_lines("data.tokenizer=bpe data.vocab_size=99", "data.vocab_size=99: must be over 256, a token a byte and "),
    of_lines("data.tokenizer=no_unknown.json", "no_unknown.json: it has no token for '0' 'a'", "no unknown token"),
    of_lines("data.tokenizer=unknown_is_none.json", "unknown_is_none.json: it cannot read the text: ", "[UNK]"),
    of_lines("data.tokenizer=holes.json", f"holes.json: {IDS}1, 3, 5, 7, 9, ..., and", f"id is {2 * SIZE - 2}."),
    of_lines("data.tokenizer=beyond.json", f"beyond.json: {IDS}0, 1, 2, 3, 4, and the largest id is {SIZE + 4}."),
    of_lines("data.tokenizer=twice.json", f"twice.json: {IDS}4, 5, 6, 7, 8, ..., and the largest id is 3."),
    # Runs that begin with the parameters of a model of other tokens.
    of_lines(
        "init=uptrain \"init.source=['data.tokenizer=char']\"", "init.source: data.tokenizer=char cannot stand there"
    ),
    of_lines("recipe=llama init=uptrain init.folder=smaller", "init.folder: smaller/config.json: vocab_size=92: must"),
    of_lines(
        "data.tokenizer=char recipe=llama init=uptrain init.folder=other",
        f"init.folder: other/tokenizer.json: its token {SIZE - 1} is 'z', and that of ",
        f"data.tokenizer=char {LETTERS[-1]!r}",
        "data.tokenizer=other/tokenizer.json",
    ),
]


def write_what_is_named(command: str, folder: Path) -> None:
    for name, content in FILES.items():
        if f"={name}" in command:
            match content:
                case bytes():
                    (folder / name).write_bytes(content)
                case str():
                    (folder / name).write_text(content)
                case write:
                    write(folder / name)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_text_that_does_not_fit_gets_one_sentence_and_trains_nothing(reading, tmp_path, case):
    write_what_is_named(case.command, tmp_path)
    done = reading(ROOT / "train.py", "data=text", *shlex.split(case.command), cwd=tmp_path)
    assert done.returncode == 1, done.stdout + done.stderr
    assert not done.stdout
    assert "Traceback" not in done.stderr
    assert "Warning" not in done.stderr
    *prepared, said = done.stderr.splitlines()
    assert all(line.startswith("data=text: ") and "documents: " in line for line in prepared), done.stderr
    assert len(prepared) <= 1
    for word in case.words:
        assert word in said
    assert not (tmp_path / "outputs" / "runs").exists()
    assert "torch" not in done.imported
