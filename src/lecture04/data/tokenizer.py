"""Text to token ids and back, as the `tokenizers` package has it, so that other programs read them too."""

from collections.abc import Sequence

from tokenizers import Tokenizer, models, pre_tokenizers


def of_words(words: Sequence[str], *, unknown: str) -> Tokenizer:
    """One token a word, the words apart by blanks; a word's id is its place in `words` or that of `unknown`."""
    made = Tokenizer(models.WordLevel({word: token for token, word in enumerate(words)}, unk_token=unknown))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()  # pyright: ignore[reportAttributeAccessIssue]
    return made


def unknown_words(tokenizer: Tokenizer, text: str) -> list[str]:
    """What a tokenizer has no token for in a text: what it passes over, and what it takes for its unknown token."""
    unknown = getattr(tokenizer.model, "unk_token", None)
    encoding, is_known = tokenizer.encode(text, add_special_tokens=False), [sign.isspace() for sign in text]
    for token, (start, end) in zip(encoding.tokens, encoding.offsets, strict=True):
        if token != unknown or text[start:end] == unknown:
            is_known[start:end] = [True] * (end - start)
    seen = "".join(" " if known else sign for sign, known in zip(text, is_known, strict=True))
    return seen.split()
