"""What a tokenizer has no token for is found, whatever it does with it."""

import pytest
from tokenizers import Tokenizer, models

from lecture04.data.text.tokens import of_bytes, of_characters
from lecture04.data.tokenizer import of_words, unknown_words

OF_WORDS = of_words(("<pad>", "the", "cat"), unknown="<pad>")
PASSES_OVER = Tokenizer(models.BPE({"a": 0, "b": 1}, []))  # without an unknown token: a letter leaves no trace


@pytest.mark.parametrize(
    ("tokenizer", "text", "unknown"),
    [
        (OF_WORDS, "the cat the", []),
        (OF_WORDS, "the <pad>", []),
        (OF_WORDS, " the dog  cat Cat", ["dog", "Cat"]),
        (of_characters("abc de"), "abe c<|endoftext|>d", []),
        (of_characters("abc de"), "abe xc z", ["xc", "z"]),
        (of_bytes(), "花 \x00", []),
        (PASSES_OVER, "ab abca", ["abca"]),
    ],
)
def test_what_is_unknown_is_named(tokenizer, text, unknown):
    assert unknown_words(tokenizer, text) == unknown
