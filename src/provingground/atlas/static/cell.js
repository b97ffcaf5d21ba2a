"use strict";
// One cell, or two side by side: its settings, its curves and attention, and what the theory says of
// it. Which cell stands in the address; a second one has "b." before its names.

(() => {
  const data = atlas.experiment, form = document.getElementById("places");
  const box = document.getElementById("cells"), told = document.getElementById("told");
  const button = document.getElementById("compare");
  const { el, number } = atlas;
  const outer = [...data.axes, ...(atlas.dim("seed") ? [atlas.dim("seed")] : [])];
  const LINES = 7;  // of one small chart
  const LATE = 300;  // steps from which on they are shown in the logarithm
  const FEW = 6;  // steps that are not

  const compares = () => [...atlas.state.read().keys()].some((name) => name.startsWith("b."));

  function place(prefix) {
    const asked = atlas.state.read(), at = new Map();
    for (const axis of outer) {
      at.set(axis.name, Math.max(atlas.placeOf(axis, asked.get(prefix + axis.name) ?? ""), 0));
    }
    return at;
  }

  // Long trainings change most in their first steps; of few steps the first, 0, is worth more.
  const logs = () => {
    const asked = atlas.state.read().get("_log"), steps = atlas.dim("step")?.labels ?? [];
    return asked ? asked === "x" : steps.length > FEW && steps.at(-1) >= LATE;
  };

  function fields() {
    const row = (prefix, legend) => el("fieldset", {}, el("legend", {}, legend), ...outer.map((axis) =>
      atlas.select(atlas.words(axis), prefix + axis.name, axis.labels.map((label, n) => [String(n), number(label)]), String(place(prefix).get(axis.name)))));
    const focused = document.activeElement?.name;
    const log = atlas.tick("steps in the logarithm", "_log", logs());
    form.replaceChildren(row("", compares() ? "the first" : "which"), ...(compares() ? [row("b.", "the second")] : []), log);
    if (focused) form.elements.namedItem(focused)?.focus();
    button.setAttribute("aria-pressed", compares());
    button.textContent = compares() ? "Show one cell only" : "Compare with another cell";
  }

  atlas.on(form, "input", "places", (event) => {
    const { name, value, checked } = event.target, asked = atlas.state.read();
    if (name === "_log") {
      asked.set("_log", checked ? "x" : "-");
      atlas.state.write(asked);
      show();
      return;
    }
    const axis = outer.find((each) => each.name === name.replace(/^b\./, ""));
    asked.set(name, String(axis.labels[Number(value)]));
    atlas.state.write(asked);
    show();
  });
  atlas.on(form, "submit", "no-submit", (event) => event.preventDefault());
  atlas.on(button, "click", "compare", () => {
    const asked = atlas.state.read(), now = place("");
    if (compares()) {
      for (const axis of outer) asked.delete(`b.${axis.name}`);
    } else {
      const moved = outer.find((axis) => axis.kind === "axis" && axis.labels.length > 1) ?? outer[0];
      for (const axis of outer) {
        const at = axis === moved ? (now.get(axis.name) + 1) % axis.labels.length : now.get(axis.name);
        asked.set(`b.${axis.name}`, String(axis.labels[at]));
      }
    }
    atlas.state.write(asked);
    show();
  });
  atlas.on(window, "hashchange", "address", () => show());
  let width = box.clientWidth;
  atlas.on(window, "resize", "cell-resize", () => {
    if (box.clientWidth !== width) { width = box.clientWidth; redraw(); }
  });

  // ------------------------------------------------------------------------------ one cell

  async function show() {
    fields();
    const places = compares() ? [place(""), place("b.")] : [place("")];
    try {
      await Promise.all(places.map((at) => atlas.load(`cells/${Math.floor(atlas.cellNumber(at) / data.chunk)}.js`)));
    } catch (error) {
      told.textContent = `The cell could not be read: ${error.message}.`;
      return;
    }
    told.textContent = "";
    spans.clear();
    if (places.length > 1) for (const at of places) for (const probe of probesAt(at)) reach(probe);
    drawers.length = 0;
    box.replaceChildren(...places.map(cell));
    redraw();
  }
  const drawers = [];  // of the charts, which are drawn when they have their width
  const redraw = () => { for (const draw of drawers) draw(); };

  // What two cells are drawn into is the same for both: the ends of a probe by its name.
  const spans = new Map();
  function reach(probe) {
    const known = [...(spans.get(probe.name) ?? []), ...probe.values].filter((v) => Number.isFinite(v));
    const [low, high] = known.reduce(([a, b], v) => [Math.min(a, v), Math.max(b, v)], [Infinity, -Infinity]);
    if (known.length) spans.set(probe.name, [low, high]);
  }

  function probesAt(at) {
    const index = atlas.cellNumber(at), chunk = atlas.chunks.get(Math.floor(index / data.chunk));
    return chunk.probes.map((probe) => ({ ...probe, values: probe.values[index - chunk.first] ?? [] }));
  }

  function cell(at) {
    const index = atlas.cellNumber(at), chunk = atlas.chunks.get(Math.floor(index / data.chunk));
    const probes = probesAt(at);
    const dim = (name) => chunk.dims.find((each) => each.name === name);
    const name = outer.map((axis) => `${axis.name} ${number(axis.labels[at.get(axis.name)])}`).join(", ");
    const part = el("section", { class: "one", "aria-label": name }, el("h2", {}, name));
    const missing = probes.every((probe) => probe.name === "diverged" || probe.values.every((v) => v === null));
    if (missing) part.append(el("p", { class: "summary attention" }, "This cell is not stored."));
    const single = probes.filter((probe) => !probe.dims.length);
    const numbers = el("div", { class: "sides" });
    numbers.append(el("div", {}, el("h3", {}, "Numbers"), table(["probe", "value"], single.map((probe) => [atlas.words(probe), probe.values[0] === null ? "n/a" : number(probe.values[0])]))), ...theory(at));
    part.append(el("h3", {}, "Curves and matrices"));
    const charts = el("div", { class: "probes" });
    for (const probe of probes) if (probe.dims.length && !(probe.dims.length === 1 && probe.dims[0] === probe.name)) charts.append(chart(probe, dim));
    part.append(charts, numbers);
    return part;
  }

  const table = (head, rows) => el("div", { class: "scrolls", tabindex: 0, role: "group", "aria-label": head.join(", ") },
    el("table", {}, el("thead", {}, el("tr", {}, ...head.map((words) => el("th", { scope: "col" }, words)))),
      el("tbody", {}, ...rows.map(([first, ...rest]) => el("tr", {}, el("th", { scope: "row" }, first), ...rest.map((x) => el("td", { class: "number" }, x)))))));

  function theory(at) {
    if (!atlas.theory) return [];
    const value = (v) => v.values[atlas.flat(v.dims, at)];
    const { settings, conditions, predictions, vacuous } = atlas.theory;
    const margin = (x) => (typeof x !== "number" ? ["n/a", ""] : [number(x), x >= 1 - 1e-6 ? "✓ met" : "✗ violated"]);
    const made = [];
    if (conditions.length) {
      made.push(el("div", {}, el("h3", {}, "The theorem's conditions here"), el("p", { class: "note" }, "Below 1 a condition is violated by that factor."),
        table(["condition", "margin", "met"], conditions.map((c) => [c.says, ...margin(value(c))]))));
    }
    if (predictions.length) {
      made.push(el("div", {}, el("h3", {}, "What the theory predicts here"),
        table(["prediction", "value"], predictions.map((p) => [p.says + (vacuous.includes(p.name) ? " (says nothing at some settings)" : ""), number(value(p) ?? NaN)]))));
    }
    if (settings.length) {
      made.push(el("details", {}, el("summary", {}, "All settings"), table(["parameter", "value"], settings.map((s) => [`${atlas.words(s)} (${s.name})`, typeof value(s) === "number" ? number(value(s), 6) : String(value(s))]))));
    }
    return made;
  }

  // -------------------------------------------------------------------------------- charts

  function chart(probe, dim) {
    const figure = el("figure", { class: "small" }), drawn = atlas.chart();
    const words = atlas.words(probe);
    drawn.setAttribute("role", "img");
    drawn.setAttribute("aria-label", words);
    const own = probe.dims.map(dim);
    const x = own.find((d) => d.name === "step") ?? own.find((d) => d.numeric && d.labels.length > LINES) ?? own[0];
    const rest = own.filter((d) => d !== x);
    const many = rest.reduce((product, d) => product * d.labels.length, 1);
    const at = (places) => own.reduce((sum, d) => sum * d.labels.length + (places.get(d.name) ?? d.labels.length - 1), 0);
    const value = (places) => probe.values[at(places)] ?? NaN;
    let slices = new Map();
    if (rest.length === 1 && (many > LINES || (x.index && rest[0].index))) {
      const draw = () => atlas.heat(drawn, x.labels, rest[0].labels, (i, j) => value(new Map([[x.name, i], [rest[0].name, j]])), { x: atlas.words(x), y: atlas.words(rest[0]), width: figure.clientWidth, range: spans.get(probe.name) });
      drawers.push(draw);
    } else {
      const hue = rest.length === 1 ? rest[0] : rest.toSorted((a, b) => a.labels.length - b.labels.length).find((d) => d.labels.length <= LINES);
      const sliced = rest.filter((d) => d !== hue);
      slices = new Map(sliced.map((d) => [d.name, d.labels.length - 1]));
      const draw = () => {
        const labels = hue ? hue.labels : [""];
        const series = labels.map((label, j) => {
          const y = x.labels.map((_, i) => value(new Map([...slices, [x.name, i], ...(hue ? [[hue.name, j]] : [])])));
          return { label: hue ? `${hue.name} ${number(label)}` : words, x: x.labels.map((label, i) => (x.numeric ? label : i)), y };
        });
        const span = spans.get(probe.name);
        const known = [...series.flatMap((s) => s.y), ...(span ?? [])].filter((v) => Number.isFinite(v));
        const low = Math.min(...known), high = Math.max(...known);
        const logx = x.numeric && (x.name === "step" ? logs() : x.log && x.labels[0] > 0);
        const made = atlas.line(drawn, series, { x: atlas.words(x), y: "", span, logx, logy: low > 0 && high / low > 100, categories: x.numeric ? null : x.labels, width: figure.clientWidth });
        figure.querySelector(".legend")?.remove();
        if (hue) figure.append(made.legend);
      };
      for (const d of sliced) {
        const field = atlas.slider(atlas.words(d), d.name, d.labels, d.labels.length - 1);
        atlas.on(field, "input", "cell-slices", (event) => { slices.set(d.name, event.target.valueAsNumber); draw(); });
        figure.append(field);
      }
      drawers.push(draw);
    }
    figure.prepend(el("figcaption", {}, words), drawn);
    return el("div", { class: "probe" }, figure, values(probe, own, words));
  }

  function values(probe, own, words) {
    const more = el("details", {}, el("summary", {}, "as a table"));
    atlas.on(more, "toggle", "cell-table", () => {
      if (!more.open || more.children.length > 1) return;
      const last = own[own.length - 1], count = last.labels.length, rows = [];
      for (let k = 0; k < probe.values.length; k += count) {
        let n = k / count;
        const label = own.slice(0, -1).toReversed().map((d) => {
          const here = d.labels[n % d.labels.length];
          n = Math.floor(n / d.labels.length);
          return `${d.name} ${number(here)}`;
        }).reverse().join(", ");
        rows.push([label || words, ...probe.values.slice(k, k + count).map((v) => (v === null ? "n/a" : number(v)))]);
      }
      more.append(table([own.slice(0, -1).map((d) => d.name).join(", ") || "probe", ...last.labels.map((label) => `${last.name} ${number(label)}`)], rows));
    });
    return more;
  }

  show();
})();
