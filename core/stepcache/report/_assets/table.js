// The table: what is asked for, in what order, and which page of it.
const PAGE = 25;
const state = { lane: "", search: "", route: "", task: "", group: "", faults: false, sort: "n", down: false, page: 0 };
let view = [];

const COLUMNS = STORE
  ? [["n", "#"], ["t", "Kept"], ["task", "Task"], ["q", "Request"], ["model", "Model"], ["saved", "Hit avoids"]]
  : [["n", "#"], ["t", "Time"], ["route", "Route"], ["task", "Task"], ["q", "Request"], ["reason", "Why"], ["spent", "Tokens"], ["saved", "Avoided"], ["s", "Seconds"]];
const NUMERIC = new Set(["n", "spent", "saved", "s"]);

const columns = () => COLUMNS.filter(([key]) =>
  (key !== "t" || ROWS.some((row) => row.t !== undefined)) && (key !== "saved" || ROWS.some((row) => row.saved !== undefined)));

function sortValue(row, key) {
  if (key === "spent") return tokens(row);
  if (key === "q") return promptOf(row).toLowerCase();
  if (key === "reason") return (row.reason || row.group || "").toLowerCase();
  return row[key];
}

function inLane() {
  return state.lane ? ROWS.filter((row) => row.lane === state.lane) : ROWS;
}

function select() {
  const wanted = state.search.toLowerCase().split(/\s+/).filter(Boolean);
  view = inLane().filter((row) =>
    (!state.route || row.route === state.route) && (!state.task || row.task === state.task) &&
    (!state.group || (row.group === state.group && MISSED.has(row.route))) && (!state.faults || row.fault) &&
    wanted.every((word) => haystack(row).includes(word)));
  const sign = state.down ? -1 : 1;
  view.sort((one, other) => {
    const a = sortValue(one, state.sort), b = sortValue(other, state.sort);
    if (a === undefined || b === undefined) return (a === undefined) - (b === undefined) || one.n - other.n;
    return (a < b ? -sign : a > b ? sign : 0) || one.n - other.n;
  });
}

function change(wish) {
  Object.assign(state, wish, "page" in wish ? {} : { page: 0 });
  select();
  draw();
}

// From a panel: this filter alone, and the table in sight.
function filter(wish) {
  change({ search: "", route: "", task: "", group: "", faults: false, ...wish });
  byId("requests").scrollIntoView({ block: "start" });
  byId("requests").focus({ preventScroll: true });
}

function draw() {
  byId("search").value = state.search;
  byId("route").value = state.route;
  byId("task").value = state.task;
  byId("faults").checked = state.faults;
  const all = inLane().length;
  byId("shown").textContent = view.length === all ? plural(all, STORE ? "answer" : "request") : `${number(view.length)} of ${number(all)}`;
  const filtered = state.search || state.route || state.task || state.group || state.faults;
  byId("active").replaceChildren(
    ...(state.group ? [el("span", { class: "chip" }, `reason: ${state.group}`)] : []),
    ...(filtered ? [el("button", { type: "button", id: "clear", on: { click: () => { filter({}); byId("search").focus(); } } }, "Show all")] : []));
  byId("heads").replaceChildren(...columns().map(([key, label]) => el("th", { scope: "col", class: `c-${key}`, "aria-sort": state.sort === key ? (state.down ? "descending" : "ascending") : "none" },
    el("button", { type: "button", on: { click: () => { change({ sort: key, down: state.sort === key ? !state.down : NUMERIC.has(key) && key !== "n" }); byId("heads").querySelector(`.c-${key} button`).focus(); } } },
      label, el("span", { class: "arrow", "aria-hidden": "true" }, state.sort === key ? (state.down ? " ↓" : " ↑") : "")))));
  const pages = Math.max(1, Math.ceil(view.length / PAGE));
  state.page = Math.min(state.page, pages - 1);
  const rows = view.slice(state.page * PAGE, (state.page + 1) * PAGE);
  byId("rows").replaceChildren(...rows.map(line));
  if (!rows.length) byId("rows").append(el("tr", {}, el("td", { colspan: columns().length, class: "empty" }, ROWS.length ? "Nothing matches." : "The source holds nothing yet.")));
  byId("page").textContent = `Page ${number(state.page + 1)} of ${number(pages)}`;
  byId("first").disabled = byId("previous").disabled = state.page === 0;
  byId("next").disabled = byId("last").disabled = state.page >= pages - 1;
}

function line(row) {
  const cells = {
    n: () => number(row.n),
    t: () => el("span", { title: when(row.t) }, when(row.t, "short")),
    route: () => [routeTag(row), row.fault ? el("span", { class: "fault" }, row.fault) : null],
    task: () => row.task || "",
    q: () => el("button", { type: "button", class: "open", "data-n": row.n }, el("span", { class: "visually-hidden" }, `Open request ${row.n}: `), promptOf(row).slice(0, 300) || "(empty)"),
    reason: () => el("span", { class: "clip" }, (row.reason || row.group || "").slice(0, 300)),
    model: () => row.model || "",
    spent: () => number(tokens(row)),
    saved: () => (row.saved === undefined ? "" : number(row.saved)),
    s: () => duration(row.s),
  };
  const one = el("tr", {}, columns().map(([key]) => el("td", { class: `c-${key}` }, cells[key]())));
  one.addEventListener("click", () => openRow(row.n));
  return one;
}

function options(select, all, values, names = (value) => value) {
  select.replaceChildren(el("option", { value: "" }, all), ...values.map((value) => el("option", { value }, names(value))));
}

function prepareTable() {
  const order = Object.keys(ROUTES);
  const routes = [...new Set(ROWS.map((row) => row.route).filter(Boolean))].sort((a, b) => order.indexOf(a) - order.indexOf(b));
  options(byId("route"), "all", routes);
  options(byId("task"), "all", [...new Set(ROWS.map((row) => row.task).filter(Boolean))].sort());
  byId("route").parentElement.hidden = STORE;
  byId("fault-box").hidden = !ROWS.some((row) => row.fault);
  byId("requests-title").textContent = STORE ? "Stored answers" : "Requests";
  byId("search").placeholder = DATA.texts ? "Search requests, answers and reasons ( / )" : "Search reasons, tasks and entries ( / )";
  let waiting = 0;
  byId("search").addEventListener("input", (event) => {
    clearTimeout(waiting);
    waiting = setTimeout(() => change({ search: event.target.value }), 80);
  });
  byId("route").addEventListener("change", (event) => change({ route: event.target.value }));
  byId("task").addEventListener("change", (event) => change({ task: event.target.value }));
  byId("faults").addEventListener("change", (event) => change({ faults: event.target.checked }));
  byId("first").addEventListener("click", () => change({ page: 0 }));
  byId("previous").addEventListener("click", () => change({ page: state.page - 1 }));
  byId("next").addEventListener("click", () => change({ page: state.page + 1 }));
  byId("last").addEventListener("click", () => change({ page: Infinity }));
}
