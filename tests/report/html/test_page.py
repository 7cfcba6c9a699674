"""A page is one file that needs nothing else, shows names as they are, and says where everything comes from."""

import base64
import hashlib
import json
import platform
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

from lecture04.report.answer import answer
from lecture04.report.comparison import judge_primary
from lecture04.report.figures.style import COLOURS, LOOKS
from lecture04.report.html import script, write, write_index
from lecture04.report.html.page import MOST_BYTES
from lecture04.report.html.rows import differing, flat, row_details, shared, told
from lecture04.report.results import collect

EVIL = "<script>document.title"


class Parsed(HTMLParser):
    """Elements, their attributes, and the text inside some of them."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.scripts, self.texts, self.open = [], [], [], None
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self.open = dict(attrs).get("type", "script") if tag == "script" else None
        if tag == "script":
            self.scripts.append((self.open, ""))

    def handle_endtag(self, tag):
        self.open = None

    def handle_data(self, data):
        if self.open:
            kind, before = self.scripts[-1]
            self.scripts[-1] = (kind, before + data)
        else:
            self.texts.append(data)

    @property
    def data(self):
        return json.loads(next(text for kind, text in self.scripts if kind == "application/json"))


@pytest.fixture(scope="module")
def page(star):
    return write(star).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def parsed(page):
    return Parsed(page)


def test_nothing_is_fetched_from_anywhere(parsed, star):
    for tag, attributes in parsed.elements:
        assert "src" not in attributes, tag
        assert not {name for name in attributes if name.startswith("on")}, "no code in attributes"
        href = attributes.get("href", "")
        assert href.startswith(("#", "../", "data:,")) or not href
        if href.startswith("../../runs/"):
            assert (star / href).is_dir(), "a link leads to the run's folder"
    assert "@import" not in (style := re.search(r"<style>(.*?)</style>", write(star).read_text(), re.S)[1])
    assert "url(" not in style


def test_only_the_pages_own_scripts_may_run(parsed):
    policy = next(a["content"] for tag, a in parsed.elements if a.get("http-equiv") == "Content-Security-Policy")
    own = [text for kind, text in parsed.scripts if kind == "script"]
    hashes = [f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'" for text in own]
    rule = re.search(r"script-src ([^;]*);", policy)[1]
    assert rule.split() == hashes
    assert "default-src 'none'" in policy


def test_names_are_text_wherever_they_stand(parsed, page, star):
    evil = next(name for name in collect(star).rows if name.startswith(EVIL))
    assert not [tag for tag, _ in parsed.elements if tag in ("img", "b")]
    assert len(parsed.scripts) == 4, "the data, and three scripts"
    text = "".join(parsed.texts)
    assert text.count(evil) >= 4, "in tables, as a baseline, as a row"
    assert "{{ 7*7 }}" in text
    assert parsed.data["rows"] == collect(star).rows


def test_the_embedded_data_are_strict_json(parsed):
    source = next(text for kind, text in parsed.scripts if kind == "application/json")

    def refuse(word):
        raise AssertionError(word)

    json.loads(source, parse_constant=refuse)
    assert "<" not in source


@pytest.mark.slow
def test_a_page_stays_under_two_megabytes(page, hundred):
    assert len(page.encode()) < 1.2e6
    assert write(hundred).stat().st_size < MOST_BYTES


def test_the_table_can_be_read_without_the_script(parsed):
    tags = [tag for tag, _ in parsed.elements]
    assert tags.count("caption") == tags.count("table")
    scopes = [attributes.get("scope") for tag, attributes in parsed.elements if tag == "th"]
    assert set(scopes) == {"row", "col"}
    badges = [
        a["class"].split()[1] for tag, a in parsed.elements if tag == "span" and a.get("class", "")[:8] == "verdict "
    ]
    assert {"better", "worse", "diverged"} <= set(badges)
    assert "diverged 2/3" in "".join(parsed.texts)


def test_each_row_has_its_settings_where_they_differ(star, compose):
    found = row_details(collect(star))
    assert differing(found) == ["ffn", "norm", "optim.lr"]
    by_name = {row.name: row for row in found}
    evil = next(row for name, row in by_name.items() if name.startswith(EVIL))
    assert (evil.settings["norm"], evil.settings["optim.lr"]) == ("rmsnorm", "0.01")
    assert by_name["base"].settings["norm"] == "layernorm"
    assert shared(found)["model.d_model"] == "16"
    assert not shared(found).keys() & set(differing(found))
    assert by_name["later"].trouble == "No run of this row has begun."


def test_a_config_that_cannot_be_read_is_said_and_hides_nothing_else(make_sweep):
    folder = make_sweep({"a": (3.8, 3.9), "b": (3.7, 3.8)})
    for config in folder.parents[1].glob("runs/mine-row1-*/config.yaml"):
        config.write_text("norm: [layernorm")
    text = write(folder).read_text()
    assert "not a YAML file" in text
    assert str(folder.parents[1]) not in text, "no path of this machine"


def test_a_parts_name_stands_under_its_family():
    config = {"ffn": {"name": "relu", "d_ff": 8, "scaling": {"name": "none"}}, "seed": 1, "model": {"bias": False}}
    assert flat(config) == {"ffn": "relu", "ffn.d_ff": "8", "ffn.scaling": "none", "model.bias": "false"}


def test_a_rows_command_asks_for_its_own_settings(star):
    evil = next(row for row in row_details(collect(star)) if row.name.startswith(EVIL))
    assert evil.command == "python train.py norm=rmsnorm optim.lr=0.01 seed=0,1,2 -m"


def test_it_says_with_what_it_was_made_and_names_no_host(page, parsed):
    text = "".join(parsed.texts)
    assert platform.machine() in text
    assert re.search(r"\d+ cores?", text)
    assert "torch" in text
    assert "python train.py -m sweeps=mine" in text
    host = platform.node()
    assert len(host) < 4 or host not in page


def test_the_index_lists_every_table_with_its_answer(make_sweep, tmp_path):
    first = make_sweep({"a": (3.8, 3.81, 3.82), "b": (3.3, 3.31, 3.32)}, outputs=tmp_path, name="first", title="<b>?")
    second = make_sweep({"a": (3.8, None), "b": (3.7, 3.71)}, outputs=tmp_path, name="second")
    write(first), write(second)
    make_sweep({"a": (None,)}, outputs=tmp_path, name="third", title="Not yet?")
    parsed = Parsed(write_index(tmp_path / "sweeps").read_text())
    links = [a["href"] for tag, a in parsed.elements if tag == "a"]
    assert links == ["second/report.html", "first/report.html"], "the newest first"
    assert all((tmp_path / "sweeps" / link).exists() for link in links)
    text = " ".join(" ".join(parsed.texts).split())
    for folder in (first, second):
        results = collect(folder)
        said = answer(results, judge_primary(results))
        assert f"{folder.name} {results.manifest.title} {said}" in text, "name, question, answer"
    assert "<b>?" in text
    assert "3 of 4 runs" in text
    assert "third Not yet? No run has ended yet. – 0 of 1 run" in text


def test_the_answer_is_the_first_thing_on_the_page(parsed, star):
    results = collect(star)
    text = " ".join("".join(parsed.texts).split())
    said = " ".join(answer(results, judge_primary(results)).split())
    assert text.index(said) < text.index("Metric")
    assert "best possible: test ppl 3.004" in text


def test_the_subtitle_is_made_of_what_was_typed(star, recipe):
    assert told(row_details(collect(recipe))) == ["model.bias", "ffn", "norm", "placement", "attention", "posenc"]
    assert told(row_details(collect(star))) == ["ffn", "norm", "optim.lr"]


def test_a_preset_stands_for_the_parts_that_it_chooses(make_sweep):
    overrides = {"a": ["recipe=transformer_2017"], "b": ["recipe=llama"]}
    folder = make_sweep({"a": (3.8,), "b": (3.7,)}, overrides=overrides, name="presets")
    found = told(row_details(collect(folder)))
    assert {"norm", "ffn", "posenc", "placement"} <= {*found}
    assert not [name for name in found if "." in name]


def test_colours_of_verdicts_and_lines_are_those_of_the_papers_figures(page):
    light, dark = (re.findall(r":root \{ (--better[^}]*)\}", page)[i] for i in (0, 1))
    for ground, text in (("light", light), ("dark", dark)):
        named = dict(re.findall(r"--([a-z0-9-]+): (#[0-9a-f]{6});", text))
        for verdict, look in LOOKS.items():
            assert named[verdict.split()[0]] == getattr(look.colour, ground)
        assert [named[f"line-{i}"] for i in range(len(COLOURS))] == [getattr(colour, ground) for colour in COLOURS]


def test_what_all_pages_share_is_made_once(monkeypatch, tmp_path):
    """Vega and the charts' specifications take seconds to put together."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    made = []
    monkeypatch.setattr(script, "make", lambda: made.append(1) or script.Drawing("code", {"forest": {}}))
    for _ in range(2):
        script.drawing.cache_clear()
        assert script.drawing() == ("code", {"forest": {}})
    assert made == [1]
    script.cache_file().write_text('{"library": "torn')
    script.drawing.cache_clear()
    assert script.drawing().library == "code"
    assert made == [1, 1]
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc/nowhere")
    script.drawing.cache_clear()
    assert script.drawing().library == "code", "a cache that cannot be written costs the time alone"
    monkeypatch.undo()
    script.drawing.cache_clear()


@pytest.mark.slow
def test_the_command_says_where_it_put_things_and_imports_no_torch(make_sweep):
    folder = make_sweep({"a": (3.8, 3.9, 3.85), "b": (3.7, 3.8, 3.75)})
    code = (
        "import sys; from lecture04.cli.main import main\n"
        "main()\n"
        "assert not {'torch', 'wandb', 'matplotlib'} & set(sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "report", "--html", "--outputs", str(folder.parents[1])],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    named = [Path(line.split("  ")[0]) for line in done.stdout.splitlines()]
    assert named == [folder / "report.html", folder.parent / "index.html"]
    assert all(path.exists() for path in named)


@pytest.mark.parametrize(("names", "said"), [(["no such"], "no table lies there"), ([], "no table lies there yet")])
def test_what_is_not_there_is_one_sentence(names, said, tmp_path):
    outputs = tmp_path if names else tmp_path / "nowhere"
    (tmp_path / "sweeps").mkdir()
    command = [sys.executable, "-m", "lecture04.cli.main", "report", "--html", *names, "--outputs", str(outputs)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode != 0
    assert said in done.stderr
    assert "Traceback" not in done.stderr
