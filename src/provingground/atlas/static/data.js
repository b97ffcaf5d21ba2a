"use strict";
// The numbers of an experiment: what data.js, theory.js and cells/K.js hand in, and how they are read.
// Names of users are only ever compared, never used as keys of an object.

(() => {
  const named = (list, name) => list.find((each) => each.name === name);

  // The place of an index along some dims in a flat array.
  function flat(dims, at) {
    let place = 0;
    for (const dim of dims) {
      const length = atlas.dim(dim).labels.length;
      place = place * length + (at.get(dim) ?? length - 1);
    }
    return place;
  }

  const rates = new Map();  // whether a probe is 0 or 1 wherever it was measured
  atlas.add = (given) => {
    atlas.experiment = given;
    for (const v of given.variables) rates.set(v, v.values.every((x) => x === null || x === 0 || x === 1));
    atlas.dim = (name) => named(given.dims, name);
    atlas.variable = (name) => named(given.variables, name);
    document.dispatchEvent(new CustomEvent("atlas:data"));
  };
  atlas.addTheory = (given) => { atlas.theory = given; };
  atlas.chunks = new Map();
  atlas.addCells = (given) => { atlas.chunks.set(given.chunk, given); };

  // One value, or over seeds the mean with its interval, at a place (a Map from dims to numbers).
  atlas.value = (variable, at, seed) => {
    const whole = new Map(at);
    if (!variable.dims.includes("seed")) {
      const place = flat(variable.dims, whole);
      const value = variable.values[place] ?? NaN;
      const low = variable.low?.[place] ?? NaN, high = variable.high?.[place] ?? NaN;
      return { value, low, high, n: variable.low ? atlas.experiment.seeds : 1 };
    }
    if (seed !== "mean") {
      whole.set("seed", Number(seed));
      return { value: variable.values[flat(variable.dims, whole)] ?? NaN, low: NaN, high: NaN, n: 1 };
    }
    const each = [];
    for (let n = 0; n < atlas.dim("seed").labels.length; n++) {
      whole.set("seed", n);
      each.push(variable.values[flat(variable.dims, whole)]);
    }
    return atlas.summary(each, rates.get(variable));
  };

  // A finished cell, {labels: {axis: label}, seeds: [...], probes: {name: [value per seed]}}: where it
  // is one of the grid its values take their places. Answers whether it was.
  atlas.fill = (cell) => {
    const at = new Map();
    for (const axis of atlas.experiment.axes) {
      if (!Object.hasOwn(cell.labels ?? {}, axis.name)) return false;
      const place = placeOf(axis, cell.labels[axis.name]);
      if (place < 0) return false;
      at.set(axis.name, place);
    }
    for (const variable of atlas.experiment.variables) {
      if (!Object.hasOwn(cell.probes ?? {}, variable.name) || !variable.dims.includes("seed")) continue;
      if (variable.dims.some((name) => atlas.dim(name).kind === "probe")) continue;
      const values = cell.probes[variable.name];
      cell.seeds.forEach((seed, n) => {
        const place = atlas.dim("seed").labels.indexOf(seed);
        if (place >= 0) variable.values[flat(variable.dims, new Map(at).set("seed", place))] = values[n];
      });
    }
    document.dispatchEvent(new CustomEvent("atlas:filled"));
    return true;
  };

  // The place of a label on an axis, or of the text of one: numbers may be written in fewer digits.
  const placeOf = (axis, label) => {
    const exact = axis.labels.findIndex((each) => String(each) === String(label));
    if (exact >= 0 || String(label).trim() === "") return exact;
    return axis.labels.findIndex((each) => typeof each === "number" && Math.abs(each - Number(label)) <= 1e-5 * Math.abs(each));
  };

  // The number of a cell among all of an experiment.
  atlas.cellNumber = (at) => {
    const outer = atlas.experiment.dims.filter((dim) => dim.kind !== "probe").map((dim) => dim.name);
    return flat(outer, at);
  };

  atlas.words = (thing) => (thing.symbol ? `${thing.says}, ${thing.symbol}` : thing.says);
  atlas.flat = flat;
  atlas.placeOf = placeOf;
})();
