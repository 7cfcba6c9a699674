"""Show documents of the Garden World with their true probabilities (`python sample.py 5`)."""

import sys

if __name__ == "__main__":
    try:
        from lecture04.cli.main import main
    except ModuleNotFoundError as e:
        sys.exit(f"{e.name} is not installed here. `make install` sets up .venv; then `source .venv/bin/activate`.")
    main(["sample", *sys.argv[1:]])
