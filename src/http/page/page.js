// Fetches the page again every few seconds, and shows what has changed in it.
const REFRESH_EVERY_MS = 5_000;
const ANSWER_WITHIN_MS = 10_000;

const pauseButton = document.getElementById("pause");
const copied = document.getElementById("copied");
const trouble = document.getElementById("trouble");

let timer;
let isPaused = false;
let isRefreshing = false;

// The browser knows best under which address it has reached us, unless only its machine does.
const tabs = document.querySelector(".tabs");
const isLocal = /^(localhost|127\.[\d.]+|\[::1\])$/.test(location.hostname);
const { origin, pathname } = new URL(".", location.href);
const here = ((isLocal ? tabs.dataset.url : origin) + pathname).replace(/\/$/, "");
for (const code of tabs.querySelectorAll("code")) {
  code.textContent = code.textContent.replaceAll(tabs.dataset.url, here);
}

for (const button of document.querySelectorAll("button[hidden]")) button.hidden = false;

// Screen readers know only what is laid out.
requestAnimationFrame(() => setTimeout(() => document.documentElement.classList.add("painted")));

document.addEventListener("click", (event) => {
  const copying = event.target.closest(".copy");
  if (copying !== null) copy(copying);
  const range = event.target.closest(".ranges a");
  if (range === null || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  history.replaceState(null, "", range.href);
  refresh();
});

document.addEventListener("pointermove", ({ target, clientX }) => {
  const plot = target.closest(".plot svg");
  for (const chart of document.querySelectorAll(".chart")) {
    if (chart.contains(plot)) point(chart, plot, clientX);
    else if (chart.dataset.slot !== undefined) point(chart);
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

const search = document.querySelector(".search");
search.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  search.requestSubmit();
});
// What fits into a URL is there: it can be kept, and the browser loads it again without a question.
search.addEventListener("submit", () => {
  search.method = search.elements.q.value.length < 1_000 ? "get" : "post";
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
    // A search is answered once: it may walk the closures of all pins.
    const url = new URL(location.href);
    url.searchParams.delete("q");
    const headers = { accept: "text/html" };
    const answer = await fetch(url, { cache: "no-store", headers, signal });
    if (!answer.ok) throw new Error(`answered ${answer.status}`);
    show(new DOMParser().parseFromString(await answer.text(), "text/html"));
    say(trouble, "");
  } catch {
    say(trouble, "These figures are old: the cache does not answer. Trying again.");
  } finally {
    isRefreshing = false;
    schedule();
  }
}

function show(page) {
  for (const part of document.querySelectorAll("[data-live]")) {
    // An open confirmation must not close under the user's hand.
    if (part.querySelector(".act[open]") !== null) continue;
    const fresh = page.getElementById(part.id);
    for (const open of part.querySelectorAll("details[open][id]")) {
      fresh.querySelector(`#${open.id}`)?.setAttribute("open", "");
    }
    if (part.innerHTML === fresh.innerHTML) continue;
    const focused = part.contains(document.activeElement) ? document.activeElement.id : "";
    part.innerHTML = fresh.innerHTML;
    if (focused !== "") document.getElementById(focused)?.focus({ preventScroll: true });
  }
}

/** Shows the values below the pointer beside the chart's title, or those of the whole range. */
function point(chart, plot, x) {
  const { slots } = chart.parentElement.dataset;
  const box = plot?.getBoundingClientRect();
  const slot = plot && Math.min(slots - 1, Math.floor((x - box.left) / box.width * slots));
  if (plot === undefined) delete chart.dataset.slot;
  else chart.dataset.slot = slot;
  chart.querySelector(".cursor").setAttribute("x", 10 * (slot ?? -1));
  const shown = chart.querySelector("[data-rest]");
  const row = document.querySelector(`#values [data-slot="${slot}"]`);
  say(shown, row === null ? shown.dataset.rest : valuesIn(row, chart.dataset));
}

function valuesIn({ cells }, { column, series }) {
  const names = document.querySelectorAll("#values thead th");
  const values = Array.from({ length: Number(series) }, (_, index) => {
    const at = Number(column) + index;
    return `${names[at].textContent} ${cells[at].textContent}`;
  });
  return `${cells[0].textContent}: ${values.join(", ")}`;
}

async function copy(button) {
  const lines = button.parentElement.querySelector("code");
  say(copied, "");
  try {
    await navigator.clipboard.writeText(lines.textContent);
    say(copied, "Copied.");
  } catch {
    // Without HTTPS or without permission there is no clipboard: the old way asks for neither.
    getSelection().selectAllChildren(lines);
    const done = document.execCommand("copy");
    say(copied, done ? "Copied." : "Selected: press Ctrl+C or ⌘C to copy.");
  }
}

/** A screen reader says it when it changes. */
function say(where, text) {
  if (where.textContent !== text) where.textContent = text;
}
