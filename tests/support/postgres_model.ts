import pLimit from "p-limit";
import type { MemberId } from "../../src/base/member_id.ts";
import type { MetadataStore } from "../../src/metadata/metadata_store.ts";
import { Database } from "../../src/metadata/postgres/database.ts";
import type { PostgresMetadataStore } from "../../src/metadata/postgres/postgres_metadata_store.ts";
import { createLogger } from "../../src/telemetry/logger.ts";
import type { ModelConnection, Row } from "./model_database.ts";
import { Dead } from "./mortal_life.ts";
import { openPostgresStore } from "./postgres.ts";

const EMPTY_SQL = `DO $$ BEGIN
  EXECUTE (SELECT 'TRUNCATE ' || string_agg(quote_ident(tablename), ', ') FROM pg_tables
    WHERE schemaname = 'public' AND tablename NOT IN ('schema_version', 'pin_walk'));
  UPDATE pin_walk SET generation = 1;
END $$`;

/**
 * One PostgreSQL database for a run of a model. Calls of all larders take turns, so that the
 * watcher of one sees its moment; a larder dies between two of them.
 */
export class PostgresModel implements AsyncDisposable {
  readonly #url: string;
  readonly #database: Database;
  readonly #turn = pLimit(1);
  readonly #dead: PostgresMetadataStore[] = [];

  constructor(url: string) {
    this.#url = url;
    const log = createLogger("error", { write: () => undefined });
    this.#database = new Database({ url, log });
  }

  /** Of a database that an earlier run may have filled. */
  async empty(): Promise<void> {
    await this.#database.query({ text: EMPTY_SQL });
  }

  readonly connect = async (_folder: string, nowMs: () => number): Promise<ModelConnection> => {
    const store = await openPostgresStore(this.#url, nowMs);
    let isOpen = true;
    const rows = (sql: string): Promise<readonly Row[]> => this.#database.query({ text: sql });
    return {
      store,
      get isOpen() {
        return isOpen;
      },
      rows,
      version: () => undefined,
      isSettled: async () => {
        const open = await rows(`SELECT 1 FROM protected_path p, pin_walk w
          WHERE NOT p.expanded OR p.generation < w.generation`);
        return open.length === 0;
      },
      guarded: (watched) => this.#guarded(watched, () => isOpen),
      die: (member, silentMs) => {
        isOpen = false;
        this.#dead.push(store);
        void this.#turn(() => this.#age(member, silentMs));
      },
      close: async () => {
        isOpen = false;
        await this.#turn(() => store[Symbol.asyncDispose]());
      },
    };
  };

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#turn(() => undefined);
    for (const store of this.#dead) await store[Symbol.asyncDispose]();
    await this.#database[Symbol.asyncDispose]();
  }

  async #age(member: MemberId, silentMs: number): Promise<void> {
    const text = "UPDATE member SET heartbeat_at_ms = heartbeat_at_ms - $2 WHERE id = $1";
    await this.#database.query({ text, values: [member, silentMs] });
  }

  #guarded(watched: MetadataStore, isOpen: () => boolean): MetadataStore {
    return new Proxy(watched, {
      get: (target, name) => {
        const method: unknown = Reflect.get(target, name);
        if (typeof method !== "function") return method;
        return (...args: readonly unknown[]) =>
          this.#turn(async () => {
            if (!isOpen()) throw new Dead("the process is dead");
            return await Reflect.apply(method, target, args);
          });
      },
    });
  }
}
