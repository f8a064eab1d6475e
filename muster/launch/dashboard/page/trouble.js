// What is wrong with the job and where to look, above all: while it runs, and when it has failed.
"use strict";

// Of a rank that is slow, by the cause (slow_watch.h).
const LOOK_AT = {
  computing: "the processor of its host, and the threads it has (OMP_NUM_THREADS): muster doctor there",
  reading_data: "its disk, its share of the data, num_parallel_workers",
  saving: "the disk of its checkpoints",
  evaluating: "what this rank alone evaluates",
  script: "what this rank alone does: callbacks, prints, pictures",
  host_load: "other programs on its host: top there",
  network: "the way to its host: muster doctor there",
};

function slowText(slow) {
  const where = LOOK_AT[slow.cause];
  return where ? `${slow.text}. Look at ${where}` : slow.text;
}

function ranksText(ranks) {
  const shown = ranks.slice(0, 8).join(", ");
  return `rank${ranks.length > 1 ? "s" : ""} ${shown}${ranks.length > 8 ? " and more" : ""}`;
}

// Whom the others wait for, where nothing goes on: those who wait for nobody, or in an earlier call. Who waits for a
// message or a parameter server is in no call with a number.
function awaitedRanks() {
  const { state, rows } = page;
  if (!state || state.state !== "running" || page.end) return [];
  const usual = state.point.step_seconds ?? 1;
  if (state.without_step_s < Math.max(2, 3 * usual)) return [];
  const workers = rows.filter((row) => row.role === "worker" && !row.left);
  const newest = Math.max(0, ...workers.filter((row) => row.calls).map((row) => row.call));
  if (!workers.some((row) => row.calls)) return [];
  return workers.filter((row) => !row.calls || (row.call > 0 && row.call < newest)).map((row) => row.rank);
}

function awaitedText(awaited) {
  const { state, rows } = page;
  const first = rows.find((row) => row.role === "worker" && row.rank === awaited[0]);
  const stacks = `muster status --scheduler ${state.scheduler} --stacks --rank ${awaited[0]}`;
  return `no step for ${timeText(state.without_step_s)}: the others wait for ${ranksText(awaited)} (${first.doing}). Where in its code: ${stacks}`;
}

// A loss that is no number is told as a text.
function lossText() {
  const workers = page.rows.filter((row) => row.role === "worker");
  const lost = workers.filter((row) => typeof row.loss === "string");
  if (!lost.length) return "";
  const whose = lost.length < workers.length ? ` of ${ranksText(lost.map((row) => row.rank))}` : "";
  return `the loss${whose} is ${lost[0].loss}: MUSTER_DETECT_ANOMALY=1 shows the first op that gives such a number; a smaller learning rate may help`;
}

// Ctrl-C, or the signal that the launcher's record names.
function isInterrupted(end) {
  return Boolean(end.signal) || (end.signal === undefined && end.exit_code === 130);
}

// What was said first of a failure, behind the last recovery.
function whyFailed() {
  if (!page.end.exit_code || isInterrupted(page.end)) return [];
  const whole = page.events.map((event) => event.kind).findLastIndex((kind) => kind === "formed" || kind === "back");
  const told = page.events.slice(whole + 1);
  const first = told.find((event) => event.kind === "error") ?? told.find((event) => event.kind === "failed");
  if (!first) return [];
  const often = /killed by signal 9\b/.test(first.text) ? "; often that is the kernel's out-of-memory killer: dmesg | grep -i oom" : "";
  return [eventText(first) + often];
}

// The scheduler does not know that a launcher starts processes again.
function stateTrouble() {
  const { text } = page.state;
  return page.restarts ? text.replace(/ - start it again with .*/, " - the launcher starts it again") : text;
}

function drawTrouble(awaited) {
  const { state, end } = page;
  const lines = end ? whyFailed() : (state?.slow ?? []).map(slowText);
  if (awaited.length) lines.push(awaitedText(awaited));
  if (state?.text && state.state !== "running") lines.push(stateTrouble());
  if (lossText()) lines.push(lossText());
  $("trouble").hidden = lines.length === 0;
  setText($("trouble"), lines.join("\n"));
}
