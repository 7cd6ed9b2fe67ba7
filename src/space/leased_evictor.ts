import type { WorkLeases } from "../locks/work_leases.ts";
import type { Accounts } from "./accounts.ts";
import type { Evictor, Run } from "./evictor.ts";
import type { RunEnd } from "./failed_runs.ts";

export interface LeasedEvictorDeps {
  readonly evictor: Pick<Evictor, "run" | "stop">;
  readonly accounts: Pick<Accounts, "observe">;
  readonly leases: Pick<WorkLeases, "eviction">;
}

/** Evicts unless another member does: its run makes room for all. */
export class LeasedEvictor implements Pick<Evictor, "run" | "stop"> {
  readonly #deps: LeasedEvictorDeps;

  constructor(deps: LeasedEvictorDeps) {
    this.#deps = deps;
  }

  async run(run: Run): Promise<RunEnd> {
    const { evictor, accounts, leases } = this.#deps;
    await using lease = await leases.eviction();
    if (lease.kind === "ours") return await evictor.run(run);
    await accounts.observe();
    return "elsewhere";
  }

  stop(): void {
    this.#deps.evictor.stop();
  }
}
