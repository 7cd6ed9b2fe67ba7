import type { Statements } from "./statements.ts";

/** References of one step: it stops the thread for some 3 ms. */
const REFERENCES_MAX = 512;

/** A path whose references are to be visited. */
interface ToExpand {
  readonly path_id: number;
  readonly generation: number;
  /** The last one that was. */
  readonly visited: number;
}

/** The walk over all paths that pins reach. Call each step within a transaction. */
export class Protection {
  readonly #statements: Statements;

  constructor(statements: Statements) {
    this.#statements = statements;
  }

  /** A pin was set: protects the closure of its root. */
  pinned(pathId: number): void {
    this.#statements.protectRoot.run(pathId);
  }

  /** A pin, or references of a protected path, were removed: the other pins' closures stay. */
  startAgain(): void {
    this.#statements.nextGeneration.run();
    this.#statements.protectRoots.run();
  }

  /** A narinfo was stored: if it is protected, its references become so. */
  stored(pathId: number): void {
    this.#statements.expandAgain.run(pathId);
  }

  /** True when all protected paths are known. */
  get settled(): boolean {
    return this.#statements.isUnsettled.get() === undefined;
  }

  /** False when `step` would change nothing. */
  get hasStep(): boolean {
    return this.#statements.hasStep.get() !== undefined;
  }

  /**
   * Visits at most `pathsMax` paths, and some references of those; true while more are left.
   */
  step(pathsMax: number): boolean {
    const { toExpand, sweepProtected } = this.#statements;
    const batch = toExpand.all(pathsMax) as unknown as readonly ToExpand[];
    let references = 0;
    for (const path of batch) {
      references += this.#visit(path);
      if (references > REFERENCES_MAX) break;
    }
    if (batch.length > 0) return true;
    return Number(sweepProtected.run(pathsMax).changes) === pathsMax;
  }

  /** Protects the next references of the path; returns how many. */
  #visit({ path_id, generation, visited }: ToExpand): number {
    const { lastOfReferences, expand, setExpanded, setVisited } = this.#statements;
    const next = lastOfReferences.get(path_id, visited, REFERENCES_MAX);
    const count = Number(next?.["count"]);
    if (count < REFERENCES_MAX) setExpanded.run(path_id, generation);
    if (count === 0) return 0;
    const last = Number(next?.["last"]);
    // Before the visit: a path may refer to itself, for a newer generation.
    if (count === REFERENCES_MAX) setVisited.run(last, path_id, generation);
    expand.run(generation, path_id, visited, last);
    return count;
  }
}
