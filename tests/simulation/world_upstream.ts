import { type Compression, COMPRESSIONS } from "../../src/nix/compression.ts";
import { generateSecretKey, type SecretKey } from "../../src/nix/signature.ts";
import { clock } from "../../src/runtime/current.ts";
import { DIALECTS, narinfoText } from "../support/dialects.ts";
import type { PlayedAnswer, PlayedHost, PlayedRequest } from "./played_net.ts";
import type { SeededDice } from "./seeded_dice.ts";
import type { WorldObject } from "./world_objects.ts";

/** What is wrong with an upstream; "honest": nothing. */
export const UPSTREAM_FAULTS = [
  "refused",
  "silent",
  "errors",
  "busy",
  "slow",
  "stalls",
  "cuts",
  "flips",
  "lies",
  "forgets nars",
  "unsigned",
] as const;

export type UpstreamFault = typeof UPSTREAM_FAULTS[number];

const ROW = DIALECTS.nixos;

/** A binary cache of the world. */
export class WorldUpstream implements PlayedHost {
  readonly name: string;
  readonly objects: Set<WorldObject>;
  readonly #compression: Compression;
  readonly #key: SecretKey;
  readonly #dice: SeededDice;
  readonly #counts = new Map<string, number>();
  #fault: UpstreamFault | undefined;
  /** What its answers become before they leave; default: nothing else. */
  alters: (answer: PlayedAnswer, request: PlayedRequest) => PlayedAnswer = (answer) => answer;
  readonly requests: { readonly method: string; readonly path: string; readonly atMs: number }[] =
    [];
  /** When its behaviour or its objects changed last. */
  changedAtMs = 0;

  constructor(
    name: string,
    objects: readonly WorldObject[],
    { compression, dice }: { readonly compression: Compression; readonly dice: SeededDice },
  ) {
    this.name = name;
    this.objects = new Set(objects);
    this.#compression = compression;
    this.#dice = dice;
    this.#key = generateSecretKey(`${name}-1`);
  }

  get publicKey() {
    return this.#key.publicKey;
  }

  get url(): string {
    return `http://${this.name}`;
  }

  get fault(): UpstreamFault | undefined {
    return this.#fault;
  }

  set fault(fault: UpstreamFault | undefined) {
    this.#fault = fault;
    this.changedAtMs = clock.nowMs();
  }

  get state(): "up" | "refused" | "silent" {
    return this.#fault === "refused" || this.#fault === "silent" ? this.#fault : "up";
  }

  /** Paths of narinfos and NARs that were requested more than once. */
  get repeated(): readonly string[] {
    return [...this.#counts].filter(([path, count]) => count > 1 && path !== "/nix-cache-info")
      .map(([path]) => `${this.url}${path}`);
  }

  fileOf({ files }: WorldObject) {
    const file = files.get(this.#compression);
    if (file === undefined) throw new Error(`Cannot find a file in ${this.#compression}`);
    return file;
  }

  async handle(request: PlayedRequest): Promise<PlayedAnswer> {
    const { method, url } = request;
    this.requests.push({ method, path: url.pathname, atMs: clock.nowMs() });
    return this.alters(this.#answer(request), request);
  }

  #answer({ method, url, headers }: PlayedRequest): PlayedAnswer {
    const path = url.pathname;
    if (method === "GET") this.#counts.set(path, (this.#counts.get(path) ?? 0) + 1);
    const delayMs = this.#fault === "slow" ? this.#dice.between(1_000, 12_000) : 0;
    if (this.#fault === "errors") return { status: 500, delayMs };
    if (this.#fault === "busy") return { status: 503, headers: { "retry-after": "1" } };
    if (path === "/nix-cache-info") {
      return text("StoreDir: /nix/store\nWantMassQuery: 1\nPriority: 40\n", delayMs);
    }
    for (const one of this.objects) {
      if (path === `/${one.object.storePathHash}.narinfo`) return this.#narinfo(one, delayMs);
      if (path === `/nar/${this.fileOf(one).fileHash}.nar${extensionOf(this.#compression)}`) {
        return this.#nar(one, headers.get("range"), delayMs);
      }
    }
    return { status: 404, delayMs };
  }

  #narinfo(one: WorldObject, delayMs: number): PlayedAnswer {
    const { object } = one;
    const key = this.#fault === "unsigned" ? {} : { key: this.#key };
    let lines = narinfoText({ row: ROW, object, file: this.fileOf(one), ...key });
    if (this.#fault === "lies") {
      lines = this.#dice.pick([
        lines.replace(/^FileSize: .*$/m, `FileSize: ${this.#dice.below(100_000) + 1}`),
        lines.replace(/^FileHash: .*\n/m, ""),
        lines.replace(/^Compression: .*$/m, "Compression: none"),
        lines.replace(/^NarSize: .*$/m, "NarSize: 77"),
      ]);
    }
    return text(lines, delayMs);
  }

  #nar(one: WorldObject, range: string | null, delayMs: number): PlayedAnswer {
    if (this.#fault === "forgets nars") return { status: 404, delayMs };
    let { bytes } = this.fileOf(one);
    if (this.#fault === "flips") {
      bytes = bytes.slice();
      const at = this.#dice.below(bytes.length);
      bytes[at] = (bytes[at] ?? 0) ^ 1;
    }
    const start = Number(/^bytes=(\d+)-$/.exec(range ?? "")?.[1] ?? 0);
    const body = bytes.subarray(start);
    const breaks = this.#fault === "cuts"
      ? { cutAt: this.#dice.below(body.length) }
      : this.#fault === "stalls"
      ? { stallAt: this.#dice.below(body.length) }
      : {};
    const length = { "content-length": String(body.length), "accept-ranges": "bytes" };
    const range206 = { "content-range": `bytes ${start}-${bytes.length - 1}/${bytes.length}` };
    return {
      status: start > 0 ? 206 : 200,
      headers: { ...length, ...start > 0 ? range206 : {} },
      rate: this.#fault === "slow" ? 20_000 : 2_000_000,
      ...{ body, delayMs },
      ...breaks,
    };
  }
}

function text(content: string, delayMs: number): PlayedAnswer {
  const body = new TextEncoder().encode(content);
  return { status: 200, headers: { "content-length": String(body.length) }, body, delayMs };
}

function extensionOf(compression: Compression): string {
  return COMPRESSIONS[compression].extension;
}
