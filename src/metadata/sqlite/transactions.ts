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
  readonly #raised: () => void;
  /** All rows that this connection has written; `undefined` if that must be read. */
  #rows: number | undefined;

  /** `raised` is called after each commit that has raised the revision. */
  constructor(
    database: DatabaseSync,
    statements: Statements,
    raised: () => void = () => {},
  ) {
    this.#database = database;
    this.#statements = statements;
    this.#checkpoints = new Checkpoints(database.location());
    this.#raised = raised;
  }

  /**
   * Runs the synchronous `work` in one transaction. If it writes, other processes drop the rows
   * that they hold in memory, unless `keepsRevision` is set. Throws when nothing was written.
   */
  within<Value>(
    work: () => Value,
    { keepsRevision = false }: { readonly keepsRevision?: boolean } = {},
  ): Value {
    const { begin, commit, rollback, raiseRevision } = this.#statements;
    begin.run();
    const before = this.#rows ?? this.#rowsWritten();
    this.#rows = undefined;
    let value: Value;
    let rows: number;
    let isRaised = false;
    try {
      value = work();
      rows = this.#rowsWritten();
      isRaised = !keepsRevision && rows !== before;
      if (isRaised) rows += Number(raiseRevision.run().changes);
      commit.run();
    } catch (error) {
      try {
        rollback.run();
      } catch {
        // After some errors, such as a full disk, SQLite has rolled back by itself.
      }
      throw error;
    }
    this.#rows = rows;
    this.#checkpoints.committed(rows);
    if (isRaised) this.#raised();
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
}
