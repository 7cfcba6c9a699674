"""What the tests of the tasks share."""

TASKS = ("mqar", "induction", "selective_copy", "copy", "reverse", "sort", "addition")


def problems(splits, split):
    """Each document as (its words, whether each is of the answer), from the tokens and the tokenizer alone."""
    one = getattr(splits, split)
    for start, end in zip(one.offsets[:-1], one.offsets[1:], strict=True):
        words = [splits.tokenizer.id_to_token(int(token)) for token in one.tokens[start:end]]
        yield words, one.facts["answer"][start:end].tolist()
