"use strict";
// Cells that are trained while one watches: a form, what it will take, what streams in, what came out.

(() => {
  const place = document.getElementById("live");
  if (!place || !atlas.live) return;
  const { el, svg, on, number } = atlas;
  const data = atlas.experiment ?? null;  // null where nothing is stored yet
  const target = location.pathname.split("/").slice(-3, -1).join("/");
  const scale = document.querySelector("meta[name=atlas-scale]").content;
  const MOST_ROWS = 50, PLACES = 200;

  const mean = (some) => {
    const known = some.filter((x) => typeof x === "number");
    return known.length ? known.reduce((a, b) => a + b, 0) / known.length : NaN;
  };

  async function post(path, body) {
    const answer = await fetch(`${atlas.root}api/${path}`, {
      method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body),
    });
    const text = await answer.text();
    let told = { error: text.trim() };
    try { told = JSON.parse(text); } catch { /* a line of plain text */ }
    if (!answer.ok) throw new Error(told.error || `the server answers ${answer.status}`);
    return told;
  }

  // ------------------------------------------------------------------------------ the form

  const fields = [];  // {p, first, read, set}
  const short = (x) => String(Number(Number(x).toPrecision(6)));

  // The range of a slider: that of the axis and somewhat more, or around the value.
  function ends(p) {
    const axis = data.axes.find((each) => each.name === p.name && each.numeric);
    const some = axis ? axis.labels : [p.value];
    let low = Math.min(...some), high = Math.max(...some);
    let log = low > 0 && (!axis || axis.log || axis.labels.length < 2);
    if (log) [low, high] = [low / 2, high * 2];
    else [low, high] = [low - ((high - low) / 4 || Math.abs(low) || 1), high + ((high - low) / 4 || Math.abs(high) || 1)];
    if (p.low !== null) low = Math.max(low, p.low);
    if (p.high !== null) high = Math.min(high, p.high);
    log = log && low > 0;
    return { low, high, log };
  }

  function numeric(p, id) {
    const whole = p.type === "int", { low, high, log } = ends(p);
    const exact = el("input", {
      type: "number", id, name: p.name, step: whole ? 1 : "any", min: p.low, max: p.high,
      value: short(p.value), required: true,
    });
    const slider = el("input", {
      type: "range", min: 0, max: PLACES, step: 1, "aria-label": `${p.says}, as a slider`,
    });
    const share = (x) => (log ? Math.log(x / low) / Math.log(high / low) : (x - low) / (high - low));
    const value = (t) => (log ? low * (high / low) ** t : low + t * (high - low));
    const follow = () => {
      const t = share(Number(exact.value));
      slider.value = Math.round(PLACES * Math.min(1, Math.max(0, Number.isFinite(t) ? t : 0)));
      slider.setAttribute("aria-valuetext", exact.value);
    };
    on(slider, "input", "live-slider", () => {
      const x = value(slider.valueAsNumber / PLACES);
      exact.value = whole ? Math.round(x) : Number(x.toPrecision(3));
      slider.setAttribute("aria-valuetext", exact.value);
      changed();
    });
    on(exact, "input", "live-number", () => { follow(); changed(); });
    follow();
    const set = (x) => { exact.value = short(x); follow(); };
    // What is shown in few digits means the place on the axis that it stands for.
    const known = [...(data.axes.find((each) => each.name === p.name)?.labels ?? []), p.value];
    const read = () => String(known.find((label) => short(label) === exact.value.trim()) ?? exact.value.trim());
    return { nodes: [exact, slider], read, set };
  }

  function chosen(p, id) {
    const all = p.type === "bool" ? ["true", "false"] : p.choices.map(String);
    const list = el("select", { id, name: p.name }, all.map((text) => el("option", { value: text }, text)));
    const set = (x) => { list.value = String(x); };
    set(p.value);
    on(list, "input", "live-choice", changed);
    return { nodes: [list], read: () => list.value, set };
  }

  function field(p) {
    const id = `live-${fields.length}`;
    const made = p.type === "bool" || p.choices?.length ? chosen(p, id) : numeric(p, id);
    fields.push({ p, first: made.read(), ...made });
    const costs = p.shape ? "A new value is a new shape: it compiles anew." : "";
    return el("div", { class: "live-field", title: costs || null },
      el("label", { for: id }, atlas.words(p)), made.nodes);
  }

  const settable = (p) => !p.derived && p.value !== null
    && (p.choices?.length || ["bool", "int", "float"].includes(p.type));
  const usable = data ? data.parameters.filter(settable) : [];
  const sorted = [...usable.filter((p) => p.axis), ...usable.filter((p) => !p.axis)];
  const made = sorted.map((p) => [p, field(p)]);
  const group = (wanted) => made.filter(([p]) => p.axis === wanted).map(([, node]) => node);
  const seeds = el("input", { type: "number", id: "live-seeds", min: 1, max: 64, step: 1, value: 1, required: true });
  on(seeds, "input", "live-seeds", changed);
  const run = el("button", { type: "submit", id: "live-run" }, "Train this cell");
  const fill = el("button", { type: "button", id: "live-fill" }, "Train the whole grid");
  const stop = el("button", { type: "button", id: "live-cancel", hidden: true }, "Cancel");
  const cost = el("output", { id: "live-cost", "aria-live": "polite" });
  const rest = group(false);
  const form = el("form", { id: "live-form", "aria-label": "a cell to train" },
    data && el("div", { class: "live-fields" }, group(true),
      el("div", { class: "live-field" }, el("label", { for: "live-seeds" }, "seeds"), seeds)),
    rest.length ? el("details", {}, el("summary", {}, "More parameters"), el("div", { class: "live-fields" }, rest)) : null,
    el("p", { class: "live-buttons" }, data && run, fill, stop), cost);
  const status = el("p", { id: "live-status", role: "status" });
  const bar = el("progress", { id: "live-bar", max: 1, value: 0, hidden: true, "aria-label": "how far the training is" });
  const watch = el("select", { id: "live-watch" });
  const grows = atlas.tick("log steps", "live-log", false), legend = el("div");
  const lines = svg("svg", { id: "live-lines", class: "chart", role: "img" });
  const now = svg("svg", { id: "live-now", class: "chart", role: "img", hidden: true });
  const watching = el("div", { id: "live-watching", hidden: true },
    el("p", {}, el("label", { for: "live-watch" }, "Watch "), watch, " ", grows),
    el("div", { class: "live-pictures" }, el("div", {}, lines, legend), now));
  const head = el("thead"), body = el("tbody");
  const results = el("div", { id: "live-results", class: "scrolls", tabindex: 0, role: "group", "aria-label": "cells trained here", hidden: true },
    el("table", {}, head, body));
  place.setAttribute("aria-labelledby", "live-title");
  place.append(el("h2", { id: "live-title" }, "Train"),
    el("p", { class: "note" }, "On this machine, by the same engine as proving run, into the same store."),
    form, status, bar, watching, results);
  place.hidden = false;

  // ---------------------------------------------------------------------- asking, and costs

  function asked(whole) {
    const settings = [];
    for (const { p, first, read } of whole ? [] : fields) {
      if (p.axis || read() !== first) settings.push(`${p.name}=${read()}`);
    }
    const request = { experiment: target, scale, settings };
    return whole ? request : { ...request, seeds: seeds.value.trim() };
  }

  let timer = 0, latest = 0;
  function changed() {
    clearTimeout(timer);
    timer = setTimeout(estimated, 200);
  }

  async function estimated() {
    const mine = ++latest;
    const [text, wrong] = await post("estimate", asked(!data)).then((told) => [told.says, false], (error) => [error.message, true]);
    if (mine === latest) says(cost, text, wrong);
  }

  function says(where, text, wrong = false) {
    where.textContent = text;
    where.classList.toggle("attention", wrong);
  }

  // ------------------------------------------------------------------------ what streams in

  let job = null, source = null, curves = new Map(), agrees = null, picked = false, due = false;

  async function ask(whole) {
    try {
      follow((await post("jobs", asked(whole))).job);
    } catch (error) {
      says(status, error.message, true);
    }
  }

  function follow(which) {
    source?.close();
    [job, curves, agrees] = [which, new Map(), null];
    watch.replaceChildren();
    watching.hidden = true;
    stop.hidden = false;
    says(status, "asked");
    source = new EventSource(`${atlas.root}api/jobs/${which}/events`);
    on(source, "message", "live-told", (message) => {
      const told = JSON.parse(message.data);
      if (Object.hasOwn(hear, told.event)) hear[told.event](told);
    });
    on(source, "end", "live-end", ended);
    on(source, "error", "live-lost", () => {
      const gone = source.readyState === EventSource.CLOSED;
      says(status, gone ? "the server knows this request no more; what was finished is stored" : "the connection to the server was lost; trying again", true);
      if (gone) ended();
    });
  }

  function ended() {
    source?.close();
    source = null;
    stop.hidden = bar.hidden = true;
    estimated();
  }

  function progress(done, total) {
    bar.hidden = false;
    bar.max = Math.max(total, 1);
    bar.value = done;
  }

  const hear = {
    waiting: (told) => says(status, `in the queue: ${told.says}`),
    running: () => says(status, "starting"),
    phase(told) {
      const at = (told.labels ?? []).map(([name, label]) => `${name} ${number(label)}, `).join("");
      says(status, told.what === "watching" ? `training ${at}seed ${told.seed}` : told.what);
    },
    frame: framed,
    progress(told) {
      says(status, `${told.what}: ${told.done} of ${told.total} cells`);
      progress(told.done, told.total);
    },
    cells(told) {
      if (data) told.cells.forEach(arrived);
      else location.reload();  // now there is something to draw; the rest fills in
    },
    same(told) { agrees = told.deviation; },
    cut: () => says(status, "there is too much to show all of it; reload the page at the end"),
    done(told) {
      const lost = told.diverged ? `; ${told.diverged} diverged` : "";
      const same = agrees === null ? "" : `; what was watched agrees with what is stored to ${agrees ? number(agrees, 2) : "the last digit"}`;
      says(status, `stored: ${told.cells} ${told.cells === 1 ? "cell" : "cells"}${lost}${same}. `);
      if (!data) location.reload();  // it was all stored already
      const anew = el("button", { type: "button" }, "Read the page anew");
      on(anew, "click", "live-anew", () => location.reload());  // which keeps the view
      status.append(anew, " for its claims and figure.");
    },
    failed: (told) => says(status, told.says, true),
    cancelled: () => says(status, "cancelled; what was finished is stored"),
  };

  function framed(told) {
    progress(told.step, told.steps);
    const names = Object.keys(told.probes);
    if (names.length) watching.hidden = false;
    for (const name of names) {
      let curve = curves.get(name);
      if (curve?.training !== told.training) {
        curve = { training: told.training, steps: [], values: [] };
        curves.set(name, curve);
        offered();
      }
      curve.steps.push(told.step);
      curve.values.push(told.probes[name]);
    }
    if (due) return;
    due = true;
    requestAnimationFrame(() => { due = false; drawn(); });
  }

  const FIRST = ["loss", "risk", "error", "attention"];
  const rank = (name) => { const at = FIRST.findIndex((word) => name.includes(word)); return at < 0 ? FIRST.length : at; };
  const said = (name) => data?.variables.find((each) => each.name === name)?.says ?? name.replaceAll("_", " ");

  function offered() {
    const before = watch.value, names = [...curves.keys()].toSorted((a, b) => rank(a) - rank(b));
    watch.replaceChildren(...names.map((name) => el("option", { value: name }, said(name))));
    watch.value = picked && names.includes(before) ? before : names[0];
  }

  // The labels of the numbers of a probe, where one of its dims has as many.
  function labelsOf(name, wide) {
    const dims = data?.variables.find((each) => each.name === name)?.dims ?? [];
    const dim = dims.map((each) => atlas.dim(each)).find((each) => each.kind === "probe" && each.labels.length === wide);
    return Array.from({ length: wide }, (_, n) => (dim ? `${dim.says} ${number(dim.labels[n])}` : String(n)));
  }

  // The curve so far, and for a probe of many numbers also those of now.
  function drawn() {
    const curve = curves.get(watch.value);
    if (!curve) return;
    const flat = curve.values.map((value) => [value].flat(Infinity)), wide = flat[0].length;
    const name = said(watch.value), y = (some) => some.map((v) => v ?? NaN);
    const few = wide <= 8, labels = labelsOf(watch.value, wide);
    const series = few
      ? flat[0].map((_, n) => ({ label: wide > 1 ? labels[n] : name, x: curve.steps, y: y(flat.map((each) => each[n])) }))
      : [{ label: `mean of ${wide}`, x: curve.steps, y: flat.map(mean) }];
    const known = series.flatMap((each) => each.y).filter(Number.isFinite);
    const low = Math.min(...known), high = Math.max(...known);
    const step = curve.steps.at(-1), last = number(mean(flat.at(-1)));
    lines.setAttribute("aria-label", `${name} while it trains: ${last} at step ${step}`);
    lines.dataset.points = curve.steps.length;
    const logx = grows.querySelector("input").checked;
    const drawing = atlas.line(lines, series, { x: "step", y: name, logx, logy: low > 0 && high / low > 30 });
    legend.replaceChildren(...(series.length > 1 ? [drawing.legend] : []));
    const value = curve.values.at(-1);
    const shown = !few || Array.isArray(value?.[0]);  // as many numbers as make a picture
    now.toggleAttribute("hidden", !shown);
    if (!shown) return;
    const rows = Array.isArray(value[0]) ? value.map((row) => row.flat(Infinity)) : [value];
    const count = (n) => Array.from({ length: n }, (_, i) => i);
    now.setAttribute("aria-label", `${name} at step ${step}: ${rows.length} x ${rows[0].length} numbers`);
    atlas.heat(now, count(rows[0].length), count(rows.length), (i, j) => rows[j][i] ?? NaN, { x: `${name} at step ${step}`, y: "" });
  }

  // ------------------------------------------------------------------------- what came out

  function arrived(cell) {
    const stored = cell.declared && atlas.fill(cell);
    const labels = Object.entries(cell.labels);
    const probes = Object.entries(cell.probes).filter(([, values]) => !Array.isArray(values[0])).slice(0, 6);
    const names = [...labels.map(([name]) => name), "seeds", ...probes.map(([name]) => said(name)), "look"];
    head.replaceChildren(el("tr", {}, names.map((name) => el("th", { scope: "col" }, name))));
    const values = [...labels.map(([, label]) => label), cell.seeds.length, ...probes.map(([, some]) => mean(some))];
    const view = [...labels, ["seed", cell.seeds[0]]].map(([name, label]) => [name, String(label)]);
    const link = stored ? el("a", { href: `cell.html#${atlas.state.text(view)}` }, "open") : "not on the grid";
    body.prepend(el("tr", {}, values.map((x) => el("td", { class: "number" }, number(x))), el("td", {}, link)));
    while (body.rows.length > MOST_ROWS) body.lastChild.remove();
    results.hidden = false;
  }

  // ------------------------------------------------------------------------------ handlers

  on(form, "submit", "live-run", (event) => { event.preventDefault(); ask(false); });
  on(fill, "click", "live-fill", () => ask(true));
  on(stop, "click", "live-cancel", () => post(`jobs/${job}/cancel`, {}).catch((error) => says(status, error.message, true)));
  on(watch, "input", "live-watch", () => { picked = true; drawn(); });
  on(grows, "input", "live-log", drawn);
  on(window, "resize", "live-resize", drawn);

  const told = atlas.state.read();  // the view's place on the axes is where the form begins
  for (const { p, set } of fields) {
    const text = told.get(p.name);
    if (text !== undefined && (p.choices?.map(String).includes(text) ?? Number.isFinite(Number(text)))) set(text);
  }
  fetch(`${atlas.root}api/jobs`).then((answer) => answer.json()).then(({ jobs }) => {
    const going = jobs.find((each) => each.experiment === target && ["waiting", "running"].includes(each.state));
    if (going) follow(going.job);
  }).catch(() => says(status, "the server does not answer", true));
  estimated();
})();
