"use strict";
// Filters the table of claims: by verdict, kind, study and words; the filter is in the address.

(() => {
  const form = document.getElementById("filter"), shown = document.getElementById("shown");
  const rows = [...document.querySelectorAll("#claims tbody tr")].map((row) => ({
    row, words: row.textContent.toLowerCase().replace(/\s+/g, " "), ...row.dataset,
  }));

  function filter() {
    const asked = atlas.state.read(), words = (asked.get("text") ?? "").toLowerCase();
    let count = 0;
    for (const each of rows) {
      const fits = ["verdict", "kind", "study"].every((name) => !asked.get(name) || each[name] === asked.get(name));
      each.row.hidden = !(fits && each.words.includes(words));
      count += each.row.hidden ? 0 : 1;
    }
    shown.textContent = count === rows.length ? `${count} claims` : `${count} of ${rows.length} claims`;
  }

  function fields() {
    const asked = atlas.state.read();
    for (const field of form.elements) if (field.name) field.value = asked.get(field.name) ?? "";
    filter();
  }

  atlas.on(form, "input", "filter", () => {
    atlas.state.write([...new FormData(form)]);
    filter();
  });
  atlas.on(form, "submit", "no-submit", (event) => event.preventDefault());
  atlas.on(window, "hashchange", "address", fields);
  fields();
})();
