"""Tokenizers: nothing of a text is lost, and other programs read the same."""

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from lecture04.data.text.tokens import END, check_covers, of_bytes, of_characters, of_file, trained_bpe
from tests.data.text.conftest import lines

TEXT = "\n".join(lines(50)) + "\t emoji: 🌹\r\n  two  blanks "


def made(kind):
    match kind:
        case "bytes":
            return of_bytes()
        case "char":
            return of_characters(set(TEXT))
        case _:
            return trained_bpe(iter(lines(50)), 300)


@pytest.mark.parametrize("kind", ["bytes", "char", "bpe"])
def test_a_text_comes_back_as_it_was(kind):
    tokenizer = made(kind)
    ids = tokenizer.encode(TEXT, add_special_tokens=False).ids
    assert tokenizer.decode(ids) == TEXT
    assert tokenizer.token_to_id(END) not in ids
    if kind != "bpe":
        assert len(ids) == len(TEXT.encode() if kind == "bytes" else TEXT)
        assert tokenizer.get_vocab_size() == (257 if kind == "bytes" else len(set(TEXT)) + 1)
    else:
        assert tokenizer.get_vocab_size() == 300
        assert len(ids) < len(TEXT.encode())


@pytest.mark.parametrize("kind", ["bytes", "char", "bpe"])
def test_transformers_reads_the_same_from_the_file(tmp_path, kind):
    tokenizer = made(kind)
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    theirs = PreTrainedTokenizerFast(tokenizer_file=str(tmp_path / "tokenizer.json"))
    ids = theirs.encode(TEXT, add_special_tokens=False)
    assert ids == tokenizer.encode(TEXT, add_special_tokens=False).ids
    assert theirs.decode(ids, clean_up_tokenization_spaces=False) == TEXT


def test_a_byte_is_its_place_in_the_alphabet():
    ids = of_bytes().encode("ab", add_special_tokens=False).ids
    assert ids[1] == ids[0] + 1


def test_bpe_needs_a_token_for_each_byte():
    with pytest.raises(ValueError, match="data.vocab_size=256: must be over 256"):
        trained_bpe(iter(["a"]), 256)


def file_of(tmp_path, tokenizer):
    path = tmp_path / "mine.json"
    tokenizer.save(str(path))
    return path


def test_a_file_gets_an_end_where_it_has_none(tmp_path):
    tokenizer = Tokenizer(models.WordLevel({"a": 0, "<unk>": 1}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    found = of_file(file_of(tmp_path, tokenizer))
    assert found.token_to_id(END) == 2
    check_covers(found, ["a and more"], "mine.json")


def test_a_tokenizer_that_would_leave_text_out_is_refused(tmp_path):
    found = of_file(file_of(tmp_path, Tokenizer(models.BPE(vocab={"a": 0, "b": 1}, merges=[]))))
    check_covers(found, ["abba"], "mine.json")
    with pytest.raises(ValueError, match="mine.json: it has no token for 'c' 'd' and no unknown token"):
        check_covers(found, ["abcd"], "mine.json")


@pytest.mark.parametrize("content", ["{}", "no json"])
def test_what_is_no_tokenizer(tmp_path, content):
    path = tmp_path / "mine.json"
    path.write_text(content)
    with pytest.raises(ValueError, match="no tokenizer.json"):
        of_file(path)
