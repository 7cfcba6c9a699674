"""Train one model (`python train.py ffn=swiglu`), or with -m a table of them (`-m ffn=relu,swiglu seed=0,1,2`)."""

import sys

# For TAB in fish, which looks for "@hydra.main" here.
if __name__ == "__main__":
    try:
        from lecture04.cli.main import main
    except ModuleNotFoundError as e:
        sys.exit(f"{e.name} is not installed here. `make install` sets up .venv; then `source .venv/bin/activate`.")
    main(["train", *sys.argv[1:]])
