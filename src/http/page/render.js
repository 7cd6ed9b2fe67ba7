// Renders the figures as HTML: for the server, and for the page, which updates itself every few
// seconds. Everything from outside goes through `escapeHtml`.

/** @typedef {import("../stats/stats.ts").Stats} Stats */

const UNITS = ["KiB", "MiB", "GiB", "TiB", "PiB"];
const ENTITIES = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };

/** Results of an upstream's last request, for people. */
const RESULTS = {
  found: "found",
  absent: "not found",
  timeout: "timeout",
  unreachable: "unreachable",
  status: "error status",
  garbage: "invalid answer",
  untrusted: "untrusted signature",
};

const STATES = { opening: "requesting", verifying: "verifying" };

/**
 * @param {unknown} text
 * @returns {string}
 */
export function escapeHtml(text) {
  return String(text).replace(/[&<>"']/g, (character) => ENTITIES[character]);
}

/**
 * The HTML of each part of the page, by its name.
 * @param {Stats} stats
 * @returns {Record<string, string>}
 */
export function renderParts(stats) {
  return {
    about: about(stats),
    figures: figures(stats),
    space: space(stats),
    upstreams: list(stats.upstreams, (one) => upstream(one, stats.at), "None is configured."),
    downloads: downloads(stats),
    uploads: uploads(stats),
    pins: pins(stats),
    problems: list(stats.problems, (one) => problem(one, stats.at), "None since the start."),
  };
}

function about({ version, at, uptimeSeconds }) {
  return `larder ${escapeHtml(version)}, up for ${formatSeconds(uptimeSeconds)}. ` +
    `Figures of ${time(at)}.`;
}

function figures({ requests, traffic, prefetch }) {
  const { narinfo, nar } = requests;
  return [
    figure("Hit ratio, NARs", percent(nar.hitRatio), requestsOf(nar)),
    figure("Hit ratio, narinfos", percent(narinfo.hitRatio), requestsOf(narinfo)),
    figure("Saved", bytes(traffic.savedBytes), "sent without an upstream"),
    figure("Served", bytes(traffic.servedBytes), `${bytes(traffic.upstreamBytes)} fetched`),
    figure("Fetched ahead, NARs", ...aheadOf(prefetch.nar)),
    figure("Fetched ahead, narinfos", ...aheadOf(prefetch.narinfo)),
  ].join("");
}

function figure(name, value, detail) {
  return `<div><dt>${name}</dt><dd><b>${value}</b> <span>${detail}</span></dd></div>`;
}

function requestsOf({ hits, misses, joined, prefetched }) {
  const ahead = prefetched > 0 ? `, ${number(prefetched)} fetched ahead` : "";
  return `${number(hits)} hits, ${number(joined)} joined, ${number(misses)} misses${ahead}`;
}

function aheadOf({ used, wasted, failed, skipped }) {
  const detail = `${number(wasted)} wasted, ${number(failed)} failed, ${number(skipped)} skipped`;
  return [`${number(used)} used`, detail];
}

function space({ size }) {
  const { usedBytes, limitBytes, reservedBytes, pinnedBytes, evictedBytes } = size;
  const more = [
    ...reservedBytes > 0 ? [`${bytes(reservedBytes)} reserved for downloads`] : [],
    `${bytes(pinnedBytes)} pinned`,
    `${bytes(evictedBytes)} evicted since the start`,
  ];
  if (limitBytes === null) {
    return `<p><b>${bytes(usedBytes)}</b> used, without a limit</p><p>${more.join(", ")}</p>`;
  }
  const text = `${bytes(usedBytes)} of ${bytes(limitBytes)}`;
  const part = limitBytes === 0 ? 1 : usedBytes / limitBytes;
  return `<p><b>${text}</b> used (${percent(part)})</p>` +
    `<meter aria-label="Used space" min="0" max="1" value="${Math.min(1, part)}">${text}</meter>` +
    `<p>${more.join(", ")}</p>`;
}

function upstream({ url, isUp, priority, lastAnswer }, at) {
  const answered = lastAnswer === null
    ? "no request yet"
    : `${RESULTS[lastAnswer.result] ?? "answered"} ${ago(lastAnswer.at, at)}`;
  const facts = [answered, ...priority === null ? [] : [`priority ${number(priority)}`]];
  const standing = isUp ? mark("good", "✓", "up") : mark("bad", "✗", "down");
  return `${standing} <b>${escapeHtml(url)}</b> <span class="detail">${facts.join(", ")}</span>`;
}

function downloads({ downloads, at }) {
  return transfers(downloads, (one) => transfer(one, { kind: "Download", towards: "to", at }));
}

/** Most caches never get one, so there is no section for them. */
function uploads({ uploads, at }) {
  if (uploads.count === 0) return "";
  return "<h3>Uploading now</h3>" +
    transfers(uploads, (one) => transfer(one, { kind: "Upload", towards: "from", at }));
}

function transfers({ count, underWay }, show) {
  const hidden = count - underWay.length;
  return list(underWay, show, "Nothing at the moment.") +
    (hidden > 0 && underWay.length > 0 ? `<p>and ${number(hidden)} more</p>` : "");
}

function transfer(one, { kind, towards, at }) {
  const { nar, name, state, receivedBytes, fileBytes, startedAt } = one;
  const shown = escapeHtml(name ?? nar);
  const whole = fileBytes === null ? "" : ` of ${bytes(fileBytes)}`;
  const value = fileBytes ? ` value="${Math.min(1, receivedBytes / fileBytes)}"` : "";
  const facts = [
    `${bytes(receivedBytes)}${whole}`,
    ...fileBytes ? [percent(receivedBytes / fileBytes)] : [],
    ...STATES[state] === undefined ? [] : [STATES[state]],
    `began ${ago(startedAt, at)}`,
  ];
  const clients = clientsOf(one);
  return `<b>${shown}</b> <span class="detail">${facts.join(", ")}</span>` +
    (clients === "" ? "" : `<span class="detail">${towards} ${clients}</span>`) +
    `<progress aria-label="${kind} of ${shown}" max="1"${value}></progress>`;
}

function clientsOf({ clients, clientCount }) {
  const hidden = clientCount - clients.length;
  const more = hidden > 0 ? ` and ${number(hidden)} more` : "";
  return clients.map(escapeHtml).join(", ") + more;
}

function pins({ pins: all, at }) {
  if (all === null) return "<p>The pins cannot be read at the moment.</p>";
  const { count, countedAt, roots } = all;
  const hidden = count - roots.length;
  return list(roots, (one) => pin(one, at), "Nothing is pinned.") +
    (hidden > 0 ? `<p>and ${number(hidden)} more, pinned before</p>` : "") +
    (countedAt === null || count === 0 ? "" : `<p>Sizes were counted ${ago(countedAt, at)}.</p>`);
}

function pin({ root, name, pinnedAt, stored, missing, bytes: held }, at) {
  const facts = stored === null
    ? ["being counted"]
    : [bytes(held), `${number(stored)} paths here, ${number(missing)} missing`];
  return `<b>${escapeHtml(name ?? root)}</b> ` +
    (name === null ? "" : `<code>${escapeHtml(root)}</code> `) +
    `<span class="detail">${[...facts, `pinned ${ago(pinnedAt, at)}`].join(", ")}</span>` +
    unpinForm(root, name ?? root);
}

/** Opening it is the first step, the button the second one. */
function unpinForm(root, name) {
  return `<details class="act"><summary>Unpin</summary>` +
    `<form method="post" action="page/unpin">` +
    `<input type="hidden" name="path" value="${escapeHtml(root)}">` +
    `<button aria-label="Unpin ${escapeHtml(name)}">End this protection</button></form></details>`;
}

function problem({ level, message, facts, count, lastAt }, at) {
  const standing = level === "error" ? mark("bad", "✗", "error") : mark("fair", "!", "warning");
  const told = Object.entries(facts).map(([name, value]) => `${name}: ${value}`);
  const often = count > 1 ? `${number(count)} times, last ` : "";
  return `${standing} <b>${escapeHtml(message)}</b> <span>${often}${ago(lastAt, at)}</span>` +
    (told.length > 0 ? `<span class="facts">${escapeHtml(told.join(", "))}</span>` : "");
}

function list(all, show, none) {
  if (all.length === 0) return `<p>${none}</p>`;
  return `<ul>${all.map((one) => `<li>${show(one)}</li>`).join("")}</ul>`;
}

/** A word, with a sign and a colour for those who see them. */
function mark(kind, sign, word) {
  return `<span class="mark ${kind}"><span aria-hidden="true">${sign}</span> ${word}</span>`;
}

function time(iso) {
  const shown = `${iso.slice(0, 10)} ${iso.slice(11, 19)} UTC`;
  return `<time datetime="${escapeHtml(iso)}">${escapeHtml(shown)}</time>`;
}

function ago(iso, at) {
  const seconds = (Date.parse(at) - Date.parse(iso)) / 1_000;
  const shown = seconds < 1 ? "just now" : `${formatSeconds(seconds)} ago`;
  return `<time datetime="${escapeHtml(iso)}">${shown}</time>`;
}

function formatSeconds(seconds) {
  const whole = Math.max(0, Math.floor(seconds));
  if (whole < 60) return `${whole} s`;
  if (whole < 3_600) return `${Math.floor(whole / 60)} min`;
  if (whole < 86_400) return `${Math.floor(whole / 3_600)} h ${Math.floor(whole / 60) % 60} min`;
  return `${Math.floor(whole / 86_400)} d ${Math.floor(whole / 3_600) % 24} h`;
}

function bytes(count) {
  if (count < 1024) return `${number(count)} B`;
  let amount = count / 1024;
  let unit = 0;
  // Not "1024.0 KiB": what rounds up to the next unit is shown in it.
  while (amount >= 1023.95 && unit < UNITS.length - 1) {
    amount /= 1024;
    unit++;
  }
  return `${amount.toFixed(1)} ${UNITS[unit]}`;
}

function percent(part) {
  return part === null ? "–" : `${(part * 100).toFixed(part > 0.995 && part < 1 ? 2 : 0)} %`;
}

function number(count) {
  return Number(count).toLocaleString("en-US");
}
