"""The tokenizer of a text: bytes, characters, BPE trained on the training split, or a tokenizer.json.

Each has one token more than the text needs, END, which begins and ends a document.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

from lecture04.data.tokenizer import is_read

END = "<|endoftext|>"
N_BYTES = 256


def of_bytes() -> Tokenizer:
    """A token for each byte of UTF-8."""
    return _byte_level(models.BPE(vocab=_by_place(sorted(pre_tokenizers.ByteLevel.alphabet())), merges=[]))


def of_characters(alphabet: Iterable[str]) -> Tokenizer:
    """A token for each character of an alphabet, in the order of their code points."""
    made = Tokenizer(models.WordLevel(_by_place(sorted(alphabet)), unk_token=END))
    made.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")  # pyright: ignore[reportAttributeAccessIssue]
    made.decoder = decoders.Fuse()  # pyright: ignore[reportAttributeAccessIssue]
    return _with_end(made)


def trained_bpe(texts: Iterator[str], vocab_size: int) -> Tokenizer:
    """Byte-level BPE (Sennrich et al. 2016; Radford et al. 2019) with so many tokens, END counted, trained on texts.

    Raises ValueError where there are fewer tokens than bytes.
    """
    if vocab_size <= N_BYTES:
        raise ValueError(f"data.vocab_size={vocab_size}: must be over {N_BYTES}, a token a byte and {END}.")
    made = _byte_level(models.BPE())
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size, special_tokens=[END], initial_alphabet=alphabet, show_progress=False
    )
    made.train_from_iterator(texts, trainer)
    return made


def of_file(path: Path) -> Tokenizer:
    """A tokenizer.json, with END where it has none.

    Raises ValueError where it is none, and where its ids are no rows of a table of as many embeddings.
    """
    try:
        made = Tokenizer.from_str(path.read_text(encoding="utf-8"))
    except OSError as e:
        raise ValueError(
            f"data.tokenizer={path}: {e.strerror}; it must be bytes, char, bpe or a tokenizer.json."
        ) from e
    except Exception as e:  # the package raises plain Exception
        raise ValueError(f"data.tokenizer={path}: no tokenizer.json: {e}.") from e
    _check_ids(made, path)
    made.no_padding()
    made.no_truncation()
    return _with_end(made)


def _check_ids(tokenizer: Tokenizer, path: Path) -> None:
    vocabulary = tokenizer.get_vocab()
    size, ids = len(vocabulary), set(vocabulary.values())
    if missing := sorted(set(range(size)) - ids):
        shown = ", ".join(map(str, missing[:5])) + ", ..." * (len(missing) > 5)
        raise ValueError(
            f"data.tokenizer={path}: its {size:,} tokens must have the ids 0 to {size - 1}, each of them once; "
            f"none has {shown}, and the largest id is {max(ids)}."
        )


def check_covers(tokenizer: Tokenizer, texts: Sequence[str], path: str) -> None:
    """Raise ValueError where a tokenizer without an unknown token leaves out characters of a text."""
    unknown = getattr(tokenizer.model, "unk_token", None)
    if unknown is not None and tokenizer.token_to_id(unknown) is not None:
        return
    for text in texts:
        try:
            read = is_read(tokenizer, text)
        except Exception as e:
            raise ValueError(f"data.tokenizer={path}: it cannot read the text: {e}.") from e
        if lost := sorted({c for c, is_there in zip(text, read, strict=True) if not is_there and not c.isspace()}):
            shown = " ".join(map(repr, lost[:5]))
            raise ValueError(
                f"data.tokenizer={path}: it has no token for {shown} and no unknown token that could stand for them, "
                "so that they would be left out."
            )


def _by_place(texts: Sequence[str]) -> dict[str, int]:
    return {text: token for token, text in enumerate(texts)}


def _byte_level(model: models.BPE) -> Tokenizer:
    made = Tokenizer(model)
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)  # pyright: ignore[reportAttributeAccessIssue]
    made.decoder = decoders.ByteLevel()  # pyright: ignore[reportAttributeAccessIssue]
    return _with_end(made)


def _with_end(tokenizer: Tokenizer) -> Tokenizer:
    if tokenizer.token_to_id(END) is None:
        tokenizer.add_special_tokens([AddedToken(END, special=True, normalized=False)])
    return tokenizer
