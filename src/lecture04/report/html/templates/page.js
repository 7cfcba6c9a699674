// Switches between the tables that were judged when the page was made, sorts, hides rows and draws the plots.
// It works out no statistics: every figure and every verdict stands in the data.
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const state = { metric: data.metrics[0], baseline: 0, hidden: new Set() };
  const $ = (selector, within = document) => within.querySelector(selector);
  const $$ = (selector, within = document) => [...within.querySelectorAll(selector)];
  const view = () => data.views[`${state.metric}|${state.baseline}`];
  const verdicts = $("#verdicts");
  const WIDE = 640; // pixels, from where the plots have room for long names

  function make(tag, text, className) {
    const node = document.createElement(tag);
    node.textContent = text; // never as HTML: names are shown, not run
    if (className) node.className = className;
    return node;
  }

  // -- the table

  function badge(verdict) {
    return make("span", verdict, `verdict ${verdict.split(" ")[0]}`);
  }

  function fillTable() {
    const { columns, cells, caption } = view();
    const place = Object.fromEntries(columns.map(([id], i) => [id, i]));
    verdicts.caption.textContent = caption;
    const ids = $$("thead th", verdicts).map((th) => th.dataset.column);
    $$("thead th", verdicts).forEach((th, i) => {
      if (ids[i] in place) th.firstElementChild.textContent = columns[place[ids[i]]][1];
    });
    for (const tr of $$("tbody tr", verdicts)) {
      const texts = cells[tr.dataset.row];
      [...tr.cells].forEach((cell, i) => {
        const text = ids[i] in place ? texts[place[ids[i]]] : "";
        if (ids[i].startsWith("verdict") && text) cell.replaceChildren(badge(text));
        else cell.textContent = text;
      });
    }
  }

  function fillNotes() {
    $("#summary").textContent = view().summary;
    $("#notes").replaceChildren(
      ...view().notes.map(([term, text]) => {
        const entry = document.createElement("div");
        if (term) entry.append(make("dt", term));
        entry.append(make("dd", text));
        return entry;
      }),
    );
  }

  // -- the rows' settings

  function fillSettings() {
    const baseline = data.settings[state.baseline];
    for (const details of $$("details.row")) {
      const row = Number(details.dataset.row);
      const here = data.settings[row];
      const differ = data.setting_names.map((name, i) => [name, here[i], baseline[i]]).filter(([, a, b]) => a !== b);
      const table = $(".settings", details);
      table.hidden = !differ.length;
      table.caption.textContent = `Settings that differ from those of ${data.rows[state.baseline]}`;
      $("tbody", table).replaceChildren(
        ...differ.map(([name, a, b]) => {
          const tr = document.createElement("tr");
          const th = make("th", name);
          th.scope = "row";
          tr.append(th, make("td", a || "–"), make("td", b || "–"));
          return tr;
        }),
      );
      const short = differ.slice(0, 4).map(([name, a]) => `${name}=${a || "–"}`);
      const more = differ.length > 4 ? `, and ${differ.length - 4} more` : "";
      $(".brief", details).textContent = row === state.baseline ? "the baseline" : short.join(", ") + more;
    }
  }

  // -- hiding rows

  function hideRows() {
    for (const node of $$("[data-row]")) node.hidden = state.hidden.has(Number(node.dataset.row));
    const n = data.rows.length;
    $("#shown").textContent = `${n - state.hidden.size} of ${n}`;
  }

  function choose(hidden) {
    state.hidden = hidden;
    for (const box of $$("input[name=row]")) box.checked = !hidden.has(Number(box.value));
    hideRows();
    draw();
  }

  // -- the plots

  const LOOK = (verdict) => {
    const kind = verdict.startsWith("diverged") ? "diverged" : verdict;
    const [shape, filled] = data.looks[kind] || ["circle", false];
    const quiet = ["within noise", "single run", "no verdict"].includes(kind);
    const ink = `var(--${quiet ? "noise" : kind})`;
    return { shape, ink, fill: filled ? ink : "var(--paper)" };
  };
  const number = (x) => (x === null ? "–" : Math.abs(x) >= 1e4 || (x && Math.abs(x) < 1e-3) ? x.toExponential(3) : String(+x.toPrecision(5)));
  const withUnit = (text, unit) => (unit ? `${text} ${unit}` : text);
  const order = () => $$("tbody tr:not([hidden])", verdicts).map((tr) => Number(tr.dataset.row));

  function forestRows(family) {
    const { forest, margins, unit } = view();
    const of = new Map(forest[family].map((entry) => [entry[0], entry]));
    return order().filter((row) => of.has(row)).map((row) => {
      const [, reference, value, low, high, noiseLow, noiseHigh, verdict] = of.get(row);
      return {
        row: data.rows[row], reference: data.rows[reference], value, low, high, verdict, ...LOOK(verdict),
        noise_low: noiseLow, noise_high: noiseHigh, margin_low: margins[0] ?? null, margin_high: margins[1] ?? null,
        said: withUnit(number(value), unit), interval: withUnit(`${number(low)} to ${number(high)}`, unit),
      };
    });
  }

  function stripRows() {
    const { seeds } = data.metric[state.metric];
    return order().flatMap((row, place) => {
      const values = seeds[row].map(([, value]) => value);
      const mean = values.length && !values.includes(null) ? values.reduce((a, b) => a + b) / values.length : null;
      let crosses = 0;
      return seeds[row].map(([seed, value]) => ({
        row: data.rows[row], place, seed, value, mean,
        cross: value === null ? crosses++ : -1, said: value === null ? "diverged" : number(value),
      }));
    });
  }

  function waterfallRows() {
    return data.metric[state.metric].waterfall
      .map(([start, end, low, high, verdict], row) => ({
        row: data.rows[row], number: row, start, end, low, high, verdict, ...LOOK(verdict),
        said: start === null ? number(end) : `${number(start)}, ${number(end)}`, interval: `${number(low)} to ${number(high)}`,
      }))
      .filter(({ number: row }) => !state.hidden.has(row));
  }

  function curveRows(name) {
    return Object.entries(data.curves[name].rows)
      .reverse() // the baseline on top
      .filter(([row]) => !state.hidden.has(Number(row)))
      .flatMap(([row, curve]) => {
        const [colour, dash, width] = data.lines[row];
        const one = curve.x.length === 1;
        return curve.x.map((x, i) => ({
          row: data.rows[row], x, mean: curve.mean[i], low: curve.low[i], high: curve.high[i],
          colour, dash, width, dot: one ? 0.8 : 0,
        }));
      });
  }

  // Each chart: its rows, the title of its axis, and its caption as [heading, text].
  const CHARTS = {
    forest: (family) => {
      const { heading, unit, against, margins } = view();
      const title = withUnit(`${heading}: difference to ${against[family]}${unit ? "," : ""}`, unit);
      const dotted = margins.length ? " Dotted: the margin that was declared beforehand." : "";
      const text = `A point is the difference seen, its line the interval in which the true one lies. Grey: what the seeds alone could do.${dotted}`;
      return { rows: forestRows(family), title, caption: [`Differences to ${against[family]}`, text], margins };
    },
    strip: () => {
      const { heading } = data.metric[state.metric];
      const rows = stripRows();
      const crosses = rows.some(({ cross }) => cross >= 0) ? " Crosses at the edge: runs that diverged." : "";
      const text = `A dot is a run, a bar the row's mean; a thin line joins the same seed from row to row.${crosses}`;
      return { rows, title: heading, caption: [`Every seed: ${heading}`, text] };
    },
    waterfall: () => {
      const { heading } = data.metric[state.metric];
      const text = "A bar reaches from the mean of the row before to this row's mean; the thin line is the interval of that step. Hollow: nothing was called.";
      return { rows: waterfallRows(), title: heading, caption: [`Step by step: ${heading}`, text] };
    },
    curve: (name) => {
      const heading = { "val/nll": "Validation loss", "train/loss": "Training loss", positions: "Excess loss by position" }[name];
      const dotted = name === "positions" && data.trained ? ` Dotted: the ${data.trained} tokens that were trained on.` : "";
      const text = `A line is the mean of a row's seeds; its band reaches from the lowest seed to the highest.${dotted}`;
      return { rows: curveRows(name), caption: [heading, text], range: data.curves[name].range };
    },
  };

  const nameWidth = (width) => (width < WIDE ? Math.max(90, width * 0.36) : 260);

  function config(width) {
    const axis = {
      labelColor: "var(--ink)", titleColor: "var(--ink)", gridColor: "var(--rule)", tickColor: "var(--quiet)", domainColor: "var(--quiet)",
      labelFontSize: 12, titleFontSize: 12, titleFontWeight: "normal",
    };
    return {
      background: null, font: getComputedStyle(document.body).fontFamily, axis, view: { stroke: null }, text: { fontSize: 12 }, mark: { invalid: "filter" },
      line: { invalid: "break-paths-show-domains" },
      axisY: { labelLimit: nameWidth(width) + 20 },
      axisX: { labelOverlap: true, tickCount: Math.max(3, Math.min(10, Math.round(width / 110))) },
    };
  }

  function specification(figure, width) {
    const name = figure.dataset.chart;
    const chart = CHARTS[name] ? CHARTS[name](figure.dataset.family) : CHARTS.curve(name);
    const spec = JSON.parse(JSON.stringify(data.charts[name]), (_, value) => (value === "@x" ? chart.title : value));
    const domain = chart.range || [...new Set(chart.rows.map(({ row }) => row))];
    for (const { encoding: { y } } of spec.layer) {
      if (!y) continue;
      y.scale = chart.range ? { domain, nice: false } : { domain, padding: 0 };
      // Names that differ at their ends stay apart: what does not fit is left out of the middle.
      if (!chart.range) y.axis.labelExpr = `truncate(datum.label, ${Math.round(nameWidth(width) / 7)}, "center", "…")`;
    }
    if (chart.margins && !chart.margins.length) spec.layer = spec.layer.filter(({ name }) => !name?.startsWith("margin"));
    if (spec.height.step) spec.height = spec.height.step * domain.length;
    spec.autosize = { type: "fit-x", contains: "padding" };
    spec.padding = { left: 4, top: 4, bottom: 4, right: 14 };
    spec.datasets = { rows: chart.rows };
    spec.config = config(width);
    spec.description = chart.caption.join(". ");
    return [spec, chart];
  }

  async function drawOne(figure) {
    const plot = $(".plot", figure);
    const [spec, { caption, rows }] = specification(figure, plot.clientWidth);
    const heading = make("b", caption[0]);
    $("figcaption", figure).replaceChildren(heading, caption[1]);
    // Nothing to draw: all rows hidden, or no contrast has an estimate.
    figure.hidden = !rows.some((row) => [row.value, row.end, row.mean].some((x) => x !== null && x !== undefined));
    if (figure.hidden) return;
    // `ast`: Vega's expressions are interpreted, since the page allows no code made from text.
    const made = await vegaEmbed(plot, spec, { renderer: "svg", actions: false, ast: true, tooltip: { theme: "none" } });
    figure.finalize?.();
    figure.finalize = made.finalize;
  }

  let latest = 0;
  async function draw() {
    const ours = ++latest; // a later choice overtakes the drawing of an earlier one
    document.body.dataset.drawn = "";
    for (const figure of $$("figure[data-chart]")) {
      try {
        await drawOne(figure);
      } catch (error) {
        console.error(error); // one plot that fails takes no other along
      }
      if (ours !== latest) return;
    }
    document.body.dataset.drawn = "yes";
  }

  // -- choosing

  function refill(said) {
    const baselines = data.baselines[state.metric];
    for (const option of $$("#baseline option")) option.disabled = !baselines.includes(Number(option.value));
    if (!baselines.includes(state.baseline)) state.baseline = Number(($("#baseline").value = baselines[0]));
    fillTable();
    sorting.apply(verdicts);
    fillNotes();
    fillSettings();
    hideRows();
    if (said) sorting.say(`${said} ${view().summary}`);
    return draw();
  }

  $("#metric").addEventListener("change", (event) => {
    state.metric = event.target.value;
    refill(`Metric: ${event.target.selectedOptions[0].text.trim()}.`);
  });
  $("#baseline").addEventListener("change", (event) => {
    state.baseline = Number(event.target.value);
    refill(`Baseline: ${data.rows[state.baseline]}.`);
  });
  $("#details").addEventListener("change", (event) => verdicts.classList.toggle("no-details", !event.target.checked));
  $("#all").addEventListener("click", () => choose(new Set()));
  $("#none").addEventListener("click", () => choose(new Set(data.rows.keys())));
  for (const box of $$("input[name=row]")) {
    box.addEventListener("change", () => {
      const hidden = new Set(state.hidden);
      if (box.checked) hidden.delete(Number(box.value));
      else hidden.add(Number(box.value));
      choose(hidden);
    });
  }
  verdicts.addEventListener("sorted", draw); // the plots follow the table's order

  $(".controls").hidden = false;
  if (innerWidth < WIDE) $("#details").click();
  // A browser may have kept an earlier choice over a reload.
  state.metric = $("#metric").value;
  state.baseline = Number($("#baseline").value);
  refill();
})();
