// Other runs of the folder: which there are (/runs), and the curves of those that are chosen (/run?name=...).
"use strict";

const COMPARED_MAX = 6;
const DASHES = [[6, 3], [2, 3], [10, 3, 2, 3], [12, 4], [4, 2, 1, 2], [1, 2]];
const compared = new Map(); // name: {name, columns, colour, dash, number}

function runText(run) {
  const known = [run.script, run.began ? new Date(run.began * 1000).toLocaleString() : null,
    run.ranks === null ? null : `${run.ranks} rank${run.ranks === 1 ? "" : "s"}`,
    run.step === null ? "no step" : `step ${run.step}`, run.loss === null ? null : `loss ${shortNumber(run.loss)}`,
    run.exit_code ? `failed with exit code ${run.exit_code}` : null];
  return known.filter((text) => text !== null).join(", ");
}

async function listRuns() {
  const answer = await askFor("runs");
  const runs = answer?.ok ? await answer.json() : [];
  setText($("runs-answer"), answer?.ok ? (runs.length ? "" : "There is no other run in the folder of this one.") : "The runs cannot be listed any more: this page's server has ended.");
  $("runs").replaceChildren(...runs.map((run) => {
    const item = document.createElement("label");
    const box = Object.assign(document.createElement("input"), { type: "checkbox", checked: compared.has(run.name), value: run.name });
    const name = document.createElement("b");
    name.textContent = run.name;
    const text = document.createElement("span");
    text.textContent = runText(run);
    box.addEventListener("change", () => choose(box, run));
    item.append(box, name, text);
    return item;
  }));
}

async function choose(box, run) {
  setText($("runs-answer"), "");
  if (!box.checked) {
    compared.delete(run.name);
    return showCompared();
  }
  if (compared.size >= COMPARED_MAX) {
    box.checked = false;
    return setText($("runs-answer"), `${COMPARED_MAX} runs are compared at most: leave one out first.`);
  }
  const taken = new Set([...compared.values()].map((other) => other.number));
  const number = DASHES.findIndex((_, i) => !taken.has(i));
  const mine = { name: run.name, columns: {}, colour: `--run${number}`, dash: DASHES[number], number };
  compared.set(run.name, mine);
  const answer = await askFor(`run?${new URLSearchParams({ name: run.name })}`);
  if (compared.get(run.name) !== mine) return; // left out meanwhile
  if (!answer?.ok) {
    compared.delete(run.name);
    box.checked = false;
    return setText($("runs-answer"), `${run.name}: ${answer ? (await answer.text()).trim() : "no answer"}`);
  }
  mine.columns = (await answer.json()).points;
  if (!mine.columns.time) setText($("runs-answer"), `${run.name} has no numbers: no step was seen of it.`);
  showCompared();
}

// Their lines, named: also for those who do not tell the colours apart.
function showCompared() {
  curves.setOthers([...compared.values()]);
  const entry = (name, colour, dash) => {
    const item = document.createElement("li");
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    const line = document.createElementNS("http://www.w3.org/2000/svg", "line");
    for (const [key, value] of Object.entries({ x1: 0, x2: 36, y1: 6, y2: 6, "stroke-width": 2, "stroke-dasharray": dash.join(" ") }))
      line.setAttribute(key, value);
    line.style.stroke = `var(${colour})`;
    svg.setAttribute("aria-hidden", "true");
    svg.append(line);
    item.append(svg, name);
    return item;
  };
  const others = [...compared.values()].map((other) => entry(other.name, other.colour, other.dash));
  $("compared").replaceChildren(...(others.length ? [entry("this run", "--computing", []), ...others] : []));
}

$("compare").addEventListener("toggle", () => { if ($("compare").open) listRuns(); });
