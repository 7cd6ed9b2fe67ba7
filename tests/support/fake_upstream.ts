import type { Compression } from "../../src/nix/compression.ts";
import { generateSecretKey, type SecretKey } from "../../src/nix/signature.ts";
import { available } from "./compressors.ts";
import { type Dialect, type DialectRow, DIALECTS, type NarFile, narinfoText } from "./dialects.ts";
import { DROP, ExactServer, type Exchange } from "./exact_server.ts";
import type { Fault } from "./faults.ts";
import { narFileOf } from "./nar_files.ts";
import { RequestLog } from "./request_log.ts";
import type { StoreObject } from "./store_object.ts";
import { narAnswer, responseAnswer, textAnswer } from "./upstream_answers.ts";
import type { Answer } from "./wire_answer.ts";

/** Answers in place of the upstream; `undefined`: as usual. `index` counts from 0. */
export type RequestHook = (
  request: Exchange,
  index: number,
) => Response | undefined | Promise<Response | undefined>;

export interface FakeUpstreamOptions {
  /** Default "nixos". */
  readonly dialect?: Dialect;
  readonly objects?: readonly StoreObject[];
  /** In place of the dialect's own. */
  readonly compression?: Compression;
  /** Start no program: xz and zstd only wrap the bytes. */
  readonly stored?: boolean;
  /** "absent": nix-cache-info is 404. Default 40. */
  readonly priority?: number | "absent";
  /** In place of a key of its own; "none": its narinfos are not signed. */
  readonly key?: SecretKey | "none";
  /** In place of the dialect's behaviour. */
  readonly hasRanges?: boolean;
  readonly onRequest?: RequestHook;
  /** Texts by path, such as `/log/x.drv`: the documents beside narinfos and NARs. */
  readonly documents?: Readonly<Record<string, string>>;
}

type Kind = "nar" | "narinfo" | "document";

interface Breakage {
  readonly kind: Kind;
  readonly fault: Fault;
  /** Absent: every object's. */
  readonly of: StoreObject | undefined;
}

/** Why an upstream of this dialect cannot run here; empty when it can. */
export function dialectAvailable(dialect: Dialect, compression?: Compression): string {
  return available(compression ?? DIALECTS[dialect].compression);
}

/** Starts a binary cache on 127.0.0.1 that serves `objects` in one of the dialects. */
export async function fakeUpstream(options: FakeUpstreamOptions = {}): Promise<FakeUpstream> {
  return new FakeUpstream(options);
}

export class FakeUpstream implements AsyncDisposable {
  priority: number | "absent";
  onRequest: RequestHook | undefined;
  readonly #options: FakeUpstreamOptions;
  readonly #key: SecretKey | undefined;
  readonly #log: RequestLog;
  readonly #server: ExactServer;
  readonly #objects = new Map<string, StoreObject>();
  readonly #files = new Map<StoreObject, Promise<NarFile>>();
  #breakages: Breakage[] = [];

  constructor(options: FakeUpstreamOptions) {
    this.#options = options;
    const { key = generateSecretKey(`${this.dialect}-1`) } = options;
    this.#key = key === "none" ? undefined : key;
    this.priority = options.priority ?? 40;
    this.onRequest = options.onRequest;
    this.add(...options.objects ?? []);
    this.#log = new RequestLog(this.#row.base);
    this.#server = new ExactServer((exchange) => this.#handle(exchange));
  }

  get dialect(): Dialect {
    return this.#options.dialect ?? "nixos";
  }

  /** Without a slash at its end. */
  get url(): string {
    return `http://127.0.0.1:${this.port}${this.#row.base}`;
  }

  get port(): number {
    return this.#server.port;
  }

  /** `name:base64`. Throws for an upstream that does not sign. */
  get publicKey(): string {
    if (this.#key === undefined) throw new Error("Cannot show key: this upstream does not sign");
    return this.#key.publicKey.text;
  }

  /** Connections that are open, idle ones included. */
  get openConnections(): number {
    return this.#server.openConnections;
  }

  add(...objects: readonly StoreObject[]): void {
    for (const object of objects) this.#objects.set(object.storePathHash, object);
  }

  has(object: StoreObject): boolean {
    return this.#objects.has(object.storePathHash);
  }

  remove(object: StoreObject): void {
    this.#objects.delete(object.storePathHash);
  }

  /** The narinfo as it is served when nothing is broken. */
  async narinfoOf(object: StoreObject): Promise<string> {
    const file = await this.narFileOf(object);
    return narinfoText({ row: this.#row, object, file, ...(this.#key && { key: this.#key }) });
  }

  /** The NAR's URL relative to `url`, query included. */
  async narUrlOf(object: StoreObject): Promise<string> {
    return this.#row.narUrl(object, await this.narFileOf(object));
  }

  /** The NAR file, without any Content-Encoding. */
  narFileOf(object: StoreObject): Promise<NarFile> {
    const { compression = this.#row.compression, stored = false } = this.#options;
    const frames = compression === "zstd" ? this.#row.frames : 1;
    const file = this.#files.get(object) ?? narFileOf(object.nar, { compression, frames, stored });
    this.#files.set(object, file);
    return file;
  }

  /** Breaks the NARs of one object, or all, from now on until `mend`. */
  breakNar(fault: Fault, of?: StoreObject): void {
    this.#breakages.push({ kind: "nar", fault, of });
  }

  /** Breaks the narinfo of one object, or all, from now on until `mend`. */
  breakNarinfo(fault: Fault, of?: StoreObject): void {
    this.#breakages.push({ kind: "narinfo", fault, of });
  }

  /** Breaks the documents beside narinfos and NARs from now on until `mend`. */
  breakDocument(fault: Fault): void {
    this.#breakages.push({ kind: "document", fault, of: undefined });
  }

  mend(): void {
    this.#breakages = [];
  }

  /** Every request in the order of arrival. */
  get requests(): readonly Exchange[] {
    return this.#log.all;
  }

  /** The requests for a path below `url`, its query included. */
  matching(path: string | RegExp, method?: string): readonly Exchange[] {
    return this.#log.matching(path, method);
  }

  /** How many `matching` has. */
  count(path: string | RegExp, method?: string): number {
    return this.matching(path, method).length;
  }

  /** Resolves with the `nth` matching request as soon as it has arrived. */
  requested(path: string | RegExp, nth = 1): Promise<Exchange> {
    return this.#log.arrived(path, nth);
  }

  /** Switched off: connections are refused, and those that are open break. */
  stop(): Promise<void> {
    return this.#server.stop();
  }

  /** Switched on again, on the same port. */
  start(): Promise<void> {
    return this.#server.start();
  }

  /** Throws when `onRequest` or a fault threw. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server[Symbol.asyncDispose]();
    // A compressor that nobody waits for any more must not outlive the test.
    await Promise.allSettled(this.#files.values());
  }

  get #row(): DialectRow {
    return DIALECTS[this.dialect];
  }

  async #handle(exchange: Exchange): Promise<Answer | typeof DROP> {
    const index = this.#log.add(exchange);
    const own = await this.onRequest?.(exchange, index);
    if (own !== undefined) return responseAnswer(own);
    if (!["GET", "HEAD"].includes(exchange.method)) return textAnswer(405, "not allowed\n");
    if (!exchange.path.startsWith(`${this.#row.base}/`)) return textAnswer(404, "not found\n");
    const path = this.#log.pathOf(exchange);
    if (path === "/nix-cache-info") return this.#cacheInfo();
    const object = this.#objects.get(/^\/([^/]+)\.narinfo$/.exec(path)?.[1] ?? "");
    if (object === undefined) {
      return await this.#document(path, exchange) ?? await this.#nar(path, exchange);
    }
    const answer = textAnswer(200, await this.narinfoOf(object), "text/x-nix-narinfo");
    return await this.#broken({ kind: "narinfo", object, answer, exchange });
  }

  #cacheInfo(): Answer {
    if (this.priority === "absent") return textAnswer(404, "not found\n");
    const lines = ["StoreDir: /nix/store", "WantMassQuery: 1", `Priority: ${this.priority}`, ""];
    return textAnswer(200, lines.join("\n"), "text/x-nix-cache-info");
  }

  async #document(path: string, exchange: Exchange): Promise<Answer | typeof DROP | undefined> {
    const text = this.#options.documents?.[path];
    if (text === undefined) return undefined;
    const type = path.startsWith("/log/") ? "text/plain; charset=utf-8" : "application/json";
    return await this.#broken({ kind: "document", answer: textAnswer(200, text, type), exchange });
  }

  async #nar(path: string, exchange: Exchange): Promise<Answer | typeof DROP> {
    const [narPath, query] = path.split("?");
    let refusal = 404;
    for (const object of this.#objectsToSearch()) {
      const [ownPath, ownQuery = query] = (await this.narUrlOf(object)).split("?");
      if (narPath !== `/${ownPath}`) continue;
      if (query !== ownQuery) {
        // It may be the query of another path with the same NAR.
        refusal = this.#row.withoutQuery ?? 404;
        continue;
      }
      const answer = await narAnswer({
        headers: exchange.headers,
        row: this.#row,
        hasRanges: this.#options.hasRanges ?? this.#row.hasRanges,
        object,
        file: await this.narFileOf(object),
      });
      return await this.#broken({ kind: "nar", object, answer, exchange });
    }
    return textAnswer(refusal, "no such NAR\n");
  }

  /** Those first whose NAR file is known: the others would be compressed to know its name. */
  #objectsToSearch(): ReadonlySet<StoreObject> {
    const objects = new Set(this.#objects.values());
    return new Set([...this.#files.keys()].filter((object) => objects.has(object))).union(objects);
  }

  async #broken({ kind, object, answer, exchange }: Right): Promise<Answer | typeof DROP> {
    let result: Answer | typeof DROP = answer;
    for (const { kind: broken, fault, of } of this.#breakages) {
      if (broken !== kind || (of ?? object) !== object || result === DROP) continue;
      result = await fault(result, exchange);
    }
    return result;
  }
}

interface Right {
  readonly kind: Kind;
  readonly object?: StoreObject;
  readonly answer: Answer;
  readonly exchange: Exchange;
}
