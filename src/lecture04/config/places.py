"""Where conf/ and sweeps/ lie: inside an installed package, and at the top level of a checkout."""

from pathlib import Path

PACKAGE = Path(__file__).parents[1]
IS_CHECKOUT = not (PACKAGE / "conf").is_dir()
"""Whether this package is run from its sources, with train.py, tests/ and the rest beside them."""
ROOT = PACKAGE.parents[1] if IS_CHECKOUT else PACKAGE
CONF = ROOT / "conf"
"""What a run is made of: config.yaml and a folder a group."""
SWEEPS = ROOT / "sweeps"
"""One YAML a comparison table."""


def yamls(folder: Path, pattern: str = "*.yaml") -> list[Path]:
    """The YAMLs of a folder, by name; hidden ones are an editor's or the system's, and no choices of ours."""
    return sorted(path for path in folder.glob(pattern) if path.is_file() and not _is_hidden(path.relative_to(folder)))


def _is_hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)
