import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import { openDatabase } from "../../src/metadata/sqlite/connection.ts";
import { SqliteMetadataStore } from "../../src/metadata/sqlite/sqlite_metadata_store.ts";
import { sha256FromDigest } from "../../src/nix/hash.ts";
import { playRuntime } from "../../src/runtime/current.ts";
import { SystemClock } from "../../src/runtime/clock.ts";
import { LocalNarStore } from "../../src/storage/local/local_nar_store.ts";
import type { Dialect, NarFile } from "./dialects.ts";
import { type FakeUpstream, fakeUpstream } from "./fake_upstream.ts";
import { incompressible, makeStoreObject, type StoreObject } from "./store_object.ts";
import { tempFolder } from "./temp_folder.ts";
import { TestCache } from "./test_cache.ts";

/** The first two are one NAR under two store paths; the last is too large to be waited for. */
export const OBJECTS: readonly StoreObject[] = [
  makeStoreObject({ name: "one-1.0", size: 20_000 }),
  makeStoreObject({ name: "twin-1.0", size: 20_000 }),
  makeStoreObject({ name: "two-1.0", size: 30_000, seed: 2 }),
  makeStoreObject({ name: "large-1.0", size: 700_000, seed: 3 }),
];

const LARGE_BYTES_MIN = 512 * 1024;
const GARBAGE = incompressible(5_000, 99);

/** The true values of which a lie is made. */
interface Truth {
  readonly object: StoreObject;
  readonly file: NarFile;
  readonly other: StoreObject;
  readonly otherFile: NarFile;
  /** Another one each time. */
  readonly count: number;
}

/** Lines in place of the honest ones; `undefined` leaves a line out. */
type Lines = Readonly<Record<string, string | undefined>>;

const narinfoLies = {
  "honest": () => ({}),
  "size 1": () => ({ FileSize: "1" }),
  "size + 1": ({ file }) => ({ FileSize: `${file.bytes.length + 1}` }),
  "huge size": () => ({ FileSize: "1000000000000" }),
  "new size": ({ file, count }) => ({ FileSize: `${file.bytes.length + count}` }),
  "no size": () => ({ FileSize: undefined }),
  "no hash": () => ({ FileHash: undefined }),
  "neither": () => ({ FileHash: undefined, FileSize: undefined }),
  "hash of another": ({ otherFile }) => ({ FileHash: `sha256:${otherFile.fileHash}` }),
  "nar hash as hash": ({ object }) => ({ FileHash: `sha256:${object.narHash}` }),
  "nar hash of another": ({ other }) => ({ FileHash: `sha256:${other.narHash}` }),
  "new hash": ({ count }) => ({ FileHash: `sha256:${hashOf(new Uint8Array([count]))}` }),
  "hash of garbage": () => (
    { FileHash: `sha256:${hashOf(GARBAGE)}`, FileSize: `${GARBAGE.length}` }
  ),
  "zstd": () => ({ Compression: "zstd" }),
  "none": () => ({ Compression: "none" }),
} satisfies Readonly<Record<string, (truth: Truth) => Lines>>;

const narLies = {
  "404": () => new Response(null, { status: 404 }),
  "500": () => new Response(null, { status: 500 }),
  "right": ({ file }) => new Response(file.bytes),
  "flipped": ({ file }) => {
    const flipped = file.bytes.slice();
    flipped[5_000] = (flipped[5_000] ?? 0) ^ 1;
    return new Response(flipped);
  },
  "short": ({ file }) => new Response(file.bytes.slice(0, 10_000)),
  "long": ({ file }) => new Response(new Uint8Array([...file.bytes, 1, 2, 3])),
  "empty": () => new Response(new Uint8Array()),
  "garbage": () => new Response(GARBAGE.slice()),
  "another": ({ otherFile }) => new Response(otherFile.bytes),
} satisfies Readonly<Record<string, (truth: Truth) => Response>>;

type NarinfoLie = keyof typeof narinfoLies | "absent" | "no narinfo";
type NarLie = keyof typeof narLies;

export const NARINFO_LIES = ["absent", "no narinfo", ...Object.keys(narinfoLies)] as NarinfoLie[];
export const NAR_LIES = Object.keys(narLies) as NarLie[];

export interface Lie {
  readonly narinfo: NarinfoLie;
  readonly nar: NarLie;
}

/** A client that asks again and again. */
const TRIES_MAX = 5;

/**
 * Nobody here is silent or slow. So no limit of larder's may run out, however busy the machine is:
 * a lie alone decides about each answer.
 */
class PatientClock extends SystemClock {
  override countdown(ms: number, due: () => void): Disposable {
    return super.countdown(PATIENCE * ms, due);
  }
}

const PATIENCE = 300;

/** The facts of a narinfo that a client got. */
interface GivenNarinfo {
  readonly object: StoreObject;
  readonly path: string;
  readonly compression: string;
  readonly fileHash: string | undefined;
  readonly fileSize: number | undefined;
  /** How often larder was made to forget the narinfo before. */
  readonly timesForgotten: number;
}

/** The history of a store object. */
interface Trace {
  timesForgotten: number;
  hasMoved: boolean;
}

/** Honest and lying upstreams, a larder before them, and clients that check every answer. */
export class LiarsWorld implements AsyncDisposable {
  readonly given: GivenNarinfo[] = [];
  readonly #lies = new Map<string, Lie>();
  readonly #folder = tempFolder();
  readonly #nars = new LocalNarStore(`${this.#folder.path}/nar`);
  readonly #metadata: SqliteMetadataStore;
  readonly honest: readonly FakeUpstream[];
  readonly #liars: readonly FakeUpstream[];
  readonly #traces = new Map<StoreObject, Trace>();
  readonly #runtime = playRuntime({ clock: new PatientClock() });
  #cache: TestCache | undefined;
  #count = 0;

  private constructor(
    metadata: SqliteMetadataStore,
    honest: readonly FakeUpstream[],
    liars: readonly FakeUpstream[],
  ) {
    this.#metadata = metadata;
    this.honest = honest;
    this.#liars = liars;
    liars.forEach((liar, index) => {
      liar.onRequest = ({ path }) => this.#answer(index, path);
    });
  }

  /** The liars have these priorities; honest ones have 40 and 41. */
  static async open(dialect: Dialect, liarPriorities: readonly number[]): Promise<LiarsWorld> {
    const honest = [
      await fakeUpstream({ stored: true, objects: OBJECTS, priority: 40 }),
      await fakeUpstream({ stored: true, dialect, priority: 41 }),
    ];
    const liars = [];
    for (const priority of liarPriorities) {
      liars.push(await fakeUpstream({ key: "none", priority }));
    }
    const metadata = new SqliteMetadataStore(await openDatabase(":memory:"));
    const world = new LiarsWorld(metadata, honest, liars);
    await world.restart();
    return world;
  }

  get cache(): TestCache {
    assert.ok(this.#cache !== undefined);
    return this.#cache;
  }

  /** Everything that was in memory is forgotten. */
  async restart(): Promise<void> {
    await this.#cache?.[Symbol.asyncDispose]();
    this.#cache = await TestCache.open({
      upstreams: [...this.#liars, ...this.honest],
      metadata: this.#metadata,
      nars: this.#nars,
      allowDelete: true,
      timeoutMs: 30_000,
      idleTimeoutMs: 300,
    });
  }

  lie(liar: number, object: StoreObject, lie: Lie): void {
    this.#lies.set(`${liar} ${object.storePathHash}`, lie);
  }

  /** The other honest upstream has it from now on, in its own compression. */
  move(object: StoreObject): void {
    const [from, to] = this.honest.toSorted((a, b) => +b.has(object) - +a.has(object));
    to?.add(object);
    from?.remove(object);
    this.#traceOf(object).hasMoved = true;
  }

  /** Both have it. */
  spread(object: StoreObject): void {
    for (const upstream of this.honest) upstream.add(object);
  }

  async evict(object: StoreObject, what: "narinfo" | "nar"): Promise<void> {
    const path = what === "narinfo"
      ? `/${object.storePathHash}.narinfo`
      : this.given.findLast((given) => given.object === object)?.path;
    if (path === undefined) return;
    if (what === "narinfo") this.#traceOf(object).timesForgotten++;
    const answer = await this.cache.request("DELETE", path);
    await answer.body?.cancel();
  }

  /** A client reads a narinfo and remembers its claims. */
  async narinfo(object: StoreObject): Promise<GivenNarinfo> {
    const text = await this.cache.narinfo(object.storePathHash);
    const line = (key: string) => new RegExp(`^${key}: (.*)$`, "m").exec(text)?.[1];
    assert.equal(line("StorePath"), object.storePath);
    assert.equal(line("NarHash"), `sha256:${object.narHash}`);
    assert.equal(line("NarSize"), `${object.narSize}`);
    const given = {
      object,
      path: `/${line("URL")}`,
      compression: line("Compression") ?? "",
      fileHash: line("FileHash")?.slice("sha256:".length),
      fileSize: line("FileSize") === undefined ? undefined : Number(line("FileSize")),
      timesForgotten: this.#traceOf(object).timesForgotten,
    };
    this.given.push(given);
    return given;
  }

  /** A client asks for a NAR that a narinfo led it to. True where it got it. */
  async nar(
    given: GivenNarinfo,
    { from, head }: { readonly from?: number | undefined; readonly head?: boolean } = {},
  ): Promise<boolean> {
    const right = await this.#rightOf(given);
    const start = from === undefined ? undefined : Math.floor(from * (given.fileSize ?? 20_000));
    const headers: HeadersInit = start === undefined ? {} : { range: `bytes=${start}-` };
    const answer = await this.cache.request(head ? "HEAD" : "GET", given.path, headers);
    const isLarge = given.object.narSize >= LARGE_BYTES_MIN;
    const said = `${head ? "HEAD" : "GET"} ${given.path} of ${given.object.baseName} ` +
      `from ${start}: ${answer.status}`;
    const length = answer.headers.get("content-length");
    let body: Uint8Array | undefined;
    try {
      body = await answer.bytes();
    } catch {
      assert.ok(right === undefined || isLarge, `${said}, broken`);
      return false;
    }
    if (answer.status === 404) {
      assert.ok(right === undefined, `${said}, although an honest upstream has it`);
      return false;
    }
    // A narinfo's size is unsigned, or missing. larder knows that of a file that is here. The file
    // hash is unsigned, too: without the narinfo, larder serves the file of that name.
    const files = await this.#filesOf(given);
    const named = await this.#fileNamed(given.fileHash);
    const sizes = [given.fileSize, named?.length, ...files.map((file) => file.length)]
      .filter((size) => size !== undefined);
    if (answer.status === 416) {
      assert.ok(sizes.some((size) => start !== undefined && start >= size), `${said}, of ${sizes}`);
      return false;
    }
    assert.ok(answer.status === 200 || answer.status === 206, said);
    if (length !== null && given.fileSize !== undefined) {
      const size = Number(length) + (answer.status === 206 ? start ?? 0 : 0);
      assert.ok(sizes.includes(size), `${said}, its length ${length}, of ${sizes}`);
    }
    if (head) return true;
    if (length !== null) assert.equal(body.length, Number(length), `${said}, a short body`);
    const isRight = files.some((file) =>
      Buffer.compare(answer.status === 206 ? file.subarray(start) : file, body) === 0
    );
    // A file that differs from the NAR hash alone may be sent once: Nix finds that out.
    const isSelfMade = right === undefined &&
      (answer.status === 206 || hashOf(body) === given.fileHash);
    assert.ok(isRight || isLarge || isSelfMade, `${said}, wrong bytes (${body.length})`);
    if (!isRight) return false;
    if (answer.status === 200 && given.fileHash !== undefined) {
      assert.equal(hashOf(body), given.fileHash, `${said}, not the file hash of its narinfo`);
    }
    return true;
  }

  /** A client that tries again and again gets each path in the end. */
  async assertHealed(): Promise<void> {
    for (const object of OBJECTS) {
      let got = false;
      for (let tries = 0; tries < TRIES_MAX && !got; tries++) {
        got = await this.nar(await this.narinfo(object));
        await this.cache.downloadsOver();
      }
      assert.ok(got, `${object.baseName} is hidden for good`);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#cache?.[Symbol.asyncDispose]();
    await this.#metadata[Symbol.asyncDispose]();
    for (const upstream of [...this.honest, ...this.#liars]) await upstream[Symbol.asyncDispose]();
    this.#folder[Symbol.dispose]();
    this.#runtime[Symbol.dispose]();
  }

  #traceOf(object: StoreObject): Trace {
    const trace = this.#traces.get(object) ?? { timesForgotten: 0, hasMoved: false };
    this.#traces.set(object, trace);
    return trace;
  }

  /**
   * The file that an honest upstream sends for the narinfo, where larder can know that one has it.
   * A removed narinfo takes its store path with it, and so the requests to other upstreams.
   */
  async #rightOf(given: GivenNarinfo): Promise<Uint8Array | undefined> {
    const { timesForgotten, hasMoved } = this.#traceOf(given.object);
    if (hasMoved && timesForgotten > given.timesForgotten) return undefined;
    for (const upstream of this.honest) {
      if (!upstream.has(given.object)) continue;
      const text = await upstream.narinfoOf(given.object);
      const line = (key: string) => new RegExp(`^${key}: (.*)$`, "m").exec(text)?.[1];
      if (line("Compression") !== given.compression) continue;
      const { bytes } = await upstream.narFileOf(given.object);
      if (given.compression === "none") return bytes;
      if (line("FileHash")?.slice("sha256:".length) !== given.fileHash) continue;
      if (line("FileSize") !== given.fileSize?.toString()) continue;
      return bytes;
    }
    return undefined;
  }

  async #filesOf({ object, compression }: GivenNarinfo): Promise<readonly Uint8Array[]> {
    const files = await Promise.all(this.honest.map((upstream) => upstream.narFileOf(object)));
    return files.filter((file) => file.compression === compression).map(({ bytes }) => bytes);
  }

  /** The file of any object with this hash. */
  async #fileNamed(fileHash: string | undefined): Promise<Uint8Array | undefined> {
    const files = await Promise.all(
      this.honest.flatMap((upstream) => OBJECTS.map((object) => upstream.narFileOf(object))),
    );
    return files.find((file) => file.fileHash === fileHash)?.bytes;
  }

  async #answer(liar: number, path: string): Promise<Response | undefined> {
    for (const [index, object] of OBJECTS.entries()) {
      const lie = this.#lies.get(`${liar} ${object.storePathHash}`);
      if (lie === undefined) continue;
      if (path.startsWith(`/nar/${index}.`)) return narLies[lie.nar](await this.#truthOf(index));
      if (path !== `/${object.storePathHash}.narinfo`) continue;
      if (lie.narinfo === "absent") return new Response(null, { status: 404 });
      if (lie.narinfo === "no narinfo") return new Response("<!DOCTYPE html>\n");
      const truth = await this.#truthOf(index);
      const lines = { URL: `nar/${index}.x`, ...narinfoLies[lie.narinfo](truth) };
      return new Response(changed(await truth.honest.narinfoOf(object), lines));
    }
    return undefined;
  }

  async #truthOf(index: number): Promise<Truth & { readonly honest: FakeUpstream }> {
    const object = OBJECTS[index] as StoreObject;
    const other = OBJECTS[(index + 2) % OBJECTS.length] as StoreObject;
    const honest = this.honest.find((upstream) => upstream.has(object)) as FakeUpstream;
    const [file, otherFile] = await Promise.all([
      honest.narFileOf(object),
      honest.narFileOf(other),
    ]);
    return { honest, object, other, file, otherFile, count: ++this.#count };
  }
}

/** The narinfo with `lines` in place of its own, and the NAR where a liar has it. */
function changed(text: string, lines: Lines): string {
  return Object.entries(lines).reduce((changed, [key, value]) => {
    const without = changed.replace(new RegExp(`^${key}: .*\n`, "m"), "");
    return value === undefined ? without : `${without}${key}: ${value}\n`;
  }, text);
}

function hashOf(bytes: Uint8Array): string {
  return sha256FromDigest(createHash("sha256").update(bytes).digest());
}
