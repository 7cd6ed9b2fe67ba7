import type { Statements } from "./statements.ts";

/** The walk over everything that pins reach; each step is part of somebody's transaction. */
export class Protection {
  readonly #statements: Statements;

  constructor(statements: Statements) {
    this.#statements = statements;
  }

  /** A pin was set: from its root on everything is protected. */
  pinned(pathId: number): void {
    this.#statements.protectRoot.run(pathId);
  }

  /** A pin, or the references of a protected path, went: what the other pins reach stays. */
  startAgain(): void {
    this.#statements.nextGeneration.run();
    this.#statements.protectRoots.run();
  }

  /** A narinfo was stored: where it is protected, so is what it refers to. */
  stored(pathId: number): void {
    this.#statements.expandAgain.run(pathId);
  }

  /** False while not all that is protected is known. */
  get settled(): boolean {
    return this.#statements.isUnsettled.get() === undefined;
  }

  /** Walks on by at most `pathsMax` paths; true while there is more to do. */
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
