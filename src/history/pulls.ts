import { Buffer } from "node:buffer";
import { messageOf } from "../base/failure.ts";
import {
  boundedClient,
  PULL_BYTES_MAX,
  type PullKeeper,
  type PullRow,
  PULLS_MAX,
  type PullSummary,
} from "../metadata/pull_keeper.ts";
import type { Timer } from "../runtime/clock.ts";
import { clock, dice } from "../runtime/current.ts";
import type { Logger } from "../telemetry/logger.ts";
import {
  type EndedPull,
  type OpenPull,
  OpenPulls,
  type PathResult,
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

/** Pulls that wait for a database. Beyond, the oldest is lost. */
const UNWRITTEN_MAX = 50;

/** Upstreams of a written pull. */
const UPSTREAMS_WRITTEN_MAX = 4;

/** What a pull waited for one upstream. */
export interface PullUpstream {
  /** Its host; `undefined`: unknown. */
  readonly host?: string;
  /** Paths that waited for it, and their waits together: these may overlap. */
  readonly paths: number;
  readonly waitedMs: number;
  /** Paths that the client got while they came from it. */
  readonly sentPaths: number;
  readonly sentMs: number;
}

/** A pull that is over. */
export interface Pull {
  readonly id: string;
  readonly client: string;
  /** In milliseconds since 1970. */
  readonly beganAtMs: number;
  /** The sum of the four below. */
  readonly ms: number;
  readonly waitingMs: number;
  readonly fetchingMs: number;
  readonly sendingMs: number;
  readonly pauseMs: number;
  readonly upstreams: readonly PullUpstream[];
  /** Name such as `firefox-145.0` of the path that the client asked for first. */
  readonly first?: string;
  /** How many paths came in each way. */
  readonly paths: Readonly<Record<PathResult | "absent", number>>;
  readonly bytes: number;
  /** Of those, the bytes that no upstream had to send for this client. */
  readonly savedBytes: number;
}

/** A slow path of a pull. Its times are milliseconds from the pull's begin. */
export interface PullPath extends Omit<SlowPath, "upstream"> {
  /** Its name, or what the request named if larder knows none. */
  readonly name: string;
  readonly host: string | undefined;
}

export interface WholePull extends Pull {
  /** The slowest first. */
  readonly slowest: readonly PullPath[];
}

/** A request for a path, for the question which upstream it waited for. */
export interface WaitedPath {
  readonly storePathHash?: string | undefined;
  readonly narName?: string | undefined;
  readonly waitedMs: number;
}

export interface PullsDeps {
  readonly keeper: PullKeeper;
  /** Name of the store path in a NAR file, or of a store path hash. Never rejects. */
  readonly nameOf: (name: string) => Promise<string | undefined>;
  /** URL of the upstream that a request waited for. */
  readonly upstreamOf: (path: WaitedPath) => string | undefined;
  readonly log: Pick<Logger, "debug">;
}

/** Notes the pulls of clients, and keeps those that are over in the database. */
export class Pulls implements AsyncDisposable {
  readonly #deps: PullsDeps;
  readonly #open = new OpenPulls();
  #timer: Timer | undefined;
  #isStopped = false;
  /** Pulls that are over, and have no row yet. */
  #ended: EndedPull[] = [];
  #unwritten: PullRow[] = [];
  #describing: Promise<void> = Promise.resolve();
  #writing: Promise<void> | undefined;
  #nextTryAtMs = -Infinity;
  #recent: readonly Pull[] = [];
  #reading: Promise<void> | undefined;

  constructor(deps: PullsDeps) {
    this.#deps = deps;
  }

  /** A request begins: it makes no promise, and reads nothing. `undefined`: it is in no pull. */
  begin(client: string, atMs: number): OpenPull | undefined {
    // Only while there is a pull: an idle larder stays asleep.
    if (this.#timer === undefined && !this.#isStopped) {
      this.#timer = clock.every(LOOK_EVERY_MS, () => void this.look(), false);
    }
    return this.#open.begin(client, atMs);
  }

  upstreamOf(path: WaitedPath): string | undefined {
    return this.#deps.upstreamOf(path);
  }

  /** Writes the pulls that are over. Never rejects. */
  look(): Promise<void> {
    const nowMs = clock.nowMs();
    this.#take(nowMs);
    const isIdle = this.#ended.length === 0 && this.#unwritten.length === 0;
    if (isIdle && this.#open.count === 0 && this.#writing === undefined) {
      this.#timer?.cancel();
      this.#timer = undefined;
    }
    if (isIdle || nowMs < this.#nextTryAtMs) return this.#writing ?? Promise.resolve();
    return this.#writing ??= this.#write().finally(() => this.#writing = undefined);
  }

  /** The newest pulls, the newest first; of one client, if `client` is given. */
  async newest(countMax: number = PULLS_MAX, client?: string): Promise<readonly Pull[]> {
    const wanted = client === undefined ? undefined : boundedClient(client);
    await this.#describe();
    const unwritten = this.#unwritten.toReversed()
      .filter((row) => wanted === undefined || row.client === wanted);
    const stored = await this.#deps.keeper.pulls(countMax, wanted);
    const ids = new Set(unwritten.map(({ id }) => id));
    const others = stored.filter(({ id }) => !ids.has(id));
    return [...unwritten, ...others].slice(0, countMax).map(readSummary);
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

  #take(atMs: number): void {
    this.#ended = [...this.#ended, ...this.#open.ended(atMs)].slice(-UNWRITTEN_MAX);
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
        this.#unwritten = [...this.#unwritten, await this.#rowOf(pull)].slice(-UNWRITTEN_MAX);
      }
    });
  }

  async #rowOf(pull: EndedPull): Promise<PullRow> {
    const { slowest, client: given, beganAtMs, upstreams, first, ...facts } = pull;
    const client = boundedClient(given);
    const id = dice.uuid().slice(0, 13);
    const name = first === undefined ? undefined : await this.#deps.nameOf(first) ?? first;
    const summary: Omit<Pull, "id" | "client"> = {
      ...facts,
      beganAtMs: Math.round(clock.wallMs() - clock.nowMs() + beganAtMs),
      upstreams: upstreams.slice(0, UPSTREAMS_WRITTEN_MAX).map(({ upstream, ...times }) => ({
        ...(upstream === undefined ? {} : { host: hostOf(upstream) }),
        paths: times.waitedPaths,
        sentPaths: times.sentPaths,
        waitedMs: Math.round(times.waitedMs),
        sentMs: Math.round(times.sentMs),
      })),
      ...(name === undefined ? {} : { first: name }),
    };
    const paths = await Promise.all(slowest.map(async (path): Promise<StoredPath> => [
      await this.#deps.nameOf(path.name) ?? path.name,
      path.result,
      path.upstream === undefined ? "" : hostOf(path.upstream),
      path.bytes,
      timesFrom(path.narinfo, beganAtMs),
      timesFrom(path.nar, beganAtMs),
    ]));
    return { id, client, summary: summaryText(summary), paths: pathsText(paths) };
  }
}

type StoredTimes = readonly [atMs: number, waitedMs: number, sentMs: number] | 0;

type StoredPath = readonly [
  name: string,
  result: SlowPath["result"],
  host: string,
  bytes: number,
  narinfo: StoredTimes,
  nar: StoredTimes,
];

function timesFrom(times: RequestTimes | undefined, beganAtMs: number): StoredTimes {
  if (times === undefined) return 0;
  const { atMs, waitedMs, sentMs } = times;
  return [Math.round(atMs - beganAtMs), Math.round(waitedMs), Math.round(sentMs)];
}

/** A name of two hundred characters is rare, and a host of them more so. */
function summaryText(summary: Omit<Pull, "id" | "client">): string {
  for (let count = summary.upstreams.length;; count--) {
    const text = JSON.stringify({ ...summary, upstreams: summary.upstreams.slice(0, count) });
    if (count === 0 || Buffer.byteLength(text) <= PULL_BYTES_MAX.summary) return text;
  }
}

/** The slowest, as many as have room. */
function pathsText(paths: readonly StoredPath[]): string {
  const texts: string[] = [];
  let bytes = 2;
  for (const path of paths) {
    const text = JSON.stringify(path);
    bytes += Buffer.byteLength(text) + 1;
    if (bytes > PULL_BYTES_MAX.paths) break;
    texts.push(text);
  }
  return `[${texts.join()}]`;
}

function readSummary({ id, client, summary }: PullSummary): Pull {
  return { id, client, ...JSON.parse(summary) };
}

function readPaths(text: string): readonly PullPath[] {
  return (JSON.parse(text) as readonly StoredPath[])
    .map(([name, result, host, bytes, narinfo, nar]) => {
      const times = [readTimes(narinfo), readTimes(nar)] as const;
      return {
        ...{ name, result, bytes, narinfo: times[0], nar: times[1] },
        host: host === "" ? undefined : host,
        ms: times.reduce((sum, one) => sum + (one ? one.waitedMs + one.sentMs : 0), 0),
      };
    });
}

function readTimes(times: StoredTimes): RequestTimes | undefined {
  if (times === 0) return undefined;
  const [atMs, waitedMs, sentMs] = times;
  return { atMs, waitedMs, sentMs };
}

function hostOf(url: string): string {
  return URL.canParse(url) ? new URL(url).host : url;
}
