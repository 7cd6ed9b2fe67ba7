import assert from "node:assert/strict";
import type { DatabaseSync } from "node:sqlite";
import { openDatabase } from "../../src/metadata/sqlite/connection.ts";
import { SqliteMetadataStore } from "../../src/metadata/sqlite/sqlite_metadata_store.ts";
import { CacheFolder } from "../../src/cache/export/cache_folder.ts";
import { exportClosures, type NotExported } from "../../src/cache/export/export_closures.ts";
import { createSigner } from "../../src/cache/narinfo/serve_narinfo.ts";
import { fsck, type FsckProblem } from "../../src/cache/reconcile/fsck.ts";
import type { HandOver } from "../../src/http/routes/nar.ts";
import type { Metrics } from "../../src/telemetry/metrics.ts";
import { clock, playRuntime } from "../../src/runtime/current.ts";
import { LocalNarStore } from "../../src/storage/local/local_nar_store.ts";
import { RawConnection } from "../support/raw_http.ts";
import { makeStoreObject, type StoreObject } from "../support/store_object.ts";
import { StubEncoder } from "../support/stub_encoder.ts";
import { MemoryFiles } from "./memory_files.ts";
import type { PlayedLocks } from "./played_locks.ts";
import { type PlayedAnswer, PlayedNetwork, type PlayedRequest } from "./played_net.ts";
import { decodersAtOnce } from "./played_decoders.ts";
import { SeededDice } from "./seeded_dice.ts";
import { asOwner, VirtualClock } from "./virtual_clock.ts";
import { NARS, type PlayedOutages, type SharedWorld, TEMP, WorldMember } from "./world_member.ts";
import { narFilesOf, type SceneCompression, type WorldObject } from "./world_objects.ts";
import { WorldUpstream } from "./world_upstream.ts";

/** Changes an honest answer of an upstream before it leaves. */
export type Alteration = (answer: PlayedAnswer, request: PlayedRequest) => PlayedAnswer;

/** How an upstream behaves. */
export interface Behaviour {
  /** "refused": nobody listens; "silent": packets are lost. Default: neither. */
  readonly state?: "refused" | "silent";
  /** Of its NARs. Default: none. */
  readonly nar?: Alteration;
  /** Of its narinfos. Default: none. */
  readonly narinfo?: Alteration;
  /** Of everything else. Default: none. */
  readonly document?: Alteration;
}

export interface SceneUpstream extends Behaviour {
  /** Default: all of the scene. */
  readonly objects?: readonly StoreObject[];
  /** Default: by place. */
  readonly priority?: number;
  /** Default: "none". */
  readonly compression?: SceneCompression;
}

export interface SceneOptions {
  readonly upstreams: readonly SceneUpstream[];
  /** Default: one of 600 kB, which is sent in pieces. */
  readonly objects?: readonly StoreObject[];
  readonly limitBytes?: number;
  readonly prefetches?: boolean;
  readonly timeouts?: SharedWorld["timeouts"];
  readonly negativeTtlMs?: number;
  readonly takesUploads?: boolean;
  readonly isUnprobed?: boolean;
  /** A file for the rows, which another process may lock. Default: they are in memory. */
  readonly databasePath?: string;
  /** The store is on another machine. Default: it is this one's. */
  readonly outages?: PlayedOutages;
  /** Default: there are none. */
  readonly locks?: PlayedLocks;
  /** How many members share the rows and the files. Clients are with the first. Default: one. */
  readonly memberCount?: number;
  /** Its members keep NAR files in zstd. Default: as they came. */
  readonly recompresses?: boolean;
  /** Another larder, whose upstream this one is: `BEHIND`. */
  readonly hasOneBehind?: boolean;
  /** How another server sends its stored files. Default: it sends them itself. */
  readonly handOver?: HandOver;
}

/** A response as its client saw it; times count from the request, in virtual milliseconds. */
export interface Seen {
  readonly status: number;
  readonly headers: Headers;
  readonly bytes: Uint8Array;
  /** False where the connection broke within the body. */
  readonly isWhole: boolean;
  readonly headMs: number;
  readonly endMs: number;
}

export interface LogLine {
  readonly level: string;
  readonly msg: string;
  readonly [fact: string]: unknown;
}

/** A scene that is not over then never is: something waits for what virtual time cannot bring. */
const SCENE_MAX_MS = 4 * 3_600_000;

/** The object of scenes that name none. */
export const OBJECT: StoreObject = makeStoreObject({ name: "big-1.0", size: 600_000 });

/**
 * Registers a scene on virtual time: one larder, its upstreams and clients. Requests take no time
 * on their way. So whatever takes time is a wait of larder's or of an upstream's, and is exact.
 */
export function sceneTest(
  name: string,
  options: SceneOptions,
  play: (scene: Scene) => Promise<void>,
): void {
  Deno.test(name, () => playScene(options, play));
}

/** As `sceneTest`, within a test. */
export async function playScene<Result>(
  options: SceneOptions,
  play: (scene: Scene) => Promise<Result>,
): Promise<Result> {
  using _decoders = await decodersAtOnce();
  const played = new VirtualClock();
  const dice = new SeededDice(1);
  const files = new MemoryFiles({ capacityBytes: 1e12 });
  using _runtime = playRuntime({ clock: played, dice, files });
  for (const folder of [NARS, TEMP, `${STORAGE_BEHIND}/nar`, `${STORAGE_BEHIND}/tmp`]) {
    files.mkdirSync(folder, { recursive: true });
  }
  const { objects = [OBJECT] } = options;
  const compressions = options.upstreams.map(({ compression = "none" }) => compression);
  const all = await Promise.all(objects.map((one) => narFilesOf(one, compressions)));
  const database = await openDatabase(options.databasePath ?? ":memory:");
  const rows = new SqliteMetadataStore(database, () => clock.wallMs());
  const rowsBehind = options.hasOneBehind ? await emptyRows() : undefined;
  const scene = new Scene(options, { files, dice, objects: all, rows, rowsBehind, database });
  // Whatever ran before may have left its owner, whose timers are dead.
  return await asOwner(undefined, () => played.play(scene.run(play), SCENE_MAX_MS));
}

async function emptyRows(): Promise<SqliteMetadataStore> {
  return new SqliteMetadataStore(await openDatabase(":memory:"), () => clock.wallMs());
}

interface SceneParts {
  readonly files: MemoryFiles;
  readonly dice: SeededDice;
  readonly objects: readonly WorldObject[];
  readonly rows: SqliteMetadataStore;
  /** Of the larder behind that of the scene. */
  readonly rowsBehind: SqliteMetadataStore | undefined;
  readonly database: DatabaseSync;
}

const MEMBER = "larder";

/** The name of the larder behind that of the scene. */
export const BEHIND = "behind";
const STORAGE_BEHIND = "/behind";

const START_PAUSE_MS = 1_700;

export class Scene {
  readonly upstreams: readonly WorldUpstream[];
  readonly log: LogLine[] = [];
  readonly files: MemoryFiles;
  readonly database: DatabaseSync;
  /** Of all members. */
  readonly encoder = new StubEncoder();
  readonly #network = new PlayedNetwork(() => 0);
  #calling: (name: string) => void = () => undefined;
  #world: SharedWorld;
  #member: WorldMember;
  readonly #others: readonly WorldMember[];
  #behind: WorldMember | undefined;
  #rowsBehind: SqliteMetadataStore | undefined;

  constructor(options: SceneOptions, parts: SceneParts) {
    const { files, dice, objects, rows } = parts;
    this.files = files;
    this.database = parts.database;
    this.upstreams = options.upstreams.map((given, at) => {
      const own = objects.filter(({ object }) => given.objects?.includes(object) ?? true);
      const upstream = new WorldUpstream(`u${at}`, own, {
        compression: given.compression ?? "none",
        dice,
      });
      this.#network.hosts.set(upstream.name, upstream);
      return upstream;
    });
    for (const [at, behaviour] of options.upstreams.entries()) this.behave(at, behaviour);
    const world: SharedWorld = {
      network: this.#network,
      files,
      database: rows,
      locks: options.locks,
      ...options.outages && { outages: options.outages },
      ...options.handOver && { handOver: options.handOver },
      limitBytes: options.limitBytes ?? Infinity,
      upstreams: this.upstreams.map(({ url }, at) => (
        { url, priority: options.upstreams[at]?.priority ?? at + 1 }
      )),
      trustedKeys: this.upstreams.map(({ publicKey }) => publicKey),
      prefetches: options.prefetches ?? false,
      takesUploads: options.takesUploads ?? false,
      isUnprobed: options.isUnprobed ?? false,
      ...options.timeouts && { timeouts: options.timeouts },
      ...options.negativeTtlMs !== undefined && { negativeTtlMs: options.negativeTtlMs },
      calling: (name) => this.#calling(name),
      encoder: options.recompresses ? this.encoder : undefined,
      changed: (by) => {
        const others = [this.#member, ...this.#others].filter((one) => one !== by);
        if (others.length > 0) clock.after(50, () => others.forEach((one) => one.rowsChanged()));
      },
      note: (_who, line) => void this.log.push(JSON.parse(line)),
    };
    this.#world = world;
    this.#rowsBehind = parts.rowsBehind;
    this.#member = new WorldMember(MEMBER, world);
    this.#behind = parts.rowsBehind && this.#memberBehind(parts.rowsBehind);
    const { memberCount = 1 } = options;
    this.#others = Array.from({ length: memberCount - 1 }, (_, at) => (
      new WorldMember(`${MEMBER}-${at + 2}`, world)
    ));
  }

  #memberBehind(database: SqliteMetadataStore): WorldMember {
    return new WorldMember(BEHIND, {
      ...this.#world,
      ...{ database, storage: STORAGE_BEHIND, encoder: undefined },
      upstreams: [{ url: `http://${MEMBER}` }],
    });
  }

  /** The names of all members. */
  get members(): readonly string[] {
    return [this.#member, ...this.#others].map(({ name }) => name);
  }

  /** What the member counts. */
  get metrics(): Metrics {
    return this.#member.metrics;
  }

  /** Changes how the upstream at a place behaves from now on. */
  behave(at: number, { state, nar, narinfo, document }: Behaviour = {}): void {
    const upstream = this.upstreams[at];
    if (upstream === undefined) throw new Error(`Cannot find upstream ${at}`);
    upstream.fault = state;
    upstream.alters = (honest, request) => {
      const { pathname } = request.url;
      const answer = { ...honest, rate: Infinity };
      const alters = pathname.startsWith("/nar/")
        ? nar
        : pathname.endsWith(".narinfo")
        ? narinfo
        : document;
      return alters?.(answer, request) ?? answer;
    };
  }

  async run<Result>(play: (scene: Scene) => Promise<Result>): Promise<Result> {
    await this.#member.start();
    for (const other of this.#others) {
      // Their heartbeats come at different times.
      await clock.pause(START_PAUSE_MS);
      await other.start();
    }
    await this.#behind?.start();
    const result = await play(this);
    const all = [this.#behind, this.#member, ...this.#others];
    for (const member of all) await member?.stop();
    assert.deepEqual(this.#network.open, [], "an exchange is left");
    return result;
  }

  get nowMs(): number {
    return clock.nowMs();
  }

  /** Requests a path, and reads what comes to its end. `signal`: the client leaves. */
  async request(
    method: "GET" | "HEAD",
    path: string,
    headers: HeadersInit = {},
    signal: AbortSignal = new AbortController().signal,
    member = MEMBER,
  ): Promise<Seen> {
    const startedAtMs = clock.nowMs();
    const url = new URL(`http://${member}${path}`);
    const response = await this.#network.send("client", {
      ...{ method, url, signal },
      headers: new Headers(headers),
    });
    const headMs = clock.nowMs() - startedAtMs;
    const pieces: Uint8Array<ArrayBuffer>[] = [];
    let isWhole = true;
    try {
      for await (const piece of response.body ?? []) pieces.push(piece);
    } catch {
      isWhole = false;
    }
    const { status } = response;
    const bytes = new Uint8Array(await new Blob(pieces).arrayBuffer());
    const endMs = clock.nowMs() - startedAtMs;
    return { ...{ status, bytes, isWhole, headMs, endMs }, headers: response.headers };
  }

  /** The first bytes of an answer, whose client then leaves. */
  async begin(path: string, byteLength: number, member = MEMBER): Promise<Uint8Array> {
    const leaves = new AbortController();
    const url = new URL(`http://${member}${path}`);
    const { signal } = leaves;
    const order = { method: "GET", url, signal, headers: new Headers() } as const;
    const { body, status } = await this.#network.send("client", order);
    assert.equal(status, 200);
    const begun = new Uint8Array(byteLength);
    let received = 0;
    for await (const piece of body ?? []) {
      const part = piece.subarray(0, byteLength - received);
      begun.set(part, received);
      received += part.length;
      if (received === byteLength) break;
    }
    leaves.abort(new TypeError("left"));
    assert.equal(received, byteLength, "so many bytes came");
    return begun;
  }

  /** What fsck finds, which reads each file. */
  async fsck(member = MEMBER): Promise<readonly FsckProblem[]> {
    const isBehind = member === BEHIND;
    const metadata = isBehind && this.#rowsBehind || this.#world.database;
    const nars = new LocalNarStore(isBehind ? `${STORAGE_BEHIND}/nar` : NARS);
    const problems: FsckProblem[] = [];
    const unasked = () => Promise.reject(new Error("fsck repairs nothing here"));
    const { signal } = new AbortController();
    await fsck(
      { metadata, nars, repairer: { repair: unasked, removeWrong: unasked }, signal },
      { verifyContent: true, repair: false },
      { problem: (problem) => problems.push(problem), progress() {} },
    );
    return problems;
  }

  /** Writes the closure of an object as a binary cache; the text of its narinfo there. */
  async exportTo(folder: string, { storePathHash }: StoreObject = OBJECT): Promise<string> {
    const { database: metadata } = this.#world;
    const { signal } = new AbortController();
    const writing = { signer: createSigner(undefined), folder: new CacheFolder(folder) };
    const missing = ({ name, problem }: NotExported) => assert.fail(`${name}: ${problem}`);
    await exportClosures(
      { metadata, nars: new LocalNarStore(NARS), ...writing },
      [storePathHash],
      { progress() {}, missing },
      signal,
    );
    return await this.files.readTextFile(`${folder}/${storePathHash}.narinfo`);
  }

  /** A connection to larder's HTTP server, on which the test decides about every byte. */
  connect(): RawConnection {
    return new RawConnection(this.#member.connect());
  }

  /** Resolves when no download is running. */
  async downloadsOver(): Promise<void> {
    await this.#behind?.downloadsOver();
    await this.#member.downloadsOver();
  }

  /** Does as the larder each minute, where it recompresses. */
  recompress(): Promise<void> {
    return this.#member.recompress();
  }

  /** Removes what is kept under a path. */
  async evict(path: string, member = MEMBER): Promise<void> {
    const all = [this.#behind, this.#member];
    const status = await all.find((one) => one?.name === member)?.operate("DELETE", path);
    assert.equal(status, "200", `DELETE ${path}`);
  }

  /** The larder starts again with an empty database, beside the files of the former one. */
  async loseRows(member = MEMBER): Promise<void> {
    if (member === BEHIND) {
      await this.#behind?.stop();
      this.#rowsBehind = await emptyRows();
      this.#behind = this.#memberBehind(this.#rowsBehind);
      return await this.#behind.start();
    }
    await this.#member.stop();
    this.#world = { ...this.#world, database: await emptyRows() };
    await this.startAgain();
  }

  /** The larder's process ends before the call at this place of its database or its store. */
  killAtCall(at: number): void {
    let count = 0;
    this.#calling = () => {
      if (count++ === at) this.#member.kill();
    };
  }

  /** False once its process was killed. */
  get isUp(): boolean {
    return this.#member.isUp;
  }

  /** Another process of the larder, whose former one has ended. */
  async startAgain(): Promise<void> {
    this.#calling = () => undefined;
    this.#member = new WorldMember(MEMBER, this.#world);
    await this.#member.start();
  }

  get(path: string, headers?: HeadersInit): Promise<Seen> {
    return this.request("GET", path, headers);
  }

  narinfo({ storePathHash }: StoreObject = OBJECT, member = MEMBER): Promise<Seen> {
    return this.request("GET", `/${storePathHash}.narinfo`, {}, undefined, member);
  }

  /** larder's path of a NAR, by its narinfo. */
  async narPath(object: StoreObject = OBJECT, member = MEMBER): Promise<string> {
    const { status, bytes } = await this.narinfo(object, member);
    assert.equal(status, 200, "the narinfo is served");
    return `/${/^URL: (.*)$/m.exec(new TextDecoder().decode(bytes))?.[1]}`;
  }

  /** The NAR by its narinfo, whose request does not count. */
  async nar(object: StoreObject = OBJECT): Promise<Seen> {
    return await this.get(await this.narPath(object));
  }

  /** Requests that each upstream got for paths like this. */
  counts(path: RegExp): readonly number[] {
    return this.upstreams.map((upstream) => this.requestsOf(upstream, path).length);
  }

  /** Exchanges that are not over: larder's with its upstreams, and clients' with larder. */
  get openExchanges(): number {
    return this.#network.open.length;
  }

  requestsOf({ requests }: WorldUpstream, path: RegExp): WorldUpstream["requests"] {
    return requests.filter((request) => path.test(request.path));
  }

  logged(msg: string): readonly LogLine[] {
    return this.log.filter((line) => line.msg === msg);
  }

  pause(ms: number): Promise<void> {
    return clock.pause(ms);
  }
}

/** No answer ever, over a connection that stands. */
export const never: Alteration = (answer) => ({ ...answer, delayMs: Infinity });

export const after = (delayMs: number): Alteration => (answer) => ({ ...answer, delayMs });

export const status = (code: number, headers: Record<string, string> = {}): Alteration => () => (
  { status: code, headers }
);

/** The connection breaks before the head of an answer. */
export const reset: Alteration = () => {
  throw new TypeError("error sending request: connection reset");
};

/** The connection breaks at this byte of the file. */
export const cutAt = (at: number): Alteration => (answer, { headers }) => (
  { ...answer, cutAt: at - startOf(headers) }
);

/** The body stops at this byte of the file. */
export const stallAt = (at: number): Alteration => (answer, { headers }) => (
  { ...answer, stallAt: at - startOf(headers) }
);

/** Without a length, the body ends at this byte of the file as if it were whole. */
export const endAt = (at: number): Alteration => (answer, request) => ({
  ...inChunks(answer, request),
  endAt: at - startOf(request.headers),
});

/** Another body in place of the answer's. */
export const text = (content: string, code = 200): Alteration => () => {
  const body = new TextEncoder().encode(content);
  return { status: code, headers: { "content-length": String(body.length) }, body };
};

/** Other lines in a narinfo; nothing is signed again. */
export const rewritten = (change: (lines: string) => string): Alteration => (answer, request) => {
  const { body } = answer;
  if (!(body instanceof Uint8Array)) return answer;
  return text(change(new TextDecoder().decode(body)))(answer, request);
};

/** So many bytes of the body in a second. */
export const atRate = (rate: number): Alteration => (answer) => ({ ...answer, rate });

/** A body without its length. */
export const inChunks: Alteration = ({ headers = {}, ...answer }) => {
  const { "content-length": _, ...others } = headers;
  return { ...answer, headers: others };
};

/** One alteration of the same answer behind the other. */
export const inOrder = (...all: readonly Alteration[]): Alteration => (answer, request) => (
  all.reduce((altered, alter) => alter(altered, request), answer)
);

/** One alteration for each request, in order, and then the last one. */
export function inTurn(first: Alteration, ...others: readonly Alteration[]): Alteration {
  const left = [first, ...others];
  return (answer, request) => {
    const [next = first] = left.length > 1 ? left.splice(0, 1) : left;
    return next(answer, request);
  };
}

/** The first byte that a request asks for. */
export function startOf(headers: Headers): number {
  return Number(/^bytes=(\d+)-$/.exec(headers.get("range") ?? "")?.[1] ?? 0);
}
