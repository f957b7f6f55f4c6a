(() => {
  "use strict";
  const FIRST = 25, MORE = 100;
  const part = (name) => document.getElementById(`queries-${name}`);
  const { columns, rows, order } = JSON.parse(part("data").textContent);
  const body = part("table").tBodies[0];
  const headers = [...part("table").tHead.rows[0].cells];
  const needs = new Map(Object.entries(JSON.parse(part("needs")?.textContent ?? "{}")));
  const folded = rows.map((row) => `${row[0]} ${needs.get(row[0]) ?? ""}`.toLowerCase());
  let [column, falls] = order;
  let limit = FIRST;

  // Rows come in the order of their ids, so the place of a row stands for its id, and settles what is equal.
  const compare = (one, other) => {
    if (column === 0) return falls ? other - one : one - other;
    const [x, y] = [rows[one][column], rows[other][column]];
    if (x === null || y === null) return (x === null) - (y === null) || one - other;
    return (falls ? y - x : x - y) || one - other;
  };

  const shown = (value, kind) => {
    if (value === null) return "\u2013";
    if (kind === "id" || kind === "count") return String(value);
    const text = value.toFixed(4);
    if (Number(text) === 0) return "0.0000";
    return (kind === "difference" && value > 0 ? "+" : "") + text.replace("-", "\u2212");
  };

  // Text only, never HTML: ids and texts come from strangers.
  const drawn = (place) => {
    const line = document.createElement("tr");
    rows[place].forEach((value, at) => {
      const cell = document.createElement(at === 0 ? "th" : "td");
      const text = shown(value, columns[at]);
      if (at === 0) {
        cell.scope = "row";
        for (const words of [text, needs.get(text)]) {
          if (words === undefined) continue;
          const span = document.createElement("span");
          span.textContent = words;
          if (cell.firstChild) { span.className = "need"; span.dir = "auto"; }
          cell.append(span);
        }
      } else {
        cell.className = "number";
        cell.textContent = text;
      }
      line.append(cell);
    });
    return line;
  };

  const draw = () => {
    const wanted = part("search").value.trim().toLowerCase();
    const found = [...rows.keys()].filter((place) => folded[place].includes(wanted)).sort(compare);
    const some = found.slice(0, limit);
    body.replaceChildren(...some.map(drawn));
    headers.forEach((header, at) => {
      if (at === column) header.setAttribute("aria-sort", falls ? "descending" : "ascending");
      else header.removeAttribute("aria-sort");
    });
    const count = (number) => number.toLocaleString("en-US");
    const of = wanted ? `${count(found.length)} found among ${count(rows.length)}` : count(rows.length);
    part("status").textContent = `${count(some.length)} of ${of} ${rows.length === 1 ? "query" : "queries"} shown.`;
    part("more").hidden = some.length === found.length;
  };

  headers.forEach((header, at) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = header.textContent;
    button.addEventListener("click", () => {
      falls = at === column && !falls;
      column = at;
      limit = FIRST;
      draw();
    });
    header.replaceChildren(button);
  });
  part("search").addEventListener("input", () => {
    limit = FIRST;
    draw();
  });
  part("more").addEventListener("click", () => {
    limit += MORE;
    draw();
  });
  part("controls").hidden = false;
  draw();
})();
