"""Text to token ids and back, as the `tokenizers` package has it, so that other programs read them too."""

from collections.abc import Sequence

from tokenizers import Tokenizer, models, pre_tokenizers


def of_words(words: Sequence[str], *, unknown: str) -> Tokenizer:
    """One token a word, the words apart by blanks; a word's id is its place in `words` or that of `unknown`."""
    made = Tokenizer(models.WordLevel({word: token for token, word in enumerate(words)}, unk_token=unknown))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()  # pyright: ignore[reportAttributeAccessIssue]
    return made


def unknown_words(tokenizer: Tokenizer, text: str) -> list[str]:
    """The words of a text that a tokenizer has not got whole: it passes over some, takes it for its unknown token,
    or refuses it.
    """
    return [word for word in text.split() if not _has(tokenizer, word)]


def is_read(tokenizer: Tokenizer, text: str) -> list[bool]:
    """Of each character, whether a token stands for it that is not the unknown one. Raises what the package raises."""
    encoding, unknown = tokenizer.encode(text, add_special_tokens=False), getattr(tokenizer.model, "unk_token", None)
    read = [False] * len(text)
    for token, (start, end) in zip(encoding.tokens, encoding.offsets, strict=True):
        if token != unknown or text[start:end] == unknown:
            read[start:end] = [True] * (end - start)
    return read


def _has(tokenizer: Tokenizer, word: str) -> bool:
    try:
        return all(is_read(tokenizer, word))
    except Exception:  # of the package: an unknown token is named, and is no token
        return False
