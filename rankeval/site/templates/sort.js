(() => {
  "use strict";
  // A cell without a value to sort by has a text. Text only is read and moved, never HTML made of it.
  const valueOf = (row, at) => {
    const { v } = row.cells[at].dataset;
    return v === undefined ? row.cells[at].textContent.trim().toLowerCase() : v === "" ? null : Number(v);
  };
  const compare = (one, other) => {
    if (one === null || other === null) return (one === null) - (other === null);
    if (typeof one === "string") return one < other ? -1 : Number(one > other);
    return one - other;
  };
  for (const table of document.querySelectorAll("table.sortable")) {
    const headers = [...table.tHead.rows[0].cells];
    headers.forEach((header, at) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = header.textContent;
      button.addEventListener("click", () => {
        // The first click puts the best first: of a score of which more is better, the greatest.
        const before = header.getAttribute("aria-sort");
        const falls = before ? before === "ascending" : header.dataset.v === "1";
        const keyed = [...table.tBodies[0].rows].map((row) => [valueOf(row, at), row]);
        keyed.sort(([one], [other]) => {
          const missing = one === null || other === null;
          return compare(one, other) * (falls && !missing ? -1 : 1);
        });
        table.tBodies[0].append(...keyed.map(([, row]) => row));
        for (const each of headers) each.removeAttribute("aria-sort");
        header.setAttribute("aria-sort", falls ? "descending" : "ascending");
      });
      header.replaceChildren(button);
    });
  }
})();
