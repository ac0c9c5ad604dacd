// The tiles and the four panels above the table, made from the rows of the chosen mode.
function median(values) {
  if (!values.length) return null;
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor((sorted.length - 1) / 2)];
}

function tile(label, value, note, kind) {
  return el("div", { class: `tile sc-${kind || "stored"}` }, el("div", { class: "label" }, label), el("div", { class: "value" }, value), el("div", { class: "note" }, note || ""));
}

function tiles(rows) {
  const box = byId("tiles");
  box.replaceChildren();
  if (STORE) {
    const worth = rows.reduce((sum, row) => sum + (row.saved || 0), 0);
    const tasks = new Set(rows.map((row) => row.task));
    const models = new Set(rows.map((row) => row.model).filter(Boolean));
    const steps = rows.reduce((sum, row) => sum + (row.steps || []).length, 0);
    box.append(
      tile("Stored answers", number(rows.length), plural(steps, "step"), "reused"),
      tile("One hit avoids", rows.length ? plural(worth / rows.length, "token") : "–", "on average", "adapted"),
      tile("Tasks", number(tasks.size), [...tasks].join(", ")),
      tile("Models", models.size ? number(models.size) : "–", [...models].join(", ") || "not told"),
    );
    return;
  }
  const without = rows.filter((row) => WITHOUT_MODEL.has(row.route));
  const patched = rows.filter((row) => row.route === "patch").length;
  const spent = rows.reduce((sum, row) => sum + tokens(row), 0);
  const known = rows.filter((row) => row.saved !== undefined);
  const saved = known.reduce((sum, row) => sum + row.saved, 0);
  const faults = rows.filter((row) => row.fault).length;
  const fast = median(without.map((row) => row.s).filter((s) => s !== undefined));
  const slow = median(rows.filter((row) => row.calls).map((row) => row.s).filter((s) => s !== undefined));
  box.append(
    tile("Requests", number(rows.length), span(rows)),
    tile("Answered without the model", percent(without.length, rows.length), `${number(without.length)} of ${number(rows.length)}; ${number(patched)} more in part`, "reused"),
    known.length
      ? tile("Tokens saved", percent(saved, saved + spent), `${number(saved)} avoided, ${number(spent)} spent`, "adapted")
      : tile("Tokens spent", number(spent), `in ${plural(rows.reduce((sum, row) => sum + (row.calls || 0), 0), "model call")}`, "adapted"),
    tile("Median time", fast === null ? "–" : duration(fast), slow === null ? "without the model" : `without the model; ${duration(slow)} with it`, "patched"),
  );
  const note = faults ? `${number(faults)} not; filter the table by “only faults”` : "no fault found";
  if (DATA.kind === "benchmark") box.append(tile("Correct answers", percent(rows.length - faults, rows.length), note, faults ? "failed" : "reused"));
  else if (faults) box.append(tile("Faults", number(faults), "filter the table by “only faults”", "failed"));
}

function span(rows) {
  const times = rows.map((row) => row.t).filter((t) => t !== undefined);
  if (!times.length) return "";
  const from = when(times[0], "day"), to = when(times[times.length - 1], "day");
  return from === to ? from : `${from} to ${to}`;
}

function panel(title, note, ...content) {
  return el("section", { class: "panel" }, el("h2", {}, title), el("p", { class: "note" }, note), ...content);
}

// Bars that filter the table: [label, count, colour family, title, run when pressed].
function bars(items, total) {
  const most = Math.max(1, ...items.map((item) => item[1]));
  return el("ul", { class: "bars" }, items.map(([label, n, kind, title, run]) => el("li", { class: `sc-${kind}` },
    el("button", { type: "button", title, "aria-label": `${label}: ${n}. Show these`, on: { click: run } },
      el("span", { class: "bar-label" }, label),
      el("span", { class: "track" }, el("span", { class: "fill", width: `${Math.max(1, (100 * n) / most)}%` })),
      el("span", { class: "bar-count" }, `${number(n)} · ${percent(n, total)}`)))));
}

function counted(rows, key) {
  const counts = new Map();
  for (const row of rows) counts.set(key(row), (counts.get(key(row)) || 0) + 1);
  return [...counts].sort((a, b) => b[1] - a[1]);
}

function overview(rows, filter) {
  tiles(rows);
  const box = byId("panels");
  box.replaceChildren(STORE ? kept(rows) : savings(rows));
  if (STORE) {
    box.append(panel("Tasks", "Families of answers. Press one to see only its entries.",
      bars(counted(rows, (row) => row.task).map(([task, n]) => [task, n, "adapted", `entries of ${task}`, () => filter({ task })]), rows.length)));
    const largest = [...rows].sort((a, b) => (b.saved || 0) - (a.saved || 0)).slice(0, 6);
    box.append(ranked("Worth most", "Entries whose next hit avoids the most tokens.", largest, (row) => plural(row.saved || 0, "token")));
    return;
  }
  const routes = counted(rows, (row) => row.route);
  const order = Object.keys(ROUTES);
  routes.sort((a, b) => order.indexOf(a[0]) - order.indexOf(b[0]));
  box.append(panel("Routes", "How the requests were answered. Press one to see only those.",
    bars(routes.map(([route, n]) => [route, n, (ROUTES[route] || ["stored"])[0], (ROUTES[route] || [])[1], () => filter({ route })]), rows.length)));
  const missed = rows.filter((row) => MISSED.has(row.route));
  const reasons = counted(missed, (row) => row.group || "no reason told").slice(0, 8);
  box.append(panel("Reasons for misses", missed.length ? "Why the model was asked for a whole answer." : "No request needed a whole answer from the model.",
    bars(reasons.map(([group, n]) => [group, n, "generated", `requests with this reason`, () => filter({ group })]), missed.length)));
  const exact = rows.some((row) => row.proof);
  const cost = (row) => (exact ? row.proof : row.calls ? undefined : row.s);
  const slowest = rows.filter((row) => cost(row) !== undefined).sort((a, b) => cost(b) - cost(a)).slice(0, 6);
  box.append(ranked("Slowest verifications", exact ? "Finding differences, verifying and planning; the model's time is not in it." : "Look-up and verification of requests that asked no model.", slowest, (row) => duration(cost(row))));
}

function ranked(title, note, rows, value) {
  return panel(title, rows.length ? note : "Nothing to show.", el("ol", { class: "ranked" }, rows.map((row) => el("li", {},
    el("button", { type: "button", on: { click: () => openRow(row.n) } },
      el("span", { class: "bar-count" }, value(row)), STORE ? null : routeTag(row), el("span", { class: "clip" }, promptOf(row)))))));
}

// --- lines over time -----------------------------------------------------------------------------

function savings(rows) {
  const known = rows.some((row) => row.saved !== undefined);
  if (!known) {
    return panel("Answered without the model", "Requests so far, and how many of them asked no model.",
      chart(rows, [["requests", "stored", () => 1], ["without the model", "reused", (row) => (WITHOUT_MODEL.has(row.route) ? 1 : 0)]], "requests"));
  }
  return panel("Savings over time", "Tokens so far: what the model would have cost alone, and what was spent. The area between is saved.",
    chart(rows, [["without the cache", "stored", (row) => tokens(row) + (row.saved || 0)], ["spent", "adapted", tokens]], "tokens"));
}

function kept(rows) {
  return panel("Entries over time", "Answers that were kept, and are still live.", chart(rows, [["entries", "reused", () => 1]], "entries"));
}

const WIDE = 640, HIGH = 206, LEFT = 56, RIGHT = 12, TOP = 10, BOTTOM = 26;

function chart(rows, series, unit) {
  if (!rows.length) return el("p", { class: "note" }, "Nothing to draw.");
  const timed = rows[0].t !== undefined && rows[rows.length - 1].t > rows[0].t;
  const xs = rows.map((row, index) => (timed ? row.t : index + 1));
  const sums = series.map(([, , value]) => { let sum = 0; return rows.map((row) => (sum += value(row))); });
  const top = nice(Math.max(1, ...sums.map((line) => line[line.length - 1])));
  const from = timed ? xs[0] : 0, to = xs[xs.length - 1];
  const x = (value) => LEFT + ((WIDE - LEFT - RIGHT) * (value - from)) / (to - from || 1);
  const y = (value) => HIGH - BOTTOM - ((HIGH - TOP - BOTTOM) * value) / top;
  const step = Math.max(1, Math.ceil(rows.length / 400));
  const picked = rows.map((_, i) => i).filter((i) => i % step === 0 || i === rows.length - 1);
  const label = series.map(([name], i) => `${name}: ${number(sums[i][rows.length - 1])} ${unit}`).join("; ");
  const drawing = svg("svg", { viewBox: `0 0 ${WIDE} ${HIGH}`, role: "img", "aria-label": label, class: "chart" });
  for (let part = 0; part <= 4; part++) {
    const value = (top * part) / 4;
    drawing.append(svg("line", { x1: LEFT, x2: WIDE - RIGHT, y1: y(value), y2: y(value), class: "grid" }),
      svg("text", { x: LEFT - 8, y: y(value) + 4, "text-anchor": "end" }, short(value)));
  }
  const paths = sums.map((line) => picked.map((i) => `${x(xs[i]).toFixed(1)},${y(line[i]).toFixed(1)}`));
  const base = `${x(to).toFixed(1)},${y(0)} ${(timed ? x(xs[0]) : x(from)).toFixed(1)},${y(0)}`;
  const start = timed ? "" : `${x(0).toFixed(1)},${y(0)} `;
  if (sums.length > 1) drawing.append(svg("polygon", { points: `${start}${paths[0].join(" ")} ${[...paths[1]].reverse().join(" ")}`, class: "saved" }));
  else drawing.append(svg("polygon", { points: `${start}${paths[0].join(" ")} ${base}`, class: "saved" }));
  series.forEach(([name, kind], i) => drawing.append(svg("g", { class: `sc-${kind}` }, svg("polyline", { points: start + paths[i].join(" "), class: "line" }))));
  axis(drawing, x, from, to, timed);
  const cursor = svg("line", { y1: TOP, y2: HIGH - BOTTOM, class: "cursor", visibility: "hidden" });
  drawing.append(cursor);
  const legend = el("p", { class: "chart-legend" });
  const tell = (i) => legend.replaceChildren(
    el("span", {}, timed ? when(xs[i]) : `after ${plural(i + 1, "request")}`), ...series.map(([name, kind], k) => el("span", { class: `sc-${kind} key` }, `${name} ${number(sums[k][i])}`)));
  tell(rows.length - 1);
  drawing.addEventListener("pointermove", (event) => {
    const box = drawing.getBoundingClientRect();
    const at = from + (((event.clientX - box.left) * WIDE) / box.width - LEFT) / (WIDE - LEFT - RIGHT) * (to - from);
    let low = 0, high = rows.length - 1;
    while (low < high) { const mid = (low + high) >> 1; if (xs[mid] < at) low = mid + 1; else high = mid; }
    cursor.setAttribute("x1", x(xs[low]));
    cursor.setAttribute("x2", x(xs[low]));
    cursor.setAttribute("visibility", "visible");
    tell(low);
  });
  drawing.addEventListener("pointerleave", () => { cursor.setAttribute("visibility", "hidden"); tell(rows.length - 1); });
  return el("div", {}, drawing, legend);
}

function axis(drawing, x, from, to, timed) {
  const days = to - from > 2 * 86400;
  for (let part = 0; part <= 4; part++) {
    const value = from + ((to - from) * part) / 4;
    const text = timed ? when(value, days ? "day" : "clock") : number(value);
    drawing.append(svg("text", { x: x(value), y: HIGH - 8, "text-anchor": part === 0 ? "start" : part === 4 ? "end" : "middle" }, text));
  }
}

function nice(value) {
  if (value <= 8) return value <= 4 ? 4 : 8;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 1.2, 1.6, 2, 2.4, 3, 4, 5, 6, 8, 10].map((n) => n * power).find((n) => n >= value);
}

const compact = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
const short = (value) => compact.format(value);
