"""Options of `data=text`: where a text lies, what its documents are, how it is split, and what its tokens are."""

from dataclasses import dataclass
from enum import Enum
from typing import ClassVar

from lecture04.config.fields import bounded, settled
from lecture04.config.parts.data import Data, Facts, Layout

LONGEST_ROW = 8192
"""Tokens. A longer row is the length of a document that nobody meant to be one row."""


class Boundary(Enum):
    """What a document is in a file of text: the file, a line, what stands between separators; or all is one stream."""

    file = "file"
    line = "line"
    separator = "separator"
    stream = "stream"


class SplitBy(Enum):
    """Which documents are tested on: by a hash of the document, or the last ones."""

    hash = "hash"
    tail = "tail"


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """What a text comes to, and the facts that follow: the digest is that of its tokens in their splits.

    `digest` of the arrays and the tokenizer, `tokenizer` of the latter alone; `max_len` is what is predicted of the
    longest document; `n_documents` and `n_tokens` (predicted) are those of the training split.
    """

    digest: str
    tokenizer: str
    vocab_size: int
    max_len: int
    n_documents: int
    n_tokens: int


@dataclass(frozen=True, kw_only=True)
class Text(Data):
    """A text of your own.

    `path`: a file, a folder, a glob, or PACKAGE:FILE for a file inside an installed package; .jsonl and .parquet hold
    a document in each record, below `field`; any other file is text, whose documents are as `documents` says. Each may
    be compressed (.gz, .zst). `tokenizer`: bytes, char, bpe (trained on the training split, `vocab_size` tokens), or
    the path of a tokenizer.json. `val` and `test` are the shares of the text that these splits get.
    """

    primary: ClassVar[str] = "test/bpb"
    columns: ClassVar[tuple[str, ...]] = ("test/bpb",)

    path: str
    documents: Boundary = Boundary.file
    separator: str = "<|endoftext|>"
    field: str = "text"
    tokenizer: str = "bytes"
    vocab_size: int = bounded(2048, at_least=1)
    split: SplitBy = SplitBy.hash
    val: float = bounded(0.1, above=0, below=1)
    test: float = bounded(0.1, above=0, below=1)
    found: Prepared | None = settled()

    @property
    def prepared(self) -> Prepared:
        """What the text comes to, once it was read."""
        assert self.found is not None, "a text is read before its run is resolved (data/text)"
        return self.found

    def facts(self) -> Facts:
        """Those of the prepared text."""
        found = self.prepared
        return Facts(found.vocab_size, found.max_len, found.n_documents, found.n_tokens)

    def tokens(self) -> str:
        """The tokenizer's digest."""
        return self.prepared.tokenizer

    def identified(self) -> object:
        """What was read, wherever it lay and however it was said."""
        return {"name": self.name, "found": self.prepared}

    def errors(self, layout: Layout) -> list[str]:
        """Rows that no document fits into, or that are as long as a document which is no row."""
        longest = self.prepared.max_len
        if layout.keeps_documents and layout.length < longest:
            return [
                f"layout.length={layout.length}: the longest document has {longest:,} tokens to predict, and "
                f"layout={layout.name} keeps documents whole; set at least that, or layout=windows or stream."
            ]
        if layout.length > LONGEST_ROW and layout.length == longest:
            return [
                f"layout.length: null stands for the longest document, which has {longest:,} tokens; "
                "set the length of a row, as in layout=windows layout.length=128."
            ]
        if not layout.keeps_documents and layout.length > self.prepared.n_tokens:
            return [
                f"layout.length={layout.length}: the training split has {self.prepared.n_tokens:,} tokens to predict."
            ]
        return []
