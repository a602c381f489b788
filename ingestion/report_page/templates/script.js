const find = document.getElementById("find"), outcome = document.getElementById("outcome"), shown = document.getElementById("shown");
const rows = [...document.querySelectorAll("#all tbody tr")].map((row) => [row, row.textContent.toLowerCase(), row.cells[0].textContent]);
function filter() {
  const words = find.value.toLowerCase().split(/\s+/).filter(Boolean);
  let count = 0;
  for (const [row, text, kind] of rows) {
    row.hidden = (outcome.value && kind !== outcome.value) || !words.every((word) => text.includes(word));
    count += !row.hidden;
  }
  shown.textContent = count + (count === 1 ? " page" : " pages");
}
find.addEventListener("input", filter);
outcome.addEventListener("change", filter);
for (const heading of document.querySelectorAll("#all th")) {
  heading.addEventListener("click", () => {
    const at = heading.cellIndex, down = heading.dataset.down !== "yes", body = heading.closest("table").tBodies[0];
    const key = (row) => row.cells[at].textContent;
    const order = (a, b) => key(a).localeCompare(key(b), "en", { numeric: true });
    heading.dataset.down = down ? "yes" : "";
    body.append(...[...body.rows].sort((a, b) => (down ? order(a, b) : order(b, a))));
  });
}
