import { Buffer } from "node:buffer";
import { messageOf } from "../base/failure.ts";
import { counted } from "../base/format_units.ts";
import { ownText } from "../base/own_text.ts";
import type { Stretch } from "../base/wait_notes.ts";
import {
  boundedClient,
  PULL_BYTES_MAX,
  type PullKeeper,
  type PullRow,
  PULLS_MAX,
  type PullSummary,
} from "../metadata/history_keeper.ts";
import { stemOf } from "../nix/nar_name.ts";
import type { Timer } from "../runtime/clock.ts";
import { clock, dice } from "../runtime/current.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { UpstreamStretch } from "../upstream/asked_upstreams.ts";
import { SHARE, TimeShares } from "./time_shares.ts";

/** How often larder looks for pulls that are over. */
const LOOK_EVERY_MS = 1_000;

/** After a write that failed. */
const TRY_EVERY_MS = 10_000;

/** The most pulls of the page. */
const RECENT_MAX = 20;

/** How long the page waits for them. */
const READ_WITHIN_MS = 250;

/** Upstreams of a written pull. */
const UPSTREAMS_WRITTEN_MAX = 4;

/** Upstreams of one written request. */
const HOSTS_WRITTEN_MAX = 2;

/** A pull and its id, once it has one. */
type ToldPull = EndedPull & Pick<OpenPull, "id">;

/** What a pull waited for one upstream. Two may be waited for side by side. */
export interface PullUpstream {
  /** Its host; `undefined`: unknown. */
  readonly host?: string;
  /** Paths that it had and that waited for it, and the time in which anything did. */
  readonly paths: number;
  readonly waitedMs: number;
  /** Requests that waited for it, and for which it had nothing. */
  readonly inVain: number;
  /** Paths that the client got while they came from it. */
  readonly sentPaths: number;
  readonly sentMs: number;
}

/** A pull with the hosts of its upstreams, and the name of its first path. Whole milliseconds. */
export interface Pull extends Omit<EndedPull, "upstreams" | "first" | "slowest"> {
  readonly id: string;
  /** The slowest first. */
  readonly upstreams: readonly PullUpstream[];
  /** Name such as `firefox-145.0` of the path that the client asked for first. */
  readonly first?: string;
}

/** How long a request took for one upstream; without a host, that is unknown. */
export interface HostTimes {
  readonly host?: string;
  readonly waitedMs: number;
  readonly sentMs: number;
  /** True if it did not have the path. */
  readonly isInVain?: boolean;
}

/** The times of a request, in milliseconds from the pull's begin. */
export interface PulledTimes extends Omit<RequestTimes, "upstreams"> {
  /** For whom, the longest first. */
  readonly upstreams: readonly HostTimes[];
}

/** A slow path of a pull. */
export interface PullPath {
  /** Its name, or what the request named if larder knows none. */
  readonly name: string;
  readonly result: SlowPath["result"];
  readonly bytes: number;
  readonly ms: number;
  readonly narinfo: PulledTimes | undefined;
  readonly nar: PulledTimes | undefined;
}

export interface WholePull extends Pull {
  /** The slowest first. */
  readonly slowest: readonly PullPath[];
}

export interface PullsDeps {
  readonly keeper: PullKeeper;
  /** Name of the store path in a NAR file, or of a store path hash. Never rejects. */
  readonly nameOf: (name: string) => Promise<string | undefined>;
  /** The upstreams that a request waited for, by its store path hash or its NAR's name. */
  readonly waitsOf: (name: string, fromMs: number, toMs: number) => readonly UpstreamStretch[];
  /** When the last upstream had sent that file; Infinity: not yet, or it is unknown. */
  readonly askedUntil: (name: string) => number;
  readonly log: Pick<Logger, "debug">;
}

/** Notes the pulls of clients, and keeps those that are over in the database. */
export class Pulls implements AsyncDisposable {
  readonly #deps: PullsDeps;
  /** The pulls that go on: each request begins and ends there. */
  readonly open: OpenPulls = new OpenPulls(
    () => this.#opened(),
    () => void clock.after(0, () => this.open.tell(), false),
  );
  #timer: Timer | undefined;
  #isStopped = false;
  /** Pulls that are over, and have no row yet; at most as many as the table holds, as below. */
  #ended: ToldPull[] = [];
  #unwritten: PullRow[] = [];
  #describing: Promise<void> = Promise.resolve();
  #writing: Promise<void> | undefined;
  #nextTryAtMs = -Infinity;
  #recent: readonly Pull[] = [];
  #reading: Promise<void> | undefined;

  constructor(deps: PullsDeps) {
    this.#deps = deps;
  }

  /**
   * A request has ended that is no stored narinfo. `asked`: its path, as upstreams were asked for it.
   * `starved`: when its client had all that there was of the body.
   */
  requestEnded(
    pull: OpenPull,
    request: Omit<EndedRequest, "isLast" | "waits">,
    asked: string,
    starved: readonly Stretch[] = [],
  ): void {
    const untilMs = request.isFromUpstream ? this.#deps.askedUntil(asked) : -Infinity;
    // Where the upstream had sent all before, the time is larder's own.
    const isFromUpstream = untilMs > request.startedAtMs;
    const all = isFromUpstream ? this.#waitsOf(request, asked, { starved, untilMs }) : [];
    this.open.requestEnded(pull, { ...request, isFromUpstream, waits: all });
  }

  /** Only while there is a pull: an idle larder stays asleep. */
  #opened(): void {
    if (this.#timer !== undefined || this.#isStopped) return;
    this.#timer = clock.every(LOOK_EVERY_MS, () => void this.look(), false);
  }

  /** Until the first byte, and then as long as the upstream sends and the client waits for that. */
  #waitsOf(
    { startedAtMs, answeredAtMs }: Pick<EndedRequest, "startedAtMs" | "answeredAtMs">,
    asked: string,
    { starved, untilMs }: { readonly starved: readonly Stretch[]; readonly untilMs: number },
  ): EndedRequest["waits"] {
    const sending = starved.map(({ fromMs, toMs }) => ({
      fromMs: Math.max(fromMs, answeredAtMs),
      toMs: Math.min(toMs, untilMs),
    }));
    return [{ fromMs: startedAtMs, toMs: answeredAtMs }, ...sending]
      .filter(({ fromMs, toMs }) => toMs > fromMs)
      .flatMap(({ fromMs, toMs }): EndedRequest["waits"] => {
        const known = this.#deps.waitsOf(asked, fromMs, toMs);
        return known.length > 0 ? known : [{ upstream: undefined, fromMs, toMs }];
      });
  }

  /** Writes the pulls that are over. Never rejects. */
  look(): Promise<void> {
    const nowMs = clock.nowMs();
    this.#take(nowMs);
    const isIdle = this.#ended.length === 0 && this.#unwritten.length === 0;
    if (isIdle && this.open.count === 0 && this.#writing === undefined) {
      this.#timer?.cancel();
      this.#timer = undefined;
    }
    if (isIdle || nowMs < this.#nextTryAtMs) return this.#writing ?? Promise.resolve();
    return this.#writing ??= this.#write().finally(() => this.#writing = undefined);
  }

  /**
   * The newest pulls, the newest first: those that run in front. Of one client, if `client` is
   * given.
   */
  async newest(countMax: number = PULLS_MAX, client?: string): Promise<readonly Pull[]> {
    const wanted = client === undefined ? undefined : boundedClient(client);
    const isWanted = (one: { readonly client: string }) =>
      wanted === undefined || boundedClient(one.client) === wanted;
    await this.#describe();
    const running = this.#running().filter(isWanted).slice(0, countMax);
    const described = await Promise.all(running.map((pull) => this.#summaryOf(pull)));
    const unwritten = this.#unwritten.toReversed().filter(isWanted);
    const stored = await this.#deps.keeper.pulls(countMax, wanted);
    const ids = new Set(unwritten.map(({ id }) => id));
    const others = stored.filter(({ id }) => !ids.has(id));
    return [...described, ...[...unwritten, ...others].map(readSummary)].slice(0, countMax);
  }

  /**
   * The newest few, as the page shows them. They are as old as the last answer of a database that
   * does not answer now. Never rejects.
   */
  async recent(): Promise<readonly Pull[]> {
    this.#reading ??= this.newest(RECENT_MAX)
      .then(
        (pulls) => void (this.#recent = pulls),
        (error) => this.#deps.log.debug("pulls not read", { error: messageOf(error) }),
      )
      .finally(() => this.#reading = undefined);
    await clock.within(this.#reading, READ_WITHIN_MS);
    return this.#recent;
  }

  /** A pull with its paths; `undefined` if larder does not know it. */
  async find(id: string): Promise<WholePull | undefined> {
    await this.#describe();
    const running = this.#running().find((one) => one.id === id);
    if (running !== undefined) return await this.#wholeOf(running);
    const row = this.#unwritten.find((one) => one.id === id) ??
      await this.#deps.keeper.findPull(id);
    return row && { ...readSummary(row), slowest: readPaths(row.paths) };
  }

  /** Writes all pulls: those that go on end with larder. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isStopped = true;
    this.#timer?.cancel();
    await this.#writing;
    this.#take(Infinity);
    await this.#write();
  }

  /** The pulls that go on, as they are now, the newest first. */
  #running(): readonly ToldPull[] {
    return this.open.running().flatMap((pull) => {
      const told = pull.told(clock.nowMs());
      return told === undefined ? [] : [{ ...told, id: pull.id ??= newId() }];
    });
  }

  #take(atMs: number): void {
    this.open.tell();
    this.#ended = [...this.#ended, ...this.open.ended(atMs)].slice(-PULLS_MAX);
  }

  async #write(): Promise<void> {
    const { keeper, log } = this.#deps;
    await this.#describe();
    const rows = this.#unwritten;
    if (rows.length === 0) return;
    try {
      await keeper.recordPulls(rows);
      this.#unwritten = this.#unwritten.filter((row) => !rows.includes(row));
    } catch (error) {
      // They stay in memory until a later look.
      this.#nextTryAtMs = clock.nowMs() + TRY_EVERY_MS;
      log.debug("pulls not written", { error: messageOf(error) });
    }
  }

  /** Makes rows of the pulls that are over. It looks their names up. */
  #describe(): Promise<void> {
    this.#take(clock.nowMs());
    return this.#describing = this.#describing.then(async () => {
      for (const pull of this.#ended.splice(0)) {
        this.#unwritten = [...this.#unwritten, await this.#rowOf(pull)].slice(-PULLS_MAX);
      }
    });
  }

  async #rowOf(pull: ToldPull): Promise<PullRow> {
    const { id, client, slowest, ...facts } = await this.#wholeOf(pull);
    return { id, client, summary: summaryText(facts), paths: pathsText(slowest) };
  }

  async #wholeOf(pull: ToldPull): Promise<WholePull> {
    const slowest = await Promise.all(
      pull.slowest.map(async ({ name, result, bytes, ms, narinfo, nar }): Promise<PullPath> => ({
        name: await this.#deps.nameOf(name) ?? name,
        ...{ result, bytes, ms: Math.round(ms) },
        narinfo: timesFrom(narinfo, pull.beganAtMs),
        nar: timesFrom(nar, pull.beganAtMs),
      })),
    );
    return { ...await this.#summaryOf(pull), slowest };
  }

  async #summaryOf(pull: ToldPull): Promise<Pull> {
    const { slowest: _, client, beganAtMs, upstreams, first, id = newId(), ...facts } = pull;
    const name = first === undefined ? undefined : await this.#deps.nameOf(first) ?? first;
    return {
      ...{ ...facts, id, client: boundedClient(client) },
      beganAtMs: Math.round(clock.wallMs() - clock.nowMs() + beganAtMs),
      upstreams: upstreams.slice(0, UPSTREAMS_WRITTEN_MAX).map(({ upstream, ...times }) => ({
        ...hostFrom(upstream),
        paths: times.waitedPaths,
        inVain: times.inVain,
        sentPaths: times.sentPaths,
        waitedMs: Math.round(times.waitedMs),
        sentMs: Math.round(times.sentMs),
      })),
      ...(name === undefined ? {} : { first: name }),
    };
  }
}

/**
 * A request's begin, its wait and its sending; behind these, the index of the host that has all of
 * both, if one has. Otherwise each host has its own wait and sending behind its index; with
 * `IN_VAIN` added, it did not have the path.
 */
type StoredTimes = readonly number[] | 0;

type StoredPath = readonly [
  name: string,
  result: SlowPath["result"],
  bytes: number,
  narinfo: StoredTimes,
  nar: StoredTimes,
];

/** The index of an unknown host. */
const UNKNOWN_HOST = -1;

/** More than there are hosts. */
const IN_VAIN = 1_000;

/** A running pull keeps its id when it ends: links to it go on. */
function newId(): string {
  return dice.uuid().slice(0, 13);
}

function timesFrom(times: RequestTimes | undefined, beganAtMs: number): PulledTimes | undefined {
  if (times === undefined) return undefined;
  const { atMs, waitedMs, sentMs, isFromUpstream, upstreams } = times;
  return {
    ...{ atMs: Math.round(atMs - beganAtMs), isFromUpstream },
    ...{ waitedMs: Math.round(waitedMs), sentMs: Math.round(sentMs) },
    upstreams: upstreams.slice(0, HOSTS_WRITTEN_MAX).map(({ upstream, ...own }) => ({
      ...hostFrom(upstream),
      ...{ waitedMs: Math.round(own.waitedMs), sentMs: Math.round(own.sentMs) },
      ...(own.isInVain ? { isInVain: true } : {}),
    })),
  };
}

/** A name of two hundred characters is rare, and a host of them more so. */
function summaryText(
  { isRunning: _, underWay: __, underWayMs: ___, ...summary }: Omit<Pull, "id" | "client">,
): string {
  for (let count = summary.upstreams.length;; count--) {
    const text = JSON.stringify({ ...summary, upstreams: summary.upstreams.slice(0, count) });
    if (count === 0 || Buffer.byteLength(text) <= PULL_BYTES_MAX.summary) return text;
  }
}

/** The hosts, and the slowest paths, as many as have room. */
function pathsText(paths: readonly PullPath[]): string {
  const hosts = [
    ...new Set(
      paths.flatMap(({ narinfo, nar }) => [...narinfo?.upstreams ?? [], ...nar?.upstreams ?? []])
        .flatMap(({ host }) => host ?? []),
    ),
  ];
  const texts = [JSON.stringify(hosts)];
  let bytes = Buffer.byteLength(texts[0] ?? "") + 2;
  for (const { name, result, bytes: size, narinfo, nar } of paths) {
    const path: StoredPath = [
      ...[name, result, size] as const,
      storedTimes(narinfo, hosts),
      storedTimes(nar, hosts),
    ];
    const text = JSON.stringify(path);
    bytes += Buffer.byteLength(text) + 1;
    if (bytes > PULL_BYTES_MAX.paths) break;
    texts.push(text);
  }
  return `[${texts.join()}]`;
}

function storedTimes(times: PulledTimes | undefined, hosts: readonly string[]): StoredTimes {
  if (times === undefined) return 0;
  const { atMs, waitedMs, sentMs, isFromUpstream, upstreams } = times;
  const all = [atMs, waitedMs, sentMs];
  if (!isFromUpstream) return all;
  const indexOf = ({ host, isInVain = false }: HostTimes) =>
    host === undefined ? UNKNOWN_HOST : hosts.indexOf(host) + (isInVain ? IN_VAIN : 0);
  const [only = { waitedMs: 0, sentMs: 0 }, ...others] = upstreams;
  const isAll = only.waitedMs === waitedMs && only.sentMs === sentMs;
  if (others.length === 0 && isAll) return [...all, indexOf(only)];
  if (upstreams.length === 0) return [...all, UNKNOWN_HOST, 0, 0];
  return [...all, ...upstreams.flatMap((one) => [indexOf(one), one.waitedMs, one.sentMs])];
}

function readSummary({ id, client, summary }: PullSummary): Pull {
  return { id, client, isRunning: false, underWay: 0, underWayMs: 0, ...JSON.parse(summary) };
}

function readPaths(text: string): readonly PullPath[] {
  const [hosts, ...paths] = JSON.parse(text) as readonly [readonly string[], ...StoredPath[]];
  return paths.map(([name, result, bytes, narinfo, nar]) => {
    const times = [readTimes(narinfo, hosts), readTimes(nar, hosts)] as const;
    return {
      ...{ name, result, bytes, narinfo: times[0], nar: times[1] },
      ms: times.reduce((sum, one) => sum + (one ? one.waitedMs + one.sentMs : 0), 0),
    };
  });
}

function readTimes(times: StoredTimes, hosts: readonly string[]): PulledTimes | undefined {
  if (times === 0) return undefined;
  const [atMs = 0, waitedMs = 0, sentMs = 0, ...own] = times;
  const all = { atMs, waitedMs, sentMs, isFromUpstream: own.length > 0 };
  const hostAt = (index = UNKNOWN_HOST) => {
    const isInVain = index >= IN_VAIN;
    const host = hosts[isInVain ? index - IN_VAIN : index];
    return { ...(host === undefined ? {} : { host }), ...(isInVain ? { isInVain } : {}) };
  };
  if (own.length === 1) return { ...all, upstreams: [{ ...hostAt(own[0]), waitedMs, sentMs }] };
  const upstreams: HostTimes[] = [];
  for (let at = 0; at < own.length; at += 3) {
    const [waited = 0, sent = 0] = own.slice(at + 1);
    upstreams.push({ ...hostAt(own[at]), waitedMs: waited, sentMs: sent });
  }
  return { ...all, upstreams };
}

function hostFrom(upstream: string | undefined): { readonly host?: string } {
  return upstream === undefined ? {} : { host: hostOf(upstream) };
}

function hostOf(url: string): string {
  return URL.canParse(url) ? new URL(url).host : url;
}

/** The silence that ends a pull. */
export const SILENCE_MS = 10_000;

/** A client that is never silent begins a new pull after this time. */
const PULL_MAX_MS = 3_600_000;

/** Pulls at a time. Further clients share one more. */
const PULLS_AT_ONCE_MAX = 128;

/** The key of that one: no client has it. */
const SHARED = "";

/** Clients that a shared pull counts. */
const SHARING_MAX = 1_000;

/** Paths whose names all pulls together remember. Beyond, each NAR request counts as a path. */
const NAMES_MAX = 4_096;

/** Slow paths that all pulls together remember: some 300 bytes each. */
const SLOW_MAX = 2_048;

/** Slow paths of an ended pull. */
export const SLOWEST_MAX = 50;

/** Paths of a pull before it forgets all but the slowest. */
const SLOW_PER_PULL_MAX = 2 * SLOWEST_MAX;

/** A stored path that took less time is none of the slow ones. */
const SLOW_HIT_MS = 5;

/** Upstreams that a pull tells apart. All others are one. */
const UPSTREAMS_MAX = 8;

/** How a path came. A later one wins if a path came in two ways. */
const RESULTS = ["hit", "joined", "ahead", "fetched"] as const;

export type PathResult = (typeof RESULTS)[number];

/** When a request waited for an upstream; `undefined`: an unknown one. */
interface WaitedStretch extends Stretch {
  readonly upstream: string | undefined;
  /** True if it did not have the path. */
  readonly isInVain?: boolean;
}

/** A request that has ended. Its times are those of one clock. */
interface EndedRequest {
  readonly kind: "narinfo" | "nar";
  /** The path's NAR file; the store path hash of an absent narinfo. */
  readonly name: string;
  readonly result: PathResult | "absent";
  /** True if the answer waited for an upstream, or for another request that did. */
  readonly isFromUpstream: boolean;
  /**
   * When it waited for upstreams: before its first byte, and behind it, while the client had all
   * that there was.
   */
  readonly waits: readonly WaitedStretch[];
  readonly startedAtMs: number;
  /** When the first byte of the answer was there. */
  readonly answeredAtMs: number;
  readonly endedAtMs: number;
  readonly bytes: number;
  /** Of a hit or a joined one: those that no upstream would have sent. */
  readonly unsavedBytes?: number;
  /** True if no request of the client runs behind it. */
  readonly isLast: boolean;
}

/** How long a request took for one upstream; `undefined`: unknown, or one of many. */
interface WaitedFor {
  readonly upstream: string | undefined;
  readonly waitedMs: number;
  readonly sentMs: number;
  /** True if it did not have the path. */
  readonly isInVain: boolean;
}

/** The two times of a request. */
interface RequestTimes {
  readonly atMs: number;
  readonly waitedMs: number;
  readonly sentMs: number;
  /** True if it waited for upstreams, and came from one. */
  readonly isFromUpstream: boolean;
  /** For whom, the longest first. */
  readonly upstreams: readonly WaitedFor[];
}

/** A path of a pull, and where its time went. */
interface SlowPath {
  /** As in `EndedRequest`. */
  readonly name: string;
  result: PathResult | "absent";
  bytes: number;
  ms: number;
  narinfo: RequestTimes | undefined;
  nar: RequestTimes | undefined;
}

/**
 * How long a client waited for one upstream, and got files at its pace. Each moment counts once; two
 * upstreams may be waited for side by side.
 */
interface UpstreamTimes {
  readonly upstream: string | undefined;
  readonly waitedPaths: number;
  readonly waitedMs: number;
  /** Requests for what it did not have. */
  readonly inVain: number;
  readonly sentPaths: number;
  readonly sentMs: number;
}

/** A pull of a client. */
export interface EndedPull {
  readonly client: string;
  /** True while it may go on: then its figures are those of the requests that have ended. */
  readonly isRunning: boolean;
  /** Requests that run now, and for how long none of them has ended. */
  readonly underWay: number;
  readonly underWayMs: number;
  readonly beganAtMs: number;
  /** The sum of the four below. */
  readonly ms: number;
  readonly waitingMs: number;
  readonly fetchingMs: number;
  readonly sendingMs: number;
  readonly pauseMs: number;
  /** The slowest first. */
  readonly upstreams: readonly UpstreamTimes[];
  /** The path that the client asked for first: most often the one that it wants. */
  readonly first: string | undefined;
  /** How many paths came in each way. */
  readonly paths: Readonly<Record<PathResult | "absent", number>>;
  readonly bytes: number;
  /** Of those, the bytes that no upstream had to send for this client. */
  readonly savedBytes: number;
  /** The slowest first. */
  readonly slowest: readonly SlowPath[];
}

/** Room that all pulls share. */
interface Room {
  names: number;
  slow: number;
}

/** What a pull knows of one upstream. Its bits are in the names of the paths. */
interface KnownUpstream {
  readonly upstream: string | undefined;
  readonly shares: TimeShares;
  inVain: number;
  /** Paths without a name. */
  waitedPaths: number;
  sentPaths: number;
}

/** A path's bits: its narinfo's result, its NAR's, and who was waited for and who sent it. */
const NAR_SHIFT = 3;
const RESULT_BITS = 0b111;
const WAITED_SHIFT = 6;
const SENT_SHIFT = WAITED_SHIFT + UPSTREAMS_MAX + 1;

/** The pull of one client, as long as it goes on. */
export class OpenPull {
  #client: string;
  readonly #sharing = new Set<string>();
  /** Names it from the first look on. */
  id: string | undefined;
  /** Requests that run, counted or not. */
  running = 0;
  /** Ended requests that are not told yet. */
  untold = 0;
  /** When its last request ended. */
  lastEndAtMs = -Infinity;
  /** Since when there is always one that runs. */
  busySinceMs = -Infinity;
  readonly openedAtMs: number;
  readonly #room: Room;
  readonly #shares = new TimeShares();
  #beganAtMs = Infinity;
  #lastAtMs = -Infinity;
  /** For each name, the bits of its path. */
  readonly #names = new Map<string, number>();
  readonly #unnamed = [0, 0, 0, 0];
  #absent = 0;
  #bytes = 0;
  #savedBytes = 0;
  #firstNarinfo: string | undefined;
  #lastNar: string | undefined;
  #slow = new Map<string, SlowPath>();
  readonly #upstreams: KnownUpstream[] = [];
  #isEnded = false;

  constructor(client: string, openedAtMs: number, room: Room) {
    this.#client = client;
    this.openedAtMs = openedAtMs;
    this.#room = room;
  }

  /** A name or address; of a shared pull, how many they are. */
  get client(): string {
    return this.#client;
  }

  /** One of the clients that share the pull. */
  shared(client: string): void {
    if (this.#sharing.size >= SHARING_MAX || this.#sharing.has(client)) return;
    this.#sharing.add(ownText(client));
    this.#client = `${counted(this.#sharing.size, "client")} more`;
  }

  /** A stored narinfo was sent: the most frequent request, which makes no object. */
  narinfoHit(
    narName: string,
    bytes: number,
    startedAtMs: number,
    endedAtMs: number,
    isLast: boolean,
  ): void {
    if (endedAtMs - startedAtMs >= SLOW_HIT_MS) {
      return this.ended({
        ...{ kind: "narinfo", name: narName, result: "hit", bytes, startedAtMs, endedAtMs },
        ...{ answeredAtMs: startedAtMs, isFromUpstream: false, waits: [], isLast },
      });
    }
    if (this.#isEnded) return;
    this.#bytes += bytes;
    this.#savedBytes += bytes;
    this.#lasts(startedAtMs, endedAtMs);
    if (isLast) this.#addLast(SHARE.sending, startedAtMs, endedAtMs);
    else this.#shares.add(SHARE.sending, startedAtMs, endedAtMs);
    this.#firstNarinfo ??= narName;
    if (this.#names.has(narName) || this.#room.names <= 0) return;
    this.#room.names--;
    this.#names.set(narName, 1);
  }

  /** Any other request for a path has ended. */
  ended(request: EndedRequest): void {
    if (this.#isEnded) return;
    const { kind, name, result, isFromUpstream, startedAtMs, answeredAtMs, endedAtMs } = request;
    this.#lasts(startedAtMs, endedAtMs);
    this.#bytes += request.bytes;
    const firstByteAtMs = isFromUpstream
      ? Math.min(Math.max(answeredAtMs, startedAtMs), endedAtMs)
      : startedAtMs;
    const upstreams = isFromUpstream ? this.#noteUpstreams(request, firstByteAtMs) : [];
    if (result === "absent") {
      this.#absent++;
    } else this.#named(kind, name, result, upstreams);
    for (const { known, waitedMs, isInVain } of upstreams) {
      if (waitedMs > 0 && (result === "absent" || isInVain)) known.inVain++;
    }
    if (result === "hit" || result === "joined") {
      this.#savedBytes += request.bytes - (request.unsavedBytes ?? 0);
    }
    this.#shares.add(SHARE.waiting, startedAtMs, firstByteAtMs);
    if (request.isLast) this.#addLast(SHARE.sending, firstByteAtMs, endedAtMs);
    else this.#shares.add(SHARE.sending, firstByteAtMs, endedAtMs);
    if (isFromUpstream || endedAtMs - startedAtMs >= SLOW_HIT_MS) {
      this.#noteSlow(request, {
        ...{ atMs: startedAtMs, isFromUpstream },
        waitedMs: firstByteAtMs - startedAtMs,
        sentMs: Math.max(0, endedAtMs - firstByteAtMs),
        upstreams: upstreams.map(({ known: { upstream }, waitedMs, sentMs, isInVain }) => (
          { upstream, waitedMs, sentMs, isInVain }
        )).sort((a, b) => b.waitedMs + b.sentMs - a.waitedMs - a.sentMs),
      });
    }
  }

  /** A request has ended that is none of a pull. */
  uncounted(): void {
    this.running--;
  }

  /** True if a request that begins now is of another pull. */
  isOver(atMs: number): boolean {
    if (atMs - this.openedAtMs >= PULL_MAX_MS) return true;
    return this.running === 0 && atMs - this.lastEndAtMs >= SILENCE_MS;
  }

  /** Gives its room back. What ends later counts no more. */
  end(): void {
    this.#isEnded = true;
    this.#room.names += this.#names.size;
    this.#room.slow += this.#slow.size;
  }

  /** The pull up to now; without a time, up to its end. `undefined` if no request counted. */
  told(nowMs?: number): EndedPull | undefined {
    if (this.#lastAtMs === -Infinity) return undefined;
    const length = this.#lastAtMs - this.#beganAtMs;
    // Each sum is rounded, not each part: so the parts equal the whole.
    const [waited = 0, fetched = 0, sent = 0] = this.#shares.sums()
      .map((ms) => Math.round(Math.min(ms, length)));
    const ms = Math.round(length);
    return {
      ...{ client: this.client, isRunning: nowMs !== undefined, underWay: this.running },
      underWayMs: nowMs === undefined || this.running === 0
        ? 0
        : Math.round(nowMs - Math.max(this.busySinceMs, this.lastEndAtMs)),
      ...{ beganAtMs: this.#beganAtMs, ms },
      waitingMs: waited,
      fetchingMs: fetched - waited,
      sendingMs: sent - fetched,
      pauseMs: ms - sent,
      upstreams: this.#upstreams.map((known, index) => this.#timesOf(known, index))
        .sort((a, b) => b.waitedMs + b.sentMs - a.waitedMs - a.sentMs),
      first: this.#firstNarinfo ?? this.#lastNar,
      paths: { ...this.#results(), absent: this.#absent },
      ...{ bytes: this.#bytes, savedBytes: this.#savedBytes },
      slowest: slowestOf(this.#slow).slice(0, SLOWEST_MAX).map((path) => ({ ...path })),
    };
  }

  #lasts(startedAtMs: number, endedAtMs: number): void {
    if (startedAtMs < this.#beganAtMs) this.#beganAtMs = startedAtMs;
    if (endedAtMs > this.#lastAtMs) this.#lastAtMs = endedAtMs;
  }

  #addLast(share: (typeof SHARE)[keyof typeof SHARE], fromMs: number, toMs: number): void {
    this.#shares.addLast(share, fromMs, toMs);
    for (const { shares } of this.#upstreams) shares.settle(toMs);
  }

  /** Notes a path. Without room for its name, it counts by its NAR: a client asks once for each. */
  #named(
    kind: "narinfo" | "nar",
    name: string,
    result: PathResult,
    upstreams: readonly NotedWait[],
  ): void {
    if (kind === "narinfo") this.#firstNarinfo ??= name;
    else this.#lastNar = name;
    const known = this.#names.get(name);
    const index = RESULTS.indexOf(result) + 1;
    if (known === undefined && this.#room.names <= 0) {
      if (kind !== "nar") return;
      this.#unnamed[index - 1] = (this.#unnamed[index - 1] ?? 0) + 1;
      for (const { known, waitedMs, sentMs, isInVain } of upstreams) {
        if (waitedMs > 0 && !isInVain) known.waitedPaths++;
        if (sentMs > 0) known.sentPaths++;
      }
      return;
    }
    if (known === undefined) this.#room.names--;
    let bits = kind === "nar" ? index << NAR_SHIFT : index;
    for (const { bit, waitedMs, sentMs, isInVain } of upstreams) {
      if (waitedMs > 0 && !isInVain) bits |= 1 << WAITED_SHIFT + bit;
      if (sentMs > 0) bits |= 1 << SENT_SHIFT + bit;
    }
    // A part of the request's target would hold all of it.
    const key = known === undefined && kind === "nar" ? ownText(name) : name;
    this.#names.set(key, later(known ?? 0, bits));
  }

  /** Each path counts once, by its NAR if the client asked for that. */
  #results(): Record<PathResult, number> {
    const counts = [...this.#unnamed];
    for (const bits of this.#paths()) {
      const index = (bits >> NAR_SHIFT & RESULT_BITS || bits & RESULT_BITS) - 1;
      counts[index] = (counts[index] ?? 0) + 1;
    }
    const [hit = 0, joined = 0, ahead = 0, fetched = 0] = counts;
    return { hit, joined, ahead, fetched };
  }

  #timesOf({ upstream, shares, ...known }: KnownUpstream, bit: number): UpstreamTimes {
    const [waitedMs = 0, bothMs = 0] = shares.sums();
    let { waitedPaths, sentPaths } = known;
    for (const bits of this.#paths()) {
      waitedPaths += bits >> WAITED_SHIFT + bit & 1;
      sentPaths += bits >> SENT_SHIFT + bit & 1;
    }
    const { inVain } = known;
    return { upstream, waitedPaths, waitedMs, inVain, sentPaths, sentMs: bothMs - waitedMs };
  }

  /** The bits of each path. A recompressed file has two names. */
  #paths(): Iterable<number> {
    const paths = new Map<string, number>();
    for (const [name, bits] of this.#names) {
      const key = stemOf(name);
      paths.set(key, later(paths.get(key) ?? 0, bits));
    }
    return paths.values();
  }

  /** The times of each upstream that the request waited for, the time before the first byte apart. */
  #noteUpstreams(
    { waits }: EndedRequest,
    firstByteAtMs: number,
  ): readonly NotedWait[] {
    const noted = new Map<KnownUpstream, NotedWait>();
    for (const { upstream, fromMs, toMs, isInVain = false } of waits) {
      const [known, bit] = this.#upstream(upstream);
      const waitedMs = Math.max(0, Math.min(toMs, firstByteAtMs) - fromMs);
      const sentMs = Math.max(0, toMs - Math.max(fromMs, firstByteAtMs));
      known.shares.add(SHARE.waiting, fromMs, fromMs + waitedMs);
      known.shares.add(SHARE.fetching, toMs - sentMs, toMs);
      this.#shares.add(SHARE.fetching, toMs - sentMs, toMs);
      const before = noted.get(known) ?? { known, bit, waitedMs: 0, sentMs: 0, isInVain };
      const both = { waitedMs: before.waitedMs + waitedMs, sentMs: before.sentMs + sentMs };
      noted.set(known, { ...before, ...both, isInVain: before.isInVain && isInVain });
    }
    return [...noted.values()];
  }

  #upstream(upstream: string | undefined): [known: KnownUpstream, bit: number] {
    const wanted = this.#upstreams.findIndex((one) => one.upstream === upstream);
    const found = this.#upstreams[wanted];
    if (found !== undefined) return [found, wanted];
    const named = this.#upstreams.filter((one) => one.upstream !== undefined).length;
    if (upstream !== undefined && named >= UPSTREAMS_MAX) return this.#upstream(undefined);
    const none = { inVain: 0, waitedPaths: 0, sentPaths: 0 };
    const known = { upstream, shares: new TimeShares(), ...none };
    return [known, this.#upstreams.push(known) - 1];
  }

  #noteSlow({ kind, name, result, bytes }: EndedRequest, times: RequestTimes): void {
    const key = stemOf(name);
    let path = this.#slow.get(key);
    if (path === undefined) {
      if (this.#room.slow <= 0 || this.#slow.size >= SLOW_PER_PULL_MAX) this.#forgetQuick();
      if (this.#room.slow <= 0) return;
      this.#room.slow--;
      path = {
        ...{ name: ownText(name), result, ms: 0, bytes: 0 },
        ...{ narinfo: undefined, nar: undefined },
      };
      this.#slow.set(stemOf(path.name), path);
    }
    path.ms += times.waitedMs + times.sentMs;
    path.bytes += kind === "nar" ? bytes : 0;
    // A NAR says more of a path than its narinfo.
    if (kind === "nar" || path.nar === undefined) path.result = result;
    path[kind] = times;
  }

  /** Keeps the slower half. */
  #forgetQuick(): void {
    const before = this.#slow.size;
    const kept = slowestOf(this.#slow).slice(0, before >> 1);
    this.#slow = new Map(kept.map((path) => [stemOf(path.name), path]));
    this.#room.slow += before - kept.length;
  }
}

/** What a request took for an upstream. */
interface NotedWait {
  readonly known: KnownUpstream;
  readonly bit: number;
  readonly waitedMs: number;
  readonly sentMs: number;
  readonly isInVain: boolean;
}

/** Requests that are noted before their pulls are told. Some 100 bytes each. */
const NOTES_MAX = 2_048;

/** Numbers of a stored narinfo: bytes, start, end, and whether it is the client's last. */
const NUMBERS = 4;

/**
 * The pulls of all clients: a state machine without a clock. A request begins or goes on with the
 * pull of its client, which ends after ten seconds of silence. An ended request costs a few writes
 * into arrays that are there already. All else waits for `tell`, whose time `NOTES_MAX` limits.
 */
export class OpenPulls {
  readonly #opened: () => void;
  readonly #soon: () => void;
  readonly #pulls = new Map<string, OpenPull>();
  /** Pulls that are over, and wait for what is untold or, at their longest length, still runs. */
  readonly #ending = new Set<OpenPull>();
  readonly #room: Room = { names: NAMES_MAX, slow: SLOW_MAX };
  /** The pulls of the noted requests. */
  readonly #noted: (OpenPull | undefined)[] = Array(NOTES_MAX).fill(undefined);
  /** The NAR name of a stored narinfo, or any other request. */
  readonly #requests: (string | EndedRequest)[] = Array(NOTES_MAX).fill("");
  readonly #numbers = new Float64Array(NOTES_MAX * NUMBERS);
  #notedCount = 0;

  /**
   * `opened`: called with each new pull. `soon`: called where `tell` should run without a request
   * that waits for it.
   */
  constructor(opened: () => void, soon: () => void) {
    this.#opened = opened;
    this.#soon = soon;
  }

  get count(): number {
    return this.#pulls.size + this.#ending.size;
  }

  /** A request begins. Its end must be told to its pull. */
  begin(client: string, atMs: number): OpenPull {
    let pull = this.#goingOn(client, atMs);
    if (pull === undefined) {
      const isShared = this.count >= PULLS_AT_ONCE_MAX;
      const key = isShared ? SHARED : client;
      pull = isShared ? this.#goingOn(key, atMs) : undefined;
      if (pull === undefined) {
        pull = new OpenPull(client, atMs, this.#room);
        this.#pulls.set(key, pull);
        this.#opened();
      }
      if (isShared) pull.shared(client);
    }
    if (pull.running++ === 0) pull.busySinceMs = atMs;
    return pull;
  }

  /** A stored narinfo was sent: the most frequent request, which makes no object. */
  narinfoHit(
    pull: OpenPull,
    narName: string,
    bytes: number,
    startedAtMs: number,
    endedAtMs: number,
  ): void {
    const at = this.#place(pull, endedAtMs);
    this.#requests[at] = narName;
    const numbers = this.#numbers;
    const first = at * NUMBERS;
    numbers[first] = bytes;
    numbers[first + 1] = startedAtMs;
    numbers[first + 2] = endedAtMs;
    numbers[first + 3] = pull.running;
  }

  /** Any other request for a path has ended. */
  requestEnded(pull: OpenPull, request: Omit<EndedRequest, "isLast">): void {
    const at = this.#place(pull, request.endedAtMs);
    this.#requests[at] = { ...request, isLast: pull.running === 0 };
  }

  /** Tells the pulls of their requests, in the order in which they ended. */
  tell(): void {
    const pulls = this.#noted;
    const requests = this.#requests;
    const numbers = this.#numbers;
    for (let at = 0; at < this.#notedCount; at++) {
      const pull = pulls[at];
      const request = requests[at] ?? "";
      pulls[at] = undefined;
      requests[at] = "";
      if (pull === undefined) continue;
      pull.untold--;
      if (typeof request !== "string") {
        pull.ended(request);
        continue;
      }
      const first = at * NUMBERS;
      const startedAtMs = numbers[first + 1] ?? 0;
      const endedAtMs = numbers[first + 2] ?? 0;
      const isLast = numbers[first + 3] === 0;
      pull.narinfoHit(request, numbers[first] ?? 0, startedAtMs, endedAtMs, isLast);
    }
    this.#notedCount = 0;
  }

  #place(pull: OpenPull, endedAtMs: number): number {
    if (this.#notedCount === NOTES_MAX) this.tell();
    pull.running--;
    pull.untold++;
    pull.lastEndAtMs = endedAtMs;
    const at = this.#notedCount++;
    this.#noted[at] = pull;
    if (this.#notedCount === NOTES_MAX / 2) this.#soon();
    return at;
  }

  #goingOn(key: string, atMs: number): OpenPull | undefined {
    const pull = this.#pulls.get(key);
    if (!pull?.isOver(atMs)) return pull;
    this.#pulls.delete(key);
    this.#ending.add(pull);
    return undefined;
  }

  /** The pulls that have not ended, the newest first. */
  running(): readonly OpenPull[] {
    return [...this.#pulls.values(), ...this.#ending].sort((a, b) => b.openedAtMs - a.openedAtMs);
  }

  /** The pulls that are over at this time. `Infinity` ends them all. */
  ended(atMs: number): readonly (EndedPull & Pick<OpenPull, "id">)[] {
    for (const key of [...this.#pulls.keys()]) this.#goingOn(key, atMs);
    return [...this.#ending].filter((pull) => isTold(pull, atMs)).flatMap((pull) => {
      this.#ending.delete(pull);
      const told = pull.told();
      pull.end();
      return told === undefined ? [] : [{ ...told, id: pull.id }];
    });
  }
}

/** A request that runs for an hour longer than its pull counts no more. */
function isTold({ running, untold, openedAtMs }: OpenPull, atMs: number): boolean {
  if (atMs === Infinity || atMs - openedAtMs >= 2 * PULL_MAX_MS) return true;
  return running === 0 && untold === 0;
}

/** The later result of the narinfo and of the NAR, and all upstreams. */
function later(some: number, others: number): number {
  const narinfo = Math.max(some & RESULT_BITS, others & RESULT_BITS);
  const nar = Math.max(some >> NAR_SHIFT & RESULT_BITS, others >> NAR_SHIFT & RESULT_BITS);
  return (some | others) >> WAITED_SHIFT << WAITED_SHIFT | nar << NAR_SHIFT | narinfo;
}

function slowestOf(slow: ReadonlyMap<string, SlowPath>): SlowPath[] {
  return [...slow.values()].sort((a, b) => b.ms - a.ms);
}
