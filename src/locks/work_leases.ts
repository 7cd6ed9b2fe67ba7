import { hashOf, type NarName } from "../nix/nar_name.ts";
import type { StorePathHash } from "../nix/store_path.ts";
import type { LeaseJob, RetryPolicy } from "./lease_jobs.ts";
import { type Leases, UNLOCKED, type WorkLease } from "./leases.ts";

/** A member that downloads a NAR file. */
export interface NarHolder {
  /** Other members reach it there. */
  readonly url: string;
}

/** Takes leases for work that one of the members should do. None rejects. */
export interface WorkLeases {
  /** `isDone`: whether the file is stored. */
  nar(nar: NarName, isDone: () => Promise<boolean>): Promise<WorkLease>;
  /** `isDone`: whether the narinfo is stored. Waits for the member that asks upstreams. */
  narinfo(storePathHash: StorePathHash, isDone: () => Promise<boolean>): Promise<WorkLease>;
  eviction(): Promise<WorkLease>;
  repair(): Promise<WorkLease>;
  recompression(): Promise<WorkLease>;
  /** To look at pinned closures. */
  pinLook(): Promise<WorkLease>;
  /** The other member that downloads the file now. */
  holderOf(nar: NarName): Promise<NarHolder | undefined>;
  /** Finds out, without work to do, whether the locks answer. Never rejects. */
  probe(): Promise<void>;
  /** Call it when `holder` does not send the file, or cannot be reached: frees its lock. */
  stopped(nar: NarName, holder: NarHolder): Promise<void>;
}

const unlocked = () => Promise.resolve(UNLOCKED);

/** The leases of a member without others: each is its own, at once. */
export const NO_OTHER_MEMBERS: WorkLeases = {
  nar: unlocked,
  narinfo: unlocked,
  eviction: unlocked,
  repair: unlocked,
  recompression: unlocked,
  pinLook: unlocked,
  holderOf: () => Promise.resolve(undefined),
  stopped: () => Promise.resolve(),
  probe: () => Promise.resolve(),
};

/** The life of a narinfo's lock, after its holder's death. Upstreams answer within seconds. */
const NARINFO_TTL_MS = 5_000;

/** A client waits for the narinfo: larder reads its row often, for a little longer than that. */
const NARINFO_RETRY_POLICY: RetryPolicy = {
  retriesMax: 30,
  initialDelayMs: 10,
  maxDelayMs: 250,
  hasJitter: true,
};

export interface MemberLeasesDeps {
  readonly leases: Pick<Leases, "take" | "probe" | "otherHolder" | "free">;
  readonly downloadTtlMs: number;
  readonly lruTtlMs: number;
  readonly retryPolicy: RetryPolicy;
}

/** Leases on the locks that all members share. */
export class MemberLeases implements WorkLeases {
  readonly #deps: MemberLeasesDeps;

  constructor(deps: MemberLeasesDeps) {
    this.#deps = deps;
  }

  nar(nar: NarName, isDone: () => Promise<boolean>): Promise<WorkLease> {
    const { leases } = this.#deps;
    return leases.take({ ...this.#narJob(nar), mayStream: true, isDone });
  }

  narinfo(storePathHash: StorePathHash, isDone: () => Promise<boolean>): Promise<WorkLease> {
    const { leases, downloadTtlMs } = this.#deps;
    return leases.take({
      lockType: "download:narinfo",
      key: storePathHash,
      hash: storePathHash,
      ttlMs: Math.min(downloadTtlMs, NARINFO_TTL_MS),
      retryPolicy: NARINFO_RETRY_POLICY,
      isDone,
    });
  }

  eviction(): Promise<WorkLease> {
    return this.#deps.leases.take(this.#job("lru"));
  }

  repair(): Promise<WorkLease> {
    return this.#deps.leases.take(this.#job("repair"));
  }

  recompression(): Promise<WorkLease> {
    return this.#deps.leases.take(this.#job("recompress"));
  }

  pinLook(): Promise<WorkLease> {
    return this.#deps.leases.take(this.#job("pins"));
  }

  probe(): Promise<void> {
    return this.#deps.leases.probe();
  }

  async holderOf(nar: NarName): Promise<NarHolder | undefined> {
    const { url } = await this.#deps.leases.otherHolder(this.#narJob(nar)) ?? {};
    return url === undefined ? undefined : { url };
  }

  async stopped(nar: NarName, { url }: NarHolder): Promise<void> {
    const other = await this.#deps.leases.otherHolder(this.#narJob(nar));
    if (other?.url === url) await this.#deps.leases.free(this.#narJob(nar), other.holder);
  }

  #narJob(nar: NarName): LeaseJob {
    const { downloadTtlMs: ttlMs, retryPolicy } = this.#deps;
    return { lockType: "download:nar", key: nar, hash: hashOf(nar), ttlMs, retryPolicy };
  }

  #job(lockType: "lru" | "repair" | "recompress" | "pins"): LeaseJob {
    const { lruTtlMs: ttlMs, retryPolicy } = this.#deps;
    return { lockType, ttlMs, retryPolicy };
  }
}
