import type { DatabaseSync } from "node:sqlite";
import { Checkpoints } from "./checkpoints.ts";
import type { Statements } from "./statements.ts";

/** The write transactions of one connection, which it owns. */
export class Transactions implements AsyncDisposable {
  readonly #database: DatabaseSync;
  readonly #statements: Pick<Statements, "begin" | "commit" | "rollback" | "rowsWritten">;
  readonly #checkpoints: Checkpoints;

  constructor(database: DatabaseSync, statements: Statements) {
    this.#database = database;
    this.#statements = statements;
    this.#checkpoints = new Checkpoints(database.location());
  }

  /** Runs the synchronous `work` in one transaction. Throws when nothing was written. */
  within<Value>(work: () => Value): Value {
    const { begin, commit, rollback } = this.#statements;
    begin.run();
    let value: Value;
    try {
      value = work();
      commit.run();
    } catch (error) {
      try {
        rollback.run();
      } catch {
        // After some errors, such as a full disk, SQLite has rolled back by itself.
      }
      throw error;
    }
    this.#checkpoints.committed(Number(this.#statements.rowsWritten.get()?.["count"]));
    return value;
  }

  /** Resolves when large writes do not disturb a checkpoint. */
  async ready(): Promise<void> {
    await this.#checkpoints.idle();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#checkpoints[Symbol.asyncDispose]();
    this.#database.close();
  }
}
