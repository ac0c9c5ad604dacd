// Puts the page together, and listens to the keyboard.
function setLane(lane) {
  state.lane = lane;
  overview(inLane(), filter);
  change({});
}

function prepareLanes() {
  const lanes = [...new Set(ROWS.map((row) => row.lane).filter(Boolean))];
  if (!lanes.length) return setLane("");
  options(byId("lane"), "all", lanes);
  byId("lane-box").hidden = lanes.length < 2;
  const first = lanes.includes("stepcache") ? "stepcache" : lanes[0];
  byId("lane").value = first;
  byId("lane").addEventListener("change", (event) => setLane(event.target.value));
  return setLane(first);
}

function prepareTheme() {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const root = document.documentElement;
  const now = () => root.dataset.theme || (dark.matches ? "dark" : "light");
  const label = () => { byId("theme").textContent = now() === "dark" ? "☀ Light" : "☾ Dark"; };
  byId("theme").addEventListener("click", () => { root.dataset.theme = now() === "dark" ? "light" : "dark"; label(); });
  dark.addEventListener("change", label);
  label();
}

function prepareKeys() {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const typing = event.target.matches("input[type=search], select");
    if (byId("detail").open) {
      if (event.key === "ArrowRight") turn(1);
      else if (event.key === "ArrowLeft") turn(-1);
    } else if (event.key === "/" && !typing) {
      event.preventDefault();
      byId("search").focus();
    }
  });
  byId("detail").addEventListener("close", closed);
  byId("detail").addEventListener("click", (event) => { if (event.target === byId("detail")) byId("detail").close(); });
}

function explain() {
  const legend = byId("legend");
  const shown = new Set(ROWS.map((row) => row.route).filter(Boolean));
  const terms = STORE ? Object.entries(ORIGINS).filter(([name]) => name === "stored").map(([name, text]) => [name, name, text])
    : Object.entries(ROUTES).filter(([name]) => shown.has(name)).map(([name, [kind, text]]) => [name, kind, text]);
  for (const [name, kind, text] of terms) legend.append(el("dt", {}, tag(name, kind)), el("dd", {}, text));
  if (!STORE) {
    for (const [name, text] of Object.entries(ORIGINS)) if (name !== "stored") legend.append(el("dt", {}, `step: ${name}`), el("dd", {}, text));
  }
}

byId("subtitle").textContent = [`${DATA.kind}: ${DATA.source}`, ...DATA.facts.map(([name, value]) => `${name} ${value}`)].filter(Boolean).join(" · ");
const remarks = [...DATA.remarks];
if (DATA.leftOut) remarks.unshift(`The newest ${number(ROWS.length)} of ${number(ROWS.length + DATA.leftOut)} are shown (--limit).`);
if (!DATA.texts && STORE) remarks.push("Texts are left out; their lengths are shown (--show-text shows them).");
byId("remarks").append(...remarks.map((text) => el("p", { class: "remark" }, text)));
byId("footer").textContent = `Made ${when(DATA.made)} by StepCache. This page holds all it shows and asks the network for nothing.${DATA.texts ? " It holds prompts and answers in plain text." : ""}`;
byId("print").addEventListener("click", () => print());
prepareTable();
prepareTheme();
prepareKeys();
explain();
prepareLanes();
const wanted = /^#request-(\d+)$/.exec(location.hash);
if (wanted) openRow(Number(wanted[1]));
