"use strict";
// What all pages share: elements, numbers, the state of a view in the address, copying.
// Everything hangs on one global, `atlas`. Texts are set as texts: no name of a label is ever markup.

window.atlas = (() => {
  const root = document.querySelector('meta[name="atlas-root"]')?.content ?? "";
  const live = document.querySelector('meta[name="atlas-live"]') !== null;

  function filled(node, attributes, children) {
    for (const [name, value] of Object.entries(attributes ?? {})) {
      if (value === null || value === undefined || value === false) continue;
      node.setAttribute(name, value === true ? "" : String(value));
    }
    node.append(...children.flat().filter((child) => child !== null && child !== undefined));
    return node;
  }

  const el = (tag, attributes, ...children) =>
    filled(document.createElement(tag), attributes, children);
  const svg = (tag, attributes, ...children) =>
    filled(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);

  // Every handler of every page is registered here, by a name: tests take them away one by one.
  const on = (target, type, name, handler) => target.addEventListener(type, handler);

  // ------------------------------------------------------------------------------- numbers

  function number(x, digits = 4) {
    if (typeof x !== "number") return String(x);
    if (!Number.isFinite(x)) return Number.isNaN(x) ? "n/a" : x > 0 ? "∞" : "−∞";
    const size = Math.abs(x);
    if (size !== 0 && (size < 1e-3 || size >= 1e6)) {
      const [head, power] = x.toExponential(Math.max(digits - 2, 0)).split("e");
      return `${Number(head)}e${Number(power)}`.replace("-", "−").replace("e-", "e−");
    }
    return String(Number(x.toPrecision(digits))).replace("-", "−");
  }

  const T975 = [0, 12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201,
    2.179, 2.16, 2.145, 2.131, 2.12, 2.11, 2.101, 2.093, 2.086, 2.08, 2.074, 2.069, 2.064, 2.06,
    2.056, 2.052, 2.048, 2.045, 2.042];

  // The mean over seeds with its 95% interval: Student's t, or Wilson's for a probe that is 0 or 1.
  function summary(values, rate = false) {
    const known = values.filter((x) => typeof x === "number" && Number.isFinite(x));
    const n = known.length;
    if (!n) return { value: NaN, low: NaN, high: NaN, n };
    const mean = known.reduce((a, b) => a + b, 0) / n;
    if (n < 2) return { value: mean, low: NaN, high: NaN, n };
    if (rate) {
      const z2 = 1.959964 ** 2;
      const middle = (mean + z2 / (2 * n)) / (1 + z2 / n);
      const half = Math.sqrt(z2 * ((mean * (1 - mean)) / n + z2 / (4 * n * n))) / (1 + z2 / n);
      return { value: mean, low: middle - half, high: middle + half, n };
    }
    const spread = known.reduce((a, x) => a + (x - mean) ** 2, 0) / (n - 1);
    const half = (T975[n - 1] ?? 1.96 + 2.4 / (n - 1)) * Math.sqrt(spread / n);
    return { value: mean, low: mean - half, high: mean + half, n };
  }

  // --------------------------------------------------------------------- state, in the address

  const state = {
    read: () => new Map(new URLSearchParams(location.hash.slice(1))),
    write(entries) {
      const told = new URLSearchParams([...entries].filter(([, value]) => value !== ""));
      history.replaceState(null, "", `#${told}`);
    },
    text: (entries) => new URLSearchParams([...entries]).toString(),
  };

  // --------------------------------------------------------------------------------- loading

  const loading = new Map();
  function load(src) {
    if (!loading.has(src)) {
      loading.set(src, new Promise((done, failed) => {
        const script = el("script", { src });
        script.onload = done;
        script.onerror = () => failed(new Error(`${src} is not there`));
        document.head.append(script);
      }));
    }
    return loading.get(src);
  }

  // ---------------------------------------------------------------------------------- copying

  async function copy(text) {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      const area = el("textarea", { class: "unseen", "aria-hidden": "true" });
      area.value = text;
      document.body.append(area);
      area.select();
      const done = document.execCommand("copy");
      area.remove();
      return done;
    }
  }

  for (const button of document.querySelectorAll("button[data-copies]")) {
    on(button, "click", "copy", async () => {
      const done = await copy(document.getElementById(button.dataset.copies).textContent);
      button.textContent = done ? "Copied" : "Select it and copy";
      setTimeout(() => { button.textContent = "Copy"; }, 2000);
    });
  }

  // A formula that is wider than a phone scrolls, and so has to be reached by keyboard.
  for (const formula of document.querySelectorAll("math")) {
    if (formula.scrollWidth > formula.clientWidth + 1 && formula.clientWidth) formula.setAttribute("tabindex", 0);
  }

  // ------------------------------------------------------------------------------ form fields

  function select(label, name, options, value) {
    const field = el("select", { name });
    for (const [key, words] of options) {
      field.append(el("option", { value: key, selected: key === value }, words));
    }
    return el("label", {}, `${label} `, field);
  }

  // A slider over the places of an axis, with the label of the place beside it.
  function slider(label, name, labels, at) {
    const told = el("output", {}, number(labels[at]));
    const field = el("input", {
      type: "range", name, min: 0, max: labels.length - 1, step: 1, value: at,
      "aria-valuetext": number(labels[at]),
    });
    on(field, "input", "slider-label", () => {
      told.textContent = number(labels[field.valueAsNumber]);
      field.setAttribute("aria-valuetext", told.textContent);
    });
    return el("label", { class: "slider" }, `${label} `, field, told);
  }

  const tick = (label, name, checked) =>
    el("label", { class: "tick" }, el("input", { type: "checkbox", name, checked }), ` ${label}`);

  return { root, live, el, svg, on, number, summary, state, load, copy, select, slider, tick };
})();
