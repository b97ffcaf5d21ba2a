"use strict";
// The conditions of a theorem at other settings: on a live page those that are typed in, asked of the
// server; else those of an experiment's axes, from its file.

(() => {
  const form = document.getElementById("settings"), told = document.getElementById("told");
  const table = document.getElementById("margins"), predictions = document.getElementById("predictions");
  const axes = document.getElementById("axes"), { number } = atlas;
  const row = (owner, name) => [...(owner?.querySelectorAll("tr[data-name]") ?? [])].find((each) => each.dataset.name === name);
  const first = table?.tBodies[0].innerHTML, firstPredictions = predictions?.innerHTML;
  const study = form.dataset.study;

  function bar(node, margin, met) {
    const share = margin > 0 ? Math.log10(margin) : Number.isNaN(margin) ? 0 : -6;
    const place = 50 + (50 * Math.min(Math.max(share, -6), 6)) / 6;
    const drawn = node.querySelector("svg.margin"), rect = drawn.querySelector("rect");
    rect.setAttribute("x", `${Math.min(place, 50)}%`);
    rect.setAttribute("width", `${Math.abs(place - 50)}%`);
    drawn.setAttribute("class", met ? "margin met" : "margin missed");
    drawn.setAttribute("aria-label", `margin ${number(margin)}`);
    node.querySelector("td .number").textContent = number(margin);
    node.querySelector(".met:not(svg)").textContent = met ? "✓ yes" : "✗ no";
  }

  function reset() {
    if (table) table.tBodies[0].innerHTML = first;
    if (predictions) predictions.innerHTML = firstPredictions;
  }

  // ------------------------------------------------------------------------ from files

  const known = new Map();
  async function load(experiment) {
    if (!known.has(experiment)) {
      await atlas.load(`${experiment}/theory.js`);
      known.set(experiment, atlas.theory);
    }
    return known.get(experiment);
  }

  async function ofExperiment(name) {
    axes.replaceChildren();
    reset();
    told.textContent = "";
    if (!name) return;
    let theory;
    try {
      theory = await load(name);
    } catch {
      theory = null;
    }
    if (form.elements.namedItem("experiment").value !== name) return;
    if (!theory) {
      told.textContent = "Nothing of this is stored.";
      return;
    }
    for (const dim of theory.dims) {
      axes.append(atlas.slider(atlas.words(dim), dim.name, dim.labels, Math.floor((dim.labels.length - 1) / 2)));
    }
    place(theory);
  }

  function place(theory) {
    const at = new Map([...axes.querySelectorAll("input")].map((field) => [field.name, field.valueAsNumber]));
    atlas.dim = (name) => theory.dims.find((each) => each.name === name);
    const value = (v) => v.values[atlas.flat(v.dims, at)];
    let met = 0;
    for (const condition of theory.conditions) {
      const node = row(table, condition.name), margin = value(condition);
      if (!node || typeof margin !== "number") continue;
      bar(node, margin, margin >= 1 - 1e-6);
      node.querySelector(".sides").textContent = "";
      met += margin >= 1 - 1e-6 ? 1 : 0;
    }
    for (const prediction of theory.predictions) {
      const node = row(predictions, prediction.name);
      if (node) node.querySelector("td").textContent = number(value(prediction) ?? NaN);
    }
    told.textContent = theory.conditions.length ? `${met} of ${theory.conditions.length} conditions hold here` : "";
  }

  // ---------------------------------------------------------------------- from a server

  let asked = 0;
  async function ask() {
    const settings = Object.fromEntries([...form.elements].filter((f) => f.name).map((f) => [f.name, typed(f)]));
    const mine = ++asked;
    told.textContent = "Being computed.";
    const answer = await fetch(`${atlas.root}api/conditions`, {
      method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ study, settings }),
    });
    const found = await answer.json().catch(() => ({ error: `The server answers ${answer.status}.` }));
    if (mine !== asked) return;
    if (found.error) {
      told.textContent = found.error;
      return;
    }
    for (const c of found.conditions) {
      const node = row(table, c.name);
      if (!node) continue;
      bar(node, Number(c.margin), c.satisfied);  // "Infinity" and "NaN" are words
      const sign = { "<=": "≤", ">=": "≥" }[c.relation] ?? c.relation;
      node.querySelector(".sides").textContent = `${number(Number(c.left))} ${sign} ${number(Number(c.right))}`;
    }
    for (const value of found.values ?? []) {
      const node = row(predictions, value.name);
      if (node) node.querySelector("td").textContent = number(Number(value.value));
    }
    told.textContent = `${found.conditions.filter((c) => c.satisfied).length} of ${found.conditions.length} conditions hold here`;
  }

  function typed(field) {
    if (field.dataset.type === "bool" || field.value === "True" || field.value === "False") return field.value === "True";
    const value = Number(field.value);
    return field.dataset.type !== "str" && field.value.trim() !== "" && !Number.isNaN(value) ? value : field.value;
  }

  let later = 0;
  atlas.on(form, "input", "settings", (event) => {
    if (atlas.live) {
      clearTimeout(later);
      later = setTimeout(() => ask().catch(() => { told.textContent = "The server does not answer."; }), 250);
    } else if (event.target.name === "experiment") {
      ofExperiment(event.target.value);
    } else {
      place(known.get(form.elements.namedItem("experiment").value));
    }
  });
  atlas.on(form, "submit", "no-submit", (event) => event.preventDefault());
})();
