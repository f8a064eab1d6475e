// A step of each rank, in its parts: as long as steps were in the last ten seconds, divided as the rank's main
// thread has divided its time. In which order a step has its parts, heartbeats do not tell.
"use strict";

const STEP_ORDER = ["reading_data", "computing", "serving", "script", "saving", "evaluating", "starting", "waiting"];
const STEPS_MAX = 64; // rows; of more ranks those with the most work of their own

function stepParts(row) {
  return STEP_ORDER.map((name) => ({ name, seconds: (row.step_seconds * row.shares[SHARES.indexOf(name)]) / 100 }))
    .filter((part) => part.seconds > 0);
}

function ownWork(row) {
  return row.step_seconds * (1 - row.shares[0] / 100);
}

function drawSteps() {
  const known = page.rows.filter((row) => row.role === "worker" && row.shares && row.step_seconds > 0);
  $("steps-section").hidden = known.length === 0;
  if (!known.length) return;
  const rows = known.length > STEPS_MAX
    ? [...known].sort((a, b) => ownWork(b) - ownWork(a)).slice(0, STEPS_MAX) : known;
  const longest = Math.max(...rows.map((row) => row.step_seconds));
  setText($("steps-scale"), `${known.length > STEPS_MAX ? `The ${STEPS_MAX} of ${known.length} ranks with the most own work. ` : ""}The whole width is ${shortTime(longest)}.`);
  const list = $("steps");
  while (list.children.length > rows.length) list.lastChild.remove();
  rows.forEach((row, i) => drawStep(list.children[i] ?? newStep(list), row, longest));
}

function newStep(list) {
  const item = document.createElement("li");
  const bar = document.createElement("div");
  bar.setAttribute("role", "img");
  for (const name of STEP_ORDER) bar.append(Object.assign(document.createElement("i"), { className: name }));
  item.append(document.createElement("b"), bar, document.createElement("span"));
  list.append(item);
  return item;
}

function drawStep(item, row, longest) {
  const [name, bar, own] = item.children;
  const parts = stepParts(row);
  const text = parts.map((part) => `${SHARE_TEXT[part.name]} ${shortTime(part.seconds)}`).join(", ");
  const key = `${longest} ${text}`;
  setText(name, String(row.rank));
  if (item.dataset.key === key) return;
  item.dataset.key = key;
  setText(own, `own work ${shortTime(ownWork(row))} of ${shortTime(row.step_seconds)}`);
  bar.title = text;
  bar.setAttribute("aria-label", `Rank ${row.rank}: ${text}`);
  STEP_ORDER.forEach((kind, i) => {
    const part = parts.find((each) => each.name === kind);
    bar.children[i].style.width = `${part ? (100 * part.seconds) / longest : 0}%`;
  });
}
