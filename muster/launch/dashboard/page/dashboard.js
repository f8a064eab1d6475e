// The page of a job: told by server-sent events (/events), it draws what has changed. See job_json.h.
"use strict";

const $ = (id) => document.getElementById(id);
const SHARES = ["waiting", "starting", "script", "reading_data", "computing", "saving", "evaluating", "serving"];
const SHARE_ORDER = ["computing", "reading_data", "saving", "evaluating", "serving", "script", "starting", "waiting"];
const SHARE_TEXT = {
  computing: "computing", reading_data: "reading data", saving: "saving", evaluating: "evaluating",
  serving: "serving rows", script: "its script", starting: "starting", waiting: "waiting for others",
};
const EVENT_KINDS = {
  formed: "good", back: "good", not_slow: "good", left: "plain", saved: "plain", evaluated: "plain",
  recovering: "warn", slow: "warn", warning: "warn", lost: "bad", failed: "bad", error: "bad", restarted: "warn",
  asked: "plain",
  ended: "plain",
};
const EVENT_TEXT = { formed: "running", not_slow: "not slow", left: "done" };
const MAP_FROM = 100; // ranks: more of them are a heat map
const EVENTS_KEPT = 500;

const page = { columns: [], state: null, rows: [], events: [], isSilent: false, end: null, network: null, hasLogs: false, sortBy: "rank", sortDown: false };

const curves = new Curves($("curves"), [
  { name: "loss", title: "Loss", text: shortNumber },
  { name: "learning_rate", title: "Learning rate", text: shortNumber },
  { name: "step_seconds", title: "Step time", text: shortTime, fromZero: true },
  { name: "samples", title: "Samples a second", text: shortNumber, fromZero: true },
  { name: "memory_bytes", title: "Memory of the largest worker", text: sizeText, fromZero: true },
]);

// ---- What comes -------------------------------------------------------------------------------------------

const source = new EventSource("events");
// The first events may come before the other scripts, which draw them.
const loaded = new Promise((resolve) => document.addEventListener("DOMContentLoaded", resolve));
const on = (name, take) => source.addEventListener(name, async (event) => { await loaded; take(JSON.parse(event.data)); });
on("hello", (hello) => {
  page.columns = hello.columns;
  page.events = hello.events;
  curves.set(hello.points);
  $("logs").hidden = !hello.has_logs;
  $("compare").hidden = !hello.has_logs;
  if (hello.has_logs) listLogs();
  page.hasLogs = hello.has_logs;
  page.restarts = hello.restarts;
  showActions(hello);
  drawEvents();
  drawNetwork();
});
on("state", (state) => {
  page.state = state;
  page.isSilent = false;
  page.rows = state.ranks.map((values) => Object.fromEntries(page.columns.map((name, i) => [name, values[i]])));
  curves.add(state.point);
  draw();
});
on("event", (event) => {
  page.events.push(event);
  if (page.events.length > EVENTS_KEPT) page.events.shift();
  lookForDone(event);
  drawEvents();
});
on("network", (network) => { page.network = network; drawNetwork(); });
on("silent", () => { page.isSilent = true; draw(); });
on("end", (end) => { page.end = end; source.close(); endActions(); draw(); if (!page.state) drawEvents(); });
source.addEventListener("error", async () => { await loaded; if (!page.end) { page.isSilent = true; draw(); } });

// ---- Actions ----------------------------------------------------------------------------------------------

// The link that `muster run` prints has the token behind its #, which no server is told. Without it the page only
// shows. It is kept for this tab, and goes from the address, which may be copied.
function takeToken() {
  const given = /^#token=([0-9a-f]+)$/.exec(location.hash);
  const key = `token of ${location.host}`;
  if (given) {
    sessionStorage.setItem(key, given[1]);
    history.replaceState(null, "", location.pathname);
  }
  return sessionStorage.getItem(key);
}
const token = takeToken();

// What an action's event looks like, once it is done.
const DONE = {
  save: (event) => /^saving behind step \d+ .*asked on the page/.test(event.text),
  stop: (event) => /^the training stops behind step \d+: asked on the page/.test(event.text),
  restart: (event, rank) => event.kind === "back" && event.process === `worker ${rank}`,
};
const LATE_MS = 20000; // without its event, an action is said to be late
let asked = null; // {what, rank, at, isAccepted}: under way

function showActions(hello) {
  $("actions").hidden = !token || !hello.may_act || page.end !== null;
  for (const id of ["act-restart", "act-restart-label"]) $(id).hidden = !hello.restarts;
  if (hello.may_act && !token) answerAction("", "The link that `muster run` printed, with all of it, has buttons to save, stop and restart.");
}

// kind: "", done, refused, late.
function answerAction(kind, text) {
  $("act-answer").className = kind;
  setText($("act-answer"), text);
}

function setAsking(isAsking) {
  for (const button of $("actions").querySelectorAll("button")) button.setAttribute("aria-disabled", String(isAsking));
}

// A button keeps the focus while it works: it is not disabled, but does nothing.
async function act(what, question, rank) {
  if (asked && !asked.isAccepted) return;
  if (question && !confirm(question)) return;
  const before = asked;
  const mine = (asked = { what, rank, at: Date.now(), isAccepted: false });
  setAsking(true);
  answerAction("", "asking the launcher …");
  let text = "no answer: the launcher of this job does not listen any more";
  let isAccepted = false;
  try {
    const query = rank === undefined ? what : `${what}&rank=${encodeURIComponent(rank)}`;
    const answer = await fetch(`act?do=${query}`, { method: "POST", headers: { "X-Muster-Token": token } });
    isAccepted = answer.ok;
    text = (await answer.text()).trim();
  } catch { /* as `text` says */ }
  setAsking(false);
  if (asked !== mine) return; // its event was faster
  mine.isAccepted = isAccepted;
  if (isAccepted) return answerAction("", `${text}; waiting until it is done …`);
  asked = before; // which may still be under way
  answerAction("refused", `refused: ${text}`);
}

function lookForDone(event) {
  if (!asked || !DONE[asked.what](event, asked.rank)) return;
  asked = null;
  answerAction("done", `done: ${event.text}`);
}

function lookForLate() {
  if (!asked?.isAccepted || Date.now() - asked.at < LATE_MS) return;
  answerAction("late", "asked, and not done yet: trainings of a Model hear it behind a step, and one that waits for others does not end its step");
}

function endActions() {
  $("actions").hidden = true;
  if (!asked) return;
  asked = null;
  answerAction("late", "the job has ended before it was seen to be done");
}

$("act-save").addEventListener("click", () => act("save"));
$("act-stop").addEventListener("click", () => act("stop", "Stop the training after the step under way?"));
$("act-restart").addEventListener("click", () => {
  if (!$("act-rank").reportValidity()) return;
  const rank = $("act-rank").value;
  act("restart", `Kill the process of rank ${rank} and start it again?`, rank);
});

// ---- Summary ----------------------------------------------------------------------------------------------

function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

function stateText() {
  const { state, end, isSilent } = page;
  if (end) {
    if (end.exit_code === undefined || end.exit_code === null) return ["ended", "ended"];
    if (isInterrupted(end)) return ["interrupted", "ended"];
    return end.exit_code === 0 ? ["ended well", "ended"] : [`failed with exit code ${end.exit_code}`, "failed"];
  }
  if (isSilent) return [state ? "no answer, trying again" : "connecting", "silent"];
  return state ? [state.state, state.state] : ["connecting", ""];
}

function draw() {
  const [text, kind] = stateText();
  setText($("state"), text);
  $("state").className = `state ${kind}`;
  document.title = `${text} – Muster`;
  const { state } = page;
  if (!state) {
    drawTrouble([]);
    return;
  }
  setText($("job"), state.job);
  $("act-rank").max = state.workers - 1;
  lookForLate();
  const { point } = state;
  const epoch = Math.max(0, ...page.rows.map((row) => row.epoch));
  setText($("step"), point.step === null ? "–" : `${point.step}${epoch ? ` (epoch ${epoch})` : ""}`);
  setText($("loss"), shortNumber(point.loss));
  setText($("step-time"), shortTime(point.step_seconds));
  setText($("samples"), shortNumber(point.samples));
  const there = page.rows.filter((row) => row.role === "worker" && (row.connected || row.left)).length;
  setText($("workers"), `${there} of ${state.workers}`);
  setText($("age"), timeText(state.age_s));
  const awaited = awaitedRanks();
  drawTrouble(awaited);
  drawRanks(new Set(awaited), new Set(state.slow.map((slow) => slow.rank)));
  drawSteps();
  drawNetwork();
  if (page.hasLogs) lookForTimeline();
}

// ---- Ranks ------------------------------------------------------------------------------------------------

const COLUMNS = [
  { name: "rank", title: "Rank", text: nameOf, isButton: true },
  { name: "node", title: "Host", text: (row) => `${row.host} (${row.pid})` },
  { name: "step", title: "Step", text: (row) => (row.step === null ? "–" : String(row.step)), isNumber: true },
  { name: "doing", title: "Doing", text: (row, awaited) => row.doing + (row.calls && awaited.size && !awaited.has(row.rank) ? `, waits for rank ${[...awaited].slice(0, 3).join(", ")}` : "") },
  { name: "shares", title: "Where its time goes", sortValue: (row) => (row.shares ? -row.shares[0] : 1) },
  { name: "loss", title: "Loss", text: (row) => shortNumber(row.loss), isNumber: true },
  { name: "step_seconds", title: "Step time", text: (row) => shortTime(row.step_seconds), isNumber: true },
  { name: "memory", title: "Memory", text: (row) => sizeText(row.memory || null), isNumber: true },
  { name: "cores", title: "Cores", text: (row) => (row.cores === null ? "–" : row.cores.toFixed(1)), isNumber: true },
  { name: "silence", title: "Heartbeat", text: (row) => (row.left ? "–" : `${row.silence.toFixed(1)} s ago`), isNumber: true },
];

function nameOf(row) {
  return row.rank === null ? `${row.role} ${row.node}` : `${row.role} ${row.rank}`;
}

for (const column of COLUMNS) {
  const head = document.createElement("th");
  head.scope = "col";
  if (column.isNumber) head.className = "number";
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = column.title;
  button.addEventListener("click", () => {
    page.sortDown = page.sortBy === column.name && !page.sortDown;
    page.sortBy = column.name;
    draw();
  });
  head.append(button);
  column.head = head;
  document.querySelector("#ranks thead tr").append(head);
}

for (const legend of document.querySelectorAll(".legend"))
  for (const name of SHARE_ORDER) {
    const entry = document.createElement("span");
    const colour = document.createElement("i");
    colour.className = name;
    entry.append(colour, SHARE_TEXT[name]);
    legend.append(entry);
  }

function shownRows() {
  const wanted = $("filter").value.trim().toLowerCase();
  const rows = page.rows.filter((row) => !wanted || `${nameOf(row)} ${row.host} ${row.doing}`.toLowerCase().includes(wanted));
  const column = COLUMNS.find((each) => each.name === page.sortBy);
  const value = column.sortValue ?? ((row) => (column.name === "rank" ? (row.role === "worker" ? 0 : 1e9) + (row.rank ?? 0) : row[column.name]));
  const order = page.sortDown ? -1 : 1;
  return rows.sort((a, b) => {
    const [x, y] = [value(a), value(b)];
    if (x === null || y === null) return (x === null) - (y === null);
    return order * (x < y ? -1 : x > y ? 1 : 0);
  });
}

function drawRanks(awaited, slow) {
  const view = $("view").value;
  const isMap = view === "map" || (view === "auto" && page.rows.length > MAP_FROM);
  $("table-box").hidden = isMap;
  $("legend").hidden = isMap;
  $("map-box").hidden = !isMap;
  $("colour-label").hidden = !isMap;
  const rows = shownRows();
  if (isMap) drawMap(rows, slow);
  else drawTable(rows, awaited, slow);
}

function drawTable(rows, awaited, slow) {
  for (const column of COLUMNS)
    column.head.setAttribute("aria-sort", column.name !== page.sortBy ? "none" : page.sortDown ? "descending" : "ascending");
  const body = document.querySelector("#ranks tbody");
  while (body.rows.length > rows.length) body.deleteRow(-1);
  rows.forEach((row, i) => {
    const line = body.rows[i] ?? newLine(body);
    line.className = !row.connected && !row.left ? "gone" : row.role === "worker" && (slow.has(row.rank) || awaited.has(row.rank)) ? "slow" : "";
    COLUMNS.forEach((column, j) => {
      const cell = line.cells[j];
      if (column.name === "shares") return drawShares(cell, row.shares);
      setText(column.isButton ? cell.firstChild : cell, column.text(row, awaited));
    });
  });
}

function newLine(body) {
  const line = body.insertRow();
  for (const column of COLUMNS) {
    const cell = line.insertCell();
    if (column.isNumber) cell.className = "number";
    if (column.isButton) {
      const button = document.createElement("button");
      button.type = "button";
      button.addEventListener("click", () => showLogOf(button.textContent));
      cell.append(button);
    }
    if (column.name !== "shares") continue;
    const bar = document.createElement("div");
    bar.className = "shares";
    bar.setAttribute("role", "img");
    for (const name of SHARE_ORDER) bar.append(Object.assign(document.createElement("i"), { className: name }));
    cell.append(bar);
  }
  return line;
}

function sharesText(shares) {
  if (!shares) return "not known yet";
  return SHARE_ORDER.filter((name) => shares[SHARES.indexOf(name)] > 0)
    .map((name) => `${SHARE_TEXT[name]} ${shares[SHARES.indexOf(name)]} %`).join(", ");
}

function drawShares(cell, shares) {
  const bar = cell.firstChild;
  const text = sharesText(shares);
  if (bar.title === text) return;
  bar.title = text;
  bar.setAttribute("aria-label", text);
  SHARE_ORDER.forEach((name, i) => { bar.children[i].style.width = `${shares ? shares[SHARES.indexOf(name)] : 0}%`; });
}

// ---- Heat map ---------------------------------------------------------------------------------------------

function mapValue(row) {
  const kind = $("colour").value;
  return kind === "work" ? (row.shares ? 100 - row.shares[0] : null) : row[kind];
}

function scaleText(low, high) {
  if (!Number.isFinite(low)) return "";
  const texts = { work: (value) => `${value} % of its time`, step_seconds: shortTime, memory: sizeText, silence: shortTime };
  const text = texts[$("colour").value] ?? shortNumber;
  return `pale: ${text(low)}, dark: ${text(high)}`;
}

function mapText(row) {
  return `${nameOf(row)} at ${row.host}: ${row.doing}, step ${row.step ?? "–"}, step time ${shortTime(row.step_seconds)}, memory ${sizeText(row.memory)}; ${sharesText(row.shares)}`;
}

function drawMap(rows, slow) {
  const map = $("map");
  while (map.children.length > rows.length) map.lastChild.remove();
  while (map.children.length < rows.length) {
    const cell = document.createElement("button");
    cell.type = "button";
    cell.tabIndex = map.children.length ? -1 : 0;
    map.append(cell);
  }
  const values = rows.map(mapValue).filter((value) => typeof value === "number");
  const low = Math.min(...values), high = Math.max(...values);
  setText($("map-scale"), scaleText(low, high));
  rows.forEach((row, i) => {
    const cell = map.children[i];
    const value = mapValue(row);
    const part = typeof value !== "number" || high === low ? 0 : (value - low) / (high - low);
    const colour = typeof value !== "number" ? "var(--line)" : `color-mix(in oklab, var(--computing) ${Math.round(12 + 88 * part)}%, var(--card))`;
    if (cell.dataset.colour !== colour) {
      cell.dataset.colour = colour;
      cell.style.background = colour;
    }
    cell.className = !row.connected && !row.left ? "gone" : slow.has(row.rank) ? "slow" : "";
    cell.row = row;
    const label = nameOf(row);
    if (cell.title !== label) { cell.title = label; cell.setAttribute("aria-label", label); }
  });
  if (map.contains(document.activeElement)) setText($("map-detail"), mapText(document.activeElement.row));
}

$("map").addEventListener("focusin", (event) => setText($("map-detail"), mapText(event.target.row)));
$("map").addEventListener("pointerover", (event) => { if (event.target.row) setText($("map-detail"), mapText(event.target.row)); });
$("map").addEventListener("click", (event) => { if (event.target.row) showLogOf(nameOf(event.target.row)); });
$("map").addEventListener("keydown", (event) => {
  const cells = [...$("map").children];
  const at = cells.indexOf(document.activeElement);
  if (at < 0) return;
  const across = cells.filter((cell) => cell.offsetTop === cells[0].offsetTop).length;
  const moves = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -across, ArrowDown: across, Home: -at, End: cells.length - 1 - at };
  if (!(event.key in moves)) return;
  event.preventDefault();
  const next = cells[Math.max(0, Math.min(cells.length - 1, at + moves[event.key]))];
  cells[at].tabIndex = -1;
  next.tabIndex = 0;
  next.focus();
});

// ---- What happened ----------------------------------------------------------------------------------------

function clockText(time) {
  return new Date(time * 1000).toLocaleTimeString();
}

function isShown(event) {
  const kind = $("kinds").value;
  return !kind || (kind === "trouble" ? ["bad", "warn"].includes(EVENT_KINDS[event.kind]) : event.kind === kind);
}

function eventText(event) {
  return event.process && !event.text.startsWith(event.process) ? `${event.process}: ${event.text}` : event.text;
}

function drawEvents() {
  const events = page.events.filter(isShown);
  $("events").replaceChildren(...events.slice().reverse().map((event) => {
    const item = document.createElement("li");
    const time = document.createElement("time");
    time.dateTime = new Date(event.time * 1000).toISOString();
    time.textContent = clockText(event.time);
    const kind = document.createElement("b");
    kind.className = `kind-${EVENT_KINDS[event.kind] ?? "plain"}`;
    kind.textContent = EVENT_TEXT[event.kind] ?? event.kind;
    const text = document.createElement("span");
    text.textContent = eventText(event);
    item.append(time, kind, text);
    return item;
  }));
  drawLine(events);
}

function drawLine(events) {
  const line = $("line");
  const width = line.clientWidth || 600;
  const make = (name, values) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(values)) made.setAttribute(key, value);
    return made;
  };
  const times = [...page.events.map((event) => event.time), ...(curves.columns.time ?? [])];
  const low = Math.min(...times), high = Math.max(...times);
  const at = (time) => 6 + ((time - low) / (high - low || 1)) * (width - 12);
  const parts = [make("line", { class: "axis", x1: 0, x2: width, y1: 26, y2: 26 })];
  for (const event of events) {
    const mark = make("line", { class: `kind-${EVENT_KINDS[event.kind] ?? "plain"}`, x1: at(event.time), x2: at(event.time), y1: 6, y2: 26 });
    const title = make("title", {});
    title.textContent = `${clockText(event.time)} ${event.text}`;
    mark.append(title);
    parts.push(mark);
  }
  if (times.length) {
    const first = make("text", { x: 2, y: 40 }), last = make("text", { x: width - 2, y: 40, "text-anchor": "end" });
    first.textContent = clockText(low);
    last.textContent = clockText(high);
    parts.push(first, last);
  }
  line.setAttribute("aria-label", `${events.length} events over the time of the job, listed below`);
  line.replaceChildren(...parts);
}

// ---- Logs -------------------------------------------------------------------------------------------------

let logAsked = 0;

// Nothing: there is no answer, as where the job has just ended. The page says so by its state.
async function askFor(path) {
  try {
    return await fetch(path);
  } catch {
    return null;
  }
}

async function listLogs() {
  const answer = await askFor("logs");
  if (!answer?.ok) return;
  const chosen = $("log-name").value;
  const files = await answer.json();
  if (files.length === $("log-name").options.length) return;
  $("log-name").replaceChildren(...files.map((file) => new Option(file.name, file.name)));
  const first = files.find((file) => file.name.startsWith("worker")) ?? files[0];
  $("log-name").value = chosen || (first ? first.name : "");
  if (!chosen) showLog();
}

function logLine([, text], wanted) {
  const at = wanted ? text.toLowerCase().indexOf(wanted.toLowerCase()) : -1;
  if (at < 0) return [`${text}\n`];
  const mark = document.createElement("mark");
  mark.textContent = text.slice(at, at + wanted.length);
  return [text.slice(0, at), mark, `${text.slice(at + wanted.length)}\n`];
}

async function showLog(end) {
  const name = $("log-name").value;
  if (!name) return;
  const wanted = $("log-find").value;
  const number = ++logAsked;
  const query = new URLSearchParams({ name, ...(wanted ? { find: wanted } : {}), ...(end ? { end } : {}) });
  const answer = await askFor(`log?${query}`);
  if (!answer || number !== logAsked) return; // another question came behind it
  const lines = answer.ok ? await answer.json() : [];
  const log = $("log");
  log.dataset.first = lines.length ? lines[0][0] : 0;
  const text = lines.length ? lines.flatMap((line) => logLine(line, wanted)) : [answer.ok ? "nothing\n" : `${await answer.text()}\n`];
  if (log.textContent === text.map((part) => part.textContent ?? part).join("")) return;
  log.replaceChildren(...text);
  if (!end) log.scrollTop = log.scrollHeight;
}

function showLogOf(process) {
  const name = `${process.replaceAll(" ", "_")}.log`;
  if (![...$("log-name").options].some((option) => option.value === name)) return;
  $("log-name").value = name;
  showLog();
  $("logs").scrollIntoView({ block: "start" });
  $("log").focus({ preventScroll: true });
}

$("log-name").addEventListener("change", () => showLog());
$("log-find").addEventListener("input", () => showLog());
$("log-older").addEventListener("click", () => {
  $("log-follow").checked = false;
  showLog($("log").dataset.first);
});
setInterval(() => {
  if ($("logs").hidden || page.end || document.hidden) return;
  listLogs();
  if ($("log-follow").checked && String(getSelection()) === "") showLog();
}, 1000);

// ---- Controls ---------------------------------------------------------------------------------------------

for (const id of ["view", "colour", "filter"]) $(id).addEventListener("input", draw);
$("kinds").addEventListener("input", drawEvents);
new ResizeObserver(drawEvents).observe($("line"));
$("smoothing").addEventListener("input", (event) => { curves.smoothing = Number(event.target.value); curves.draw(); });
$("log-loss").addEventListener("input", (event) => { curves.isLogarithmic = event.target.checked; curves.draw(); });
$("over").addEventListener("input", (event) => { curves.over = event.target.value; curves.zoom(null); });
$("whole").addEventListener("click", () => curves.zoom(null));
curves.onRange = (range) => { $("whole").disabled = range === null; };

function setTheme(theme) {
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  setText($("theme"), `Theme: ${theme}`);
  try { localStorage.setItem("muster-theme", theme); } catch { /* a browser that keeps nothing */ }
  curves.draw();
}
$("theme").addEventListener("click", () => {
  const themes = ["system", "light", "dark"];
  setTheme(themes[(themes.indexOf($("theme").textContent.slice(7)) + 1) % themes.length]);
});
try { setTheme(localStorage.getItem("muster-theme") ?? "system"); } catch { /* likewise */ }
