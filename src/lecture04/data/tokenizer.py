"""Text to token ids and back, as the `tokenizers` package has it, so that other programs read them too."""

from collections.abc import Sequence

from tokenizers import Tokenizer, models, pre_tokenizers


def of_words(words: Sequence[str], *, unknown: str) -> Tokenizer:
    """One token a word, the words apart by blanks; a word's id is its place in `words` or that of `unknown`."""
    made = Tokenizer(models.WordLevel({word: token for token, word in enumerate(words)}, unk_token=unknown))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()  # pyright: ignore[reportAttributeAccessIssue]
    return made
