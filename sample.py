"""Show what a trained model writes (`python sample.py RUN`), or documents of the world (`python sample.py garden`)."""

import sys

if __name__ == "__main__":
    try:
        from lecture04.cli.main import main
    except ModuleNotFoundError as e:
        sys.exit(f"{e.name} is not installed here. `make install` sets up .venv; then `source .venv/bin/activate`.")
    main(["sample", *sys.argv[1:]])
