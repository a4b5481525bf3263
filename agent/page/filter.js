"use strict";
// Leaves those rows of a table in which all words occur that are typed.
const search = document.querySelector("input[type=search]"), count = document.querySelector("[role=status]");
const rows = [...document.querySelectorAll("tbody tr")].map(row => ({row, text: row.textContent.toLowerCase()}));

function filter() {
  const words = search.value.toLowerCase().split(/\s+/);
  for (const {row, text} of rows) row.hidden = !words.every(word => text.includes(word));
  count.textContent = `${rows.filter(({row}) => !row.hidden).length} of ${rows.length}`;
}

search.addEventListener("input", filter);
document.addEventListener("keydown", event => {
  if (event.key === "/" && event.target !== search) { event.preventDefault(); search.focus(); }
  if (event.key === "Escape") { search.value = ""; filter(); }
});
filter();
