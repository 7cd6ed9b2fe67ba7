/** An outage with its log messages: each first message has a hint, and one message ends it. */
export interface Outage<Message extends string = string> {
  readonly level: "warn" | "error";
  /**
   * The remedy for each first message. Visitors of the page see it, so it names no file.
   */
  readonly begins: Readonly<Record<Message, string>>;
  /** The message at its end. */
  readonly over: string;
  /** Outages with one kind are one problem. Default: each is a kind of its own. */
  readonly kind?: string;
  /** True for a problem of each upstream that the facts name. */
  readonly isPerUpstream?: true;
  /** True for work that fails, too, while the database does not answer. */
  readonly needsDatabase?: true;
}

/** The kind of problem that the health of the upstreams shows, too. */
export const UPSTREAM_DOWN = "upstream down";

/** Remedy for an upstream that does not answer. */
export const UPSTREAM_SILENT =
  "check --cache-upstream-url and the network; larder uses an upstream as soon as it answers";

/** Kind of the outages in which Redis gives no lock. */
const NO_LOCKS = "no locks";

const NOT_KEPT = "not kept";

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
    isPerUpstream: true,
  }),
  upstreamAnswersSlowly: outage({
    level: "warn",
    begins: {
      "upstream answers slowly: clients wait for it":
        "take it out of --cache-upstream-url, or name a nearer mirror there",
    },
    over: "upstream answers quickly again",
    isPerUpstream: true,
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
  database: outage({
    level: "warn",
    begins: {
      "database does not answer":
        "check the server of --cache-database-url; larder uses it as soon as it answers",
    },
    over: "database answers again",
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
    needsDatabase: true,
  }),
  narinfoLookup: outage({
    level: "error",
    begins: {
      "narinfo lookup failed, querying upstreams":
        "run larder fsck; restore the database from a backup if it is damaged",
    },
    over: "narinfos can be read again",
    needsDatabase: true,
  }),
  touches: outage({
    level: "warn",
    begins: { "touches not written": FREE_DATABASE },
    over: "touches are written again",
    needsDatabase: true,
  }),
  keeping: outage({
    level: "error",
    begins: {
      "nars cannot be kept: they pass through":
        "make room on the disk of the storage, or replace the disk if it fails",
    },
    over: "nars are kept again",
    kind: NOT_KEPT,
    needsDatabase: true,
  }),
  room: outage({
    level: "warn",
    begins: {
      "nar not kept": "raise --cache-max-size, or unpin something: no room came free for it",
    },
    over: "nars are kept again",
    kind: NOT_KEPT,
    needsDatabase: true,
  }),
  diskRoom: outage({
    level: "warn",
    begins: {
      "room of the disk is unknown":
        "set --cache-max-size, or let larder read the room of its file system",
    },
    over: "room of the disk is known again",
  }),
  narStore: outage({
    level: "error",
    begins: {
      "nar store unavailable: nars pass through":
        "check the store of --cache-storage-s3-endpoint, the network and the key",
    },
    over: "nar store available again",
  }),
  removal: outage({
    level: "error",
    begins: { "nar not removed": MAY_REMOVE },
    over: "nars are removed again",
  }),
  partialFileRemoval: outage({
    level: "warn",
    begins: { "folder of partial files not removed": MAY_REMOVE },
    over: "folders of partial files are removed again",
  }),
  settling: outage({
    level: "error",
    begins: { "interrupted nar not settled": MAY_REMOVE },
    over: "interrupted nars are settled again",
    needsDatabase: true,
  }),
  partialFiles: outage({
    level: "warn",
    begins: {
      "folder of partial files not read":
        "give larder the right to read its folder for partial files",
    },
    over: "folder of partial files is read again",
  }),
  reconciliation: outage({
    level: "error",
    begins: {
      "not reconciled": "run larder fsck, and check the disk or the S3 store of the nars",
      "most nars are missing, reconciliation stopped":
        "mount the storage, or check its bucket; if it is the right one, run larder fsck --repair",
    },
    over: "files and rows are compared again",
    needsDatabase: true,
  }),
  pins: outage({
    level: "warn",
    begins: {
      "reading pins failed": "check the database with larder doctor; eviction waits for it",
    },
    over: "pins are read again",
    needsDatabase: true,
  }),
  evictionTarget: outage({
    level: "warn",
    begins: {
      "eviction did not reach its target": "raise --cache-max-size, or unpin something",
    },
    over: "eviction reaches its target again",
  }),
  heartbeat: outage({
    level: "warn",
    begins: {
      "heartbeat not written":
        "check the database with larder doctor; other members take this one for dead",
    },
    over: "heartbeats are written again",
    needsDatabase: true,
  }),
  reservation: outage({
    level: "warn",
    begins: {
      "space reservation failed": "check the database with larder doctor; nars pass through",
    },
    over: "space is reserved again",
    needsDatabase: true,
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
interface OutageProblem extends Required<Pick<Outage, "level" | "kind">> {
  readonly isPerUpstream: boolean;
  readonly needsDatabase: boolean;
  /** Rank among the messages of one kind: displays show the gravest. */
  readonly gravity: number;
}

const BEGUN_BY = new Map<string, OutageProblem>();
const ENDED_BY = new Map<string, Omit<OutageProblem, "gravity">>();

for (const [name, row] of Object.entries<Outage>(OUTAGES)) {
  // Errors are the gravest, then the rows that stand lower in the table.
  const gravity = BEGUN_BY.size + (row.level === "error" ? GRAVITY_OF_ERRORS : 0);
  const { level, begins, over, kind = name } = row;
  const { isPerUpstream = false, needsDatabase = false } = row;
  const ended = { level, kind, isPerUpstream, needsDatabase };
  ENDED_BY.set(over, ended);
  for (const message of Object.keys(begins)) BEGUN_BY.set(message, { ...ended, gravity });
}

/** Events that are one problem: the later ones report the outcome of the first. */
const NAR_EVENTS = ["download broke off", "nar not fetched", "nar download given up"];

/** The first event, which the message ends; `undefined` for any other message. */
export function eventEndedBy(message: string): string | undefined {
  return NAR_EVENTS.indexOf(message) > 0 ? NAR_EVENTS[0] : undefined;
}

/** Messages of one kind are one problem. */
export function kindOf(message: string): string {
  return BEGUN_BY.get(message)?.kind ?? eventEndedBy(message) ?? message;
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
export function endedBy(message: string): Omit<OutageProblem, "gravity"> | undefined {
  return ENDED_BY.get(message);
}
