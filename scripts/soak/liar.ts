import { type FakeUpstream, fakeUpstream } from "../../tests/support/fake_upstream.ts";
import type { StoreObject } from "../../tests/support/store_object.ts";
import { zstdBlocks, zstdFrame } from "../../tests/support/zstd_frames.ts";
import type { Dice } from "./dice.ts";

/** The liar has the best priority. */
const PRIORITY = 1;
const NARINFO_REGEXP = /^\/([^/]+)\.narinfo$/;
const ABSENT = { status: 404 } as const;

/** Compressions that no honest upstream of the soak uses. */
export const FALSE_COMPRESSIONS: readonly string[] = ["bzip2", "gzip", "br"];

/** A window of 1.9 GB, and a gigabyte in blocks: a few kilobytes each. */
const BOMBS = [
  zstdFrame({ window: 20 << 3 | 7, blocks: zstdBlocks(500) }),
  zstdFrame({ window: 7 << 3, blocks: zstdBlocks(8_000) }),
];

export interface LiarDeps {
  readonly dice: Dice;
  readonly objects: readonly StoreObject[];
  /** The upstream of the copied narinfos. */
  readonly honest: readonly FakeUpstream[];
}

/**
 * A hostile upstream without a key. It copies signed narinfos, changes their unsigned fields, and
 * sends wrong files.
 */
export class Liar implements AsyncDisposable {
  readonly upstream: FakeUpstream;
  readonly #deps: LiarDeps;

  private constructor(upstream: FakeUpstream, deps: LiarDeps) {
    this.upstream = upstream;
    this.#deps = deps;
  }

  static async open(deps: LiarDeps): Promise<Liar> {
    return new Liar(await fakeUpstream({ priority: PRIORITY, key: "none", stored: true }), deps);
  }

  /** Lies until `mend`; else it has nothing. */
  lie(): void {
    this.upstream.onRequest = async ({ path }) => {
      if (path === "/nix-cache-info") return undefined;
      const hash = NARINFO_REGEXP.exec(path)?.[1];
      if (hash === undefined) return this.#file();
      const text = await this.#narinfo(hash);
      return text === undefined ? new Response(null, ABSENT) : new Response(text);
    };
  }

  mend(): void {
    this.upstream.onRequest = undefined;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.upstream[Symbol.asyncDispose]();
  }

  #file(): Response {
    const { dice } = this.#deps;
    if (dice.part() < 0.5) return new Response(null, ABSENT);
    return new Response(dice.pick(BOMBS));
  }

  /** Answers for a third of all paths, so that most come from honest upstreams. */
  async #narinfo(hash: string): Promise<string | undefined> {
    const { dice, objects, honest } = this.#deps;
    const object = objects.find(({ storePathHash }) => storePathHash === hash);
    const from = honest.find((upstream) => object !== undefined && upstream.has(object));
    if (object === undefined || from === undefined || dice.part() < 2 / 3) return undefined;
    const text = await from.narinfoOf(object);
    const other = await from.narinfoOf(dice.pick(objects));
    const line = (key: string) => new RegExp(`^${key}: (.*)$`, "m").exec(other)?.[1] ?? "";
    const lies: readonly (readonly [key: string, value: string])[] = [
      ["FileHash", line("FileHash")],
      ["FileHash", line("NarHash")],
      ["FileSize", line("NarSize")],
      ["FileSize", String(1 + dice.below(10_000_000))],
      ["URL", line("URL")],
      ["Compression", dice.pick(FALSE_COMPRESSIONS)],
    ];
    const [key, value] = dice.pick(lies);
    return text.replace(new RegExp(`^${key}: .*$`, "m"), `${key}: ${value}`) +
      `Deriver: ${object.baseName}.drv\nX-Unknown: ${"x".repeat(dice.below(100_000))}\n`;
  }
}
