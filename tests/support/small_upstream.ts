import type {
  FetchListener,
  FetchOrder,
  FetchOutcome,
  NarFetcher,
} from "../../src/cache/fetch/nar_fetcher.ts";
import { type NarName, parseNarName } from "../../src/nix/nar_name.ts";
import type { NarBody } from "../../src/upstream/upstream.ts";
import type { PoolAnswer } from "../../src/upstream/narinfo_query.ts";
import { quietPool } from "./quiet_pool.ts";
import { type MortalLife, turns } from "./mortal_life.ts";
import type { SmallDisk } from "./small_disk.ts";
import { narNamed, type SmallWorld, type WorldNar } from "./small_world.ts";
import type { StorePathHash } from "../../src/nix/store_path.ts";

const URL = "https://upstream.test";

/** Into so many pieces a NAR file comes. */
const PIECES = 3;

/** The network of one process, in the test's own: an upstream that has the whole world. */
export class SmallUpstream implements NarFetcher {
  isOff = false;
  /** The next NAR file that is fetched breaks off halfway. */
  breaksNext = false;
  readonly #world: SmallWorld;
  readonly #disk: SmallDisk;
  readonly #life: MortalLife;

  constructor(world: SmallWorld, disk: SmallDisk, life: MortalLife) {
    this.#world = world;
    this.#disk = disk;
    this.#life = life;
  }

  /** The roles of an UpstreamPool. */
  get pool() {
    return {
      ...quietPool([URL]),
      narinfo: (storePathHash: StorePathHash) => this.#narinfo(storePathHash),
      prefetchNarinfo: (storePathHash: StorePathHash) => this.#narinfo(storePathHash),
      isSpare: () => !this.isOff,
      hasQueue: () => false,
    };
  }

  /** The roles of its NarBodySource. */
  get narClients() {
    const openNar = (location: string) => this.#openNar(location);
    const statNar = async () => undefined;
    return new Map([[URL, { openNar, statNar }]]);
  }

  begin(order: FetchOrder, listener: FetchListener) {
    let file: Deno.FsFile | undefined;
    const there = { isBroken: false };
    return {
      from: async (
        { location }: { readonly location: string },
        taken?: () => void,
      ): Promise<FetchOutcome> => {
        await turns();
        taken?.();
        if (this.#life.isOver) return { type: "failed", reason: "disk", detail: "it is dead" };
        try {
          file ??= Deno.openSync(order.path, { write: true, truncate: true });
        } catch {
          // Another one took it for dead while it slept, and removed its folder.
          return { type: "failed", reason: "disk", detail: "its folder is gone" };
        }
        const part = { file, there, order, listener };
        return await this.#fetch(narNamed(nameIn(location)), part);
      },
      [Symbol.dispose]: () => file?.close(),
    };
  }

  async #narinfo(storePathHash: StorePathHash): Promise<PoolAnswer> {
    await turns();
    const narinfo = this.#world.narinfo(storePathHash);
    if (this.isOff) return { kind: "unknown" };
    if (narinfo === undefined) return { kind: "absent" };
    return { kind: "found", best: { upstream: URL, narinfo, trusted: true }, others: [] };
  }

  async #openNar(location: string): Promise<NarBody> {
    await turns();
    if (this.isOff) throw new Error("the upstream is off");
    const { bytes } = narNamed(nameIn(location));
    return { offset: 0, framed: true, fileSize: bytes.length, body: new Blob([bytes]).stream() };
  }

  async #fetch(
    { bytes, digest, isSizeTold }: WorldNar,
    { file, there, order: { roomBytes }, listener: { progress, room } }: Part,
  ): Promise<FetchOutcome> {
    if (this.isOff) return failed("the upstream is off");
    if (there.isBroken) return failed("it broke off");
    progress({ type: "opened", ...(isSizeTold ? { fileSize: bytes.length } : {}) });
    const breaks = this.breaksNext;
    this.breaksNext = false;
    let mayWrite = roomBytes;
    for (let piece = 1; piece <= PIECES; piece++) {
      const start = Math.floor(bytes.length * (piece - 1) / PIECES);
      const end = Math.floor(bytes.length * piece / PIECES);
      if (end > mayWrite) mayWrite = await room(end);
      if (end > mayWrite) return { type: "failed", reason: "room", detail: "no room" };
      await turns();
      await this.#life.awake();
      if (this.#life.isOver) return failed("it is dead");
      there.isBroken = breaks && piece === 2;
      if (there.isBroken) return failed("it broke off");
      if (this.#disk.isFull) return { type: "failed", reason: "disk", detail: "the disk is full" };
      file.writeSync(bytes.subarray(start, end));
      this.#disk.grown();
      progress({ type: "bytes", received: end });
    }
    return { type: "end", fileSize: bytes.length, digest, maybeShort: false };
  }
}

interface Part {
  readonly file: Deno.FsFile;
  /** Whether no more of this file will come. */
  readonly there: { isBroken: boolean };
  readonly order: FetchOrder;
  readonly listener: FetchListener;
}

function failed(detail: string): FetchOutcome {
  return { type: "failed", reason: "upstream", detail };
}

/** Of a URL, or of the file that grows. */
function nameIn(place: string): NarName {
  const name = parseNarName(/[^/]*\.nar(?:\.xz)?/.exec(place)?.[0] ?? "");
  if (name === undefined) throw new Error(`Cannot find a NAR's name in ${place}`);
  return name;
}
