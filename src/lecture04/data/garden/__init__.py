"""The Garden World: a synthetic language whose true distribution is known."""
