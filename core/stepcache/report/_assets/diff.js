// What changed between two texts, word by word. The cost is bounded: the common beginning and end
// are set aside first, and where the rest is too long to align it counts as replaced.
const MOST_CELLS = 4e6;

const words = (text) => text.match(/[\p{L}\p{N}_]+|\s+|[^\p{L}\p{N}_\s]/gu) || [];

function diff(before, after) {
  const a = words(before), b = words(after);
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head++;
  let tail = 0;
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++;
  const pieces = [];
  const add = (kind, text) => {
    if (!text) return;
    const last = pieces[pieces.length - 1];
    if (last && last[0] === kind) last[1] += text;
    else pieces.push([kind, text]);
  };
  add("same", a.slice(0, head).join(""));
  middle(a.slice(head, a.length - tail), b.slice(head, b.length - tail), add);
  add("same", a.slice(a.length - tail).join(""));
  return tidy(pieces);
}

function middle(a, b, add) {
  if (!a.length || !b.length || a.length * b.length > MOST_CELLS) {
    add("old", a.join(""));
    add("new", b.join(""));
    return;
  }
  const width = b.length + 1;
  const table = new Uint32Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      table[i * width + j] = a[i] === b[j]
        ? table[(i + 1) * width + j + 1] + 1
        : Math.max(table[(i + 1) * width + j], table[i * width + j + 1]);
    }
  }
  let i = 0, j = 0;
  while (i < a.length && j < b.length) {
    if (a[i] === b[j]) { add("same", a[i]); i++; j++; }
    else if (table[(i + 1) * width + j] >= table[i * width + j + 1]) add("old", a[i++]);
    else add("new", b[j++]);
  }
  add("old", a.slice(i).join(""));
  add("new", b.slice(j).join(""));
}

// A single space between two changes belongs to both: "2 x" -> "3 y" is one change, not two.
function tidy(pieces) {
  const merged = [];
  let old = "", fresh = "";
  const flush = () => {
    if (old) merged.push(["old", old]);
    if (fresh) merged.push(["new", fresh]);
    old = fresh = "";
  };
  pieces.forEach(([kind, text], index) => {
    if (kind === "old") old += text;
    else if (kind === "new") fresh += text;
    else if (text === " " && (old || fresh) && index < pieces.length - 1) { old += old ? text : ""; fresh += fresh ? text : ""; if (!old || !fresh) { flush(); merged.push(["same", text]); } }
    else { flush(); merged.push([kind, text]); }
  });
  flush();
  return merged;
}

const MARKS = { old: "del", new: "ins" };

// The pieces as nodes; `only` leaves out the other side.
function marked(pieces, only) {
  return pieces
    .filter(([kind]) => kind === "same" || !only || kind === only)
    .map(([kind, text]) => (kind === "same" ? document.createTextNode(text) : el(MARKS[kind], {}, text)));
}

// Pieces of a whole answer dealt out to its steps, by the characters each step has.
function dealt(pieces, lengths) {
  const steps = lengths.map(() => []);
  let step = 0, room = lengths[0] || 0;
  for (const [kind, text] of pieces) {
    if (kind === "old") {
      if (steps[step]) steps[step].push([kind, text]);
      continue;
    }
    let rest = text;
    while (rest && step < steps.length) {
      const part = rest.slice(0, room);
      if (part) steps[step].push([kind, part]);
      rest = rest.slice(part.length);
      room -= part.length;
      if (!room && step < steps.length - 1) room = lengths[++step];
      else if (!room) break;
    }
  }
  return steps;
}

// The nearest earlier row, for sources that do not say which one an answer was made from.
function nearest(row) {
  if (row.q === undefined || !row.pool) return null;
  const bag = new Set(words(row.q.toLowerCase()).filter((word) => word.trim()));
  let best = null, most = 0.5;
  for (const other of ROWS) {
    if (other.n >= row.n) break;
    if (other.pool !== row.pool || other.q === undefined) continue;
    const its = words(other.q.toLowerCase()).filter((word) => word.trim());
    const unique = new Set(its);
    let shared = 0;
    for (const word of unique) if (bag.has(word)) shared++;
    const alike = shared / (bag.size + unique.size - shared || 1);
    if (alike >= most) { most = alike; best = other; }
  }
  return best;
}
