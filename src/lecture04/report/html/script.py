"""What all pages have in common: Vega with Vega-Lite as one script, and the charts' specifications.

To put the two together takes seconds, so they are kept among the user's caches, under the versions and the code that
made them. A page is then written in a moment, and without Altair.
"""

import hashlib
import json
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import platformdirs

from lecture04.files import write_whole
from lecture04.report.figures import data


class Drawing(NamedTuple):
    """The library as a script, and {name: specification} of every chart."""

    library: str
    charts: dict[str, dict[str, Any]]


@cache
def drawing() -> Drawing:
    """As it is kept, or made anew; a cache that cannot be read or written costs the time alone."""
    file = cache_file()
    try:
        return Drawing(**json.loads(file.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        made = make()
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_whole(file, json.dumps(made._asdict()))
    except OSError:
        pass
    return made


def cache_file() -> Path:
    """Where it is kept: a file for each version of what it is made from."""
    sources = [Path(__file__).with_name("charts.py"), Path(data.__file__)]
    made_from = [*(version(name) for name in ("altair", "vl-convert-python")), *(file.read_text() for file in sources)]
    key = hashlib.sha256("\0".join(made_from).encode()).hexdigest()[:16]
    return platformdirs.user_cache_path("lecture04") / f"charts-{key}.json"


def make() -> Drawing:
    """Put together: the versions of Vega-Lite that the charts are written for."""
    import altair
    import vl_convert

    from lecture04.report.html.charts import charts

    wanted = altair.SCHEMA_VERSION.lstrip("v").rpartition(".")[0]
    script = vl_convert.javascript_bundle(vl_version=wanted)  # pyright: ignore[reportCallIssue] (its stub lacks a default)
    # In a script element nothing may look like the element's end.
    return Drawing(script.replace("</script", "<\\/script"), charts())
