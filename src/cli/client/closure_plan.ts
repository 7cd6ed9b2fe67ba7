import { Failure } from "../../base/failure.ts";
import type { StorePathHash } from "../../nix/store_path.ts";
import type { Derivations, PlanRoot } from "./derivations.ts";
import { type AnsweredPath, type AnsweredUpstream, requestPlan } from "./plan_answer.ts";
import type { ServerClient } from "./server_client.ts";

export interface PlannedEntry extends AnsweredPath {
  /** The `.drv` that a client builds it from, as far as the plan has read one. */
  readonly derivation: string | undefined;
}

export interface ClosurePlanDeps {
  readonly client: Pick<ServerClient, "request">;
  readonly derivations: Pick<Derivations, "read" | "roots">;
}

/**
 * Where a larder would find everything that a client needs for some store paths. What is nowhere
 * gets built, so the plan goes on with the paths that its build needs, a request for each level.
 */
export class ClosurePlan {
  readonly #deps: ClosurePlanDeps;
  readonly #answers = new Map<StorePathHash, AnsweredPath>();
  /** The roots, and known outputs of derivations. */
  readonly #outputs = new Map<StorePathHash, PlanRoot>();
  /** Derivations whose inputs are in the plan. */
  readonly #opened = new Set<string>();
  #upstreams: readonly AnsweredUpstream[] = [];
  #count = 0;

  constructor(deps: ClosurePlanDeps) {
    this.#deps = deps;
  }

  /** The paths looked up so far. */
  get count(): number {
    return this.#count;
  }

  get upstreams(): readonly AnsweredUpstream[] {
    return this.#upstreams;
  }

  get entries(): readonly PlannedEntry[] {
    return [...this.#answers.values()].map((answer) => {
      const output = this.#outputs.get(answer.hash);
      return { ...answer, name: answer.name ?? output?.name, derivation: output?.derivation };
    });
  }

  /** Throws a sentence if the server or a derivation cannot be read. */
  async run(roots: readonly PlanRoot[]): Promise<void> {
    for (const root of roots) this.#outputs.set(root.storePathHash, root);
    let wanted = [...this.#outputs.keys()];
    while (wanted.length > 0) {
      const { paths, upstreams } = await requestPlan(this.#deps.client, {
        roots: wanted,
        except: [...this.#answers.keys()],
        came: () => void this.#count++,
      });
      this.#upstreams = upstreams;
      for (const path of paths) this.#answers.set(path.hash, path);
      if (wanted.some((hash) => !this.#answers.has(hash))) {
        throw new Failure("corrupt", "Cannot read the plan: the server has left paths out");
      }
      wanted = await this.#needed();
    }
  }

  /** The paths that builds of what is nowhere need, and that were not looked up yet. */
  async #needed(): Promise<StorePathHash[]> {
    const { derivations } = this.#deps;
    const needed = new Set<StorePathHash>();
    // Grows: a path that an input makes may be known, and be nowhere.
    const nowhere = [...this.#answers.values()].filter(({ state }) => state === "nowhere")
      .map(({ hash }) => hash);
    for (const hash of nowhere) {
      const derivation = this.#outputs.get(hash)?.derivation;
      if (derivation === undefined || this.#opened.has(derivation)) continue;
      this.#opened.add(derivation);
      const { inputs } = await derivations.read(derivation);
      for (const input of inputs) {
        for (const output of await derivations.roots(input.path, input.outputs)) {
          this.#outputs.set(output.storePathHash, output);
          const answer = this.#answers.get(output.storePathHash);
          if (answer === undefined) needed.add(output.storePathHash);
          else if (answer.state === "nowhere") nowhere.push(output.storePathHash);
        }
      }
    }
    return [...needed];
  }
}
