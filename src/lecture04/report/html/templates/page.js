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

  // What a row is compared with, {number of the row: that of its reference}.
  const references = (family) => new Map(view().forest[family].map(([row, reference]) => [row, reference]));

  // A difference; where each row has a reference of its own, its name shows once the rows are not in their own order.
  function difference(text, family, row) {
    const reference = ["step", "grid"].includes(family) ? references(family).get(row) : undefined;
    return text && reference !== undefined ? [text, make("small", `vs ${data.rows[reference]}`, "against")] : [text];
  }

  function fillTable() {
    const { columns, cells, caption } = view();
    const place = Object.fromEntries(columns.map(([id], i) => [id, i]));
    verdicts.caption.textContent = caption;
    const heads = $$("thead th", verdicts);
    heads.forEach((th) => {
      const i = place[th.dataset.column];
      th.hidden = i === undefined;
      if (th.hidden) th.removeAttribute("aria-sort");
      else th.firstElementChild.textContent = columns[i][1];
    });
    for (const tr of $$("tbody tr", verdicts)) {
      const texts = cells[tr.dataset.row];
      heads.forEach(({ hidden, dataset: { column } }, i) => {
        const cell = tr.cells[i];
        cell.hidden = hidden;
        const text = hidden ? "" : texts[place[column]];
        const [kind, family] = column.split(":");
        if (kind === "row") $(".name", cell).textContent = text;
        else if (kind === "verdict" && text) cell.replaceChildren(badge(text));
        else if (kind === "difference") cell.replaceChildren(...difference(text, family, Number(tr.dataset.row)));
        else cell.textContent = text;
      });
    }
  }

  function fillNotes() {
    const { remark, notes } = view();
    $("#remark").textContent = remark;
    $("#remark").hidden = !remark;
    $("#notes").replaceChildren(
      ...notes.map((i) => data.notes[i]).map(([term, text]) => {
        const entry = document.createElement("div");
        if (term) entry.append(make("dt", term));
        entry.append(make("dd", text));
        return entry;
      }),
    );
  }

  // -- the rows' settings

  // The settings in which two rows differ, as [name, of the row, of the other].
  function differing(row, other) {
    const [here, there] = [data.settings[row], data.settings[other]];
    if (!here.some(Boolean) || !there.some(Boolean)) return []; // no run of it has begun: nothing is known
    return data.setting_names.map((name, i) => [name, here[i] || "–", there[i] || "–"]).filter(([, a, b]) => a !== b);
  }

  // Under each row's name, what changed from the row that it is compared with first: what was typed, where it was.
  function fillChanged() {
    const [family] = Object.keys(view().forest);
    const compared = family ? references(family) : new Map();
    for (const tr of $$("tbody tr", verdicts)) {
      const row = Number(tr.dataset.row);
      const all = compared.has(row) ? differing(row, compared.get(row)) : [];
      const typed = all.filter(([name]) => data.told.includes(name));
      const said = (typed.length ? typed : all).map(([name, here, there]) => `${name}: ${there} → ${here}`);
      const more = said.length > 3 ? `, and ${said.length - 3} more` : "";
      $(".changed", tr).textContent = said.slice(0, 3).join(", ") + more;
    }
  }

  function fillSettings() {
    for (const details of $$("details.row")) {
      const row = Number(details.dataset.row);
      const differ = differing(row, state.baseline);
      const table = $(".settings", details);
      table.hidden = !differ.length;
      table.caption.textContent = `Settings that differ from those of ${data.rows[state.baseline]}`;
      $("tbody", table).replaceChildren(
        ...differ.map(([name, a, b]) => {
          const tr = document.createElement("tr");
          const th = make("th", name);
          th.scope = "row";
          tr.append(th, make("td", a), make("td", b));
          return tr;
        }),
      );
      const short = differ.slice(0, 4).map(([name, a]) => `${name}=${a}`);
      const more = differ.length > 4 ? `, and ${differ.length - 4} more` : "";
      $(".brief", details).textContent = row === state.baseline ? "the baseline" : short.join(", ") + more;
    }
  }

  // -- hiding rows

  function hideRows() {
    for (const node of $$("[data-row]")) node.hidden = state.hidden.has(Number(node.dataset.row));
    const n = data.rows.length;
    $("#shown").textContent = `${n - state.hidden.size} of ${n}`;
    verdicts.classList.toggle("gaps", state.hidden.size > 0);
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
    const [shape, filled] = data.looks[kind] || ["circle", true]; // a metric that carries no verdicts
    const ink = kind ? `var(--${kind.split(" ")[0]})` : "var(--quiet)";
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

  function forestDots(family) {
    const { forest, unit } = view();
    const shown = new Set(order());
    return forest[family].filter(([row]) => shown.has(row)).flatMap(([row, , , , , , , , dots]) =>
      dots.map(([seed, value]) => ({ row: data.rows[row], seed, value, said: withUnit(number(value), unit) })),
    );
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

  // The runs of a grid, each with the line that it belongs to: that of its row in all slices.
  function gridRows() {
    const { slices, names, lines, places } = data.grid;
    return stripRows().map((run) => {
      const [line, slice] = places[data.rows.indexOf(run.row)];
      const [colour, dash] = lines[line];
      return { ...run, line: names[line], slice: slices[slice], place: slice, colour, dash };
    });
  }

  function gridEnds(width) {
    const { slices, names, lines, places } = data.grid;
    const { ends } = data.metric[state.metric].grid;
    return places.flatMap(([line, slice], row) => {
      if (slice !== slices.length - 1 || state.hidden.has(row) || !ends[names[line]]) return [];
      const [mean, place] = ends[names[line]];
      const [colour, dash] = lines[line];
      return [{ row: names[line], mean, place, colour, dash, said: shortened(names[line], width < WIDE ? 12 : 26) }];
    });
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

  // The names at the ends of the curves, at the places that were worked out for them.
  function curveEnds(name, width) {
    return Object.entries(data.curves[name].rows)
      .filter(([row, { place }]) => place !== null && !state.hidden.has(Number(row)))
      .map(([row, { mean, place }]) => ({
        row: data.rows[row], mean: mean[mean.length - 1], place, colour: data.lines[row][0], dash: data.lines[row][1],
        said: shortened(data.rows[row], width < WIDE ? 12 : 26),
      }));
  }

  // Each chart: its rows, the title of its axis, and its caption as [heading, text].
  const CHARTS = {
    forest: (family) => {
      const { heading, unit, against, margins, better, dots } = view();
      const title = `${heading}: difference${unit ? ` in ${unit}` : ""} (${better})`;
      const dotted = margins.length ? " Dotted: the margin that was declared beforehand." : "";
      const text = `Point and line: the difference, and the interval in which the true one lies; ${dots[family]}. Grey: what the seeds alone could do.${dotted}`;
      const rows = forestRows(family);
      const without = [...(margins.length ? [] : ["margin"]), ...(rows.some(({ low }) => low !== null) ? [] : ["interval"])];
      return { rows, dots: forestDots(family), title, caption: [`Each row against ${against[family]}`, text], without };
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
      const hollow = state.metric === data.metrics[0] ? " Hollow: nothing was called." : "";
      const text = `A bar reaches from the mean of the row before to this row's mean; the thin line is the interval of that step.${hollow}`;
      return { rows: waterfallRows(), title: heading, caption: [`Step by step: ${heading}`, text] };
    },
    grid: (_, width) => {
      const { heading, grid } = data.metric[state.metric];
      const rows = gridRows();
      const gaps = rows.some(({ cross }) => cross >= 0) ? " Where a run diverged there is no mean, and the line has a gap." : "";
      const text = `A line joins the means of a row from slice to slice; a dot is a run.${gaps}`;
      return { rows, ends: gridEnds(width), title: heading, caption: [`From slice to slice: ${heading}`, text], range: grid.range };
    },
    curve: (name, width) => {
      const heading = { "val/nll": "Validation loss", "train/loss": "Training loss", positions: "Excess loss by position" }[name];
      const { best, range } = data.curves[name];
      const trained = name === "positions" && data.trained;
      const dotted = [
        ...(best === null ? [] : ["the best possible, which the true distribution reaches"]),
        ...(trained ? [`the ${data.trained} tokens that were trained on`] : []),
      ];
      const text = `A line is the mean of a row's seeds; its band reaches from the lowest seed to the highest.${dotted.length ? ` Dotted: ${dotted.join("; ")}.` : ""}`;
      const lines = [{ x: trained || null, y: best, said: `best possible: ${number(best)}` }];
      const without = [...(best === null ? ["line_y"] : []), ...(trained ? [] : ["line_x"])];
      return { rows: curveRows(name), ends: curveEnds(name, width), lines, caption: [heading, text], range, without };
    },
  };

  // Names that differ at their ends stay apart: what does not fit is left out of the middle.
  function shortened(name, most) {
    const signs = [...name.replace(/\s+/g, " ")];
    const half = Math.floor((most - 1) / 2);
    return signs.length > most ? `${signs.slice(0, most - 1 - half).join("")}…${signs.slice(-half).join("")}` : signs.join("");
  }

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
      axisX: { labelOverlap: true, labelSeparation: 8, tickCount: Math.max(3, Math.min(10, Math.round(width / 110))) },
    };
  }

  function specification(figure, width) {
    const name = figure.dataset.chart;
    const chart = CHARTS[name] ? CHARTS[name](figure.dataset.family, width) : CHARTS.curve(name, width);
    const spec = JSON.parse(JSON.stringify(data.charts[name]), (_, value) => (value === "@x" ? chart.title : value));
    const domain = chart.range || [...new Set(chart.rows.map(({ row }) => row))];
    for (const { encoding: { y } } of spec.layer) {
      if (!y) continue;
      y.scale = chart.range ? { domain, nice: false } : { domain, padding: 0 };
      // Names that differ at their ends stay apart: what does not fit is left out of the middle.
      if (!chart.range) y.axis.labelExpr = `truncate(datum.label, ${Math.round(nameWidth(width) / 7)}, "center", "…")`;
    }
    // A line that is not there has no layer: its empty data would have no range.
    spec.layer = spec.layer.filter(({ name }) => !(chart.without || []).some((absent) => name?.startsWith(absent)));
    if (spec.height.step) spec.height = spec.height.step * domain.length;
    spec.autosize = { type: "fit-x", contains: "padding" };
    spec.padding = { left: 4, top: 4, bottom: 4, right: 14 };
    const { rows, dots = [], ends = [], lines = [] } = chart;
    spec.datasets = { rows, dots, ends, lines };
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
    if (!baselines.includes(state.baseline)) $("#baseline").value = state.baseline = baselines[0];
    fillTable();
    sorting.apply(verdicts);
    fillNotes();
    fillSettings();
    fillChanged();
    hideRows();
    if (said) sorting.say(`${said} ${view().remark}`);
    return draw();
  }

  $("#metric").addEventListener("change", (event) => {
    state.metric = event.target.value;
    refill(`Metric: ${event.target.selectedOptions[0].text.trim()}.`);
  });
  $("#baseline")?.addEventListener("change", (event) => {
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
  $("nav a[href='#legend']").addEventListener("click", () => ($("#legend").open = true));
  verdicts.classList.toggle("no-details", !$("#details").checked);
  // A browser may have kept an earlier choice over a reload.
  state.metric = $("#metric").value;
  state.baseline = Number($("#baseline")?.value ?? 0);
  refill();
})();
