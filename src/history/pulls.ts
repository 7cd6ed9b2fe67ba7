import { Buffer } from "node:buffer";
import { messageOf } from "../base/failure.ts";
import type { Stretch } from "../base/wait_notes.ts";
import {
  boundedClient,
  PULL_BYTES_MAX,
  type PullKeeper,
  type PullRow,
  PULLS_MAX,
  type PullSummary,
} from "../metadata/history_keeper.ts";
import type { Timer } from "../runtime/clock.ts";
import { clock, dice } from "../runtime/current.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { UpstreamStretch } from "../upstream/asked_upstreams.ts";
import {
  type EndedPull,
  type EndedRequest,
  type OpenPull,
  OpenPulls,
  type RequestTimes,
  type SlowPath,
} from "./open_pulls.ts";

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
