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
