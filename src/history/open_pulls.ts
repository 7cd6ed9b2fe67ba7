import { ownText } from "../base/own_text.ts";
import { SHARE, TimeShares } from "./time_shares.ts";

/** The silence that ends a pull. */
export const SILENCE_MS = 10_000;

/** A client that is never silent begins a new pull after this time. */
const PULL_MAX_MS = 3_600_000;

/** Clients with a pull at a time. The requests of further ones are in no pull. */
const CLIENTS_MAX = 128;

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

/** Upstreams that a pull tells apart. */
const UPSTREAMS_MAX = 8;

/** How a path came. A later one wins if a path came in two ways. */
export const RESULTS = ["hit", "joined", "ahead", "fetched"] as const;

export type PathResult = (typeof RESULTS)[number];

/** A request that has ended. Its times are those of one clock. */
export interface EndedRequest {
  readonly kind: "narinfo" | "nar";
  /** The path's NAR file; the store path hash of an absent narinfo. */
  readonly name: string;
  readonly result: PathResult | "absent";
  /** True if the answer waited for an upstream, or for another request that did. */
  readonly isFromUpstream: boolean;
  /** The upstream that it waited for, where that is known. */
  readonly upstream: string | undefined;
  readonly startedAtMs: number;
  /** When the first byte of the answer was there. */
  readonly answeredAtMs: number;
  readonly endedAtMs: number;
  readonly bytes: number;
}

/** The two times of a request. */
export interface RequestTimes {
  readonly atMs: number;
  readonly waitedMs: number;
  readonly sentMs: number;
}

/** A path of a pull, and where its time went. */
export interface SlowPath {
  /** As in `EndedRequest`. */
  readonly name: string;
  result: PathResult | "absent";
  upstream: string | undefined;
  bytes: number;
  ms: number;
  narinfo: RequestTimes | undefined;
  nar: RequestTimes | undefined;
}

/** What a pull waited for one upstream. The times of its paths may overlap. */
export interface UpstreamTimes {
  readonly upstream: string | undefined;
  waitedPaths: number;
  waitedMs: number;
  sentPaths: number;
  sentMs: number;
}

export interface EndedPull {
  readonly client: string;
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
  readonly paths: Readonly<Record<PathResult | "absent", number>>;
  readonly bytes: number;
  readonly savedBytes: number;
  /** The slowest first. */
  readonly slowest: readonly SlowPath[];
}

/** Room that all pulls share. */
interface Room {
  names: number;
  slow: number;
}

/** The pull of one client, as long as it goes on. */
export class OpenPull {
  readonly client: string;
  /** Requests under way, counted or not. */
  inFlight = 0;
  readonly #room: Room;
  readonly #shares = new TimeShares();
  #beganAtMs = Infinity;
  #lastAtMs = -Infinity;
  /** For each name, the index of its narinfo's result and eight times that of its NAR. */
  readonly #names = new Map<string, number>();
  readonly #unnamed = [0, 0, 0, 0];
  #absent = 0;
  #bytes = 0;
  #savedBytes = 0;
  #firstNarinfo: string | undefined;
  #lastNar: string | undefined;
  #slow = new Map<string, SlowPath>();
  readonly #upstreams = new Map<string | undefined, UpstreamTimes>();

  constructor(client: string, room: Room) {
    this.client = client;
    this.#room = room;
  }

  /** A stored narinfo was sent: the most frequent request, which makes no object. */
  narinfoHit(narName: string, bytes: number, startedAtMs: number, endedAtMs: number): void {
    if (endedAtMs - startedAtMs >= SLOW_HIT_MS) {
      return this.ended({
        ...{ kind: "narinfo", name: narName, result: "hit", bytes, startedAtMs, endedAtMs },
        ...{ answeredAtMs: startedAtMs, isFromUpstream: false, upstream: undefined },
      });
    }
    this.inFlight--;
    this.#bytes += bytes;
    this.#savedBytes += bytes;
    this.#lasts(startedAtMs, endedAtMs);
    if (this.inFlight === 0) this.#shares.addLast(SHARE.sending, startedAtMs, endedAtMs);
    else this.#shares.add(SHARE.sending, startedAtMs, endedAtMs);
    this.#firstNarinfo ??= narName;
    if (this.#names.has(narName) || this.#room.names <= 0) return;
    this.#room.names--;
    this.#names.set(narName, 1);
  }

  /** Any other request for a path has ended. */
  ended(request: EndedRequest): void {
    const { kind, name, result, isFromUpstream, startedAtMs, answeredAtMs, endedAtMs } = request;
    this.#lasts(startedAtMs, endedAtMs);
    this.#bytes += request.bytes;
    if (result === "absent") this.#absent++;
    else this.#named(kind, name, result);
    if (result === "hit" || result === "joined") this.#savedBytes += request.bytes;
    const firstByteAtMs = isFromUpstream
      ? Math.min(Math.max(answeredAtMs, startedAtMs), endedAtMs)
      : startedAtMs;
    this.#shares.add(SHARE.waiting, startedAtMs, firstByteAtMs);
    this.inFlight--;
    const share = isFromUpstream ? SHARE.fetching : SHARE.sending;
    if (this.inFlight === 0) this.#shares.addLast(share, firstByteAtMs, endedAtMs);
    else this.#shares.add(share, firstByteAtMs, endedAtMs);
    const times = {
      atMs: startedAtMs,
      waitedMs: firstByteAtMs - startedAtMs,
      sentMs: Math.max(0, endedAtMs - firstByteAtMs),
    };
    if (isFromUpstream || endedAtMs - startedAtMs >= SLOW_HIT_MS) this.#noteSlow(request, times);
  }

  /** A request has ended that is none of a pull. */
  uncounted(): void {
    this.inFlight--;
  }

  /** True if a request that begins now is of another pull. */
  isOver(atMs: number): boolean {
    if (this.inFlight > 0) return false;
    return atMs - this.#lastAtMs >= SILENCE_MS || atMs - this.#beganAtMs >= PULL_MAX_MS;
  }

  /** Gives its room back. `undefined` if no request counted. */
  end(): EndedPull | undefined {
    this.#room.names += this.#names.size;
    this.#room.slow += this.#slow.size;
    if (this.#lastAtMs === -Infinity) return undefined;
    const length = this.#lastAtMs - this.#beganAtMs;
    // Each sum is rounded, not each part: so the parts equal the whole.
    const [waited = 0, fetched = 0, sent = 0] = this.#shares.sums()
      .map((ms) => Math.round(Math.min(ms, length)));
    const ms = Math.round(length);
    return {
      ...{ client: this.client, beganAtMs: this.#beganAtMs, ms },
      waitingMs: waited,
      fetchingMs: fetched - waited,
      sendingMs: sent - fetched,
      pauseMs: ms - sent,
      upstreams: [...this.#upstreams.values()]
        .sort((a, b) => b.waitedMs + b.sentMs - a.waitedMs - a.sentMs),
      first: this.#firstNarinfo ?? this.#lastNar,
      paths: { ...this.#results(), absent: this.#absent },
      ...{ bytes: this.#bytes, savedBytes: this.#savedBytes },
      slowest: slowestOf(this.#slow).slice(0, SLOWEST_MAX),
    };
  }

  #lasts(startedAtMs: number, endedAtMs: number): void {
    if (startedAtMs < this.#beganAtMs) this.#beganAtMs = startedAtMs;
    if (endedAtMs > this.#lastAtMs) this.#lastAtMs = endedAtMs;
  }

  #named(kind: "narinfo" | "nar", name: string, result: PathResult): void {
    if (kind === "narinfo") this.#firstNarinfo ??= name;
    else this.#lastNar = name;
    const known = this.#names.get(name);
    const index = RESULTS.indexOf(result) + 1;
    if (known === undefined && this.#room.names <= 0) {
      // Its narinfo has no room either: a client asks for each NAR once.
      if (kind === "nar") this.#unnamed[index - 1] = (this.#unnamed[index - 1] ?? 0) + 1;
      return;
    }
    if (known === undefined) this.#room.names--;
    // A part of the request's target would hold all of it.
    const key = known === undefined && kind === "nar" ? ownText(name) : name;
    this.#names.set(key, later(known ?? 0, kind === "nar" ? index * 8 : index));
  }

  /** Each path counts once, by its NAR if the client asked for that. */
  #results(): Record<PathResult, number> {
    const paths = new Map<string, number>();
    for (const [name, results] of this.#names) {
      const key = stemOf(name);
      paths.set(key, later(paths.get(key) ?? 0, results));
    }
    const counts = [...this.#unnamed];
    for (const results of paths.values()) {
      const index = (results >> 3 || results & 7) - 1;
      counts[index] = (counts[index] ?? 0) + 1;
    }
    const [hit = 0, joined = 0, ahead = 0, fetched = 0] = counts;
    return { hit, joined, ahead, fetched };
  }

  #noteSlow(request: EndedRequest, times: RequestTimes): void {
    const { kind, result, bytes, isFromUpstream } = request;
    const key = stemOf(request.name);
    let path = this.#slow.get(key);
    const upstream = request.upstream ?? path?.upstream;
    if (isFromUpstream) this.#noteUpstream(upstream, path, times);
    if (path === undefined) {
      if (this.#room.slow <= 0 || this.#slow.size >= SLOW_PER_PULL_MAX) this.#forgetQuick();
      if (this.#room.slow <= 0) return;
      this.#room.slow--;
      const none = { ms: 0, bytes: 0, narinfo: undefined, nar: undefined };
      path = { name: ownText(request.name), result, upstream, ...none };
      this.#slow.set(stemOf(path.name), path);
    }
    path.ms += times.waitedMs + times.sentMs;
    path.bytes += kind === "nar" ? bytes : 0;
    path.upstream = upstream;
    // A NAR says more of a path than its narinfo.
    if (kind === "nar" || path.nar === undefined) path.result = result;
    path[kind] = times;
  }

  #noteUpstream(
    upstream: string | undefined,
    path: SlowPath | undefined,
    { waitedMs, sentMs }: RequestTimes,
  ): void {
    const isRoom = this.#upstreams.size < UPSTREAMS_MAX;
    const key = this.#upstreams.has(upstream) || isRoom ? upstream : undefined;
    const none = { waitedPaths: 0, waitedMs: 0, sentPaths: 0, sentMs: 0 };
    const known = this.#upstreams.get(key) ?? { upstream: key, ...none };
    this.#upstreams.set(key, known);
    const isNew = path === undefined || path.upstream !== upstream;
    if (isNew) known.waitedPaths++;
    if (sentMs > 0 && (isNew || (path.nar?.sentMs ?? 0) === 0)) known.sentPaths++;
    known.waitedMs += waitedMs;
    known.sentMs += sentMs;
  }

  /** Keeps the slower half. */
  #forgetQuick(): void {
    const before = this.#slow.size;
    const kept = slowestOf(this.#slow).slice(0, before >> 1);
    this.#slow = new Map(kept.map((path) => [stemOf(path.name), path]));
    this.#room.slow += before - kept.length;
  }
}

/**
 * The pulls of all clients: a state machine without a clock. A request begins or goes on with the
 * pull of its client, which ends after ten seconds of silence.
 */
export class OpenPulls {
  readonly #pulls = new Map<string, OpenPull>();
  readonly #room: Room = { names: NAMES_MAX, slow: SLOW_MAX };
  readonly #ended: EndedPull[] = [];

  get count(): number {
    return this.#pulls.size;
  }

  /** A request begins. Its end must be told to its pull; `undefined`: it is in none. */
  begin(client: string, atMs: number): OpenPull | undefined {
    let pull = this.#pulls.get(client);
    if (pull?.isOver(atMs)) pull = this.#end(pull);
    if (pull === undefined) {
      if (this.#pulls.size >= CLIENTS_MAX) return undefined;
      pull = new OpenPull(client, this.#room);
      this.#pulls.set(client, pull);
    }
    pull.inFlight++;
    return pull;
  }

  /** The pulls that are over at this time. `Infinity` ends them all. */
  ended(atMs: number): readonly EndedPull[] {
    for (const pull of this.#pulls.values()) {
      if (atMs === Infinity || pull.isOver(atMs)) this.#end(pull);
    }
    return this.#ended.splice(0);
  }

  #end(pull: OpenPull): undefined {
    this.#pulls.delete(pull.client);
    const ended = pull.end();
    // A client with a thousand pulls between two looks is no client of Nix.
    if (ended !== undefined && this.#ended.length < CLIENTS_MAX) this.#ended.push(ended);
  }
}

/** The later result of the narinfo, and of the NAR. */
function later(some: number, others: number): number {
  return Math.max(some >> 3, others >> 3) * 8 + Math.max(some & 7, others & 7);
}

/** A recompressed NAR file has another name, with the same stem. */
function stemOf(narName: string): string {
  const dot = narName.indexOf(".");
  return dot < 0 ? narName : narName.slice(0, dot);
}

function slowestOf(slow: ReadonlyMap<string, SlowPath>): SlowPath[] {
  return [...slow.values()].sort((a, b) => b.ms - a.ms);
}
