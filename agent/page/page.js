"use strict";
// Draws a page of lanes from the JSON in it. Rows are in the document only while they are near what is seen.
const data = JSON.parse(document.getElementById("data").textContent);
const main = document.querySelector("main");
const CHUNK = 50, FOLD = 10; // rows drawn at once; lines of a text that are shown
const MARKS = new Map(data.marks.map(([letter, sign, sort, meaning], rank) => [letter, {sign, sort, meaning, rank}]));
const shown = {text: "", kind: "", lane: -1}; // the filters
const folded = new Set(), unfolded = new Set(), opened = new Set(); // turns; parts; rows
const heights = new Map(); // of blocks that were drawn, by their rows
let blocks = [], current = -1, partsOf = new Map(), partNow = -1, counted = 0;

function el(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value !== null) made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

// What there is to say.

function sentence(row, [lane, letter, more]) {
  const who = data.lanes[lane];
  switch (letter) {
    case "q": return lane === 0 ? `${row.name} came from outside` : `${who} requested ${row.name}`;
    case "h": return `${who} heard ${row.name}`;
    case "c": return `${who} was closed by ${row.name}`;
    case "x": return `${who} refused: ${more}`;
    case "w": return `${who} waits with ${more}`;
    default: return `${who} holds ${more}`;
  }
}

function wholeText(row) {
  row.whole ??= [row.name, row.of, JSON.stringify(row.data), ...row.marks.map(mark => sentence(row, mark))]
    .join("\n").toLowerCase();
  return row.whole;
}

function isShown(row) {
  return (!shown.kind || row.name === shown.kind) && (shown.lane < 0 || row.marks.some(([lane]) => lane === shown.lane))
    && (!shown.text || wholeText(row).includes(shown.text));
}

function spentOf(first, last) {
  const sum = {model: 0, tools: 0, in: 0, out: 0, cost: 0, calls: 0, refused: 0};
  for (const {spent} of data.rows.slice(first, last)) {
    for (const [name, value] of Object.entries(spent ?? {})) sum[name] += value;
  }
  return sum;
}

function lasted(ms) { // as agent.page.wording has it
  const seconds = Math.round(ms / 1000);
  if (ms < 59950) return ms < 999.5 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`;
  return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}

function spentWords(sum) {
  const counts = (number, thing) => `${number.toLocaleString("en")} ${thing}${number === 1 ? "" : "s"}`;
  const words = [];
  if (sum.calls) words.push(counts(sum.calls, "call"));
  if (sum.model) words.push(`model ${lasted(sum.model)}`);
  if (sum.tools) words.push(`tools ${lasted(sum.tools)}`);
  if (sum.in || sum.out) words.push(`${sum.in.toLocaleString("en")} tokens in, ${sum.out.toLocaleString("en")} out`);
  if (sum.cost) words.push(`$${sum.cost.toFixed(4)}`);
  return words.join(" · ");
}

// One row, one part of the conversation.

function rowElement(n) {
  const row = data.rows[n], best = new Map();
  for (const mark of row.marks) {
    const cell = best.get(mark[0]) ?? {words: []};
    cell.words.push(sentence(row, mark));
    const sort = MARKS.get(mark[1]);
    if (!cell.sort || sort.rank < cell.sort.rank) cell.sort = sort;
    best.set(mark[0], cell);
  }
  const signs = [...best].map(([lane, {sort, words}]) => {
    const sign = el("i", {class: sort.sort, title: words.join("\n")}, sort.sign);
    sign.style.gridColumn = lane + 3;
    return sign;
  });
  const isOpen = opened.has(n), refusal = row.marks.some(([, letter]) => letter === "x");
  const event = el("button", {class: "event", "aria-expanded": isOpen, onclick: () => { choose(n); toggle(n); }},
    el("b", {}, row.name), " ", el("span", {class: "of"}, row.of));
  const lead = event => { event.preventDefault(); choose(n); showPart(row.part); };
  const number = el("a", {class: "number", href: `#step-${row.step}`, onclick: lead}, row.step);
  const sorts = `row${refusal ? " refusal" : ""}${row.marks[0]?.[0] === 0 ? " outside" : ""}`;
  const made = el("div", {class: sorts, id: `step-${row.step}`}, el("div", {class: "grid"}, number, event, ...signs));
  if (n === current) made.classList.add("current");
  if (isOpen) made.append(details(row));
  return made;
}

function details(row) {
  const told = [...new Set(row.marks.map(mark => sentence(row, mark)))].map(words => el("li", {}, words));
  const carried = typeof row.data === "string" ? row.data : JSON.stringify(row.data, null, 1);
  return el("div", {class: "details"}, el("ul", {}, ...told), el("pre", {tabindex: 0}, carried));
}

function partElement(number) {
  const part = data.parts[number], step = data.rows[part.row].step;
  const lead = event => { event.preventDefault(); go(part.row); };
  const took = part.ms ? [el("small", {title: "how long it took"}, lasted(part.ms))] : [];
  const label = el("a", {href: `#step-${step}`, title: `step ${step}`, onclick: lead}, part.label, ...took);
  const lines = part.text.split("\n"), cut = lines.length > FOLD + 2 && !unfolded.has(number);
  const text = part.tree ? treeElement(part.tree)
    : el("pre", {}, ...underlined(number, cut ? lines.slice(0, FOLD).join("\n") : part.text));
  if (part.tree && cut) text.classList.add("cut");
  const said = el("div", {class: "said"}, text);
  if (part.diff) said.append(diffElement(part.diff));
  if (part.files) said.append(filesElement(number, part.files));
  if (data.live && part.undo) {
    const title = "make the files what they were before this call";
    const words = "undo to before this call";
    said.append(el("button", {class: "more undo", title, onclick: () => confirmUndo(part.undo)}, words));
  }
  const unfold = () => { unfolded.add(number); made.replaceWith(partElement(number)); };
  const more = part.tree ? "show all" : `${lines.length - FOLD} more lines`;
  if (cut) said.append(el("button", {class: "more", onclick: unfold}, more));
  for (const image of part.images ?? []) {
    said.append(image ? el("img", {src: image, alt: "an image"}) : "an image too large for this page; the log has it");
  }
  const sorts = `part ${part.kind}${number === partNow ? " here" : ""}`;
  const made = el("div", {class: sorts, id: `part-${number}`}, label, said);
  return made;
}

// Markdown: a tag, its attributes, its children. Of what a model wrote only text is made.
function treeElement([tag, attributes, ...children]) {
  return el(tag, attributes, ...children.map(child => typeof child === "string" ? child : treeElement(child)));
}

function underlined(number, text) {
  const characters = [...text], made = [];
  let done = 0;
  const spans = data.evidence.filter(([part]) => part === number).sort((a, b) => a[1] - b[1]);
  for (const [, start, end] of spans) {
    if (start < done) continue;
    const words = characters.slice(start, end).join("");
    made.push(characters.slice(done, start).join(""), el("mark", {title: "the refusal rests on this"}, words));
    done = end;
  }
  return [...made, characters.slice(done).join("")];
}

function diffElement(lines) {
  const sorts = {"+": "add", "-": "del", "@": "at"};
  return el("pre", {class: "diff"}, ...lines.map(line => el("span", {class: sorts[line[0]] ?? ""}, line || " ")));
}

// What changed in files: folded, and open as long as the reader has it open.
function filesElement(number, files) {
  const fold = (key, summary, ...content) => el("details", {open: unfolded.has(key) ? "" : null,
    ontoggle: event => event.target.open ? unfolded.add(key) : unfolded.delete(key)},
    el("summary", {}, ...summary), ...content);
  const rows = files.map(({path, kind, lines, more}) => !kind ? el("p", {}, path) : fold(`${number} ${path}`,
    [el("b", {}, kind), ` ${path}`], ...(lines.length ? [diffElement(lines)] : []),
    ...(more ? [el("p", {}, `${more} more lines; bpagent diff shows them`)] : [])));
  const names = files.slice(0, FOLD).map(({path}) => path).join(", ") + (files.length > FOLD ? ", …" : "");
  return el("div", {class: "files"}, fold(`${number} files`, [`files: ${names}`], ...rows));
}

// Blocks: turns in pieces, which are drawn when they come near.

const near = new IntersectionObserver(entries => {
  for (const {target, isIntersecting} of entries) isIntersecting ? fill(target.block) : empty(target.block);
}, {rootMargin: "700px"});

function fill(block) {
  if (block.filled) return;
  block.filled = true;
  const parts = block.rows.flatMap(n => partsOf.get(n) ?? []);
  const alone = !data.parts.length;
  block.element.replaceChildren(
    ...(alone ? [] : [el("div", {class: "parts"}, ...parts.map(partElement))]),
    el("div", {class: "rows"}, ...block.rows.map(rowElement)));
  block.element.style.height = "";
}

function empty(block) {
  if (!block.filled) return;
  measure(block);
  block.element.style.height = `${heights.get(block.key)}px`;
  block.element.replaceChildren();
  block.filled = false;
}

function measure(block) { heights.set(block.key, block.element.offsetHeight); }

function guess(rows) {
  const parts = rows.flatMap(n => partsOf.get(n) ?? []).map(number => data.parts[number]);
  const lines = ({text, diff}) => 0.3 + Math.min(text.split("\n").length, FOLD) + (diff?.length ?? 0);
  const left = 19 * parts.reduce((sum, part) => sum + lines(part), 0), right = 20 * rows.length;
  return (innerWidth > 900 ? Math.max(left, right) : left + right) + 18;
}

function draw() {
  near.disconnect();
  blocks.filter(block => block.filled).forEach(measure);
  partsOf = new Map();
  data.parts.forEach((part, number) => partsOf.set(part.row, [...(partsOf.get(part.row) ?? []), number]));
  blocks = [];
  const filtered = shown.kind || shown.text || shown.lane >= 0, turns = [];
  counted = 0;
  data.turns.forEach((first, turn) => {
    const last = data.turns[turn + 1] ?? data.rows.length, rows = [];
    for (let n = first; n < last; n++) if (!filtered || isShown(data.rows[n])) rows.push(n);
    counted += rows.length;
    if (rows.length) turns.push(turnElement(turn, first, last, rows));
  });
  if (!turns.length) turns.push(el("p", {class: "none"}, "No step fits; Escape shows all of them."));
  main.replaceChildren(...turns);
  const every = `${data.rows.length.toLocaleString("en")} steps`;
  count.textContent = filtered ? `${counted.toLocaleString("en")} of ${every}` : every;
  for (const block of blocks) near.observe(block.element);
  fillSeen();
}

function fillSeen() { // at once, so that nothing flickers; the others follow when they come near
  for (const block of blocks) {
    const {top, bottom} = block.element.getBoundingClientRect();
    if (top > innerHeight) break;
    if (bottom > 0) fill(block);
  }
}

function turnElement(turn, first, last, rows) {
  const section = el("section", {class: "turn"}), isFolded = folded.has(turn);
  if (data.parts.length) {
    const sum = spentOf(first, last), words = [el("span", {}, spentWords(sum))];
    if (sum.refused) words.push(el("span", {class: "refused"}, `✕ ${sum.refused} refused`));
    const turnOver = () => { isFolded ? folded.delete(turn) : folded.add(turn); draw(); };
    const title = `${isFolded ? "▸" : "▾"} turn ${turn + 1}`;
    section.append(el("h2", {}, el("button", {"aria-expanded": !isFolded, onclick: turnOver}, title, ...words)));
  }
  for (let from = 0; !isFolded && from < rows.length; from += CHUNK) {
    const block = {rows: rows.slice(from, from + CHUNK), filled: false, turn};
    block.key = `${innerWidth} ${block.rows[0]} ${block.rows.length}`;
    block.element = el("div", {class: `block columns${data.parts.length ? "" : " alone"}`});
    block.element.block = block;
    block.element.style.height = `${heights.get(block.key) ?? guess(block.rows)}px`;
    blocks.push(block);
    section.append(block.element);
  }
  return section;
}

// Where the reader is.

function blockOf(n) { return blocks.find(block => block.rows.includes(n)); }

function choose(n) {
  const before = current;
  current = n;
  document.getElementById(`step-${data.rows[before]?.step}`)?.classList.remove("current");
  document.getElementById(`step-${data.rows[n].step}`)?.classList.add("current");
  document.getElementById(`part-${partNow}`)?.classList.remove("here");
  partNow = data.rows[n].part ?? -1;
  document.getElementById(`part-${partNow}`)?.classList.add("here");
  history.replaceState(null, "", `#step-${data.rows[n].step}`);
  const all = refusals();
  place.textContent = all.length ? `✕ ${all.filter(each => each <= n).length} of ${all.length}` : "";
}

function go(n) {
  let block = blockOf(n);
  if (!block) {
    clear();
    for (const turn of [...folded]) if (data.turns[turn] <= n) folded.delete(turn);
    draw();
    block = blockOf(n);
  }
  fill(block);
  choose(n);
  const scroll = () => document.getElementById(`step-${data.rows[n].step}`)?.scrollIntoView({block: "center"});
  scroll();
  requestAnimationFrame(() => requestAnimationFrame(scroll)); // its neighbours have their heights by then
}

function showPart(number) {
  if (number === undefined) return;
  fill(blockOf(data.parts[number].row) ?? {filled: true});
  document.getElementById(`part-${number}`)?.scrollIntoView({block: "center"});
}

function toggle(n) {
  opened.has(n) ? opened.delete(n) : opened.add(n);
  document.getElementById(`step-${data.rows[n].step}`)?.replaceWith(rowElement(n));
  document.querySelector(`#step-${data.rows[n].step} .event`)?.focus({preventScroll: true});
}

function refusals() {
  return data.rows.flatMap((row, n) => row.marks.some(([, letter]) => letter === "x") ? [n] : []);
}

function nextRefusal(direction) {
  const all = refusals();
  const next = direction > 0 ? all.find(n => n > current) ?? all[0] : all.findLast(n => n < current) ?? all.at(-1);
  if (next !== undefined) go(next);
}

function move(direction) {
  const rows = blocks.flatMap(block => block.rows), at = rows.indexOf(current);
  const next = rows[at < 0 ? 0 : Math.min(Math.max(at + direction, 0), rows.length - 1)];
  if (next !== undefined) go(next);
}

// The tools above.

function clear() {
  Object.assign(shown, {text: "", kind: "", lane: -1});
  search.value = kind.value = "";
  for (const head of document.querySelectorAll(".heads button")) head.setAttribute("aria-pressed", "false");
}

function filterLane(lane) {
  shown.lane = shown.lane === lane ? -1 : lane;
  const names = document.querySelectorAll(".heads button");
  names.forEach((name, each) => name.setAttribute("aria-pressed", each === shown.lane));
  draw();
}

function foldAll() {
  if (folded.size) folded.clear();
  else data.turns.forEach((_, turn) => folded.add(turn));
  fold.textContent = folded.size ? "unfold all" : "fold all";
  draw();
}

const find = () => { shown.text = search.value.toLowerCase(); draw(); };
const search = el("input", {type: "search", placeholder: "search ( / )", "aria-label": "search", oninput: find});
const kind = el("select", {"aria-label": "kind of event", onchange: () => { shown.kind = kind.value; draw(); }});
const count = el("span", {class: "count", role: "status"}), place = el("span", {class: "count"});
const fold = el("button", {onclick: foldAll, title: "key f"}, "fold all");
const legend = el("ul", {class: "legend"}, ...[...MARKS.values()].map(
  ({sign, sort, meaning}) => el("li", {}, el("b", {class: sort}, sign), ` ${meaning}`)));
const heads = el("div", {class: "grid heads"});

function drawHeads() {
  const kinds = [...new Set(data.rows.map(row => row.name))].sort();
  kind.replaceChildren(el("option", {value: ""}, "all events"), ...kinds.map(name => el("option", {}, name)));
  kind.value = shown.kind;
  const head = (name, lane) => el("button", {onclick: () => filterLane(lane), "aria-pressed": lane === shown.lane,
    title: `${name}: show only its rows`}, name);
  heads.replaceChildren(el("span"), el("span", {class: "left"}, "event"), ...data.lanes.map(head));
  fit();
}

function fit() {
  (innerWidth > 900 ? document.querySelector(".bar > div") : document.querySelector("header")).append(legend);
  const width = heads.clientWidth || 600, event = innerWidth > 600 ? 190 : 96;
  const lane = Math.min(24, Math.max(13, Math.floor((width - 40 - event) / data.lanes.length)));
  document.documentElement.style.setProperty("--lanes", data.lanes.length);
  document.documentElement.style.setProperty("--lane", `${lane}px`);
  document.documentElement.style.setProperty("--bar", `${document.querySelector(".bar")?.offsetHeight ?? 0}px`);
}

function keys(event) {
  if (event.key === "Escape") { clear(); draw(); document.activeElement.blur(); return; }
  if (event.ctrlKey || event.metaKey || event.altKey || /INPUT|SELECT|TEXTAREA/.test(event.target.tagName)) return;
  const acts = {
    "/": () => search.focus(), f: foldAll, o: () => current >= 0 && toggle(current),
    n: () => nextRefusal(1), p: () => nextRefusal(-1), j: () => move(1), k: () => move(-1),
  };
  if (acts[event.key]) { event.preventDefault(); acts[event.key](); }
}

// A run that goes on.

function take(news) {
  const atEnd = innerHeight + scrollY > document.body.scrollHeight - 60, lanes = data.lanes.length;
  const changed = news.rows.length > 0;
  for (const name of ["rows", "parts", "evidence"]) data[name].push(...news[name]);
  Object.assign(data, {lanes: news.lanes, turns: news.turns, open: news.open, ended: news.ended});
  if (!changed) return;
  if (lanes !== data.lanes.length) drawHeads();
  draw();
  drawQuestions();
  if (atEnd && current < 0) scrollTo(0, document.body.scrollHeight);
}

async function ask() {
  const query = new URLSearchParams({rows: data.rows.length, parts: data.parts.length, evidence: data.evidence.length});
  try {
    const news = await (await fetch(`news?${query}`)).json();
    take(news);
    over(data.ended ? "the run has ended" : news.idle ? "the run was interrupted; bpagent resume goes on with it" : "");
    const [how] = data.parts.findLast(part => part.kind === "end")?.text.split("\n") ?? ["not yet"];
    Object.assign(document.querySelector("dl b"), {textContent: how, className: data.ended ? how.split(" ")[0] : "open"});
  } catch { over("the page is not served any more"); }
}

function over(why) {
  state.textContent = why || "the run goes on";
  controls.hidden = Boolean(why);
}

async function act(decision) {
  const headers = {"Content-Type": "application/json"};
  const answer = await (await fetch("act", {method: "POST", headers, body: JSON.stringify(decision)})).json();
  said.textContent = answer.done ? "" : answer.why;
  await ask();
}

const state = el("span", {class: "count"}), said = el("span", {class: "why", role: "status"});
const undoing = el("div", {class: "questions"});
const questions = el("div", {class: "questions"}), controls = el("div", {class: "controls"}, questions);

function drawQuestions() {
  questions.replaceChildren(...Object.entries(data.open).map(([call, [action, question]]) => {
    const why = el("input", {placeholder: "why not (the model is told)", "aria-label": "reason"});
    return el("div", {class: "ask"}, el("b", {}, question), el("code", {}, action),
      el("button", {class: "yes", onclick: () => act({do: "approve", call})}, "approve"), why,
      el("button", {class: "no", onclick: () => act({do: "reject", call, text: why.value})}, "reject"));
  }));
}

function confirmUndo(step) {
  const decide = async yes => {
    undoing.replaceChildren();
    if (yes) await act({do: "undo", step});
    if (yes) said.textContent ||= `the files are what they were before step ${step}`;
  };
  undoing.replaceChildren(el("div", {class: "ask"}, el("b", {}, `Make the files what they were before step ${step}?`),
    el("button", {class: "yes", onclick: () => decide(true)}, "undo"),
    el("button", {class: "no", onclick: () => decide(false)}, "leave them")));
  undoing.querySelector("button").focus();
}

function follow() {
  const words = el("input", {placeholder: "tell the model something", "aria-label": "steer"});
  const steer = () => { if (words.value.trim()) act({do: "steer", text: words.value}); words.value = ""; };
  words.addEventListener("keydown", event => event.key === "Enter" && steer());
  controls.append(words, el("button", {onclick: steer}, "steer"),
    el("button", {class: "no", onclick: () => act({do: "stop"})}, "stop"));
  document.body.append(el("div", {class: "live"}, undoing, controls, state, said));
  drawQuestions();
  const again = async () => { await ask(); setTimeout(again, data.ended ? 3000 : 500); };
  again();
}

function begin() {
  document.querySelector("header").append(el("p", {class: "lesson"}, data.lesson));
  const button = (words, title, onclick, more = {}) => el("button", {title, onclick, ...more}, words);
  const jump = [
    button("▲", "the refusal before (p)", () => nextRefusal(-1)),
    button("▼ next refusal", "the next refusal (n)", () => nextRefusal(1)), place,
  ];
  const step = [
    button("◀", "one step back (k)", () => move(-1), {class: "wide"}),
    button("step ▶", "one step on (j)", () => move(1), {class: "wide"}),
  ];
  const tools = el("div", {class: "tools"}, search, kind, ...(refusals().length || data.live ? jump : []), ...step,
    ...(data.turns.length > 1 ? [fold] : []), count,
    el("span", {class: "count wide"}, "keys: / search, n p refusals, j k steps, o open, f fold"));
  main.before(el("div", {class: `bar columns${data.parts.length ? "" : " alone"}`}, el("div", {}, tools), heads));
  drawHeads();
  draw();
  const goThere = () => {
    const wanted = data.rows.findIndex(row => `#step-${row.step}` === location.hash);
    if (wanted >= 0 && wanted !== current) go(wanted);
  };
  goThere();
  document.addEventListener("keydown", keys);
  addEventListener("resize", fit);
  addEventListener("hashchange", goThere);
  if (data.live) follow();
  addEventListener("beforeprint", () => { if (data.rows.length < 3000) blocks.forEach(fill); });
}

begin();
