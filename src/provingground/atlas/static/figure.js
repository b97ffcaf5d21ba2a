"use strict";
// The figure of an experiment: which probe, along which axes, for which slice and seeds. The view is
// in the address: its own entries begin with "_", all others are places on axes.

(() => {
  const data = atlas.experiment, form = document.getElementById("controls");
  const drawing = document.getElementById("drawing"), reading = document.getElementById("reading");
  const { el, number } = atlas;
  const FIRST = ["test_error", "test_loss", "error", "excess", "ood_loss", "train_loss"];

  // ------------------------------------------------------------------------------ the view

  const shownFirst = () => {
    const probes = data.variables.filter((v) => v.kind === "probe");
    const along = (v) => v.dims.filter((name) => atlas.dim(name).kind === "axis").length;
    const score = (v) => 10 * along(v) - (FIRST.includes(v.name) ? FIRST.indexOf(v.name) / 10 - 5 : 0);
    return probes.toSorted((a, b) => score(b) - score(a))[0] ?? data.variables[0];
  };

  function view() {
    const told = atlas.state.read();
    const variable = atlas.variable(told.get("_show")) ?? shownFirst();
    const dims = variable.dims.filter((name) => name !== "seed" && atlas.dim(name).labels.length > 1);
    const order = dims.toSorted((a, b) => kindOf(a) - kindOf(b));
    const x = dims.includes(told.get("_x")) ? told.get("_x") : order.find((d) => atlas.dim(d).numeric) ?? order[0] ?? "";
    const rest = order.filter((name) => name !== x);
    const y = told.get("_y") === "-" ? "" : rest.includes(told.get("_y")) ? told.get("_y") : rest.filter((d) => kindOf(d) === 0)[0] ?? "";
    const many = y && atlas.dim(y).labels.length > 6 && atlas.dim(y).numeric;
    const as = ["map", "lines"].includes(told.get("_as")) ? told.get("_as") : many ? "map" : "lines";
    const seeds = atlas.dim("seed")?.labels ?? [];
    const seed = variable.dims.includes("seed") && seeds.includes(Number(told.get("seed"))) && told.has("seed") ? String(seeds.indexOf(Number(told.get("seed")))) : "mean";
    const at = new Map();
    for (const name of dims) {
      const dim = atlas.dim(name), place = told.has(name) ? atlas.placeOf(dim, told.get(name)) : -1;
      at.set(name, place >= 0 ? place : dim.kind === "axis" ? Math.floor((dim.labels.length - 1) / 2) : dim.labels.length - 1);
    }
    const log = told.has("_log") ? new Set(told.get("_log").split(" ")) : usual(variable, x);
    const beside = atlas.variable(told.get("_with"));
    return { variable, x, y, as: y ? as : "lines", seed, at, log, beside, slices: dims.filter((name) => name !== x && name !== y) };
  }
  const kindOf = (name) => (atlas.dim(name).kind === "axis" ? 0 : 1);

  function usual(variable, x) {
    const found = new Set();
    if (x && atlas.dim(x).log) found.add("x");
    const known = variable.values.filter((v) => v !== null && Number.isFinite(v));
    const low = known.reduce((a, b) => Math.min(a, b), Infinity), high = known.reduce((a, b) => Math.max(a, b), -Infinity);
    if (low > 0 && high / low > 100) found.add("y");
    return found;
  }

  // ------------------------------------------------------------------------------ controls

  function controls(now) {
    const focused = document.activeElement?.name;
    const names = (list) => list.map((v) => [v.name, atlas.words(v)]);
    const dims = now.variable.dims.filter((name) => name !== "seed" && atlas.dim(name).labels.length > 1);
    const options = (list) => list.map((name) => [name, atlas.words(atlas.dim(name))]);
    const parts = [atlas.select("Show", "_show", names(data.variables), now.variable.name)];
    if (dims.length) parts.push(atlas.select("along", "_x", options(dims), now.x));
    if (dims.length > 1) {
      parts.push(atlas.select("and", "_y", [["-", "nothing else"], ...options(dims.filter((d) => d !== now.x))], now.y || "-"));
      if (now.y) parts.push(atlas.select("as", "_as", [["map", "a map"], ["lines", "lines"]], now.as));
    }
    if (now.variable.dims.includes("seed")) {
      const seeds = atlas.dim("seed").labels.map((seed, n) => [String(n), `seed ${seed}`]);
      parts.push(atlas.select("seeds", "seed", [["mean", `mean of ${seeds.length}, 95% interval`], ...seeds], now.seed));
    }
    if (now.as === "lines") {
      const others = data.variables.filter((v) => v !== now.variable && v.dims.every((d) => d === "seed" || dims.includes(d)));
      if (others.length) parts.push(atlas.select("beside", "_with", [["", "nothing"], ...names(others)], now.beside?.name ?? ""));
    }
    if (now.as === "lines" && now.x && atlas.dim(now.x).numeric) parts.push(atlas.tick("log x", "x", now.log.has("x")));
    parts.push(atlas.tick(now.as === "map" ? "log colour" : "log y", "y", now.log.has("y")));
    for (const name of now.slices) {
      const dim = atlas.dim(name);
      parts.push(dim.numeric ? atlas.slider(atlas.words(dim), name, dim.labels, now.at.get(name))
        : atlas.select(atlas.words(dim), name, dim.labels.map((label, n) => [String(n), String(label)]), String(now.at.get(name))));
    }
    form.replaceChildren(...parts);
    if (focused) form.elements.namedItem(focused)?.focus();
  }

  atlas.on(form, "input", "controls", (event) => {
    const { name, value, type, checked } = event.target, told = atlas.state.read(), now = view();
    if (type === "checkbox") {
      const log = new Set(now.log);
      if (checked) log.add(name); else log.delete(name);
      told.set("_log", [...log].join(" ") || "none");
    } else if (name === "seed") {
      if (value === "mean") told.delete("seed"); else told.set("seed", String(atlas.dim("seed").labels[Number(value)]));
    } else if (name.startsWith("_")) {
      told.set(name, value);
      if (name === "_show" || name === "_x") told.delete("_log");
    } else {
      told.set(name, String(atlas.dim(name).labels[Number(value)]));
    }
    atlas.state.write(told);
    draw(type !== "range");
  });
  atlas.on(form, "submit", "no-submit", (event) => event.preventDefault());
  atlas.on(window, "hashchange", "address", () => draw(true));
  atlas.on(document, "atlas:filled", "filled", () => draw(false));

  // ------------------------------------------------------------------------------- drawing

  const placed = (now, i, j) => {
    const at = new Map(now.at);
    if (now.x) at.set(now.x, i);
    if (now.y) at.set(now.y, j);
    return at;
  };
  const told = (found) => {
    const interval = Number.isFinite(found.low) ? ` [${number(found.low)}, ${number(found.high)}]` : "";
    return (found.value === null || Number.isNaN(found.value) ? "not stored" : number(found.value)) + interval;
  };
  function words(now, i, j) {
    const parts = [now.x, now.y].filter(Boolean).map((name) => `${name} ${number(atlas.dim(name).labels[name === now.x ? i : j])}`);
    return `${parts.join(", ")}: ${now.variable.says} ${told(atlas.value(now.variable, placed(now, i, j), now.seed))}`;
  }
  const cellAt = (now, i, j) => {
    const at = placed(now, i, j), found = [];
    for (const axis of data.axes) found.push([axis.name, axis.labels[at.get(axis.name) ?? Math.floor((axis.labels.length - 1) / 2)]]);
    return { labels: found, seed: atlas.dim("seed") ? atlas.dim("seed").labels[now.seed === "mean" ? 0 : Number(now.seed)] : 0 };
  };
  function open(now, i, j) {
    const cell = cellAt(now, i, j);
    document.dispatchEvent(new CustomEvent("atlas:cell", { detail: cell }));
    location.href = `cell.html#${atlas.state.text([...cell.labels, ["seed", cell.seed]].map(([n, v]) => [n, String(v)]))}`;
  }

  function draw(anew) {
    const now = view();
    if (anew) controls(now);
    const chart = atlas.chart();
    chart.setAttribute("aria-label", `${now.variable.says}; arrow keys move, Enter opens a cell`);
    drawing.replaceChildren(chart);
    const xs = now.x ? atlas.dim(now.x).labels : [""], ys = now.y ? atlas.dim(now.y).labels : [""];
    const options = { x: now.x ? atlas.words(atlas.dim(now.x)) : "", y: atlas.words(now.variable) };
    const value = (i, j, variable = now.variable) => atlas.value(variable, placed(now, i, j), now.seed);
    if (now.as === "map") {
      atlas.heat(chart, xs, ys, (i, j) => value(i, j).value, {
        ...options, y: atlas.words(atlas.dim(now.y)), log: now.log.has("y"), say: (i, j) => words(now, i, j),
      });
      drawing.append(el("p", { class: "note" }, `Colour: ${atlas.words(now.variable)}. A dash or hatching: not stored, or not a number.`));
    } else {
      const numeric = now.x !== "" && atlas.dim(now.x).numeric;
      const series = ys.map((label, j) => curve(now, numeric, xs, j, now.y ? `${atlas.dim(now.y).symbol || now.y} = ${number(label)}` : now.variable.says, value));
      if (now.beside) {
        ys.slice(0, now.beside.dims.includes(now.y) ? ys.length : 1).forEach((label, j) => {
          const one = curve(now, numeric, xs, j, now.beside.says + (now.beside.dims.includes(now.y) ? `, ${number(label)}` : ""), (i, k) => value(i, k, now.beside));
          series.push({ ...one, theory: true, marks: null });
        });
      }
      const made = atlas.line(chart, series, { ...options, categories: numeric ? null : xs, logx: now.log.has("x"), logy: now.log.has("y") });
      if (series.length > 1) drawing.append(made.legend);
    }
    atlas.walk(chart, {
      columns: xs.length, rows: ys.length,
      seen: (i, j) => { reading.textContent = words(now, i, j); },
      open: (i, j) => open(now, i, j),
    });
    table(now, xs, ys, value);
  }

  function curve(now, numeric, xs, j, label, value) {
    const found = xs.map((_, i) => value(i, j));
    return {
      label, x: xs.map((x, i) => (numeric ? x : i)), y: found.map((f) => f.value ?? NaN),
      low: found.map((f) => f.low), high: found.map((f) => f.high), marks: (i) => words(now, i, j),
    };
  }

  function table(now, xs, ys, value) {
    const box = document.getElementById("table");
    const fill = () => {
      const head = el("tr", {}, el("th", { scope: "col" }, now.x || "value"),
        ...ys.map((label) => el("th", { scope: "col" }, now.y ? `${now.y} = ${number(label)}` : now.variable.says)));
      const rows = xs.map((label, i) => el("tr", {}, el("th", { scope: "row" }, number(label)),
        ...ys.map((_, j) => el("td", { class: "number" }, told(value(i, j))))));
      box.replaceChildren(el("table", {}, el("thead", {}, head), el("tbody", {}, ...rows)));
    };
    pending = fill;
    if (document.getElementById("as-table").open) fill();
  }
  let pending = () => {};
  atlas.on(document.getElementById("as-table"), "toggle", "table", () => pending());

  // ------------------------------------------------------------------------------- taking it

  atlas.on(document.getElementById("save"), "click", "save", () => {
    const chart = drawing.querySelector("svg").cloneNode(true);
    for (const cursor of chart.querySelectorAll(".cursor")) cursor.remove();
    const style = "text{font:12px sans-serif;fill:#222}.frame{stroke:#888}.band{opacity:.2}polyline{stroke-width:2}.theory *{stroke:#000}.theory .band{fill:#000;stroke:none}.on.dark{fill:#fff}.absent{fill:#ddd}";
    chart.prepend(atlas.svg("style", {}, style));
    const link = el("a", { download: `${data.study}_${data.experiment}_${view().variable.name.replace(/\W+/g, "_")}.svg` });
    link.href = URL.createObjectURL(new Blob([new XMLSerializer().serializeToString(chart)], { type: "image/svg+xml" }));
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  });

  let width = drawing.clientWidth;
  atlas.on(window, "resize", "resize", () => {
    if (drawing.clientWidth !== width) { width = drawing.clientWidth; draw(false); }
  });
  atlas.redraw = () => draw(true);
  draw(true);
})();
