import { Failure } from "../../base/failure.ts";
import { ReadTurns, type Waiter } from "../../base/read_turns.ts";
import type { Explainer } from "../../cache/explain/explainer.ts";
import type { Explanation } from "../../cache/explain/explanation.ts";
import type { PlannedPath } from "../../cache/plan/planned_path.ts";
import { PLAN_PATHS_MAX, type Planner } from "../../cache/plan/planner.ts";
import type { NameFinder } from "../../metadata/metadata_store.ts";
import { type Found, LISTED_MAX, NAMED_MAX } from "../page/packages_part.ts";
import { storePathIn, storePathsIn, type TypedPath } from "./store_path_text.ts";

/** Longer ones are no name and no store path. */
const QUERY_CHARS_MAX = 300;

export interface SearchesDeps {
  readonly explainer: Pick<Explainer, "explain">;
  readonly planner: Pick<Planner, "planPaths">;
  /** The turns of plans: a list of store paths may be as long as one. */
  readonly plans: ReadTurns;
  readonly names: NameFinder;
}

/**
 * Explanations and searches of all clients. Each may walk closures or look at every narinfo, so they
 * take turns, one at a time. One whose clients have left ends.
 */
export class Searches implements Disposable {
  readonly #deps: SearchesDeps;
  #lists = 0;
  readonly #turns = new ReadTurns();

  constructor(deps: SearchesDeps) {
    this.#deps = deps;
  }

  /** Throws "busy" if too many wait. */
  async explain({ hash, name }: TypedPath, waiter: Waiter): Promise<Explanation> {
    return await this.#turns.run(waiter, {
      key: `path ${hash} ${name ?? ""}`,
      run: (signal) => this.#deps.explainer.explain(hash, { name, signal }),
    });
  }

  /**
   * Explains a store path, tells where each of several is, or finds store paths by name. Rejects for
   * a client that left, alone.
   */
  async find(text: string, waiter: Waiter): Promise<Found> {
    const list = storePathsIn(text);
    const query = list === undefined ? text.trim().slice(0, QUERY_CHARS_MAX) : text.trim();
    const none = {
      query,
      explanation: undefined,
      listed: undefined,
      named: [],
      failure: undefined,
    };
    if (query === "") return none;
    try {
      if (list !== undefined) {
        const { paths, unreadable } = list;
        if (paths.length > PLAN_PATHS_MAX) return { ...none, failure: "too-long" };
        // Of a long list the missing ones are shown: the page has no room for all.
        const listed: Record<PlannedPath["state"], [number, PlannedPath][]> = {
          ...{ nowhere: [], unknown: [], upstream: [], here: [] },
        };
        const states = { here: 0, upstream: 0, nowhere: 0, unknown: 0 };
        const tell = (path: PlannedPath, at: number) => {
          if (states[path.state]++ < LISTED_MAX) listed[path.state].push([at, path]);
        };
        await this.#deps.plans.run(waiter, {
          key: `list ${++this.#lists}`,
          run: (signal) =>
            this.#deps.planner.planPaths(paths, { requestId: "search", signal, tell }),
        });
        const isWhole = paths.length <= LISTED_MAX;
        const inOrder = (some: [number, PlannedPath][]) => some.toSorted(([a], [b]) => a - b);
        const kinds = Object.values(listed);
        const first = (isWhole ? inOrder(kinds.flat()) : kinds.flatMap(inOrder))
          .slice(0, LISTED_MAX).map(([, path]) => path);
        return { ...none, listed: { paths: first, count: paths.length, states, unreadable } };
      }
      const path = storePathIn(query);
      if (path !== undefined) return { ...none, explanation: await this.explain(path, waiter) };
      const named = await this.#turns.run(waiter, {
        key: `name ${query}`,
        run: (signal) => this.#deps.names.findNamed(query, NAMED_MAX, signal),
      });
      return { ...none, named };
    } catch (error) {
      waiter.signal.throwIfAborted();
      const kind = error instanceof Failure ? error.kind : undefined;
      return {
        ...none,
        failure: kind === "busy" || kind === "away" ? kind : "unreadable",
        cause: error,
      };
    }
  }

  /** The same for people, who would choose the only path that was found. */
  async findToShow(text: string, waiter: Waiter): Promise<Found> {
    const found = await this.find(text, waiter);
    const [only, ...others] = found.named;
    return only === undefined || others.length > 0
      ? found
      : { ...await this.find(only.storePathHash, waiter), query: found.query };
  }

  /** Ends the search that runs, and refuses all others. */
  [Symbol.dispose](): void {
    this.#turns[Symbol.dispose]();
  }
}
