// How the network is divided over workers, as rank 0 keeps it in the run's folder; or why there is no picture.
"use strict";

function whyNoPicture() {
  const { network, state, hasLogs } = page;
  if (network) return network.text.trim();
  if (!hasLogs) return "The run's folder is not here: muster dashboard --logs FOLDER names it.";
  const makesSteps = page.rows.some((row) => row.role === "worker" && row.step > 0) || (state && state.point.step > 0);
  if (makesSteps) return "Steps are made, and rank 0 has kept no plan: a network in eager mode runs op by op and has none. Or rank 0 is on another host, in whose folder the picture is.";
  return "No plan has run so far: there is one from the first step of a Model or of a compiled cell. Eager loops, and scripts without Muster, have none.";
}

function drawNetwork() {
  const { network } = page;
  const hasPicture = Boolean(network?.has_picture);
  $("network-none").hidden = hasPicture;
  $("network-picture").hidden = !hasPicture;
  $("network-words").hidden = !hasPicture;
  if (!hasPicture) return setText($("network-none"), whyNoPicture());
  setText(document.querySelector("#network-words pre"), network.text);
  // An image runs no script, whatever the file holds.
  const image = document.querySelector("#network-picture img");
  const source = `network.svg?version=${network.version}`;
  if (image.getAttribute("src") !== source) image.src = source;
}
