import { SizeLimit } from "../../src/space/size_limit.ts";
import type { AppParts } from "../../src/app/app_parts.ts";
import { OwnNames } from "../../src/http/access/own_names.ts";
import { memberRows } from "../../src/app/open_leases.ts";
import { type App, buildApp } from "../../src/app/build_app.ts";
import { startChores } from "../../src/app/chores.ts";
import { isPublishing } from "../../src/cache/nar/publish_nar.ts";
import { tryStoring } from "../../src/cache/nar/try_storing.ts";
import type { Bytes } from "../../src/base/bytes.ts";
import type { NarEncoder } from "../../src/cache/recompress/nar_encoder.ts";
import { Failure } from "../../src/base/failure.ts";
import { type MemberId, newMemberId } from "../../src/base/member_id.ts";
import type { HandOver } from "../../src/http/routes/nar.ts";
import { StreamAnswer } from "../../src/http/message/message.ts";
import { HttpServer } from "../../src/http/server/http_server.ts";
import { LeaseMetrics, Leases } from "../../src/locks/leases.ts";
import { MemberLeases } from "../../src/locks/work_leases.ts";
import type { MemberBoard } from "../../src/metadata/member_board.ts";
import type { ChangeFeed } from "../../src/metadata/change_feed.ts";
import { HotMetadataStore } from "../../src/metadata/hot_metadata_store.ts";
import type { SqliteMetadataStore } from "../../src/metadata/sqlite/sqlite_metadata_store.ts";
import { generateSecretKey, type PublicKey } from "../../src/nix/signature.ts";
import { clock } from "../../src/runtime/current.ts";
import type { Net } from "../../src/runtime/net.ts";
import { recover } from "../../src/space/recover.ts";
import { HotNarStore } from "../../src/storage/hot_nar_store.ts";
import { LocalNarStore } from "../../src/storage/local/local_nar_store.ts";
import { LocalSpool } from "../../src/storage/local/local_spool.ts";
import { WatchedNarStore } from "../../src/storage/watched_nar_store.ts";
import type { NarStore } from "../../src/storage/nar_store.ts";
import { createLogger } from "../../src/telemetry/logger.ts";
import { Metrics } from "../../src/telemetry/metrics.ts";
import { quietWhileAway } from "../../src/telemetry/quiet_while_away.ts";
import { RecentProblems } from "../../src/telemetry/recent_problems.ts";
import { NO_TRACER } from "../../src/telemetry/tracer.ts";
import type { HttpUpstreamSettings } from "../../src/upstream/http/upstream_fetch.ts";
import { WRITE_TOKEN } from "../support/uploading.ts";
import type { MemoryFiles } from "./memory_files.ts";
import type { PlayedAnswer, PlayedHost, PlayedNetwork, PlayedRequest } from "./played_net.ts";
import type { PlayedLocks } from "./played_locks.ts";
import { type PlayedPostgres, PostgresClient } from "./played_postgres.ts";
import { PlayedListener, type PlayedSocket } from "./played_socket.ts";
import { PlayedThreads } from "../support/played_threads.ts";
import { asOwner, Owner } from "./virtual_clock.ts";

/** Where all members of a world store their files. */
export const STORAGE = "/storage";
export const NARS = `${STORAGE}/nar`;
export const TEMP = `${STORAGE}/tmp`;

/** What all members of a world share. */
export interface SharedWorld {
  readonly network: PlayedNetwork;
  readonly files: MemoryFiles;
  readonly database: SqliteMetadataStore;
  /** Default: `STORAGE`. */
  readonly storage?: string;
  /** How another server sends its stored files. Default: it sends them itself. */
  readonly handOver?: HandOver | undefined;
  /** Keeps NAR files in zstd. Default: as they came. */
  readonly encoder?: NarEncoder | undefined;
  /** `undefined`: there is one member, without locks. */
  readonly locks: PlayedLocks | undefined;
  readonly limitBytes: number;
  readonly upstreams: readonly Pick<HttpUpstreamSettings, "url" | "priority">[];
  /** Default: those of `TIMEOUTS`. */
  readonly timeouts?: Partial<typeof TIMEOUTS>;
  readonly trustedKeys: readonly PublicKey[];
  readonly prefetches: boolean;
  /** Takes uploads with `WRITE_TOKEN`. Default: false. */
  readonly takesUploads?: boolean;
  /** Takes requests before it has heard of its upstreams, as in production. Default: false. */
  readonly isUnprobed?: boolean;
  /** Default: a minute. */
  readonly negativeTtlMs?: number;
  /** What its database and its store answer now. Default: what they should. */
  readonly outages?: PlayedOutages;
  /** Told before each call of the database and the store. It may end the process. */
  readonly calling?: ((name: string) => void) | undefined;
  /** Tells the other members of a change of rows. */
  changed(by: WorldMember): void;
  note(who: string, what: string): void;
}

/** Failures of a database and of a store on other machines. A test sets and clears them. */
export interface PlayedOutages {
  /** The error of each write, or of each call. */
  database?: { readonly error: string; readonly ofReads: boolean } | undefined;
  /** The store fails after so long. */
  store?:
    | { readonly operations: readonly (keyof NarStore)[]; readonly afterMs: number }
    | undefined;
  /** The rows are on a server of its own. Default: they fail as `database` says. */
  readonly postgres?: PlayedPostgres;
}

const TIMEOUTS = { dialTimeoutMs: 3_000, headerTimeoutMs: 3_000, idleTimeoutMs: 30_000 };
const HOT_NARS = { fileBytesMax: 30_000, totalBytesMax: 100_000 };

interface Listening {
  readonly server: HttpServer;
  readonly listener: PlayedListener;
  readonly accepting: Promise<void>;
}

/** One larder process of the world, from its start to its end. Restarts are new processes. */
export class WorldMember implements PlayedHost {
  readonly name: string;
  readonly owner: Owner;
  readonly startedAtMs = clock.nowMs();
  readonly metrics: Metrics;
  readonly #died = new AbortController();
  readonly #world: SharedWorld;
  readonly #storage: string;
  readonly #net: Net;
  readonly #threads: PlayedThreads;
  #app: App | undefined;
  #chores: AsyncDisposable | undefined;
  #spool: LocalSpool | undefined;
  #metadata: HotMetadataStore | undefined;
  #listening: Listening | undefined;
  readonly #listeners = new Set<() => void>();
  readonly id: MemberId;

  constructor(name: string, world: SharedWorld) {
    this.name = name;
    this.owner = new Owner(name);
    this.#world = world;
    this.#storage = world.storage ?? STORAGE;
    this.id = newMemberId(name, 1);
    this.metrics = new Metrics({ domains: { upstreams: world.upstreams.map(({ url }) => url) } });
    this.#net = world.network.of(name, this.died);
    this.#threads = new PlayedThreads({ net: this.#net });
  }

  get died(): AbortSignal {
    return this.#died.signal;
  }

  get state(): "up" | "refused" {
    return this.#app === undefined || this.died.aborted ? "refused" : "up";
  }

  get isUp(): boolean {
    return this.state === "up";
  }

  /** Starts as `serve` does. */
  start(): Promise<void> {
    return asOwner(this.owner, () => this.#start());
  }

  /** The client's end of a new connection to its HTTP server. */
  connect(): PlayedSocket {
    this.#listening ??= asOwner(this.owner, () => this.#listen());
    return this.#listening.listener.connect();
  }

  /** Resolves when no download is running. */
  async downloadsOver(): Promise<void> {
    await this.#app?.downloadsOver();
  }

  /** Does as each minute, where it keeps NAR files in zstd. */
  async recompress(): Promise<void> {
    await asOwner(this.owner, () => this.#app?.recompress());
  }

  /** Other members have written. */
  rowsChanged(): void {
    if (this.died.aborted) return;
    asOwner(this.owner, () => {
      for (const listener of this.#listeners) listener();
    });
  }

  /** Its process ends at once. What it has not synced may be lost. */
  kill(): void {
    this.owner.die();
    this.#died.abort(new TypeError("connection reset: its process was killed"));
    this.#world.network.hosts.delete(this.name);
    if (this.#spool !== undefined) this.#world.files.crash(this.#spool.path);
  }

  /** Stops as at SIGTERM. */
  async stop(): Promise<void> {
    await asOwner(this.owner, async () => {
      this.#app?.stopping();
      this.#listening?.listener.close();
      await this.#listening?.server.shutdown();
      await this.#listening?.accepting;
      await this.#app?.downloadsOver();
      await this.#chores?.[Symbol.asyncDispose]();
      await this.#app?.[Symbol.asyncDispose]();
      await this.#metadata?.leave(this.id);
      this.#spool?.[Symbol.dispose]();
    });
    this.#world.network.hosts.delete(this.name);
    if (this.#spool !== undefined) this.#world.files.closeBelow(this.#spool.path);
    this.owner.die();
    this.#died.abort(new TypeError("connection refused: it has stopped"));
  }

  async handle({ method, url, headers, body: sent, signal }: PlayedRequest): Promise<PlayedAnswer> {
    if (this.#app === undefined) throw new TypeError("connection refused");
    const request = {
      method,
      url: `http://localhost${url.pathname}${url.search}`,
      body: sent as ReadableStream<Bytes> | undefined ?? null,
      ...{ headers, signal, peer: "192.0.2.7" },
    };
    const answer = await this.#app.pipeline.handle(request);
    const body = typeof answer.body === "string"
      ? new TextEncoder().encode(answer.body)
      : answer.body ?? undefined;
    const release = answer instanceof StreamAnswer ? answer.release : undefined;
    return {
      status: answer.status,
      headers: Object.fromEntries(answer.headers),
      ...method === "HEAD" || body === undefined ? {} : { body: released(body, release) },
    };
  }

  /** A request from this machine, whose answer is read to its end; its status, or "broken". */
  async operate(method: "DELETE" | "POST", path: string): Promise<string> {
    const signal = this.died;
    const headers = new Headers();
    try {
      const answer = await this.#app?.pipeline.handle(
        { ...{ method, headers, signal, url: path, body: null }, peer: "127.0.0.1" },
      );
      if (answer?.body instanceof ReadableStream) {
        for await (const _ of answer.body);
      }
      return String(answer?.status ?? "down");
    } catch {
      return "broken";
    }
  }

  async #start(): Promise<void> {
    const world = this.#world;
    const { network, limitBytes, upstreams, trustedKeys, locks } = world;
    const quiet = createLogger("info", { write: (line) => this.#noteLine(line) });
    const problems = new RecentProblems(() => clock.wallMs());
    const log = quietWhileAway({
      log: problems.watch(quiet),
      ...{ quiet, nowMs: () => clock.wallMs() },
    });
    const server = world.outages?.postgres;
    const remote = server && new PostgresClient({ server, member: this.name, log });
    const database = this.#database(remote);
    const metadata = this.#metadata = new HotMetadataStore(database, log);
    await metadata.beat(this.id, {
      ...{ reservedBytes: 0, limitBytes, url: `http://${this.name}` },
    });
    const store = this.#nars();
    const watched = world.outages === undefined
      ? undefined
      : new WatchedNarStore(store, { log, nowMs: () => clock.nowMs() });
    const nars = new HotNarStore(watched ?? store, HOT_NARS);
    const spool = this.#spool = new LocalSpool(`${this.#storage}/tmp`, { member: this.id, log });
    const settling = { metadata, nars, spool, member: this.id, isPublishing, log };
    await recover(settling);
    this.#listeners.add(() => metadata.forgetChanged("all"));
    const settings: readonly HttpUpstreamSettings[] = upstreams.map((upstream) => ({
      url: upstream.url,
      ...upstream.priority !== undefined && { priority: upstream.priority },
      ...TIMEOUTS,
      ...world.timeouts,
      userAgent: "larder/simulation",
    }));
    const leases = locks && new MemberLeases({
      leases: new Leases({
        locks: locks.of({ member: this.id }),
        ownLocks: undefined,
        self: { member: this.id, url: `http://${this.name}` },
        members: memberRows(metadata, this.id),
        metrics: new LeaseMetrics(this.metrics),
        tracer: NO_TRACER,
        log,
      }),
      downloadTtlMs: 300_000,
      lruTtlMs: 1_800_000,
      retryPolicy: { retriesMax: 2, initialDelayMs: 100, maxDelayMs: 2_000, hasJitter: true },
    });
    const parts: AppParts = {
      stores: {
        ...{ metadata, nars, spool, leases, handOver: world.handOver },
        space: {
          limit: SizeLimit.of(limitBytes),
          owner: this.id,
          url: () => `http://${this.name}`,
        },
      },
      upstream: { settings, caCertificates: [], trustedKeys, requireSignature: true },
      identity: {
        secretKey: generateSecretKey("larder.world"),
        priority: 30,
        ownNames: new OwnNames([this.name]),
        usesTls: false,
        tokens: world.takesUploads ? [WRITE_TOKEN] : [],
      },
      telemetry: {
        log,
        ...{ problems, metrics: this.metrics },
        members: {
          board: this.#board(remote),
          host: this.name,
          url: `http://${this.name}`,
          isShared: true,
        },
        hasMetricsRoute: false,
        countsRequests: false,
        tracer: undefined,
      },
      fetching: {
        negativeTtlMs: world.negativeTtlMs ?? 60_000,
        narinfoRefreshMs: 24 * 3_600_000,
        verifyThreads: 1,
        recompress: world.encoder && { level: 9, encoder: world.encoder },
        prefetch: world.prefetches ? { narBytesMax: 100_000 } : undefined,
      },
      writes: {
        allowDelete: true,
        uploads: { allowed: world.takesUploads ?? false, keys: [], requireSignature: false },
      },
      nowMs: () => clock.wallMs(),
      runtime: { net: this.#net, threads: this.#threads },
    };
    const app = buildApp(parts);
    await app.space.open();
    await app.history.start();
    await app.receive(spool.takeReceived());
    const probed = app.probeUpstreams();
    if (!world.isUnprobed) await probed;
    this.#app = app;
    network.hosts.set(this.name, this);
    this.#chores = startChores({
      stores: {
        settle: () => recover(settling),
        probe: async () => {
          await watched?.probe(() => tryStoring({ metadata, nars, folder: spool.path }, 0));
        },
        changes: this.#feed(),
        ...{ nowMs: parts.nowMs, spool, metadata },
      },
      app,
      schedule: undefined,
      retentionMs: 180 * 86_400_000,
      storage: this.#storage,
      metrics: this.metrics,
      log,
    });
  }

  #listen(): Listening {
    if (this.#app === undefined) throw new TypeError("connection refused");
    const log = createLogger("info", { write: (line) => this.#noteLine(line) });
    const server = new HttpServer(
      { ...this.#app.pipeline, log, nowMs: () => clock.wallMs() },
      { connectionsMax: 1_000, perAddressMax: Infinity },
    );
    const listener = new PlayedListener();
    return { server, listener, accepting: server.serve(listener) };
  }

  #noteLine(line: string): void {
    this.#world.note(this.name, line.trimEnd());
  }

  #feed(): ChangeFeed {
    const listeners = this.#listeners;
    return {
      subscribe(listener) {
        const told = () => listener("all");
        listeners.add(told);
        return { [Symbol.asyncDispose]: async () => void listeners.delete(told) };
      },
    };
  }

  /** The shared rows: its calls belong to the world, and end with this process. */
  #database(remote: PostgresClient | undefined): SqliteMetadataStore {
    const told = (name: string | symbol) => {
      if (WRITES.has(String(name))) this.#world.changed(this);
    };
    const bound = this.#bound(this.#world.database, told);
    return remote?.of(bound) ?? this.#failing(bound, (name) => this.#databaseError(name));
  }

  #board(remote: PostgresClient | undefined): MemberBoard {
    const board = this.#bound(this.#world.database.board, () => undefined);
    return remote?.of(board) ?? this.#failing(board, (name) => this.#databaseError(name));
  }

  #databaseError(operation: string): Error | undefined {
    const { database } = this.#world.outages ?? {};
    const isWrite = !/^(find|stock|members|databaseSize|sourcesOf|narinfosOf|narOfFormerName)/.test(
      operation,
    );
    if (database === undefined || !(database.ofReads || isWrite)) return undefined;
    return new Error(database.error);
  }

  #nars(): NarStore {
    const store = this.#bound(new LocalNarStore(`${this.#storage}/nar`), () => undefined);
    return this.#failing(store, (name) => {
      const { store } = this.#world.outages ?? {};
      if (!store?.operations.some((operation) => operation === name)) return undefined;
      const failure = new Failure("unavailable", `Cannot ${name} NAR file: the S3 store is away`);
      return clock.pause(store.afterMs).then(() => failure);
    });
  }

  /** The port, whose calls fail where `failureOf` says so. */
  #failing<Port extends object>(
    port: Port,
    failureOf: (name: string) => Error | Promise<Error> | undefined,
  ): Port {
    if (this.#world.outages === undefined) return port;
    return new Proxy(port, {
      get: (target, name) => {
        const member: unknown = Reflect.get(target, name);
        if (typeof member !== "function" || typeof name === "symbol") return member;
        return (...args: unknown[]) => {
          const failure = failureOf(name);
          if (failure === undefined) return member.apply(target, args);
          const failing = Promise.resolve(failure).then((error) => Promise.reject(error));
          return name === "list" ? failingList(failing) : failing;
        };
      },
    });
  }

  /** The port of this process: once that is dead, no call of it begins or returns. */
  #bound<Port extends object>(port: Port, called: (name: string | symbol) => void): Port {
    const { owner } = this;
    return new Proxy(port, {
      get: (target, name) => {
        const member: unknown = Reflect.get(target, name);
        if (typeof member !== "function") return member;
        return (...args: unknown[]) => {
          if (!owner.isDead) this.#world.calling?.(String(name));
          if (owner.isDead) return new Promise(() => undefined);
          const result: unknown = asOwner(undefined, () => member.apply(target, args));
          called(name);
          if (!(result instanceof Promise)) return result;
          return result.then(
            (value) => owner.isDead ? new Promise(() => undefined) : value,
            (error) => owner.isDead ? new Promise(() => undefined) : Promise.reject(error),
          );
        };
      },
    });
  }
}

async function* failingList(failing: Promise<never>): AsyncGenerator<never> {
  yield await failing;
}

/** Calls of the database that other members notice. */
const WRITES: ReadonlySet<string> = new Set(["apply", "pin", "unpin", "sweepRows"]);

/** The body of an answer; `release` is called once it is sent, or its reader has left. */
function released(
  body: Uint8Array | ReadableStream<Uint8Array>,
  release: (isWhole: boolean) => void = () => undefined,
): ReadableStream<Uint8Array> {
  const reader = (body instanceof Uint8Array ? ReadableStream.from([body]) : body).getReader();
  return new ReadableStream({
    async pull(controller) {
      try {
        const { value, done } = await reader.read();
        if (!done) return controller.enqueue(value);
        release(true);
        controller.close();
      } catch (error) {
        release(false);
        throw error;
      }
    },
    async cancel(reason) {
      release(false);
      await reader.cancel(reason);
    },
  }, { highWaterMark: 0 });
}
