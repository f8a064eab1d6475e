// One step of all ranks in time, as the workers keep it (/timeline): what the main thread of each did, its parts,
// and below that its calls with others, from begin to end.
"use strict";

const LINE_TEXT = {
  ...SHARE_TEXT, computing: "between ops", forward: "forward", backward: "backward", update: "optimizer",
  ops: "ops", call: "in a call", waiting: "waiting for others",
};
const LINE_LEGEND = ["forward", "backward", "update", "ops", "computing", "reading_data", "saving", "evaluating", "script", "call", "waiting"];
const LINE_KINDS = new Set(Object.keys(LINE_TEXT));
const LINES_MAX = 64; // ranks
const LINES_AGAIN_MS = 2000;
const timeline = { askedAt: 0, isAsking: false, hasLast: false, key: "" };

async function lookForTimeline() {
  const isOver = page.end !== null;
  if (timeline.isAsking || (isOver && timeline.hasLast) || Date.now() - timeline.askedAt < LINES_AGAIN_MS) {
    if (isOver && !timeline.hasLast) setTimeout(lookForTimeline, LINES_AGAIN_MS);
    return;
  }
  timeline.isAsking = true;
  timeline.askedAt = Date.now();
  try {
    const step = await (await fetch("timeline")).json();
    timeline.hasLast = isOver;
    drawStepInTime(step);
  } catch { /* the job has ended, or the page will ask again */ }
  timeline.isAsking = false;
}

// Of a call that all ranks of its group make: from when the last of them made it.
function lastBegins(ranks) {
  const last = new Map();
  for (const rank of ranks)
    for (const [kind, group, number, begin] of rank.calls) {
      const key = `${kind} ${group} ${number}`;
      last.set(key, Math.max(begin, last.get(key) ?? begin));
    }
  return last;
}

// [kind, begin, end, text]
function callSpans(rank, last) {
  return rank.calls.flatMap(([kind, group, number, begin, end]) => {
    const isMessage = kind === "send" || kind === "receive";
    const all = isMessage ? begin : Math.min(end, last.get(`${kind} ${group} ${number}`));
    const spans = [["call", all, end, `${kind} ${number}`]];
    return all > begin ? [["waiting", begin, all, `waiting in ${kind} ${number}`], ...spans] : spans;
  });
}

function spanText([kind, begin, end, text]) {
  const at = (ns) => (ns === 0 ? "0" : shortTime(ns / 1e9));
  return `${text ?? LINE_TEXT[kind]} ${at(begin)} to ${at(end)}`;
}

function drawTrack(rank, name, spans, whole) {
  const track = document.createElement("div");
  track.className = name;
  track.setAttribute("role", "img");
  const known = spans.filter(([kind]) => LINE_KINDS.has(kind));
  const told = known.map(spanText).slice(0, 40);
  track.setAttribute("aria-label", `Rank ${rank}, ${name === "thread" ? "main thread" : "calls"}: ${told.join(", ") || "nothing"}`);
  for (const span of known) {
    const begin = Math.max(0, span[1]);
    const end = Math.min(whole, span[2]);
    if (end < begin) continue;
    const bar = document.createElement("i");
    bar.className = span[0];
    bar.title = spanText(span);
    bar.style.left = `${(100 * begin) / whole}%`;
    bar.style.width = `${(100 * (end - begin)) / whole}%`;
    track.append(bar);
  }
  return track;
}

function whoseClock(step) {
  const workers = page.state?.workers ?? step.ranks.length;
  const missing = workers - step.ranks.length;
  const clocks = step.hosts.length === 1
    ? `All times are of the clock of ${step.hosts[0]}: the ranks are aligned.`
    : `Each host's ranks are drawn by its own clock; the clocks of ${step.hosts.join(", ")} are not aligned with each other.`;
  const rest = missing > 0 ? ` Of ${workers} ranks ${missing} kept no such step here: ranks of other hosts keep theirs there.` : "";
  const cut = step.ranks.length > LINES_MAX ? ` The first ${LINES_MAX} of ${step.ranks.length} ranks are drawn.` : "";
  const when = new Date(Number(step.begin_ns) / 1e6).toLocaleTimeString();
  return `Step ${step.step}, begun at ${when}: the whole width is ${shortTime(step.length_ns / 1e9)}. ${clocks}${rest}${cut}`;
}

function drawStepInTime(step) {
  const isThere = step !== null && step.ranks.length > 0;
  $("timeline-section").hidden = !isThere;
  if (!isThere) return;
  setText($("timeline-scale"), whoseClock(step));
  const key = `${step.step} ${step.begin_ns} ${step.ranks.length}`;
  if (key === timeline.key) return;
  timeline.key = key;
  const whole = Math.max(1, step.length_ns);
  const last = lastBegins(step.ranks);
  const rows = step.ranks.slice(0, LINES_MAX).map((rank) => {
    const item = document.createElement("li");
    const name = document.createElement("b");
    setText(name, String(rank.rank));
    const tracks = document.createElement("div");
    tracks.append(drawTrack(rank.rank, "thread", [...rank.phases, ...rank.parts], whole),
      drawTrack(rank.rank, "calls", callSpans(rank, last), whole));
    item.append(name, tracks);
    return item;
  });
  $("timeline").replaceChildren(...rows);
}

for (const name of LINE_LEGEND) {
  const entry = document.createElement("span");
  const colour = document.createElement("i");
  colour.className = name;
  entry.append(colour, LINE_TEXT[name]);
  $("timeline-legend").append(entry);
}
