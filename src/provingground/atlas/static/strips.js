"use strict";
// Puts beside the interval of each claim what it would be if something else were true: these take a
// while to compute, so they come in a file of their own, after the page.

(() => {
  const { el, svg } = atlas;
  const SIGNS = { holds: "✓", fails: "✗", unknown: "?", unmeasured: "!" };
  const waits = [...document.querySelectorAll(".waits")];

  function row(strip, mark, first) {
    const drawn = svg("svg", { class: `strip ${first ? "own" : "other"}`, role: "img", "aria-label": mark.says },
      svg("line", { class: "axis", x2: "100%", y1: "50%", y2: "50%" }),
      svg("rect", { class: "bound", x: `${strip.lower}%`, width: `${Math.max(strip.upper - strip.lower, 1)}%`, height: "100%" }),
      strip.theory === null ? null : svg("line", { class: "theory", x1: `${strip.theory}%`, x2: `${strip.theory}%`, y2: "100%" }),
      svg("line", { class: "interval", x1: `${mark.low}%`, x2: `${mark.high}%`, y1: "50%", y2: "50%" }),
      svg("circle", { class: "value", cx: `${mark.value}%`, cy: "50%", r: 3.5 }));
    return el("div", { class: "row" }, el("span", { class: "label" }, mark.label), drawn,
      el("span", { class: "told" }, el("span", { class: "number" }, mark.number), ` ${SIGNS[mark.decision]}${mark.beyond ? " off the strip" : ""}`));
  }

  atlas.addRivals = (found) => {
    for (const strip of found) {
      const box = document.getElementById(`claim-${strip.claim}`)?.querySelector(".strips");
      box?.replaceChildren(...strip.marks.map((mark, n) => row(strip, mark, n === 0)));
    }
    for (const note of waits) note.hidden = true;
  };

  if (waits.length) {
    for (const note of waits) note.hidden = false;
    atlas.load("rivals.js").catch(() => { for (const note of waits) note.textContent = "What else might be true could not be read."; });
  }
})();
