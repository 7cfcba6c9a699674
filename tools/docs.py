"""Makes every picture and figure again that stands in README.md and docs/: `python tools/docs.py [PART ...]`.

A block of text below `<!-- made by: COMMAND -->` is what that command prints; one below a Python program is what the
program prints. Everything else is a file that one of the PARTS below writes. The runs that they need are trained where
they are missing.
"""

import argparse
import contextlib
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
DOCS, SWEEPS, SCREENS = ROOT / "docs", ROOT / "outputs" / "sweeps", ROOT / "docs" / "screens"
PAGES = [ROOT / "README.md", *sorted(DOCS.glob("*.md")), DOCS / "screens" / "README.md"]
TABLE = "recipe"
WIDTHS = (80, 120)
SIZES = {1400: 900, 420: 900}
"""Widths of the browser's window, with their heights."""


def command(line: str, **environment: str) -> str:
    """What a command prints, run at the top of the checkout. Raises CalledProcessError."""
    words = shlex.split(line)
    python = {"python": [sys.executable], "lecture04": [sys.executable, "-m", "lecture04.cli.main"]}
    own = {"COLUMNS": "120", "WANDB_MODE": "disabled"} | environment
    done = subprocess.run(
        [*python[words[0]], *words[1:]], cwd=ROOT, env=os.environ | own, stdout=subprocess.PIPE, text=True, check=True
    )
    return done.stdout.replace(f"{ROOT}{os.sep}", "").strip() + "\n"


def printed(program: str) -> str:
    """What a Python program prints."""
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(program, {})
    return out.getvalue()


def blocks() -> None:
    """The blocks of text that commands and programs print."""
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        new = re.sub(
            r"(<!-- made by: (.*?) -->\n```text\n).*?```",
            lambda found: f"{found[1]}{command(found[2])}```",
            text,
            flags=re.S,
        )
        new = re.sub(
            r"(```python\n((?:(?!```).)*?print(?:(?!```).)*?)```\n\n```text\n).*?```",
            lambda found: f"{found[1]}{printed(found[2])}```",
            new,
            flags=re.S,
        )
        if new != text:
            page.write_text(new, encoding="utf-8")
            print(page.relative_to(ROOT))


def screens() -> None:
    """docs/screens: the recipe's table as a terminal shows it, its page as a browser does, and its plot."""
    from playwright.sync_api import sync_playwright

    SCREENS.mkdir(exist_ok=True)
    for width in WIDTHS:
        text = command(f"python train.py -m sweeps={TABLE} logger=none", COLUMNS=str(width))
        (SCREENS / f"{TABLE}-{width}.txt").write_text(text, encoding="utf-8")
    command(f"lecture04 report --html {TABLE}")
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program, args=["--no-sandbox"])
        for width, height in SIZES.items():
            for scheme in ("light", "dark"):
                tab = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
                tab.goto((SWEEPS / TABLE / "report.html").as_uri())
                tab.wait_for_timeout(1500)
                tab.screenshot(path=SCREENS / f"{TABLE}-{width}-{scheme}.png")
        browser.close()
    command(f"lecture04 report --figures {TABLE}")
    shutil.copy(SWEEPS / TABLE / "figures" / "forest-step.png", SCREENS / f"{TABLE}.png")
    print(SCREENS.relative_to(ROOT))


def runs() -> None:
    """The runs that the blocks and the screens show."""
    for name in (TABLE, "aa"):
        command(f"lecture04 train -m sweeps={name} logger=none")


def aa() -> None:
    """docs/aa.md: the A/A test."""
    command("python tools/aa.py")
    shutil.copy(SWEEPS / "aa" / "aa.md", DOCS / "aa.md")


def rates() -> None:
    """The simulated error rates of docs/statistics.md, some minutes."""
    page = DOCS / "statistics.md"
    text = page.read_text(encoding="utf-8")
    lines = command("python tools/error_rates.py").splitlines(keepends=True)
    table = "".join(line for line in lines if line.startswith("|"))
    page.write_text(re.sub(r"\| seeds \| paired \|.*?\n\n", lambda _: f"{table}\n", text, flags=re.S), encoding="utf-8")


def conformance() -> None:
    """docs/conformance.md: our parts beside those of other libraries."""
    command("python -m pytest tests/huggingface/conformance -n0 -q --write-conformance")


def lecture() -> None:
    """docs/lecture: the lecture's claims, half an hour from nothing. The pages as Markdown, which GitHub shows."""
    command("lecture04 lecture")
    made, kept = ROOT / "outputs" / "lecture", DOCS / "lecture"
    shutil.rmtree(kept, ignore_errors=True)
    shutil.copytree(made, kept, ignore=shutil.ignore_patterns("*.html", "logs"))


def notebooks() -> None:
    """The notebooks of docs/, run from top to bottom, some minutes."""
    from notebooks import write

    write()


PARTS = {part.__name__: part for part in (runs, blocks, screens, aa, rates, conformance, lecture, notebooks)}


def main() -> None:
    """Make the parts that are named, or all."""
    p = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    p.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; all where none is named")
    for name in p.parse_args().parts or PARTS:
        if name not in PARTS:
            sys.exit(f"{name}: there is no such part. Choices: {', '.join(PARTS)}.")
        print(f"{name}: {str(PARTS[name].__doc__).partition(chr(10))[0]}", file=sys.stderr, flush=True)
        PARTS[name]()


if __name__ == "__main__":
    main()
