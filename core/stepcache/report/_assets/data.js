// What every other part needs: the data, words for it, and how elements are made. Texts of users
// and models become text nodes; nothing here or elsewhere parses them as markup.
const DATA = JSON.parse(document.getElementById("data").textContent);
const ROWS = DATA.rows;
const ROUTES = DATA.words.routes;
const ORIGINS = DATA.words.origins;
const STATUSES = DATA.words.statuses;
const STORE = DATA.kind === "store";
const WITHOUT_MODEL = new Set(["exact", "reuse", "adapt", "hit"]);
const MISSED = new Set(["miss", "skip", "bypass", "fallback", "error"]);

const byId = (id) => document.getElementById(id);

function el(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (key === "on") for (const [event, run] of Object.entries(value)) node.addEventListener(event, run);
    else if (key === "width") node.style.width = value;
    else node.setAttribute(key, value === true ? "" : value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return node;
}

function svg(name, attributes = {}, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

const whole = new Intl.NumberFormat("en");
const number = (value) => whole.format(Math.round(value));
const percent = (part, all) => (all ? `${((100 * part) / all).toFixed(part === all || !part ? 0 : 1)} %` : "–");
const plural = (n, noun) => `${number(n)} ${noun}${n === 1 ? "" : "s"}`;

function duration(seconds) {
  if (seconds === undefined || seconds === null) return "";
  if (seconds >= 1) return `${seconds.toFixed(2)} s`;
  return `${(seconds * 1000).toFixed(seconds < 0.01 ? 1 : 0)} ms`;
}

function when(seconds, parts) {
  if (seconds === undefined) return "";
  const date = new Date(seconds * 1000);
  const two = (n) => String(n).padStart(2, "0");
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  const clock = `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
  if (parts === "short") return `${day.slice(5)} ${clock}`;
  return parts === "day" ? day : parts === "clock" ? clock : `${day} ${clock}`;
}

const tokens = (row) => (row.in || 0) + (row.out || 0);
const answerOf = (row) => (row.steps || []).map((step) => step[1] || "").join("");
const family = (row) => (ROUTES[row.route] || ["stored"])[0];
const chars = (n) => `${plural(n, "character")}, text left out`;

function promptOf(row) {
  if (row.q !== undefined) return row.q;
  if (row.qn) return chars(row.qn);
  return "text left out";
}

function tag(label, kind, title) {
  return el("span", { class: `sc-${kind}` }, el("span", { class: "sc-tag", title }, label));
}
const routeTag = (row) => tag(row.route || "stored", family(row), (ROUTES[row.route] || [])[1]);

function haystack(row) {
  row.hay ??= [
    row.q, answerOf(row), row.reason, row.group, row.route, row.task, row.model, row.entry, row.fault,
    ...(row.notes || []).flat(),
  ].filter(Boolean).join("\n").toLowerCase();
  return row.hay;
}
