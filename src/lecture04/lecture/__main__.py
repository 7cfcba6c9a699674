"""`python -m lecture04.lecture [SECTION ...]`: run what the lecture computes, judge its claims, write the notebook."""

import sys

from lecture04.config import messages as errors
from lecture04.lecture.command import main

if __name__ == "__main__":
    errors.run(lambda: main(sys.argv[1:]))
