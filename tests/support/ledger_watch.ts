import type { MetadataStore } from "../../src/metadata/metadata_store.ts";
import type { ModelConnection } from "./model_database.ts";

const SUM_SQL = `SELECT kept_bytes + pending_bytes +
  (SELECT coalesce(sum(reserved_bytes), 0) FROM member) AS bytes FROM stock`;

/**
 * Sums the stored and the reserved bytes of all members, after each call of any of them. The sum
 * may be above the limit after that was lowered, but never grow there.
 */
export class LedgerWatch {
  readonly violations: string[] = [];
  readonly #limitBytes: () => number;
  #lastBytes = 0;

  constructor(limitBytes: () => number) {
    this.#limitBytes = limitBytes;
  }

  watched(metadata: MetadataStore, database: ModelConnection): MetadataStore {
    return new Proxy(metadata, {
      get: (target, name) => {
        const method: unknown = Reflect.get(target, name);
        if (typeof method !== "function") return method;
        return async (...args: unknown[]) => {
          try {
            return await method.apply(target, args);
          } finally {
            if (database.isOpen) {
              const looked = database.rows(SUM_SQL);
              const [row] = looked instanceof Promise ? await looked : looked;
              this.#noteBytes(Number(row?.["bytes"]), String(name));
            }
          }
        };
      },
    });
  }

  #noteBytes(bytes: number, call: string): void {
    if (bytes > this.#limitBytes() && bytes > this.#lastBytes) {
      this.violations.push(`${call} takes stored and reserved bytes to ${bytes}`);
    }
    this.#lastBytes = bytes;
  }
}
