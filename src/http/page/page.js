import { renderParts } from "./render.js";

const REFRESH_EVERY_MS = 5_000;
const ANSWER_WITHIN_MS = 10_000;

const settings = document.getElementById("settings");
const copyButton = document.getElementById("copy");
const pauseButton = document.getElementById("pause");
const copied = document.getElementById("copied");
const trouble = document.getElementById("trouble");

let timer;
let isPaused = false;
let isRefreshing = false;

// The browser knows best under which address it has reached us.
const here = new URL(".", location.href).href.replace(/\/$/, "");
settings.value = settings.value.replace(/^extra-substituters = .*/, () => {
  return `extra-substituters = ${here}`;
});

for (const button of [copyButton, pauseButton]) button.hidden = false;

copyButton.addEventListener("click", async () => {
  say(copied, "");
  try {
    await navigator.clipboard.writeText(settings.value);
    say(copied, "Copied.");
  } catch {
    // Without HTTPS or without permission there is no clipboard: the old way asks for neither.
    settings.focus();
    settings.select();
    const done = document.execCommand("copy");
    if (done) copyButton.focus();
    say(copied, done ? "Copied." : "Selected: press Ctrl+C or ⌘C to copy.");
  }
});

pauseButton.addEventListener("click", () => {
  isPaused = !isPaused;
  pauseButton.setAttribute("aria-pressed", String(isPaused));
  if (isPaused) clearTimeout(timer);
  else refresh();
});

document.addEventListener("visibilitychange", () => {
  if (document.hidden) clearTimeout(timer);
  else if (!isPaused) refresh();
});

schedule();

function schedule() {
  clearTimeout(timer);
  if (!document.hidden && !isPaused) timer = setTimeout(refresh, REFRESH_EVERY_MS);
}

async function refresh() {
  if (isRefreshing) return;
  isRefreshing = true;
  clearTimeout(timer);
  try {
    const signal = AbortSignal.timeout(ANSWER_WITHIN_MS);
    const answer = await fetch("stats", { cache: "no-store", signal });
    if (!answer.ok) throw new Error(`answered ${answer.status}`);
    show(await answer.json());
    say(trouble, "");
  } catch {
    say(trouble, "These figures are old: the cache does not answer. Trying again.");
  } finally {
    isRefreshing = false;
    schedule();
  }
}

function show(stats) {
  for (const [name, html] of Object.entries(renderParts(stats))) {
    const part = document.getElementById(name);
    // An open confirmation must not close under the user's hand.
    if (part.querySelector("details[open]") !== null) continue;
    if (part.innerHTML !== html) part.innerHTML = html;
  }
}

/** A screen reader says it when it changes. */
function say(where, text) {
  if (where.textContent !== text) where.textContent = text;
}
