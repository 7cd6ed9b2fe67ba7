import { SizeLimit } from "../../src/space/size_limit.ts";
import { SYSTEM_NET } from "../../src/runtime/system_net.ts";
import { OwnNames } from "../../src/http/access/own_names.ts";
import type {
  AppParts,
  FetchingParts,
  IdentityParts,
  StoreParts,
  TelemetryParts,
  UpstreamParts,
  WriteParts,
} from "../../src/app/app_parts.ts";
import { type MetadataBackEnd, openMetadata } from "../../src/app/back_ends/metadata_back_end.ts";
import { type NarBackEnd, openNars } from "../../src/app/back_ends/nar_back_end.ts";
import { type App, buildApp } from "../../src/app/build_app.ts";
import type { HttpServerDeps, HttpServerLimits } from "../../src/http/server/http_server.ts";
import { around } from "../../src/base/around.ts";
import { arrivalsOf, type Changed } from "../../src/metadata/change_feed.ts";
import type { Change } from "../../src/metadata/metadata_store.ts";
import type { StorePathHash } from "../../src/nix/store_path.ts";
import { generateSecretKey, parsePublicKey, type PublicKey } from "../../src/nix/signature.ts";
import { narNameOf } from "../../src/nix/stored_name.ts";
import type { NarStore } from "../../src/storage/nar_store.ts";
import { createLogger } from "../../src/telemetry/logger.ts";
import { Metrics } from "../../src/telemetry/metrics.ts";
import { RecentProblems } from "../../src/telemetry/recent_problems.ts";
import type { HttpUpstreamSettings } from "../../src/upstream/http/upstream_fetch.ts";
import { bytesBelow } from "./bytes_below.ts";
import type { FakeUpstream } from "./fake_upstream.ts";
import { isInBucket, storePlacesOf } from "./shared_servers.ts";
import { isOfSlowness } from "./slow_machine.ts";
import { narFilesIn, storedFileOf } from "./storage_look.ts";
import { PlayedThreads } from "./played_threads.ts";
import { tempFolder } from "./temp_folder.ts";
import { TestListener } from "./test_listener.ts";

/**
 * After a third of it larder requests a NAR from the next upstream, too. No answer here is so late,
 * however busy the machine is.
 */
const LONG_TIMEOUT_MS = 30_000;

/** The parts of an app without their groups. */
type FlatParts =
  & Pick<AppParts, "nowMs" | "runtime">
  & WriteParts
  & FetchingParts
  & StoreParts
  & Omit<UpstreamParts, "settings" | "trace">
  & IdentityParts
  & TelemetryParts;

export interface TestCacheOptions extends Partial<FlatParts> {
  readonly upstreamTrace?: UpstreamParts["trace"];
  /** In order of preference; their keys are trusted unless `trustedKeys` is given. */
  readonly upstreams: readonly (FakeUpstream | string)[];
  /** Default 30,000. */
  readonly timeoutMs?: number;
  /** The Authorization header for every upstream. */
  readonly authorization?: string;
  /** In place of `timeoutMs`, one by one. */
  readonly limits?: Partial<Pick<HttpUpstreamSettings, "dialTimeoutMs" | "headerTimeoutMs">>;
  /** In place of `timeoutMs`, for the silence before and within a body. */
  readonly idleTimeoutMs?: number;
  /** Of the NAR files; default: none. */
  readonly limitBytes?: number;
  /** By upstream. Where one is absent, larder requests it from the upstream. */
  readonly priorities?: readonly (number | undefined)[];
}

interface TestStores {
  readonly metadata: MetadataBackEnd;
  readonly narBackEnd: NarBackEnd;
}

const SILENT = createLogger("error", { write() {} });

export interface TestLogLine {
  readonly level: string;
  readonly msg: string;
  readonly [fact: string]: unknown;
}

const timesOut = (ms: number) => ({
  dialTimeoutMs: ms,
  headerTimeoutMs: ms,
  idleTimeoutMs: ms,
});

/** The built app over real stores in a temporary folder, without a socket. */
export class TestCache implements AsyncDisposable {
  readonly log: TestLogLine[] = [];
  readonly secretKey = generateSecretKey("larder.test");
  readonly metadata: MetadataBackEnd;
  readonly nars: NarStore;
  readonly folder: ReturnType<typeof tempFolder>;
  readonly #narBackEnd: NarBackEnd;
  readonly #log = createLogger("debug", { write: (line) => void this.log.push(JSON.parse(line)) });
  readonly #app: App;

  private constructor(
    folder: ReturnType<typeof tempFolder>,
    { metadata, narBackEnd }: TestStores,
    options: TestCacheOptions,
  ) {
    const { upstreams, timeoutMs = LONG_TIMEOUT_MS, limits, priorities = [], ...more } = options;
    const { limitBytes = Infinity, authorization, idleTimeoutMs, ...others } = more;
    const { upstreamTrace, ...parts } = others;
    const { nars, graceMs } = narBackEnd;
    this.folder = folder;
    this.#narBackEnd = narBackEnd;
    this.metadata = metadata;
    this.nars = nars;
    Deno.mkdirSync(this.tempPath);
    const urls = upstreams.map((upstream) =>
      typeof upstream === "string" ? upstream : upstream.url
    );
    const problems = new RecentProblems(Date.now);
    const settings = urls.map((url, index) => ({
      url,
      ...timesOut(timeoutMs),
      ...limits,
      ...(idleTimeoutMs === undefined ? {} : { idleTimeoutMs }),
      userAgent: "larder-test",
      ...(authorization === undefined ? {} : { authorization }),
      ...(priorities[index] === undefined ? {} : { priority: priorities[index] }),
    }));
    let onArrival: (arrived: Changed) => void = () => undefined;
    const flat: FlatParts = {
      metadata: around(metadata, {
        async apply(call, [changes]) {
          const written = await call();
          onArrival(arrivalsOf(changes as readonly Change[]));
          return written;
        },
      }),
      whenArrived: (on) => void (onArrival = on),
      nars,
      spool: { path: this.tempPath },
      caCertificates: [],
      trustedKeys: keysOf(upstreams),
      requireSignature: true,
      secretKey: this.secretKey,
      priority: 30,
      negativeTtlMs: 60_000,
      narinfoRefreshMs: 24 * 3_600_000,
      verifyThreads: 1,
      space: { limit: SizeLimit.of(limitBytes), owner: "test", graceMs },
      // Tests count requests to an upstream; those of prefetch turn it on.
      prefetch: undefined,
      allowDelete: false,
      uploads: { allowed: false, keys: [], requireSignature: false },
      log: problems.watch(this.#log),
      problems,
      metrics: new Metrics({ domains: { upstreams: urls } }),
      hasMetricsRoute: true,
      countsRequests: true,
      ownNames: new OwnNames(["cache.test"]),
      usesTls: false,
      tokens: [],
      tracer: undefined,
      nowMs: Date.now,
      runtime: { net: SYSTEM_NET, threads: new PlayedThreads({ net: SYSTEM_NET }) },
      ...parts,
    };
    this.#app = buildApp({
      ...flat,
      stores: flat,
      fetching: flat,
      writes: flat,
      upstream: { ...flat, settings, trace: upstreamTrace },
      identity: flat,
      telemetry: flat,
    });
  }

  static async open(options: TestCacheOptions): Promise<TestCache> {
    const folder = tempFolder();
    const cache = new TestCache(folder, await openStores(folder.path), options);
    await cache.space.open();
    return cache;
  }

  get space(): App["space"] {
    return this.#app.space;
  }

  /** Names of the NARs that are being read or downloaded. */
  get beingRead(): ReadonlySet<string> {
    return this.#app.reads.names();
  }

  get tempPath(): string {
    return `${this.folder.path}/tmp`;
  }

  /** A file in the place of the folder of partial files: larder cannot make any, until it is gone. */
  blockTempFolder(): void {
    Deno.removeSync(this.tempPath, { recursive: true });
    Deno.writeTextFileSync(this.tempPath, "");
  }

  async request(
    method: string,
    path: string,
    headers: HeadersInit = {},
    { peer = "127.0.0.1", signal }: { readonly peer?: string; readonly signal?: AbortSignal } = {},
  ): Promise<Response> {
    const init = { method, headers, ...(signal === undefined ? {} : { signal }) };
    const request = new Request(`http://cache.test${path}`, init);
    const answer = await this.#app.pipeline.handle(Object.assign(request, { peer }));
    return new Response(answer.body, { status: answer.status, headers: [...answer.headers] });
  }

  /** Sends a text by POST. */
  async post(path: string, body: string, headers: HeadersInit = {}): Promise<Response> {
    const request = new Request(`http://cache.test${path}`, { method: "POST", body, headers });
    const answer = await this.#app.pipeline.handle(Object.assign(request, { peer: "127.0.0.1" }));
    return new Response(answer.body, { status: answer.status, headers: [...answer.headers] });
  }

  /** Sends a body by PUT, with its length; a stream without. */
  async put(
    path: string,
    body: BodyInit,
    headers: HeadersInit = {},
    { peer = "127.0.0.1", signal }: { readonly peer?: string; readonly signal?: AbortSignal } = {},
  ): Promise<Response> {
    const length = body instanceof ReadableStream ? undefined : (await new Response(body).bytes())
      .length;
    const all = new Headers(headers);
    if (length !== undefined) all.set("content-length", String(length));
    const init = { method: "PUT", headers: all, body, ...(signal === undefined ? {} : { signal }) };
    const request = new Request(`http://cache.test${path}`, init);
    const answer = await this.#app.pipeline.handle(Object.assign(request, { peer }));
    return new Response(answer.body, { status: answer.status, headers: [...answer.headers] });
  }

  /** Removes the uploaded NARs whose narinfo has not come in time. */
  expireUploads(): Promise<void> {
    return this.#app.expireUploads();
  }

  get(path: string, headers?: HeadersInit): Promise<Response> {
    return this.request("GET", path, headers);
  }

  head(path: string, headers?: HeadersInit): Promise<Response> {
    return this.request("HEAD", path, headers);
  }

  /** The narinfo's text; throws unless it is served. */
  async narinfo(storePathHash: string, headers?: HeadersInit): Promise<string> {
    const response = await this.get(`/${storePathHash}.narinfo`, headers);
    const text = await response.text();
    if (response.status === 200) return text;
    throw new Error(`narinfo answered ${response.status}`);
  }

  /** Our path of a narinfo's NAR. */
  async narPath(storePathHash: string, headers?: HeadersInit): Promise<string> {
    return `/${/^URL: (.*)$/m.exec(await this.narinfo(storePathHash, headers))?.[1]}`;
  }

  /** Reads the stored past, as the server does when it starts. */
  startHistory(): Promise<void> {
    return this.#app.history.start();
  }

  /** Does as the server when it starts. */
  probeUpstreams(): void {
    this.#app.probeUpstreams();
  }

  /** Resolves when no download is running: every file that larder keeps is then kept. */
  downloadsOver(): Promise<void> {
    return this.#app.downloadsOver();
  }

  /** Does as the server every few seconds. */
  reportToMembers(): Promise<void> {
    return this.#app.reportToMembers();
  }

  /** Does as the server when it begins to stop. */
  stopping(): void {
    this.#app.stopping();
  }

  /** Resolves when nothing is prefetched that could be by now. */
  prefetchOver(): Promise<void> {
    return this.#app.prefetchOver();
  }

  /** Judges prefetched files without a request in time. */
  expirePrefetched(): void {
    this.#app.expirePrefetched();
  }

  /** Answers a request. */
  get handle(): HttpServerDeps["handle"] {
    return this.#app.pipeline.handle;
  }

  /** Does as the server every minute. */
  lookAtPins(): Promise<void> {
    return this.#app.lookAtPins();
  }

  /** Does as the server every minute, where `recompress` is set. */
  recompress(): Promise<void> {
    return this.#app.recompress();
  }

  /** Serves on a port of 127.0.0.1, for behaviour that only a real connection shows. */
  listen(options: Partial<HttpServerDeps & HttpServerLimits> = {}): TestListener {
    return new TestListener({ ...this.#app.pipeline, log: this.#log, ...options });
  }

  /** Log lines of a level, but those of a slow upstream. */
  logged(level: string): readonly TestLogLine[] {
    return this.log.filter((line) => line.level === level && !isOfSlowness(line));
  }

  /** Names of the NAR files on disk. */
  async narNames(): Promise<readonly string[]> {
    return await Array.fromAsync(this.nars.list(""), ({ at }) => narNameOf(at));
  }

  /** Removes a narinfo and its NAR file, as eviction does. */
  async evict(storePathHash: StorePathHash): Promise<void> {
    const { metadata, nars } = this;
    const row = await metadata.findNarinfo(storePathHash);
    const kept = row && (await metadata.findNar(row.narName))?.kept;
    if (kept === undefined) throw new Error(`${storePathHash} is not kept`);
    const { at } = kept;
    await metadata.apply([
      { kind: "remove-narinfo", storePathHash },
      { kind: "nar-marked", at, owner: "test" },
    ]);
    await nars.remove(at);
    await metadata.apply([{ kind: "nar-gone", at }]);
  }

  /** Where the stored object of a NAR lies. */
  fileOf(narName: string): string {
    return storedFileOf(this.folder.path, narName);
  }

  /** Of all NAR files, growing ones included. */
  bytesOnDisk(): number {
    const stored = [...narFilesIn(this.folder.path).values()];
    // Beside a bucket, growing files are on another disk.
    const growing = isInBucket(this.folder.path) ? 0 : this.growingBytes();
    return stored.reduce((sum, size) => sum + size, growing);
  }

  /** Of the growing files alone. */
  growingBytes(): number {
    return bytesBelow(this.tempPath);
  }

  /** Names of the files in the folder of growing files. */
  growingFiles(): readonly string[] {
    return [...Deno.readDirSync(this.tempPath)].map(({ name }) => name);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#app[Symbol.asyncDispose]();
    await this.metadata[Symbol.asyncDispose]();
    await this.#narBackEnd[Symbol.asyncDispose]();
    this.folder[Symbol.dispose]();
    const odd = this.log.flatMap((line) => Object.keys(line))
      .filter((name) => !FACT_NAME_REGEXP.test(name));
    if (odd.length > 0) throw new Error(`Log: facts are not in snake_case: ${odd.join(", ")}`);
  }
}

/** Those that can be parsed. */
function keysOf(upstreams: TestCacheOptions["upstreams"]): readonly PublicKey[] {
  return upstreams.flatMap((upstream) => {
    try {
      return typeof upstream === "string" ? [] : [parsePublicKey(upstream.publicKey)];
    } catch {
      return [];
    }
  });
}

/** An SQLite database is in memory: tests open many. */
async function openStores(folder: string): Promise<TestStores> {
  const { database, nars } = storePlacesOf(folder);
  const place = database.kind === "sqlite" ? { ...database, path: ":memory:" } : database;
  return { metadata: await openMetadata(place, SILENT), narBackEnd: await openNars(nars) };
}

const FACT_NAME_REGEXP = /^[a-z][a-z0-9]*(_[a-z0-9]+)*$/;
