"""`data=text`: a text of your own, read, split, tokenised once and kept as memory-mapped arrays."""
