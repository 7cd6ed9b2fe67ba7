import type { MemberId } from "../base/member_id.ts";
import { NO_OTHER_MEMBERS, type WorkLeases } from "../locks/work_leases.ts";
import { Accounts, type AccountsDeps } from "./accounts.ts";
import type { ActiveReads } from "./active_reads.ts";
import { EvictionRuns, type EvictionRunsDeps } from "./eviction_runs.ts";
import { Evictor, type EvictorDeps, LeasedEvictor } from "./evictor.ts";
import { type SizeLimit, SpaceBudget } from "./size_limit.ts";
import { Space } from "./space.ts";
import { SpareRoom } from "./spare_room.ts";
import { Sweeper, type SweeperDeps } from "./sweeper.ts";

/** The size limit, and the member that keeps it. */
export interface SpaceParts {
  readonly limit: SizeLimit;
  /** This member. */
  readonly owner: MemberId;
  /** Where the other members reach it; default: nowhere. */
  readonly url?: (() => string | undefined) | undefined;
  /** How long a marked object stays for readers that know its name; default: no time. */
  readonly graceMs?: number;
}

/** The parts of the cache that influence eviction. */
export interface SpaceUsers {
  readonly reads: ActiveReads;
  /** Writes the uses that wait. */
  readonly flushTouches: EvictorDeps["flushTouches"];
}

/** Stores, clock, log and metrics of the space. */
export interface SpaceSurroundings {
  readonly metadata:
    & SweeperDeps["metadata"]
    & AccountsDeps["metadata"]
    & EvictionRunsDeps["metadata"];
  readonly nars: SweeperDeps["nars"];
  readonly leases?: Pick<WorkLeases, "eviction">;
  readonly nowMs: () => number;
  readonly log: EvictionRunsDeps["log"];
  readonly observe: EvictionRunsDeps["observe"];
}

/** How much more a batch marks where each waits for the grace time. */
const GRACE_ROUNDS_MAX = 16;

/** Wires the parts of the space to each other. */
export function assembleSpace(
  { limit, owner, url, graceMs = 0 }: SpaceParts,
  { reads, flushTouches }: SpaceUsers,
  { metadata, nars, leases = NO_OTHER_MEMBERS, nowMs, log, observe }: SpaceSurroundings,
): Space {
  const accounts = new Accounts({ metadata, owner, url, budget: new SpaceBudget(limit), log });
  const sweeper = new Sweeper({ metadata, nars, owner, graceMs, log });
  const parts = { metadata, sweeper, accounts, reads, flushTouches, owner, nowMs };
  const alone = new Evictor(parts, graceMs > 0 ? GRACE_ROUNDS_MAX : 1);
  const evictor = new LeasedEvictor({ evictor: alone, accounts, leases });
  const runs = new EvictionRuns({ evictor, accounts, metadata, reads, nowMs, log, observe });
  const spare = new SpareRoom({ metadata, reads, flushTouches, nowMs });
  return new Space({ accounts, sweeper, runs, spare, reads, nowMs, log });
}
