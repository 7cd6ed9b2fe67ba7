import { counted, formatBytes } from "../../base/format_units.ts";
import type { Explanation } from "../../cache/explain/explanation.ts";
import type { PlannedPath } from "../../cache/plan/planned_path.ts";
import { PLAN_PATHS_MAX } from "../../cache/plan/planner.ts";
import type { NamedPath } from "../../metadata/metadata_store.ts";
import { STORE_DIR } from "../../nix/store_path.ts";
import { type Html, markup, type Part } from "./markup.ts";
import { type Tone, toneIcon } from "./icons.ts";
import { pinForm, unpinForm } from "./actions_part.ts";

/** The longest list of names. */
export const NAMED_MAX = 50;

/** The longest list of store paths. */
export const LISTED_MAX = 100;

/** Where each path of a list is. */
export interface Listed {
  /** The first LISTED_MAX of them. */
  readonly paths: readonly PlannedPath[];
  readonly count: number;
  /** How many of all are where. */
  readonly states: Readonly<Record<PlannedPath["state"], number>>;
  /** Words that are no store path. */
  readonly unreadable: readonly string[];
}

/** Result of a search. */
export interface Found {
  /** The query as typed; empty without a search. */
  readonly query: string;
  /** Explanation of a store path or its hash. */
  readonly explanation: Explanation | undefined;
  /** Set for several store paths or hashes. */
  readonly listed: Listed | undefined;
  /** Stored paths whose names contain any other text: the newest, at most NAMED_MAX. */
  readonly named: readonly NamedPath[];
  /** Why there is no result: the database, too many others search, or the list. */
  readonly failure: "unreadable" | "away" | "busy" | "too-long" | undefined;
  /** What was thrown, if anything was. */
  readonly cause?: unknown;
}

const FINDINGS: Readonly<Record<Explanation["verdict"], readonly [tone: Tone, word: string]>> = {
  hit: ["good", "here"],
  downloading: ["fair", "downloading"],
  nar_not_stored: ["fair", "narinfo only"],
  storage_away: ["bad", "storage away"],
  absent: ["bad", "nobody has it"],
  not_stored: ["idle", "not here"],
};

const NO_PATH =
  `This is no store path: expected ${STORE_DIR}/HASH-NAME, where HASH has 32 characters. ` +
  "Several have blanks or line ends between them.";

/** Words that the list repeats. */
const UNREADABLE_MAX = 5;

const STATES: Readonly<Record<PlannedPath["state"], readonly [tone: Tone, word: string]>> = {
  here: ["good", "here"],
  upstream: ["fair", "upstream"],
  nowhere: ["bad", "nowhere"],
  unknown: ["idle", "unknown"],
};

/** Longer queries are not repeated in the field: they are lists. */
const REPEATED_MAX = 20_000;

const FAILURES = {
  unreadable: "The database cannot be read at the moment.",
  away: "The database does not answer. Try again in a moment.",
  busy: "Too many searches run at the moment. Try again in some seconds.",
  "too-long": `This list is too long: expected at most ${
    PLAN_PATHS_MAX.toLocaleString("en-US")
  } store paths.`,
} as const;

/** A search by store path, hash or name, and its results. */
export function packagesPart(
  { query, explanation, listed, named, failure }: Found,
  { mayManage }: { readonly mayManage: boolean },
): Html {
  const shown = failure !== undefined
    ? markup`<p class="none found">${FAILURES[failure]}</p>`
    : listed !== undefined
    ? list(listed)
    : explanation === undefined
    ? names(query, named)
    : explained(explanation, mayManage);
  // A list is too long for a URL, and for an input, of which browsers cut the text.
  return markup`<form method="post" action="./#packages" class="search" role="search">
<label for="query">Store paths, hashes, or a name</label>
<div><textarea id="query" name="q" rows="1" spellcheck="false" autocomplete="off">${
    query.length <= REPEATED_MAX && query
  }</textarea>
<button id="search">Explain</button></div></form>${shown}`;
}

function list({ paths, count, states, unreadable }: Listed): Html {
  const all = (Object.keys(STATES) as PlannedPath["state"][]).filter((state) => states[state] > 0)
    .map((state) => `${states[state].toLocaleString("en-US")} ${STATES[state][1]}`);
  return markup`<p class="quiet found">Of ${counted(count, "path")}: ${
    all.join(", ")
  }.</p><ul class="found">${
    paths.map(({ hash, name, state, bytes, upstreams: [upstream] }) => {
      const [tone, word] = STATES[state];
      const from = upstream === undefined ? "" : `, ${upstream}`;
      return markup`<li><span class="mark">${
        toneIcon(tone)
      }${word}</span> <a href="?q=${hash}#packages">${name ?? hash}</a> <code>${hash}</code>${
        bytes !== null && markup` <span class="quiet">${formatBytes(bytes)}${from}</span>`
      }</li>`;
    })
  }${
    count > paths.length &&
    markup`<li>These are ${paths.length} of ${count}, the missing ones first.</li>`
  }${
    unreadable.length > 0 &&
    markup`<li>This is no store path and no hash: ${unreadable.slice(0, UNREADABLE_MAX).join(" ")}${
      unreadable.length > UNREADABLE_MAX && " …"
    }</li>`
  }</ul>`;
}

function names(query: string, named: Found["named"]): Part {
  if (query === "") return false;
  if (named.length === 0) {
    const isPath = query.includes(`${STORE_DIR}/`);
    return markup`<p class="none found">${
      isPath ? NO_PATH : "No stored path has such a name."
    }</p>`;
  }
  return markup`<ul class="found">${
    named.map(({ storePathHash, name }) =>
      markup`<li><a href="?q=${storePathHash}#packages">${name}</a>
 <code>${storePathHash}</code></li>`
    )
  }${
    named.length >= NAMED_MAX &&
    markup`<li>These are the newest. More of the name finds others.</li>`
  }</ul>`;
}

function explained(one: Explanation, mayManage: boolean): Html {
  const [tone, word] = FINDINGS[one.verdict];
  const name = one.name ?? one.hash;
  const form = one.pins?.some(({ root }) => root === one.hash)
    ? unpinForm({ root: one.hash, name: one.name, section: "packages" })
    : one.narinfo !== null && pinForm(one.hash, name);
  return markup`<div class="found"><p><span class="mark">${
    toneIcon(tone)
  }${word}</span> <b>${name}</b>${one.name !== null && markup` <code>${one.hash}</code>`}</p>${
    one.nar !== null && one.nar.file_bytes !== null &&
    markup`<p class="quiet">NAR file of ${formatBytes(one.nar.file_bytes)}, ${
      formatBytes(one.nar.nar_bytes)
    } unpacked</p>`
  }<ul class="reasons">${one.reasons.map((reason) => markup`<li>${reason}</li>`)}</ul>${
    mayManage && form
  }</div>`;
}
