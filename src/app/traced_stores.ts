import type { Space } from "../space/space.ts";
import type { MetadataStore } from "../metadata/metadata_store.ts";
import type { NarStore } from "../storage/nar_store.ts";
import { type SpanStart, traced, type Tracer } from "../telemetry/tracer.ts";

/** A method of the metadata store in SQL's terms; no table if there are several. */
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
  graphRows: select("reference"),
  narinfoBodies: select("narinfo"),
  findNamed: select("narinfo"),
  findPin: select("pin_root"),
  pins: select("pin_root"),
  findDocument: select("document"),
  documentPiece: select("document_piece"),
  documentBytes: select("document_stock"),
  archivesOf: select("document"),
  stock: select("stock"),
  coldest: select("narinfo_use"),
  expireNars: { operation: "BATCH", table: "loose_nar" },
  recordHistory: { operation: "BATCH", table: "history" },
  history: select("history"),
  reserve: { operation: "BATCH", table: "member" },
  apply: { operation: "BATCH" },
  evict: { operation: "BATCH" },
  sweepRows: { operation: "BATCH" },
  protect: { operation: "BATCH", table: "protected_path" },
};

/** Databases by their names in OpenTelemetry's conventions. */
const SYSTEMS = { sqlite: "sqlite", postgres: "postgresql" } as const;

/**
 * A store with a span for each query. Belongs below the memory cache, whose answers are no queries.
 */
export function tracedMetadata<Store extends MetadataStore>(
  inner: Store,
  kind: keyof typeof SYSTEMS,
  tracer: Tracer,
): Store {
  const starts = Object.entries(QUERIES)
    .map(([method, query]) => [method, spanOf(method, query, SYSTEMS[kind])]);
  return traced<Store>(inner, tracer, Object.fromEntries(starts));
}

/** A span with the attributes of OpenTelemetry's conventions for databases. */
function spanOf(method: string, { operation, table }: Query, system: string): SpanStart {
  return {
    name: table === undefined ? operation : `${operation} ${table}`,
    kind: "client",
    facts: {
      "db.system.name": system,
      "db.operation.name": operation,
      ...(table === undefined ? {} : { "db.collection.name": table }),
      "code.function.name": method,
    },
  };
}

/** A store with a span for each file operation. */
export function tracedNars(inner: NarStore, tracer: Tracer): NarStore {
  return traced(inner, tracer, {
    open: { name: "open nar file" },
    put: { name: "publish nar file" },
    remove: { name: "remove nar file" },
  });
}

/** A space with a span for each wait. */
export function tracedSpace(inner: Space, tracer: Tracer): Space {
  return traced(inner, tracer, {
    reserve: { name: "wait for space" },
    grow: { name: "wait for more space" },
  });
}
