import type { Statements } from "./statements.ts";

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

  /** Visits at most `pathsMax` paths; true while more are left. */
  step(pathsMax: number): boolean {
    const { toExpand, setExpanded, expand, sweepProtected } = this.#statements;
    const batch = toExpand.all(pathsMax) as { path_id: number; generation: number }[];
    for (const { path_id, generation } of batch) {
      setExpanded.run(path_id, generation);
      expand.run(generation, path_id);
    }
    if (batch.length > 0) return true;
    return Number(sweepProtected.run(pathsMax).changes) === pathsMax;
  }
}
