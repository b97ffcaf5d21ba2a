"use strict";
// Charts as SVG: lines with intervals, and maps of coloured cells. Each mark can have the focus and is
// reached by arrow keys. Colours are told apart by lightness, and never say anything alone.

(() => {
  const VIRIDIS = [[68, 1, 84], [71, 44, 122], [59, 81, 139], [44, 113, 142], [33, 144, 141],
    [39, 173, 129], [92, 200, 99], [170, 220, 50], [253, 231, 37]];
  const DASHES = ["", "7 3", "2 3", "9 3 2 3", "4 2", "1 2", "12 4"];
  const FEW = 8;  // points of a curve up to which each is marked
  const LONG = 400;  // points of a curve above which it is thinned to what the screen shows

  function colour(share) {
    const at = Math.min(Math.max(share, 0), 1) * (VIRIDIS.length - 1);
    const low = Math.min(Math.floor(at), VIRIDIS.length - 2), rest = at - low;
    return VIRIDIS[low].map((x, n) => Math.round(x + rest * (VIRIDIS[low + 1][n] - x)));
  }
  // Colours of lines leave out the end of the range that is lost on the page.
  const night = matchMedia("(prefers-color-scheme: dark)");
  const hue = (n, many) => {
    const share = many > 1 ? n / (many - 1) : 0.5;
    return rgb(colour(night.matches ? 0.42 + 0.58 * share : 0.78 * share));
  };
  const rgb = (parts) => `rgb(${parts.join(",")})`;
  const dark = ([r, g, b]) => 0.299 * r + 0.587 * g + 0.114 * b < 140;

  const finite = (list) => list.filter((x) => typeof x === "number" && Number.isFinite(x));

  // A scale from values to pixels, with its ticks. Values that are not numbers stand side by side.
  function scale(values, log, from, to, categories = false) {
    if (categories) {
      const step = (to - from) / values.length;
      const place = (n) => from + step * (n + 0.5);
      return { place, ticks: values.map((label, n) => [n, atlas.number(label)]), step, log: false };
    }
    const known = finite(values).filter((x) => !log || x > 0);
    let low = known.length ? Math.min(...known) : log ? 0.1 : 0;
    let high = known.length ? Math.max(...known) : 1;
    if (low === high) [low, high] = log ? [low / 2, high * 2] : [low - (Math.abs(low) || 1) / 2, high + (Math.abs(high) || 1) / 2];
    const change = log ? Math.log10 : (x) => x;
    const [a, b] = [change(low), change(high)], room = 0.04 * (b - a);
    const place = (x) => from + ((change(x) - a + room) / (b - a + 2 * room)) * (to - from);
    return { place, ticks: log ? decades(low, high) : even(low, high), log };
  }

  function even(low, high, most = 6) {
    const rough = (high - low) / most, power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= rough);
    const found = [];
    for (let n = Math.ceil(low / step - 1e-9); n * step <= high * (1 + 1e-9) + 1e-12 && found.length < 12; n++) {
      found.push([n * step, atlas.number(Number((n * step).toPrecision(10)))]);
    }
    return found;
  }

  function decades(low, high) {
    const span = Math.log10(high / low), every = Math.max(1, Math.ceil(span / 6)), found = [];
    const heads = span < 1.2 ? [1, 2, 3, 5, 7] : span < 3 ? [1, 3] : [1];
    for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power++) {
      if (power % every) continue;
      for (const head of heads) {
        const x = head * 10 ** power;
        if (x >= low * 0.999 && x <= high * 1.001) found.push([x, atlas.number(x, 3)]);
      }
    }
    return found.length > 1 ? found : even(low, high);
  }

  // -------------------------------------------------------------------------------- frame

  function frame(target, options) {
    const width = Math.max(options.width ?? target.clientWidth ?? 0, 240);
    const height = options.height ?? Math.min(Math.max(0.62 * width, 220), 460);
    target.replaceChildren();
    target.setAttribute("viewBox", `0 0 ${width} ${height}`);
    target.setAttribute("height", height);
    target.classList.add("chart");
    const long = Math.max(0, ...(options.yTicks ?? []).map((text) => text.length));
    const left = Math.min(Math.max(58, 32 + 7 * long), 0.4 * width);
    return { width, height, left, right: width - 14, top: 10, bottom: height - 46 };
  }

  function axes(target, box, x, y, options) {
    const add = (...parts) => target.append(...parts);
    add(atlas.svg("line", { class: "frame", x1: box.left, x2: box.right, y1: box.bottom, y2: box.bottom }),
      atlas.svg("line", { class: "frame", x1: box.left, x2: box.left, y1: box.top, y2: box.bottom }));
    const room = (box.right - box.left) / Math.max(1, ...x.ticks.map(([, text]) => 7 * text.length + 8));
    const everyX = Math.ceil(x.ticks.length / Math.max(room, 1));
    x.ticks.forEach(([value, text], n) => {
      const at = x.place(value);
      add(atlas.svg("line", { class: "frame", x1: at, x2: at, y1: box.bottom, y2: box.bottom + 4 }));
      if (n % everyX === 0) {
        add(atlas.svg("text", { x: at, y: box.bottom + 17, "text-anchor": "middle" }, text));
      }
    });
    const everyY = Math.ceil(y.ticks.length / ((box.bottom - box.top) / 15));
    y.ticks.forEach(([value, text], n) => {
      const at = y.place(value);
      add(atlas.svg("line", { class: "frame", x1: box.left - 4, x2: box.left, y1: at, y2: at }));
      if (n % everyY === 0) {
        const most = Math.floor((box.left - 22) / 6.5);
        const told = text.length > most ? `${text.slice(0, most - 1)}…` : text;
        add(atlas.svg("text", { x: box.left - 7, y: at + 4, "text-anchor": "end" }, told));
      }
    });
    add(atlas.svg("text", { class: "title", x: (box.left + box.right) / 2, y: box.height - 8, "text-anchor": "middle" }, cut(options.x, (box.right - box.left) / 6)));
    const middle = (box.top + box.bottom) / 2;
    add(atlas.svg("text", { class: "title", x: 12, y: middle, "text-anchor": "middle", transform: `rotate(-90 12 ${middle})` }, cut(options.y, (box.bottom - box.top) / 6)));
  }
  const cut = (text, most) => ((text ?? "").length > most ? `${text.slice(0, most - 1)}…` : text ?? "");

  // -------------------------------------------------------------------------------- lines

  const thinned = (points, width) => {
    if (points.length <= LONG) return points;
    const every = points.length / (2 * width);
    return points.filter((_, n) => every <= 1 || n === points.length - 1 || Math.floor(n / every) !== Math.floor((n - 1) / every));
  };

  // Draws curves: [{label, x, y, low?, high?, theory?, marks?}], one below the other in a legend.
  atlas.line = (target, series, options = {}) => {
    const categories = options.categories ?? null;
    const all = [...series.flatMap((each) => [each.y, each.low ?? [], each.high ?? []].flat()), ...(options.span ?? [])];
    const ticks = scale(all, options.logy, 1, 0).ticks.map(([, text]) => text);
    const box = frame(target, { ...options, yTicks: ticks });
    const x = scale(categories ?? series.flatMap((each) => [...each.x]), options.logx && !categories, box.left, box.right, categories !== null);
    const y = scale(all, options.logy, box.bottom, box.top);
    axes(target, box, x, y, options);
    const usable = (value, log) => typeof value === "number" && Number.isFinite(value) && (!log || value > 0);
    series.forEach((each, n) => {
      const points = [...each.x].map((at, k) => ({ at, k, value: each.y[k], low: each.low?.[k], high: each.high?.[k] }))
        .filter((p) => usable(p.value, options.logy) && usable(p.at, x.log));
      const place = (value) => Math.min(Math.max(y.place(value), box.top), box.bottom);
      const own = each.theory ? null : hue(n, series.length);
      const group = atlas.svg("g", { class: each.theory ? "series theory" : "series", stroke: own, fill: own });
      const seen = thinned(points, box.right - box.left);
      const banded = seen.filter((p) => usable(p.low, options.logy) && usable(p.high, options.logy));
      if (banded.length > 1 && !categories) {
        const there = banded.map((p) => `${x.place(p.at).toFixed(1)},${place(p.high).toFixed(1)}`);
        const back = banded.map((p) => `${x.place(p.at).toFixed(1)},${place(p.low).toFixed(1)}`).reverse();
        group.append(atlas.svg("polygon", { class: "band", stroke: "none", points: [...there, ...back].join(" ") }));
      } else {
        for (const p of banded) {
          group.append(atlas.svg("line", { x1: x.place(p.at), x2: x.place(p.at), y1: place(p.low), y2: place(p.high) }));
        }
      }
      group.append(atlas.svg("polyline", { class: categories ? "faint" : null, fill: "none", "stroke-dasharray": DASHES[n % DASHES.length], points: seen.map((p) => `${x.place(p.at).toFixed(1)},${place(p.value).toFixed(1)}`).join(" ") }));
      const few = points.length <= FEW && !each.theory;  // a line alone would hide how few, or be none
      for (const p of (categories || few) && !each.marks ? points : []) {
        group.append(atlas.svg("circle", { cx: x.place(p.at), cy: place(p.value), r: 3 }));
      }
      for (const p of each.marks ? points : []) {
        group.append(atlas.svg("circle", { class: "mark", cx: x.place(p.at), cy: place(p.value), r: 4.5, tabindex: -1, role: "button", "data-i": p.k, "data-j": n, "aria-label": each.marks(p.k) }));
      }
      target.append(group);
    });
    return { legend: legend(series) };
  };

  function legend(series) {
    const list = atlas.el("ul", { class: "legend" });
    series.forEach((each, n) => {
      const key = atlas.svg("svg", { class: each.theory ? "key theory" : "key", width: 28, height: 10, "aria-hidden": "true" },
        atlas.svg("line", { x2: 28, y1: 5, y2: 5, stroke: each.theory ? null : hue(n, series.length), "stroke-dasharray": DASHES[n % DASHES.length] }));
      list.append(atlas.el("li", {}, key, ` ${each.label}`));
    });
    return list;
  }

  // --------------------------------------------------------------------------------- maps

  // Draws a map: columns and rows are labels, value(i, j) a number, say(i, j) its words.
  atlas.heat = (target, columns, rows, value, options = {}) => {
    const told = rows.map((label) => atlas.number(label));
    const box = frame(target, { ...options, yTicks: told });
    const strip = 58;
    box.right -= strip;
    const x = scale(columns, false, box.left, box.right, true);
    const y = scale(rows, false, box.bottom, box.top, true);
    const values = columns.map((_, i) => rows.map((_, j) => value(i, j)));
    const known = finite(values.flat()).filter((v) => !options.log || v > 0);
    const [low, high] = options.range ?? (known.length ? [Math.min(...known), Math.max(...known)] : [0, 1]);
    const change = options.log ? Math.log : (v) => v;
    const share = (v) => (high > low ? (change(v) - change(low)) / (change(high) - change(low)) : 0.5);
    const w = (box.right - box.left) / columns.length, h = (box.bottom - box.top) / rows.length;
    const cells = atlas.svg("g", { class: w < 9 || h < 9 ? "fine" : null });
    columns.forEach((_, i) => rows.forEach((_, j) => {
      const v = values[i][j], seen = typeof v === "number" && Number.isFinite(v) && (!options.log || v > 0);
      const parts = seen ? colour(share(v)) : null;
      const left = x.place(i) - w / 2, top = y.place(j) - h / 2;
      cells.append(atlas.svg("rect", { class: seen ? "cell" : "cell absent", x: left.toFixed(2), y: top.toFixed(2), width: w.toFixed(2), height: h.toFixed(2), fill: parts && rgb(parts), tabindex: options.say ? -1 : null, role: options.say ? "button" : null, "data-i": i, "data-j": j, "aria-label": options.say?.(i, j) }));
      if (w > 44 && h > 18) {
        cells.append(atlas.svg("text", { class: parts && dark(parts) ? "on dark" : parts ? "on light" : "on", x: x.place(i), y: y.place(j) + 4, "text-anchor": "middle", "aria-hidden": "true" }, seen ? atlas.number(v, 3) : "–"));
      }
    }));
    target.append(cells);
    axes(target, box, x, y, options);
    bar(target, box, low, high, options.log);
  };

  // What the colours mean, at the right of a map.
  function bar(target, box, low, high, log) {
    const left = box.right + 14, height = box.bottom - box.top, steps = 40;
    for (let n = 0; n < steps; n++) {
      target.append(atlas.svg("rect", { x: left, y: box.bottom - ((n + 1) / steps) * height, width: 12, height: height / steps + 0.5, fill: rgb(colour((n + 0.5) / steps)) }));
    }
    const middle = log ? Math.sqrt(low * high) : (low + high) / 2;
    [[low, box.bottom], [middle, box.bottom - height / 2], [high, box.top + 8]].forEach(([v, at]) => {
      target.append(atlas.svg("text", { class: "small", x: left + 14, y: at }, atlas.number(v, 2)));
    });
  }

  // ------------------------------------------------------------------------------ keyboard

  // One mark of a chart can be reached by Tab; arrows go to its neighbours, Enter opens.
  atlas.walk = (target, { seen, open, columns, rows }) => {
    const mark = (i, j) => target.querySelector(`[data-i="${i}"][data-j="${j}"]`);
    const place = (node) => [Number(node.dataset.i), Number(node.dataset.j)];
    const first = target.querySelector("[data-i]");
    if (first) first.setAttribute("tabindex", 0);
    const marked = (event) => event.target.closest?.("[data-i]");
    const cursor = atlas.svg("rect", { class: "cursor" });  // above the neighbours of a cell
    const read = (node) => {
      if (node.tagName === "rect") {
        for (const side of ["x", "y", "width", "height"]) cursor.setAttribute(side, node.getAttribute(side));
        target.append(cursor);
      }
      seen(...place(node));
    };
    atlas.on(target, "keydown", "arrows", (event) => {
      const node = marked(event);
      const move = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
      if (!node || !move) return;
      event.preventDefault();
      let [i, j] = place(node);
      for (let tries = 0; tries < columns + rows; tries++) {
        [i, j] = [i + move[0], j + move[1]];
        if (i < 0 || j < 0 || i >= columns || j >= rows) return;
        if (mark(i, j)) break;
      }
      const next = mark(i, j);
      if (!next) return;
      node.setAttribute("tabindex", -1);
      next.setAttribute("tabindex", 0);
      next.focus();
    });
    atlas.on(target, "keydown", "enter", (event) => {
      const node = marked(event);
      if (!node || (event.key !== "Enter" && event.key !== " ")) return;
      event.preventDefault();
      open(...place(node));
    });
    atlas.on(target, "focusin", "focus-reads", (event) => { const node = marked(event); if (node) read(node); });
    atlas.on(target, "pointerover", "hover-reads", (event) => { const node = marked(event); if (node) read(node); });
    atlas.on(target, "click", "click-opens", (event) => { const node = marked(event); if (node) open(...place(node)); });
  };

  atlas.chart = () => atlas.svg("svg", { class: "chart", role: "group" });
})();
