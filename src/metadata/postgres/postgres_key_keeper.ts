import { Failure, messageOf } from "../../base/failure.ts";
import type { KeyKeeper } from "../key_keeper.ts";
import type { Database } from "./database.ts";

const SQL = {
  find: "SELECT secret FROM signing_key",
  adopt: "INSERT INTO signing_key (secret) VALUES ($1) ON CONFLICT DO NOTHING",
} as const;

/** The signing key in a PostgreSQL database. */
export class PostgresKeyKeeper implements KeyKeeper {
  readonly #database: Pick<Database, "query">;

  constructor(database: Pick<Database, "query">) {
    this.#database = database;
  }

  async signingKey(): Promise<string | undefined> {
    const [row] = await this.#query("find");
    return row && String(row["secret"]);
  }

  async adoptSigningKey(text: string): Promise<string> {
    await this.#query("adopt", text);
    // A statement of its own: the first one does not see a row that another member adds meanwhile.
    const kept = await this.signingKey();
    if (kept === undefined) throw new Failure("broken", "Cannot keep the signing key: it is gone");
    return kept;
  }

  async #query(name: keyof typeof SQL, ...values: readonly string[]) {
    try {
      return await this.#database.query({ text: SQL[name], values });
    } catch (error) {
      if (error instanceof Failure) throw error;
      // Without the statement and its values.
      const message = `Cannot use the signing key in the database: ${messageOf(error)}`;
      throw new Failure("broken", message, {}, error);
    }
  }
}
