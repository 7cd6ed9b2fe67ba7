import type { Facts } from "../base/failure.ts";
import type { LogLevel } from "./logger.ts";

/**
 * What larder knows of an event. All rooms name it by its kind: its words stand in the log and in
 * titles alone.
 */
export interface EventRow {
  readonly level: LogLevel;
  /** The log's message. */
  readonly words: string;
  /** What to do, in the line and on the page, unless the facts know better. It names no file. */
  readonly hint?: string;
  /** The same, for the page alone. */
  readonly remedy?: string;
  /** Where the page needs another title than the words. */
  readonly title?: string;
  /** It begins an outage: a problem that lasts until this event. Default: it has no end. */
  readonly endedBy?: string;
  /** Its problem is also over a while after the last time. */
  readonly fades?: true;
  /** What failed. The outages of a part are one problem. Default: the event itself. */
  readonly part?: string;
  /** The event that it reports the outcome of: both are one problem. */
  readonly outcomeOf?: string;
  /** True for an outage of each upstream that the facts name. */
  readonly isPerUpstream?: true;
  /** True where larder tells of it again while it lasts. Default: each time is a failure. */
  readonly isState?: true;
  /** What this work cannot do without: an outage of that says enough. Default: nothing. */
  readonly needs?: readonly PartName[];
  /** True where it says enough for all work that needs its part. */
  readonly explains?: true;
}

/** The parts of a larder that fail on their own, and that it probes. */
export type PartName = "database" | "storage" | "disk" | "upstreams";

export const DATABASE = "database" satisfies PartName;
export const STORAGE = "storage" satisfies PartName;
export const DISK = "disk" satisfies PartName;

/** The part whose problems the health of the upstreams shows, too. */
export const UPSTREAM_DOWN = "upstreams" satisfies PartName;

/** Remedy for an upstream that does not answer. */
export const UPSTREAM_SILENT =
  "check --cache-upstream-url and the network; larder uses an upstream as soon as it answers";

const FREE_DATABASE = "end the process that locks the database, or make room on its disk";
const MAY_REMOVE = "give larder the right to remove files from its storage";
const CHECK_DATABASE = "check the database with larder doctor; larder tries again";

/** An outage of each upstream. */
const ofUpstreams = { part: UPSTREAM_DOWN, isPerUpstream: true } as const;

/** One of an upstream that is late with its answers, each time or now and then. */
const ofLateAnswers = { part: "late answers", isPerUpstream: true, isState: true } as const;

/** Work that the database alone fails. */
const ofDatabase = { part: DATABASE, needs: [DATABASE] } as const;

/** Work that needs the stored files, whose failure is the storage's. */
const ofStorage = { part: STORAGE, needs: [DATABASE, STORAGE] } as const;

/** The limit of the storage is too small for what it must hold. */
const ofRoom = { part: "room", needs: [DATABASE, STORAGE] } as const;

/** An event whose work needs the database alone. */
const byDatabase = { needs: [DATABASE], remedy: CHECK_DATABASE } as const;

type MoreOfRow = Omit<EventRow, "level" | "words">;

function warning<const More extends MoreOfRow>(words: string, more: More) {
  return { level: "warn", words, ...more } as const;
}

function error<const More extends MoreOfRow>(words: string, more: More) {
  return { level: "error", words, ...more } as const;
}

/** What ends an outage. */
function end(words: string) {
  return { level: "info", words } as const;
}

/**
 * All warnings and errors, and what ends them. Of the events of one part, the gravest has the
 * title: errors before warnings, then the lower in this table.
 */
const TABLE = {
  // Outages, and what ends each.
  "upstream-failed": warning("upstream failed", {
    ...ofUpstreams,
    hint: "wait: larder asks it again; check --cache-upstream-url and the network if it lasts",
    endedBy: "upstream-answers",
  }),
  "upstream-silent": warning("upstream does not answer", {
    ...ofUpstreams,
    hint: UPSTREAM_SILENT,
    endedBy: "upstream-answers",
  }),
  "upstream-no-cache": warning("upstream is no binary cache", {
    ...ofUpstreams,
    hint: "check the path in --cache-upstream-url; it is used as soon as it answers",
    endedBy: "upstream-answers",
  }),
  "upstream-answers": end("upstream answers again"),
  "upstream-down": warning("upstream is down", {
    ...ofUpstreams,
    hint: UPSTREAM_SILENT,
    endedBy: "upstream-up",
  }),
  "upstream-up": end("upstream is up again"),
  "upstream-slow": warning("upstream is slow: clients wait for it", {
    ...ofLateAnswers,
    hint:
      "lower its priority, with a higher ?priority=N behind its --cache-upstream-url, or remove it",
    endedBy: "upstream-quick",
  }),
  "upstream-quick": end("upstream is quick enough again"),
  "upstream-answers-slowly": warning("upstream answers slowly: clients wait for it", {
    ...ofLateAnswers,
    hint: "take it out of --cache-upstream-url, or name a nearer mirror there",
    endedBy: "upstream-answers-quickly",
  }),
  "upstream-answers-quickly": end("upstream answers quickly again"),
  "upstream-sends-slowly": warning("upstream sends nars slowly: clients wait for them", {
    hint: "check this machine's line; else name a nearer mirror in --cache-upstream-url",
    endedBy: "upstream-sends-quickly",
    isPerUpstream: true,
    isState: true,
  }),
  "upstream-sends-quickly": end("no client waits for the upstream's nars any more"),
  "upstream-queue-late": warning("upstream too slow: queued requests time out", {
    hint: "wait; if it lasts, ask the upstream's operators for a higher rate",
    endedBy: "upstream-keeps-up",
    isPerUpstream: true,
  }),
  "upstream-keeps-up": end("upstream keeps up again"),
  "clock-differs": warning("clock differs from the database's", {
    hint: "set the clocks of both machines by NTP; until then larder takes the database's time",
    endedBy: "clock-agrees",
  }),
  "clock-agrees": end("clock agrees with the database's again"),
  "writes-late": warning("database does not take writes: narinfos are kept in memory", {
    ...ofDatabase,
    hint: FREE_DATABASE,
    endedBy: "writes-landed",
  }),
  "writes-landed": end("database takes writes again: all narinfos are written"),
  "narinfo-lookup-failed": error("narinfo lookup failed, querying upstreams", {
    ...ofDatabase,
    hint: "run larder fsck; restore the database from a backup if it is damaged",
    endedBy: "narinfos-read",
  }),
  "narinfos-read": end("narinfos can be read again"),
  "touches-not-written": warning("touches not written", {
    ...ofDatabase,
    hint: FREE_DATABASE,
    endedBy: "touches-written",
  }),
  "touches-written": end("touches are written again"),
  "nars-not-kept": error("nars cannot be kept: they pass through", {
    hint: "make room on the disk of the storage, or replace the disk if it fails",
    endedBy: "nars-kept",
    part: DISK,
    needs: [DATABASE, STORAGE],
  }),
  "nars-kept": end("nars are kept again"),
  "nars-not-recorded": error("nars cannot be recorded: they pass through", {
    ...ofDatabase,
    hint: FREE_DATABASE,
    endedBy: "nars-recorded",
  }),
  "nars-recorded": end("nars are recorded again"),
  "nar-without-room": warning("nar not kept", {
    ...ofRoom,
    hint: "raise --cache-max-size, or unpin something: no room came free for it",
    endedBy: "nars-have-room",
  }),
  "nars-have-room": end("there is room for nars again"),
  "disk-room-unknown": warning("room of the disk is unknown", {
    hint: "set --cache-max-size, or let larder read the room of its file system",
    endedBy: "disk-room-known",
  }),
  "disk-room-known": end("room of the disk is known again"),
  "nar-not-removed": error("nar not removed", {
    ...ofStorage,
    hint: MAY_REMOVE,
    endedBy: "nars-removed",
  }),
  "nars-removed": end("nars are removed again"),
  "partial-files-not-removed": warning("folder of partial files not removed", {
    hint: MAY_REMOVE,
    endedBy: "partial-files-removed",
    part: DISK,
  }),
  "partial-files-removed": end("folders of partial files are removed again"),
  "nar-not-settled": error("interrupted nar not settled", {
    ...ofStorage,
    hint: MAY_REMOVE,
    endedBy: "nars-settled",
  }),
  "nars-settled": end("interrupted nars are settled again"),
  "partial-files-not-read": warning("folder of partial files not read", {
    hint: "give larder the right to read its folder for partial files",
    endedBy: "partial-files-read",
    part: DISK,
  }),
  "partial-files-read": end("folder of partial files is read again"),
  "not-reconciled": error("not reconciled", {
    ...ofStorage,
    hint: "wait: larder tries again; check the disk or the store of the nars if it lasts",
    endedBy: "reconciliation-works",
  }),
  "most-nars-missing": error("most nars are missing, reconciliation stopped", {
    ...ofStorage,
    hint:
      "mount the storage, or check its bucket; if it is the right one, run larder fsck --repair",
    endedBy: "reconciliation-works",
  }),
  "reconciliation-works": end("files and rows are compared again"),
  "pins-not-read": warning("reading pins failed", {
    ...ofDatabase,
    hint: "check the database with larder doctor; eviction waits for it",
    endedBy: "pins-read",
  }),
  "pins-read": end("pins are read again"),
  "pinned-closure-incomplete": warning("pinned closure is incomplete", {
    hint: "see larder pins, and fetch what is missing",
    endedBy: "pinned-closures-complete",
  }),
  "pinned-closures-complete": end("pinned closures are complete again"),
  "eviction-short": warning("eviction did not reach its target", {
    ...ofRoom,
    hint: "raise --cache-max-size, or unpin something",
    endedBy: "eviction-suffices",
  }),
  "eviction-suffices": end("eviction reaches its target again"),
  "heartbeat-not-written": warning("heartbeat not written", {
    ...ofDatabase,
    hint: "check the database with larder doctor; other members take this one for dead",
    endedBy: "heartbeats-written",
  }),
  "heartbeats-written": end("heartbeats are written again"),
  "space-not-reserved": warning("space reservation failed", {
    ...ofDatabase,
    hint: "check the database with larder doctor; nars pass through",
    endedBy: "space-reserved",
  }),
  "space-reserved": end("space is reserved again"),
  "database-away": warning("database does not answer", {
    hint: "check the server of --cache-database-url; larder uses it as soon as it answers",
    endedBy: "database-back",
    part: DATABASE,
    explains: true,
  }),
  "database-back": end("database answers again"),
  "nar-store-away": error("nar store unavailable: nars pass through", {
    hint: "check the store of --cache-storage-s3-endpoint, the network and the key",
    endedBy: "nar-store-back",
    part: STORAGE,
    explains: true,
  }),
  "nar-store-back": end("nar store available again"),
  "lock-not-acquired": warning("failed to acquire lock", {
    hint: "check the server of --cache-redis-addrs; other members may do the same work",
    endedBy: "locks-acquired",
    part: "no locks",
  }),
  "locks-acquired": end("locks are acquired again"),
  "redis-away": warning("circuit breaker open: Redis is unavailable", {
    hint: "check the server of --cache-redis-addrs; larder serves on without locks",
    endedBy: "redis-back",
    part: "no locks",
  }),
  "redis-back": end("circuit breaker closed: Redis is available again"),
  "certificate-not-replaced": error("certificate replacement failed", {
    hint: "give --server-tls-cert a certificate, and --server-tls-key its key",
    endedBy: "certificate-usable",
  }),
  "certificate-usable": end("certificate files are usable again"),
  "service-manager-not-notified": warning("service manager not notified", {
    hint: "systemd takes larder for a failure; give its unit Type=exec and no WatchdogSec",
    endedBy: "service-manager-notified",
  }),
  "service-manager-notified": end("service manager notified again"),

  // Events, which have no end, or one before their time.
  "stored-nar-damaged": error("stored nar is damaged", {
    remedy: "check the disk; larder fetches the file again",
    endedBy: "damaged-nars-stored",
    fades: true,
  }),
  "damaged-nars-stored": end("damaged nars are stored again"),
  "download-broke-off": warning("download broke off", {
    remedy:
      "nothing: larder tries again or asks another upstream, and says so if it gives the NAR up",
    needs: [UPSTREAM_DOWN],
  }),
  "nar-not-fetched": warning("nar not fetched", {
    title: "NAR requests failed, and clients got 404",
    remedy: "check the upstreams and the network: none of them sent the NAR, so clients got 404",
    outcomeOf: "download-broke-off",
    needs: [UPSTREAM_DOWN],
  }),
  "nar-given-up": warning("nar download given up", {
    title: "NAR downloads broke off, and larder gave up",
    remedy: "check the upstreams and the network: no upstream sent the rest; build again then",
    outcomeOf: "download-broke-off",
    needs: [UPSTREAM_DOWN],
  }),
  "upstream-lost-nar": warning("upstream lost nar", {
    remedy: "nothing: the file is missing there, and another upstream may have it",
  }),
  "upstream-sent-more": warning("upstream sent more than the nar file", {
    remedy: "nothing: larder refused the file",
  }),
  "nar-verification-failed": error("nar verification failed", {
    remedy: "nothing: larder refused the file, and avoids that upstream for an hour",
    needs: [UPSTREAM_DOWN],
  }),
  "upstream-untrusted": warning("upstream is not trusted", {}),
  "upstream-empty": warning("upstream has nothing", {
    hint: "check the path of --cache-upstream-url: there is no nix-cache-info below it",
  }),
  "upstream-loop": warning("upstream leads back here", {
    hint: "remove this larder, or one that asks it, from --cache-upstream-url",
  }),
  "download-failed": error("download failed", {
    remedy: "look at the upstreams: none of them could send the file",
    needs: [DATABASE, STORAGE, DISK],
  }),
  "download-not-removed": warning("download not removed", {
    remedy: `${MAY_REMOVE}; larder tries again`,
    needs: [DISK],
  }),
  "received-nar-not-resumed": warning("received nar not resumed", {
    remedy: "nothing: larder fetches the file again",
    needs: [DATABASE, STORAGE, DISK],
  }),
  "received-nar-not-kept": warning("received nar not kept", {
    remedy: "nothing: larder fetches the file again",
    needs: [DATABASE, STORAGE, DISK],
  }),
  "broken-transfer-not-noted": warning("broken transfer not noted", {
    hint: "larder could not write to its database; a client that resumes may have to start over",
  }),
  "narinfo-not-kept": warning("narinfo not kept", { ...byDatabase, needs: [DATABASE, DISK] }),
  "seal-not-written": warning("seal not written", byDatabase),
  "member-not-registered": warning("member not registered", byDatabase),
  "dead-members-not-sought": warning("search for dead members failed", {
    ...byDatabase,
    needs: [DATABASE, STORAGE],
  }),
  "pinned-closures-not-counted": warning("counting pinned closures failed", byDatabase),
  "unused-metadata-not-removed": warning("unused metadata not removed", byDatabase),
  "expired-uploads-not-removed": warning("expired uploads not removed", {
    ...byDatabase,
    needs: [DATABASE, STORAGE],
  }),
  "eviction-failed": error("eviction failed", { ...byDatabase, needs: [DATABASE, STORAGE] }),
  "busy-nars-not-counted": warning("busy nars not counted", byDatabase),
  "damaged-nar-not-removed": warning("damaged nar not removed", {
    remedy: `${MAY_REMOVE}; larder tries again`,
    needs: [DATABASE, STORAGE],
  }),
  "orphan-nar-removed": warning("orphan nar removed", {
    remedy: "nothing, unless you put the file there",
  }),
  "upload-failed": error("upload failed", {
    remedy: "check the disk of the storage, then upload again",
    needs: [DATABASE, STORAGE, DISK],
  }),
  "document-not-kept": error("document not kept", {
    remedy: "check the disk of the storage",
    needs: [DATABASE, DISK],
  }),
  "document-encoding-unknown": warning("document encoding not known", {
    remedy: "nothing: larder passes the document through as it came",
  }),
  "document-not-usable": warning("document not usable", {
    remedy: "nothing: larder refused the document",
  }),
  "pins-not-verified": warning("pins not verified", {
    remedy: "check the storage and the database, then run larder verify --pins again",
    needs: [DATABASE, STORAGE],
  }),
  "recompression-paused": warning("recompression paused", {
    remedy: "wait: larder tries again a minute later; check the database if it lasts",
    needs: [DATABASE],
  }),
  "nar-not-recompressed": warning("nar not recompressed", {
    remedy: "nothing: the file stays as it came, and larder tries again",
    needs: [DATABASE, STORAGE, DISK],
  }),
  "request-failed": error("request failed", { needs: [DATABASE, STORAGE, DISK] }),
  "connections-closed": warning("connections closed", {}),
  "requests-aborted": warning("requests aborted at shutdown", {
    remedy: "nothing: clients ask again",
  }),
  "narinfo-worker-lost": warning("narinfo worker lost", {
    hint: "larder goes on without it, and starts another one after some narinfos",
  }),
  "unexpected-failure": error("unexpected failure", {
    remedy: "report it with its log line, which has the stack",
  }),

  // Risks of the settings, told at the start.
  "token-short": warning("token is short", { hint: "make a longer one with larder token create" }),
  "token-of-several-roles": warning("token has several roles", {
    hint: "each of its holders has the strongest role: give each role a token of its own",
  }),
  "key-file-open": warning("key file is open to others", {
    hint: "take away the rights of others with chmod o-rwx",
  }),
  "signing-key-differs": warning("signing key differs from the one in the database", {}),
  "uploads-without-token": warning("uploads need no token", {
    hint:
      "set the option, or any reader may upload what a trusted key signed, and fill the cache, " +
      "and nobody may upload listings and logs",
  }),
  "uploads-refused": warning("every upload is refused", {
    hint: "set the option or --cache-trusted-upload-key, or turn --cache-allow-put-verb off",
  }),
  "unsigned-narinfos-accepted": warning("unsigned narinfos accepted", {
    hint: "set the option to true to refuse them; larder does not sign them",
  }),
  "locks-of-one-machine": warning("locks of one machine are in redis", {
    hint: "machines cannot share an SQLite file: set --cache-database-url to PostgreSQL, or " +
      "leave the option out",
  }),
  "sqlite-file-shared": warning("another host uses this sqlite file", {
    hint: "containers of one machine may; machines need PostgreSQL: set --cache-database-url",
  }),
  "opentelemetry-disabled": warning("opentelemetry disabled", {
    remedy: "unset OTEL_SDK_DISABLED to enable it",
  }),
  "variable-invalid": warning("invalid environment variable", {}),
  "telemetry-dropped": warning("telemetry dropped", {}),
  "log-lines-dropped": warning("log lines dropped", {}),
} satisfies Readonly<Record<string, EventRow>>;

/** The message of a request's line, which the log for people shows as method and status. */
export const REQUEST_LINE = "request";

export type EventKind = keyof typeof TABLE;

export const EVENTS: Readonly<Record<EventKind, EventRow>> = TABLE;

/** The events that begin an outage, or change it, until `End`. */
export type BegunUntil<End extends EventKind> = {
  [Kind in EventKind]: typeof TABLE[Kind] extends { readonly endedBy: End } ? Kind : never;
}[EventKind];

/** The end of each event, or its own kind: events of one end are equally grave. */
const ENDS = Object.entries<EventRow>(TABLE).map(([kind, { endedBy = kind }]) => endedBy);
const GRAVITY_OF_ERRORS = ENDS.length;

/** The row of an event that a server names; `undefined`: it knows more than this larder. */
export function eventRow(kind: string): EventRow | undefined {
  return Object.hasOwn(EVENTS, kind) ? EVENTS[kind as EventKind] : undefined;
}

/** Rank among the events of one part: displays show the gravest. */
export function gravityOf(kind: string): number {
  const { endedBy = kind, level } = eventRow(kind) ?? {};
  return ENDS.indexOf(endedBy) + (level === "error" ? GRAVITY_OF_ERRORS : 0);
}

/** What failed: the event's part, unless its facts say that the disk is full. */
export function failedPart(kind: EventKind, facts: Facts = {}): string {
  const { endedBy, outcomeOf = kind, part = outcomeOf } = EVENTS[kind];
  return endedBy !== undefined && isOfFullDisk(facts) ? DISK : part;
}

/** What the work behind an event cannot do without. */
export function needsOf(kind: EventKind, facts: Facts = {}): readonly string[] {
  const { needs = [] } = EVENTS[kind];
  return isOfFullDisk(facts) ? [...needs, DISK] : needs;
}

/** The facts of an event, with its hint unless they have their own. */
export function hinted(kind: EventKind, facts: Facts = {}): Facts {
  const hint = facts["hint"] ?? EVENTS[kind].hint;
  return hint === undefined ? facts : { ...facts, hint };
}

/** Errors of a disk without room, in the words of the system and of SQLite. */
const DISK_FULL_REGEXP = /No space left on device|Disk quota exceeded|database or disk is full/;

/** True where the words of an error are those of a full disk. */
export function isOfFullDisk({ error, detail }: Facts): boolean {
  return [error, detail].some((fact) => DISK_FULL_REGEXP.test(String(fact)));
}
