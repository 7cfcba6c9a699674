"""Runs the examples of the public names' docstrings in the folder that it is started in: {name: what failed}.

A program of its own: the examples register parts and declare metrics, which no other test should see.
"""

import doctest
import io
import json
import sys

import lecture04
from lecture04.records.metrics import MEASURES

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def failures(name: str) -> str:
    """What the examples of one name printed that they should not; "no example" where there is none."""
    (test,) = doctest.DocTestFinder(recurse=False).find(getattr(lecture04, name), name, globs={})
    out = io.StringIO()
    found = doctest.DocTestRunner(optionflags=FLAGS).run(test, out=out.write)
    MEASURES.clear()  # or every run of the next name would measure what this one declared
    return out.getvalue() if found.attempted else "no example"


if __name__ == "__main__":
    said = {name: failures(name) for name in sys.argv[1:] or lecture04.__all__}
    print(json.dumps(said))
