// One request, step by step: where each step comes from, what was said of it, and what differs
// from the earlier answer it was made from.
let opened = null;
let comparing = true;

function openRow(n) {
  const row = ROWS.find((each) => each.n === n);
  if (!row) return;
  const dialog = byId("detail");
  const focus = dialog.open ? document.activeElement.id : "";
  opened = row;
  show(row);
  if (!dialog.open) dialog.showModal();
  // What had the focus was made anew; a button that can no longer be pressed cannot have it.
  const same = focus && byId(focus);
  (same && !same.disabled ? same : byId("detail-title")).focus();
  dialog.scrollTop = 0;
  history.replaceState(null, "", `#request-${n}`);
}

function closed() {
  history.replaceState(null, "", location.pathname + location.search);
  const button = opened && document.querySelector(`.open[data-n="${opened.n}"]`);
  opened = null;
  if (button) button.focus();
}

function turn(by) {
  const at = view.indexOf(opened);
  const next = at < 0 ? view[0] : view[at + by];
  if (!next) return;
  const page = Math.floor(view.indexOf(next) / PAGE);
  if (page !== state.page) change({ page });
  openRow(next.n);
}

// The earlier request: as the source tells it, else the nearest one before.
function earlier(row) {
  const told = (row.before || [])[0];
  if (told && (told.action === row.route || told.a !== undefined || told.row)) {
    const other = ROWS.find((each) => each.n === told.row);
    const q = told.q ?? (other && other.q), a = told.a ?? (other && DATA.texts ? answerOf(other) : undefined);
    return { told, row: other, q, a, sure: told.action === row.route };
  }
  if (row.route === "miss" || row.route === "exact" || row.lane === "bare") return null;
  const other = nearest(row);
  return other && { told: {}, row: other, q: other.q, a: answerOf(other), sure: false };
}

function show(row) {
  const at = view.indexOf(row);
  const before = earlier(row);
  byId("detail").replaceChildren(
    el("div", { class: "detail-bar" },
      el("button", { type: "button", id: "detail-previous", disabled: at <= 0, on: { click: () => turn(-1) } }, "‹ Previous"),
      el("button", { type: "button", id: "detail-next", disabled: at < 0 || at >= view.length - 1, on: { click: () => turn(1) } }, "Next ›"),
      el("span", { class: "note" }, at < 0 ? "" : `${number(at + 1)} of ${number(view.length)}`),
      el("button", { type: "button", id: "detail-close", on: { click: () => byId("detail").close() } }, "Close (Esc)")),
    heading(row),
    facts(row),
    asked(row, before),
    answered(row, before),
    ...others(row),
    ...decided(row));
}

function heading(row) {
  const route = ROUTES[row.route];
  return el("div", {},
    el("h2", { id: "detail-title", tabindex: "-1" }, STORE ? `Stored answer ${number(row.n)} ` : `Request ${number(row.n)} `, row.route ? routeTag(row) : null, row.fault ? el("span", { class: "fault" }, ` ${row.fault}`) : null),
    el("p", { class: "sc-reason" }, row.reason || row.group || (STORE ? "kept in the store" : "")),
    route ? el("p", { class: "note" }, route[1]) : null);
}

// A patch may read more than a whole request would and still generate, which takes the time, less.
const split = (all, out = 0) => `${plural(all, "token")}${all || out ? ` (${number(all - out)} prompt, ${number(out)} generated)` : ""}`;

function facts(row) {
  const pairs = [
    ["time", when(row.t)], ["task", row.task], ["model", row.model], ["entry", row.entry],
    ["took", row.s === undefined ? "" : duration(row.s)],
    ["verification", row.proof === undefined ? "" : duration(row.proof)],
    ["model's time", row.ms ? duration(row.ms) : ""],
    ["spent", STORE ? "" : `${split(tokens(row), row.out)} in ${plural(row.calls || 0, "call")}`],
    [STORE ? "a hit avoids" : "avoided", row.saved === undefined ? "" : split(row.saved, row.savedOut)],
    ...(row.notes || []),
  ].filter(([, value]) => value);
  return el("dl", { class: "facts" }, pairs.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value))));
}

function asked(row, before) {
  const section = el("section", {}, el("h3", {}, "What was asked"));
  if (row.q === undefined) {
    section.append(el("p", { class: "note" }, promptOf(row)));
  } else if (before && before.q !== undefined) {
    const pieces = diff(before.q, row.q);
    section.append(el("pre", { class: "sc-text box" }, marked(pieces, "new")),
      el("p", { class: "note" }, earlierName(row, before), link(before), ":"),
      el("pre", { class: "sc-text box quiet" }, marked(pieces, "old")));
  } else {
    section.append(el("pre", { class: "sc-text box" }, row.q || "(empty)"));
  }
  const differences = (before && before.told.diff) || [];
  if (differences.length) section.append(el("ul", { class: "differences" }, differences.map(difference)));
  return section;
}

function earlierName(row, before) {
  if (before.sure) return "The earlier request";
  if (MISSED.has(row.route)) return before.told.action ? "The first candidate, which was not used" : "The nearest earlier request, which was not used";
  return "The nearest earlier request (the source does not tell which one was used)";
}

function link(before) {
  if (!before.row) return before.told.entry ? ` (entry ${before.told.entry})` : "";
  return el("span", {}, " (", el("button", { type: "button", class: "inline", on: { click: () => openRow(before.row.n) } }, `request ${before.row.n}`), ")");
}

function difference([kind, explained, old, fresh]) {
  const told = old === null && fresh === null ? [] : [": ", old ? el("del", {}, old) : "nothing", " → ", fresh ? el("ins", {}, fresh) : "nothing"];
  return el("li", {}, el("b", {}, kind.replaceAll("-", " ")), ...told, explained ? " (a verifier accounts for it)" : " (nobody can vouch for it)");
}

function answered(row, before) {
  const steps = row.steps || [];
  const section = el("section", {}, el("h3", {}, "The answer, step by step"));
  if (!steps.length) {
    section.append(el("p", { class: "note" }, "No answer is recorded."));
    return section;
  }
  const texts = steps.every((step) => step[1] !== null);
  const able = texts && before && before.a && !MISSED.has(row.route);
  const pieces = able && comparing ? diff(before.a, answerOf(row)) : null;
  if (able) {
    section.append(el("label", { class: "note" }, el("input", { type: "checkbox", id: "compare", checked: comparing, on: { change: (event) => { comparing = event.target.checked; show(row); byId("compare").focus(); } } }),
      pieces && pieces.every(([kind]) => kind === "same") ? " Compare with the earlier answer: no word differs" : " Compare with the earlier answer: ", pieces && pieces.some(([kind]) => kind !== "same") ? [el("del", {}, "gone"), " ", el("ins", {}, "new")] : null));
  }
  const parts = pieces ? dealt(pieces, steps.map((step) => step[1].length)) : [];
  section.append(el("ol", { class: "sc-steps" }, steps.map((step, index) => stepItem(step, index, parts[index]))));
  return section;
}

function stepItem([origin, text, length, status, why, kind], index, pieces) {
  if (text !== null && !text.trim()) return null;
  const [sign, word] = STATUSES[status] || [];
  return el("li", { class: `sc-step sc-${origin}` },
    el("div", { class: "sc-line" },
      el("span", { class: "sc-tag", title: ORIGINS[origin] }, origin),
      status ? el("span", { class: `sc-verdict sc-${status}` }, `${sign} ${word}${why ? `: ${why}` : ""}`) : null,
      kind && kind !== "prose" ? el("span", { class: "sc-verdict" }, kind) : null),
    el("pre", { class: "sc-text" }, text === null ? chars(length) : pieces ? trimmed(marked(pieces)) : text.replace(/^\n+|\n+$/g, "")));
}

// Line ends that only join one step to the next are not worth a line.
function trimmed(nodes) {
  while (nodes.length && !nodes[0].textContent.trim() && !nodes[0].tagName) nodes.shift();
  while (nodes.length && !nodes[nodes.length - 1].textContent.trim() && !nodes[nodes.length - 1].tagName) nodes.pop();
  if (nodes.length) {
    nodes[0].textContent = nodes[0].textContent.replace(/^\n+/, "");
    nodes[nodes.length - 1].textContent = nodes[nodes.length - 1].textContent.replace(/\n+$/, "");
  }
  return nodes;
}

function others(row) {
  const rest = (row.before || []).filter((before) => before.action);
  if (rest.length < 2 && !(rest.length === 1 && rest[0].action !== row.route)) return [];
  return [el("section", {}, el("h3", {}, "Candidates that were looked at"), el("ol", { class: "candidates" }, rest.map((before) => el("li", {},
    el("b", {}, before.action), ` entry ${before.entry}`, before.sim === undefined ? "" : `, similarity ${before.sim.toFixed(2)}`, before.code ? `: ${before.code.replaceAll("-", " ")}` : "",
    before.row ? el("span", {}, " (", el("button", { type: "button", class: "inline", on: { click: () => openRow(before.row) } }, `request ${before.row}`), ")") : null,
    before.diff ? el("ul", { class: "differences" }, before.diff.map(difference)) : null))))];
}

function decided(row) {
  if (!row.trace) return [];
  return [el("section", {}, el("h3", {}, "How it was decided"), el("ol", { class: "trace" }, row.trace.map((line) => {
    const at = line.indexOf(": ");
    return at < 0 ? el("li", {}, el("b", {}, line)) : el("li", {}, el("b", {}, line.slice(0, at)), line.slice(at + 1));
  })))];
}
