"""Answer one question that needs no training of its own (`python probe.py probe=grad_norms`); --help lists them."""

import sys

# For TAB in fish, which looks for "@hydra.main" here.
if __name__ == "__main__":
    try:
        from lecture04.cli.main import main
    except ModuleNotFoundError as e:
        sys.exit(f"{e.name} is not installed here. `make install` sets up .venv; then `source .venv/bin/activate`.")
    main(["probe", *sys.argv[1:]])
