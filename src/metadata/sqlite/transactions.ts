import type { DatabaseSync } from "node:sqlite";
import { Checkpoints } from "./checkpoints.ts";
import type { Statements } from "./statements.ts";

type TransactionStatements = Pick<
  Statements,
  "begin" | "commit" | "rollback" | "rowsWritten" | "raiseRevision"
>;

/** The write transactions of one connection, which it owns. */
export class Transactions implements AsyncDisposable {
  readonly #database: DatabaseSync;
  readonly #statements: TransactionStatements;
  readonly #checkpoints: Checkpoints;
  readonly #raised: (revision: number) => void;

  /** `raised` is called with each revision of the rows that this connection has committed. */
  constructor(
    database: DatabaseSync,
    statements: Statements,
    raised: (revision: number) => void = () => {},
  ) {
    this.#database = database;
    this.#statements = statements;
    this.#checkpoints = new Checkpoints(database.location());
    this.#raised = raised;
  }

  /**
   * Runs the synchronous `work` in one transaction. If it writes, other processes drop the rows
   * that they hold in memory, unless it is `quiet`. Throws when nothing was written.
   */
  within<Value>(work: () => Value, { quiet = false }: { readonly quiet?: boolean } = {}): Value {
    const { begin, commit, rollback } = this.#statements;
    begin.run();
    const before = this.#rowsWritten();
    let value: Value;
    let revision: number | undefined;
    try {
      value = work();
      if (!quiet && this.#rowsWritten() !== before) revision = this.#raiseRevision();
      commit.run();
    } catch (error) {
      try {
        rollback.run();
      } catch {
        // After some errors, such as a full disk, SQLite has rolled back by itself.
      }
      throw error;
    }
    this.#checkpoints.committed(this.#rowsWritten());
    if (revision !== undefined) this.#raised(revision);
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

  #rowsWritten(): number {
    return Number(this.#statements.rowsWritten.get()?.["count"]);
  }

  #raiseRevision(): number {
    return Number(this.#statements.raiseRevision.get()?.["revision"]);
  }
}
