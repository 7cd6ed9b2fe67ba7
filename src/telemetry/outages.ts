import type { Facts } from "../base/failure.ts";

/** An outage with its log messages: each first message has a hint, and one message ends it. */
export interface Outage<Message extends string = string> {
  readonly level: "warn" | "error";
  /**
   * The remedy for each first message. Visitors of the page see it, so it names no file.
   */
  readonly begins: Readonly<Record<Message, string>>;
  /** The message at its end. */
  readonly over: string;
  /** What failed. Its outages are one problem. Default: each is a kind of its own. */
  readonly kind?: string;
  /** True for a problem of each upstream that the facts name. */
  readonly isPerUpstream?: true;
  /** True where larder tells of it again while it lasts. Default: each time is a failure. */
  readonly isState?: true;
  /** What this work cannot do without: an outage of that says enough. Default: nothing. */
  readonly needs?: readonly PartName[];
}

/** The parts of a larder that fail on their own, and that it probes. */
export type PartName = "database" | "storage" | "disk" | "upstreams";

export const DATABASE = "database" satisfies PartName;
export const STORAGE = "storage" satisfies PartName;
export const DISK = "disk" satisfies PartName;

/** The kind of problem that the health of the upstreams shows, too. */
export const UPSTREAM_DOWN = "upstreams" satisfies PartName;

/** Remedy for an upstream that does not answer. */
export const UPSTREAM_SILENT =
  "check --cache-upstream-url and the network; larder uses an upstream as soon as it answers";

/** Kind of the outages in which an upstream is late with its answers, each time or now and then. */
const LATE_ANSWERS = "late answers";

/** Kind of the outages in which Redis gives no lock. */
const NO_LOCKS = "no locks";

/** The limit of the storage is too small for what it must hold. */
const ROOM = "room";

const FREE_DATABASE = "end the process that locks the database, or make room on its disk";
const MAY_REMOVE = "give larder the right to remove files from its storage";

/** All outages. A log message without a row has no end. */
export const OUTAGES = {
  upstreamFailed: outage({
    level: "warn",
    begins: {
      "upstream failed":
        "wait: larder asks it again; check --cache-upstream-url and the network if it lasts",
      "upstream does not answer": UPSTREAM_SILENT,
      "upstream is no binary cache":
        "check the path in --cache-upstream-url; it is used as soon as it answers",
    },
    over: "upstream answers again",
    kind: UPSTREAM_DOWN,
    isPerUpstream: true,
  }),
  upstreamDown: outage({
    level: "warn",
    begins: {
      "upstream is down": UPSTREAM_SILENT,
    },
    over: "upstream is up again",
    kind: UPSTREAM_DOWN,
    isPerUpstream: true,
  }),
  upstreamSlow: outage({
    level: "warn",
    begins: {
      "upstream is slow: clients wait for it":
        "lower its priority, with a higher ?priority=N behind its --cache-upstream-url, or remove it",
    },
    over: "upstream is quick enough again",
    kind: LATE_ANSWERS,
    isPerUpstream: true,
    isState: true,
  }),
  upstreamAnswersSlowly: outage({
    level: "warn",
    begins: {
      "upstream answers slowly: clients wait for it":
        "take it out of --cache-upstream-url, or name a nearer mirror there",
    },
    over: "upstream answers quickly again",
    kind: LATE_ANSWERS,
    isPerUpstream: true,
    isState: true,
  }),
  upstreamSendsSlowly: outage({
    level: "warn",
    begins: {
      "upstream sends nars slowly: clients wait for them":
        "check this machine's line; else name a nearer mirror in --cache-upstream-url",
    },
    over: "no client waits for the upstream's nars any more",
    isPerUpstream: true,
    isState: true,
  }),
  upstreamQueue: outage({
    level: "warn",
    begins: {
      "upstream too slow: queued requests time out":
        "wait; if it lasts, ask the upstream's operators for a higher rate",
    },
    over: "upstream keeps up again",
    isPerUpstream: true,
  }),
  clock: outage({
    level: "warn",
    begins: {
      "clock differs from the database's":
        "set the clocks of both machines by NTP; until then larder takes the database's time",
    },
    over: "clock agrees with the database's again",
  }),
  lateWrites: outage({
    level: "warn",
    begins: {
      "database does not take writes: narinfos are kept in memory": FREE_DATABASE,
    },
    over: "database takes writes again: all narinfos are written",
    kind: DATABASE,
    needs: [DATABASE],
  }),
  narinfoLookup: outage({
    level: "error",
    begins: {
      "narinfo lookup failed, querying upstreams":
        "run larder fsck; restore the database from a backup if it is damaged",
    },
    over: "narinfos can be read again",
    kind: DATABASE,
    needs: [DATABASE],
  }),
  touches: outage({
    level: "warn",
    begins: { "touches not written": FREE_DATABASE },
    over: "touches are written again",
    kind: DATABASE,
    needs: [DATABASE],
  }),
  keeping: outage({
    level: "error",
    begins: {
      "nars cannot be kept: they pass through":
        "make room on the disk of the storage, or replace the disk if it fails",
    },
    over: "nars are kept again",
    kind: DISK,
    needs: [DATABASE, STORAGE],
  }),
  recording: outage({
    level: "error",
    begins: { "nars cannot be recorded: they pass through": FREE_DATABASE },
    over: "nars are recorded again",
    kind: DATABASE,
    needs: [DATABASE],
  }),
  room: outage({
    level: "warn",
    begins: {
      "nar not kept": "raise --cache-max-size, or unpin something: no room came free for it",
    },
    over: "there is room for nars again",
    kind: ROOM,
    needs: [DATABASE, STORAGE],
  }),
  diskRoom: outage({
    level: "warn",
    begins: {
      "room of the disk is unknown":
        "set --cache-max-size, or let larder read the room of its file system",
    },
    over: "room of the disk is known again",
  }),
  removal: outage({
    level: "error",
    begins: { "nar not removed": MAY_REMOVE },
    over: "nars are removed again",
    kind: STORAGE,
    needs: [DATABASE, STORAGE],
  }),
  partialFileRemoval: outage({
    level: "warn",
    begins: { "folder of partial files not removed": MAY_REMOVE },
    over: "folders of partial files are removed again",
    kind: DISK,
  }),
  settling: outage({
    level: "error",
    begins: { "interrupted nar not settled": MAY_REMOVE },
    over: "interrupted nars are settled again",
    kind: STORAGE,
    needs: [DATABASE, STORAGE],
  }),
  partialFiles: outage({
    level: "warn",
    begins: {
      "folder of partial files not read":
        "give larder the right to read its folder for partial files",
    },
    over: "folder of partial files is read again",
    kind: DISK,
  }),
  reconciliation: outage({
    level: "error",
    begins: {
      "not reconciled":
        "wait: larder tries again; check the disk or the store of the nars if it lasts",
      "most nars are missing, reconciliation stopped":
        "mount the storage, or check its bucket; if it is the right one, run larder fsck --repair",
    },
    over: "files and rows are compared again",
    kind: STORAGE,
    needs: [DATABASE, STORAGE],
  }),
  pins: outage({
    level: "warn",
    begins: {
      "reading pins failed": "check the database with larder doctor; eviction waits for it",
    },
    over: "pins are read again",
    kind: DATABASE,
    needs: [DATABASE],
  }),
  pinnedClosures: outage({
    level: "warn",
    begins: {
      "pinned closure is incomplete": "see larder pins, and fetch what is missing",
    },
    over: "pinned closures are complete again",
  }),
  evictionTarget: outage({
    level: "warn",
    begins: {
      "eviction did not reach its target": "raise --cache-max-size, or unpin something",
    },
    over: "eviction reaches its target again",
    kind: ROOM,
    needs: [DATABASE, STORAGE],
  }),
  heartbeat: outage({
    level: "warn",
    begins: {
      "heartbeat not written":
        "check the database with larder doctor; other members take this one for dead",
    },
    over: "heartbeats are written again",
    kind: DATABASE,
    needs: [DATABASE],
  }),
  reservation: outage({
    level: "warn",
    begins: {
      "space reservation failed": "check the database with larder doctor; nars pass through",
    },
    over: "space is reserved again",
    kind: DATABASE,
    needs: [DATABASE],
  }),
  database: outage({
    level: "warn",
    begins: {
      "database does not answer":
        "check the server of --cache-database-url; larder uses it as soon as it answers",
    },
    over: "database answers again",
    kind: DATABASE,
  }),
  narStore: outage({
    level: "error",
    begins: {
      "nar store unavailable: nars pass through":
        "check the store of --cache-storage-s3-endpoint, the network and the key",
    },
    over: "nar store available again",
    kind: STORAGE,
  }),
  leases: outage({
    level: "warn",
    begins: {
      "failed to acquire lock":
        "check the server of --cache-redis-addrs; other members may do the same work",
    },
    over: "locks are acquired again",
    kind: NO_LOCKS,
  }),
  redis: outage({
    level: "warn",
    begins: {
      "circuit breaker open: Redis is unavailable":
        "check the server of --cache-redis-addrs; larder serves on without locks",
    },
    over: "circuit breaker closed: Redis is available again",
    kind: NO_LOCKS,
  }),
  certificate: outage({
    level: "error",
    begins: {
      "certificate replacement failed":
        "give --server-tls-cert a certificate, and --server-tls-key its key",
    },
    over: "certificate files are usable again",
  }),
  serviceManager: outage({
    level: "warn",
    begins: {
      "service manager not notified":
        "systemd takes larder for a failure; give its unit Type=exec and no WatchdogSec",
    },
    over: "service manager notified again",
  }),
};

/** Checks that each message of a row is a literal, so that no other compiles. */
function outage<const Message extends string>(row: Outage<Message>): Outage<Message> {
  return row;
}

const GRAVITY_OF_ERRORS = 1_000;

/** The problem that a log message is about. */
interface OutageProblem extends Required<Pick<Outage, "level" | "kind" | "needs">> {
  /** Name of its row: the outage of this row ends alone. */
  readonly row: string;
  readonly isPerUpstream: boolean;
  readonly isState: boolean;
  /** Rank among the messages of one kind: displays show the gravest. */
  readonly gravity: number;
}

type EndedOutage = Omit<OutageProblem, "gravity">;

const BEGUN_BY = new Map<string, OutageProblem>();
const ENDED_BY = new Map<string, EndedOutage>();

for (const [row, { level, begins, over, ...given }] of Object.entries<Outage>(OUTAGES)) {
  // Errors are the gravest, then the rows that stand lower in the table.
  const gravity = BEGUN_BY.size + (level === "error" ? GRAVITY_OF_ERRORS : 0);
  const { kind = row, isPerUpstream = false, isState = false, needs = [] } = given;
  const ended = { row, level, kind, isPerUpstream, isState, needs };
  ENDED_BY.set(over, ended);
  for (const message of Object.keys(begins)) BEGUN_BY.set(message, { ...ended, gravity });
}

/** Events that are one problem: the later ones report the outcome of the first. */
const NAR_EVENTS = ["download broke off", "nar not fetched", "nar download given up"];

/** Events that end before their time, by the messages that end them. */
const EVENT_ENDS: Readonly<Record<string, string>> = {
  "damaged nars are stored again": "stored nar is damaged",
};

/** What the work of an event cannot do without. During an outage of that, the event is a part of it. */
const EVENT_NEEDS: Readonly<Record<string, readonly PartName[]>> = {
  ...Object.fromEntries(NAR_EVENTS.map((event) => [event, [UPSTREAM_DOWN]])),
  "busy nars not counted": [DATABASE],
  "counting pinned closures failed": [DATABASE],
  "damaged nar not removed": [DATABASE, STORAGE],
  "document not kept": [DATABASE, DISK],
  "download failed": [DATABASE, STORAGE, DISK],
  "download not removed": [DISK],
  "eviction failed": [DATABASE, STORAGE],
  "expired uploads not removed": [DATABASE, STORAGE],
  "member not registered": [DATABASE],
  "nar verification failed": [UPSTREAM_DOWN],
  "narinfo not kept": [DATABASE, DISK],
  "nar not recompressed": [DATABASE, STORAGE, DISK],
  "recompression paused": [DATABASE],
  "pins not verified": [DATABASE, STORAGE],
  "received nar not kept": [DATABASE, STORAGE, DISK],
  "received nar not resumed": [DATABASE, STORAGE, DISK],
  "seal not written": [DATABASE],
  "request failed": [DATABASE, STORAGE, DISK],
  "search for dead members failed": [DATABASE, STORAGE],
  "unused metadata not removed": [DATABASE],
  "upload failed": [DATABASE, STORAGE, DISK],
};

/** Errors of a disk without room, in the words of the system and of SQLite. */
const DISK_FULL_REGEXP = /No space left on device|Disk quota exceeded|database or disk is full/;

/** The first event, which the message ends; `undefined` for any other message. */
export function eventEndedBy(message: string): string | undefined {
  return NAR_EVENTS.indexOf(message) > 0 ? NAR_EVENTS[0] : undefined;
}

/** The event that is over with the message, if there is one. */
export function eventOverWith(message: string): string | undefined {
  return EVENT_ENDS[message];
}

/** Messages of one kind are one problem. */
export function kindOf(message: string): string {
  return BEGUN_BY.get(message)?.kind ?? eventEndedBy(message) ?? message;
}

/** What failed: the kind of the message, unless its facts say that the disk is full. */
export function failedPart(message: string, facts: Facts = {}): string {
  return isOfFullDisk(facts) && begunBy(message) !== undefined ? DISK : kindOf(message);
}

/** What the work behind a message cannot do without. */
export function needsOf(message: string, facts: Facts = {}): readonly string[] {
  const needs = BEGUN_BY.get(message)?.needs ?? EVENT_NEEDS[message] ?? [];
  return isOfFullDisk(facts) ? [...needs, DISK] : needs;
}

/** True where the words of an error are those of a full disk. */
export function isOfFullDisk({ error, detail }: Facts): boolean {
  return [error, detail].some((fact) => DISK_FULL_REGEXP.test(String(fact)));
}

/** Rank among the messages of one kind: displays show the gravest. */
export function gravityOf(message: string): number {
  return BEGUN_BY.get(message)?.gravity ?? NAR_EVENTS.indexOf(message);
}

/** The outage that a message begins; `undefined` for an event, which has no end. */
export function begunBy(message: string): OutageProblem | undefined {
  return BEGUN_BY.get(message);
}

/** The outage that a message ends, if it ends one. */
export function endedBy(message: string): EndedOutage | undefined {
  return ENDED_BY.get(message);
}
