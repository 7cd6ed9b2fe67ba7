import type { Turns } from "../locks/turns.ts";
import type { Accounts } from "./accounts.ts";
import type { Evictor, Run } from "./evictor.ts";
import type { RunEnd } from "./failed_runs.ts";

export interface EvictorInTurnDeps {
  readonly evictor: Pick<Evictor, "run" | "stop">;
  readonly accounts: Pick<Accounts, "observe">;
  readonly turns: Pick<Turns, "eviction">;
}

/** Evicts unless another member does: its run makes room for all. */
export class EvictorInTurn implements Pick<Evictor, "run" | "stop"> {
  readonly #deps: EvictorInTurnDeps;

  constructor(deps: EvictorInTurnDeps) {
    this.#deps = deps;
  }

  async run(run: Run): Promise<RunEnd> {
    const { evictor, accounts, turns } = this.#deps;
    await using turn = await turns.eviction();
    if (turn.kind === "ours") return await evictor.run(run);
    await accounts.observe();
    return "elsewhere";
  }

  stop(): void {
    this.#deps.evictor.stop();
  }
}
