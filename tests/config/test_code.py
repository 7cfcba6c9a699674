"""Which code a run executes: on small packages, each written for the one thing that it shows."""

import ast
import textwrap

import pytest

from lecture04.config.closure import Sources
from lecture04.config.code import code, code_of
from lecture04.config.registry import PACKAGE

REGISTRY = "def register(family, name, **facts):\n    return lambda part: part\n"
FFN = '''
"""Feed-forward layers."""
import logging
import torch
from lecture04.registry import register
log = logging.getLogger(__name__)
SLOPE = 3
UNUSED = 4
def helper(x: int) -> int:
    """Says what it does."""
    log.info("helping %s", x)
    if x < 0:
        raise ValueError(f"{x} is negative")
    assert x < 1000, "too large"
    return x  # as it is
class Plain:
    """What all have."""
    width: int
    def forward(self, x):
        return helper(x)
@register("ffn", "relu", about="The 2017 FFN.")
class ReLU(Plain):
    """The 2017 FFN."""
    def forward(self, x):
        return max(x, 0) * SLOPE
@register("ffn", "relu2", gated=True)
class ReLU2(ReLU):
    def forward(self, x):
        return super().forward(x) ** 2
@register("ffn", "gelu")
class GELU(Plain):
    def forward(self, x):
        return 5 * x
'''


@pytest.fixture
def written(tmp_path):
    """`written({"nn/ffn.py": source, ...}, own={"mine.py": source})`: sources of a package and of a user's folder."""
    made = iter(range(1000))

    def written(files, own=None):
        folder = tmp_path / str(next(made))
        for name, source in ({"__init__.py": "", "registry.py": REGISTRY} | files).items():
            path = folder / "lecture04" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(textwrap.dedent(source))
        for name, source in (own or {}).items():
            path = folder / "user" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(textwrap.dedent(source))
        return Sources(folder / "lecture04", [folder / "user"] if own else [])

    return written


@pytest.fixture
def ffn(written):
    """`ffn(source, "ReLU")`: the code of a class in nn/ffn.py."""
    return lambda source, name: code_of(
        written({"nn/ffn.py": source, "records/__init__.py": "ALL = []\ndef declare(x):\n    ALL.append(x)\n"}),
        [("lecture04.nn.ffn", name)],
    )


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("# as it is", "# another comment"),
        ("The 2017 FFN.\"\"\"", "Another docstring.\"\"\""),
        ("\nclass", "\n\n\nclass"),
        ("x: int", "x: float"),
        ("-> int", "-> float"),
        ("    width: int\n", ""),
        ("is negative", "is below zero"),
        ("too large", "too big"),
        ("helping %s", "called with %s"),
        ('    log.info("helping %s", x)\n', ""),
        ("import torch\n", ""),
        ("import logging", "import json, logging"),
        ("UNUSED = 4", "UNUSED = 5"),
        ("UNUSED = 4", "from lecture04.records import declare\nfor i in range(2):\n    declare(i)"),
        ("UNUSED = 4", "try:\n    import json\nexcept ImportError:\n    json = None"),
        ("UNUSED = 4", "UNUSED = helper(4)"),
        ("UNUSED = 4", "def made(n):\n    a = []\n    a.append(made(n))\n    return a\nUNUSED = made(4)"),
        ("UNUSED = 4", "class Made:\n    def __init__(self, x):\n        self.x = x\nUNUSED = Made(4)"),
        ("import torch\n", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import json\n"),
        ('about="The 2017 FFN."', 'about="ReLU."'),
        ("5 * x", "6 * x"),
        ("(x) ** 2", "(x) ** 3"),
        ("return super", "pass\n        return super"),
    ],
)  # fmt: skip
def test_what_changes_no_result_does_not_count(ffn, old, new):
    assert old in FFN
    assert ffn(FFN, "ReLU") == ffn(FFN.replace(old, new), "ReLU")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("max(x, 0)", "max(x, 1)"),
        ("return x  #", "return x + 1  #"),
        ("SLOPE = 3", "SLOPE = 4"),
        ("x < 1000", "x < 999"),
        ("raise ValueError", "raise TypeError"),
        ("class ReLU(Plain)", "class ReLU(GELU)"),
        ("class ReLU(Plain):", "class ReLU(Plain):\n    gain = 2"),
        ("SLOPE = 3", "SLOPE = 3\nSLOPE += 1"),
        ("SLOPE = 3", "SLOPE = 3\nfor i in range(2):\n    SLOPE = i"),
        ("import torch\n", "import torch\ntorch.set_num_threads(3)\n"),
        ("import torch\n", "import torch\ntorch.backends.fast = True\n"),
        ("import torch\n", "import torch\n_ = torch.manual_seed(3)\n"),
        ("import torch\n", "import torch\nwith torch.no_grad():\n    pass\n"),
        ("UNUSED = 4", "FOUND = []\ndef add(x):\n    FOUND.append(x)\nUNUSED = add(4)"),
        ("UNUSED = 4", "def seed(x):\n    torch.manual_seed(x)\nUNUSED = seed(4)"),
        ("UNUSED = 4", "class Seed:\n    def __init__(self, x):\n        torch.seed = x\nUNUSED = Seed(4)"),
        ("return max", "log = print\n        log.info(x)\n        return max"),
        ("helping %s\", x", "helping %s\", next(x)"),
    ],
)  # fmt: skip
def test_what_may_change_a_result_counts(ffn, old, new):
    assert old in FFN
    assert ffn(FFN, "ReLU") != ffn(FFN.replace(old, new), "ReLU")


def test_definitions_are_named_by_file(ffn):
    assert set(ffn(FFN, "ReLU2").definitions) == {
        *(f"nn/ffn.py::{name}" for name in ("ReLU2", "ReLU", "Plain", "helper", "SLOPE")),
        "registry.py::register",
    }


HELPER = "def twice(x):\n    return 2 * x\ndef thrice(x):\n    return 3 * x\n"


@pytest.mark.parametrize(
    "part",
    [
        "from lecture04.nn.helper import twice\ndef part(x):\n    return twice(x)",
        "from lecture04.nn.helper import twice as double\ndef part(x):\n    return double(x)",
        "from lecture04.nn.helper import *\ndef part(x):\n    return twice(x)",
        "from .helper import twice\ndef part(x):\n    return twice(x)",
        "from . import helper\ndef part(x):\n    return helper.twice(x)",
        "from lecture04.nn import helper\ndef part(x):\n    return helper.twice(x)",
        "from lecture04 import nn\nimport lecture04.nn.helper\ndef part(x):\n    return nn.helper.twice(x)",
        "import lecture04.nn.helper\ndef part(x):\n    return lecture04.nn.helper.twice(x)",
        "import lecture04.nn.helper as h\ndef part(x):\n    return h.twice(x)",
        "def part(x):\n    import lecture04.nn.helper as h\n    return h.twice(x)",
        "def part(x):\n    from lecture04.nn.helper import twice\n    return [twice(y) for y in x]",
        "import lecture04.nn.helper as h\ndef part(x, f=h.twice):\n    return f(x)",
        "import lecture04.nn.helper as h\nf = h.twice\ndef part(x):\n    return f(x)",
        "import lecture04.nn.helper as h\nTABLE = {'f': h.twice}\ndef part(x):\n    return TABLE['f'](x)",
        (
            "from lecture04.nn.helper import twice\ndef part(x):\n    def inner(y):\n"
            "        return twice(y)\n    return inner(x)"
        ),
        (
            "from lecture04.nn.helper import twice\ndef part(twices):\n"
            "    return [twice for twice in [twice(y) for y in twices]]"
        ),
        "from lecture04.nn.helper import twice\n@twice\ndef part(x):\n    return x",
        "from lecture04.nn.again import again\ndef part(x):\n    return again(x)",
        "from lecture04 import lazily\ndef part(x):\n    return lazily(x)",
        "import lecture04\ndef part(x):\n    return lecture04.lazily(x)",
        "import lecture04\ndef part(x):\n    return lecture04.max(x)",
        "import lecture04.nn.ours as ours\ndef part(x):\n    return ours.Child().up(x)",
        (
            "try:\n    from lecture04.nn.helper import twice\nexcept ImportError:\n"
            "    twice = None\ndef part(x):\n    return twice(x)"
        ),
        (
            "from functools import partial\nfrom lecture04.nn import helper\ndef part(x):\n"
            "    return partial(helper.twice)(x)"
        ),
        "from lecture04.nn.helper import twice\nclass part:\n    up = staticmethod(twice)",
        (
            "from lecture04.nn.helper import twice\nclass part:\n    twice = 3\n"
            "    def up(self, x):\n        return twice(x)"
        ),
    ],
)  # fmt: skip
def test_a_name_is_followed_however_it_is_spelled(written, part):
    init = (
        "def __getattr__(name):\n    from importlib import import_module\n"
        "    return getattr(import_module(LAZY[name]), name)\n"
    )
    files = {
        "__init__.py": 'LAZY = {"lazily": "lecture04.nn.again", "max": ".nn.again"}\n' + init,
        "nn/__init__.py": "",
        "nn/part.py": part,
        "nn/again.py": "from lecture04.nn.helper import twice as again\nlazily = max = again\n",
        "nn/ours.py": (
            "from . import helper\nclass Base:\n    def up(self, x):\n"
            "        return helper.twice(x)\nclass Child(Base):\n    pass\n"
        ),
    }

    def hashed(helper):
        return code_of(written(files | {"nn/helper.py": helper}), [("lecture04.nn.part", "part")])

    before = hashed(HELPER)
    assert before != hashed(HELPER.replace("2 * x", "x + x"))
    assert before == hashed(HELPER.replace("3 * x", "x + x + x"))


@pytest.mark.parametrize(
    "part",
    [
        "from lecture04.nn import helper\ndef part(x):\n    return getattr(helper, x)(x)",
        "from lecture04.nn import helper\nm = helper\ndef part(x):\n    return m.twice(x)",
        "import importlib\ndef part(x):\n    return importlib.import_module('lecture04.nn.helper').twice(x)",
        "import lecture04.nn.helper as h\ndef part(x):\n    return dispatch([h], x)",
        "from lecture04.nn import starred\ndef part(x):\n    return getattr(starred, x)(x)",
    ],
)
def test_a_module_as_a_value_brings_all_of_it(written, part):
    def hashed(helper):
        files = {"nn/part.py": part, "nn/helper.py": helper, "nn/starred.py": "from lecture04.nn.helper import *\n"}
        return code_of(written(files), [("lecture04.nn.part", "part")])

    assert hashed(HELPER) != hashed(HELPER.replace("3 * x", "x + x + x"))


BASE = (
    "from lecture04.registry import register\n@register('ffn', 'relu')\nclass ReLU:\n"
    "    def up(self, x):\n        return 2 * x\n"
)


@pytest.mark.parametrize(
    "mine",
    [
        "from lecture04.nn.ffn import ReLU\nclass Mine(ReLU):\n    pass",
        "import lecture04.nn.ffn as f\nclass Mine(f.ReLU):\n    pass",
        "from lecture04.nn import ffn\nclass Mine(ffn.ReLU):\n    pass",
        "import lecture04.nn.ffn\nBase = lecture04.nn.ffn.ReLU\nclass Mine(Base):\n    pass",
        "from helper import Base\nclass Mine(Base):\n    pass",
        "import helper as h\nclass Mine(h.Base):\n    pass",
        "from . import helper\nclass Mine(helper.Base):\n    pass",
        "from pack.inner import Base\nclass Mine(Base):\n    pass",
    ],
)
def test_a_users_part_brings_its_base_and_its_helpers(written, mine):
    """Case 19: the file lies outside the package; its base is ours, its helper lies beside it."""
    own = {
        "mine.py": mine,
        "helper.py": "import lecture04.nn.ffn as f\nclass Base(f.ReLU):\n    gain = 1\n",
        "pack/__init__.py": "",
        "pack/inner.py": "from helper import Base\n",
    }

    def hashed(base=BASE, **changed):
        sources = written({"nn/ffn.py": base}, own | changed)
        return code_of(sources, [(sources.own[0] / "mine.py", "Mine")])

    before = hashed()
    assert before != hashed(BASE.replace("2 * x", "3 * x"))
    assert hashed() == before
    if "helper" in mine or "pack" in mine:
        assert before != hashed(**{"helper.py": own["helper.py"].replace("gain = 1", "gain = 2")})


def test_installed_packages_are_not_followed(written):
    own = {
        "mine.py": "import other\nclass Mine(other.Base):\n    pass\n",
        ".venv/lib/site-packages/other.py": "Base = 1",
    }
    sources = written({}, own)
    sources._roots = (*sources._roots, sources.own[0] / ".venv/lib/site-packages")
    assert set(code_of(sources, [("mine", "Mine")]).definitions) == {"mine.py::Mine"}


def test_where_a_name_comes_from_counts(written):
    source = "from torch.nn.functional import gelu as act\ndef part(x):\n    return act(x)\n"
    first, second = (
        code_of(written({"part.py": s}), [("lecture04.part", "part")])
        for s in (source, source.replace("gelu", "relu"))
    )  # fmt: skip
    assert first != second


def test_what_an_imported_module_does_on_import_counts(written):
    files = {
        "part.py": "import lecture04.other\ndef part(x):\n    return x\n",
        "other.py": "from lecture04 import third\nX = 1\n",
        "third.py": "import torch\ndef half():\n    return 2\n",
    }

    def hashed(**changed):
        return code_of(written(files | {f"{k}.py": v for k, v in changed.items()}), [("lecture04.part", "part")])

    before = hashed()
    assert hashed(third=files["third.py"] + "torch.use(half())\n") != before
    assert hashed(third=files["third.py"] + "if __name__ == '__main__':\n    torch.use(half())\n") == before
    assert hashed(other=files["other.py"] + "Y = 2\n") == before
    local = {"part": "def part(x):\n    import lecture04.other\n    return x\n"}
    assert hashed(**local) != hashed(**local, third=files["third.py"] + "torch.use(half())\n")


OPTIONS = """
from dataclasses import dataclass, field
from typing import ClassVar
@dataclass(frozen=True)
class Options:
    width: int
    slope: float = 1.0
    names: list[str] = field(default_factory=list)
"""


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ("width: int", "width: float", True),
        ("width: int", "breadth: int", False),
        ("slope: float = 1.0", "slope: float = 2.0", False),
        ("slope: float = 1.0", "slope: ClassVar[float] = 1.0", False),
        ("slope: float = 1.0", "slope: 'ClassVar[float]' = 1.0", False),
        ("slope: float = 1.0", "slope = 1.0", False),
        ("    width: int\n    slope: float = 1.0\n", "    slope: float = 1.0\n    width: int = 2\n", False),
        ("default_factory=list", "default_factory=tuple", False),
        ("frozen=True", "frozen=False", False),
    ],
)
def test_fields_are_their_names_order_and_defaults(written, old, new, same):
    assert old in OPTIONS
    before, after = (
        code_of(written({"options.py": s}), [("lecture04.options", "Options")])
        for s in (OPTIONS, OPTIONS.replace(old, new))
    )
    assert (before == after) == same


def test_why_a_run_diverged_is_told_but_that_it_did_is_not(ffn):
    source = "def part(x):\n    return Outcome(x > 3, why=f'the loss is {x}')\n"
    assert ffn(source, "part") == ffn(source.replace("loss is", "last loss was"), "part")
    assert ffn(source, "part") != ffn(source.replace("x > 3", "x > 4"), "part")


def test_an_exception_of_ours_with_fields_keeps_them(ffn):
    source = (
        "class Stopped(Exception):\n    def __init__(self, step):\n"
        "        self.step = step\ndef part(x):\n    raise Stopped(x + 1)\n"
    )
    assert ffn(source, "part") != ffn(source.replace("x + 1", "x + 2"), "part")


def test_single_dispatch_counts_its_cases(ffn):
    source = (
        "from functools import singledispatch\n@singledispatch\ndef part(x):\n"
        "    return x\n@part.register\ndef _(x: int):\n    return x + 1\n"
    )
    assert ffn(source, "part") != ffn(source.replace("x + 1", "x + 2"), "part")
    assert ffn(source, "part") != ffn(source.replace("x: int", "x: str"), "part")


def test_classes_that_announce_themselves_count(ffn):
    source = (
        "FOUND = []\nclass Base:\n    def __init_subclass__(cls):\n"
        "        FOUND.append(cls)\nclass Child(Base):\n    gain = 1\ndef part(x):\n"
        "    return FOUND[0].gain * x\n"
    )
    assert ffn(source, "part") != ffn(source.replace("gain = 1", "gain = 2"), "part")


def test_what_is_stopped_at_is_not_followed(written):
    files = {
        "run.py": (
            "from lecture04.records import keep\nfrom lecture04.other import show, use\n"
            "def run(x):\n    show(use(keep(x)))\n"
        ),
        "records/__init__.py": "from lecture04.records.store import keep\n",
        "records/store.py": "TABLE = make()\ndef make():\n    return 1\ndef keep(x):\n    return TABLE\n",
        "other.py": "def show(x):\n    return 1\ndef use(x):\n    return 2\n",
    }
    stops = ["lecture04.records", "lecture04.other:show"]
    assert set(code_of(written(files), [("lecture04.run", "run")], stops).definitions) == {
        "run.py::run",
        "other.py::use",
    }


def test_a_root_that_is_not_there_is_said(written):
    with pytest.raises(ValueError, match="no Missing is defined there"):
        code_of(written({"nn/ffn.py": FFN}), [("lecture04.nn.ffn", "Missing")])
    with pytest.raises(ValueError, match=r"lecture04\.nothing: no module"):
        code_of(written({}), [("lecture04.nothing", "x")])


def test_what_is_measured_belongs_to_the_evaluation_alone(written):
    source = "class Right:\n    gain = 1\ndef part(x):\n    return Splits(x, measures=(Right,))\n"

    def both(source):
        sources, roots = written({"part.py": source}), [("lecture04.part", "part")]
        return code_of(sources, roots), code_of(sources, roots, measures=True)

    run, evaluation = both(source)
    for changed in (
        source.replace("gain = 1", "gain = 2"),
        "import math\n" + source.replace("Right,)", "Right, part)"),
    ):
        assert both(changed)[0] == run
    assert both(source.replace("gain = 1", "gain = 2"))[1] != evaluation
    assert both(source.replace("measures=(Right,)", "measures=()"))[1] != evaluation


def test_a_sweep_parses_each_file_once(written, monkeypatch):
    package = written({"nn/ffn.py": FFN}).package
    parsed = []
    monkeypatch.setattr(
        ast, "parse", lambda *args, parse=ast.parse, **kwargs: parsed.append(1) or parse(*args, **kwargs)
    )
    found = {code(package, [("lecture04.nn.ffn", name)]).digest for name in ("ReLU", "ReLU2", "GELU") for _ in range(9)}
    assert len(found) == 3
    assert len(parsed) == 3, "the package's __init__, its registry and ffn.py"


OUTSIDE = """
from lecture04 import column, measure, register

@register("ffn", "mine")
class Mine:
    gain = 1

@register("ffn", "other")
class Other:
    gain = 1

@measure("test/mine")
class Measured:
    gain = 1

@column("mine", "mine")
def shown(results, row):
    return 1
"""


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ('"mine")\nclass Mine:\n    gain = 1', '"mine")\nclass Mine:\n    gain = 2', False),
        ('"other")\nclass Other:\n    gain = 1', '"other")\nclass Other:\n    gain = 2', True),
        ("class Measured:\n    gain = 1", "class Measured:\n    gain = 2", True),
        ("return 1", "return 2", True),
    ],
    ids=["the part", "another part", "a metric", "a column"],
)
def test_what_a_file_from_outside_declares_counts_for_those_who_use_it(tmp_path, old, new, same):
    """A part, a metric and a column in one file: the package's own decorators, as an outside file imports them."""
    file = tmp_path / "mine.py"

    def hashed(text):
        file.write_text(text)
        return code_of(Sources(PACKAGE, (tmp_path,)), [(file, "Mine")])

    assert old in OUTSIDE
    assert (hashed(OUTSIDE) == hashed(OUTSIDE.replace(old, new))) is same
