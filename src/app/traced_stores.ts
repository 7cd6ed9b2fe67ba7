import type { Space } from "../space/space.ts";
import type { MetadataStore } from "../metadata/metadata_store.ts";
import type { NarStore } from "../storage/nar_store.ts";
import { type SpanStart, traced, type Tracer } from "../telemetry/tracer.ts";

/** What a method of the metadata store does, in SQL's words; none where it is several tables. */
interface Query {
  readonly operation: "SELECT" | "BATCH";
  readonly table?: string;
}

const select = (table: string): Query => ({ operation: "SELECT", table });

const QUERIES: Readonly<Record<string, Query>> = {
  findNarinfo: select("narinfo"),
  findNar: select("nar"),
  sourcesOf: select("nar_source"),
  narinfosOf: select("narinfo"),
  referencesOf: select("reference"),
  findPin: select("pin_root"),
  pins: select("pin_root"),
  findDocument: select("document"),
  documentPiece: select("document_piece"),
  documentBytes: select("document_stock"),
  archivesOf: select("document"),
  stock: select("stock"),
  coldest: select("narinfo_use"),
  apply: { operation: "BATCH" },
  evict: { operation: "BATCH" },
  sweepRows: { operation: "BATCH" },
  protect: { operation: "BATCH", table: "protected_path" },
};

/** A span for each query. Lies below what keeps answers in memory: those are no queries. */
export function tracedMetadata<Store extends MetadataStore>(inner: Store, tracer: Tracer): Store {
  const starts = Object.entries(QUERIES).map(([method, query]) => [method, spanOf(method, query)]);
  return traced<Store>(inner, tracer, Object.fromEntries(starts));
}

/** As OpenTelemetry's conventions for databases want it. */
function spanOf(method: string, { operation, table }: Query): SpanStart {
  return {
    name: table === undefined ? operation : `${operation} ${table}`,
    kind: "client",
    facts: {
      "db.system.name": "sqlite",
      "db.operation.name": operation,
      ...(table === undefined ? {} : { "db.collection.name": table }),
      "code.function.name": method,
    },
  };
}

/** A span for each operation on a file. */
export function tracedNars(inner: NarStore, tracer: Tracer): NarStore {
  return traced(inner, tracer, {
    open: { name: "open nar file" },
    put: { name: "publish nar file" },
    remove: { name: "remove nar file" },
  });
}

/** A span for each wait for space. */
export function tracedSpace(inner: Space, tracer: Tracer): Space {
  return traced(inner, tracer, {
    reserve: { name: "wait for space" },
    grow: { name: "wait for more space" },
  });
}
