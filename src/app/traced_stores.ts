import { streamFrom } from "../base/stream_of.ts";
import type { Space } from "../space/space.ts";
import type { StoredName } from "../nix/stored_name.ts";
import type { MetadataStore } from "../metadata/metadata_store.ts";
import type { NarStore, OpenOptions, StoredNar } from "../storage/nar_store.ts";
import { type RunBelow, type SpanStart, traced, type Tracer } from "../telemetry/tracer.ts";
import type { Bytes } from "../base/bytes.ts";

/** A method of the metadata store in SQL's terms; no table if there are several. */
interface TracedQuery {
  readonly operation: "SELECT" | "UPDATE" | "BATCH";
  readonly table?: string;
}

const select = (table: string): TracedQuery => ({ operation: "SELECT", table });

const QUERIES: Readonly<Record<string, TracedQuery>> = {
  findNarinfo: select("narinfo"),
  findNar: select("nar"),
  sourcesOf: select("nar_source"),
  narinfosOf: select("narinfo"),
  narOfFormerName: select("former_name"),
  formerNamesOf: select("former_name"),
  putFormerNames: { operation: "BATCH", table: "former_name" },
  referencesOf: select("reference"),
  graphRows: select("reference"),
  narinfoBodies: select("narinfo"),
  findNamed: select("narinfo"),
  findSigned: select("signed_path"),
  signedCounts: select("signed_path"),
  findPin: select("pin_root"),
  pins: select("pin_root"),
  namedPins: select("pin_name"),
  notePin: { operation: "UPDATE", table: "pin_root" },
  findDocument: select("document"),
  documentPiece: select("document_piece"),
  documentBytes: select("document_stock"),
  debuginfoSourcesOf: select("document"),
  stock: select("stock"),
  coldest: select("narinfo_use"),
  expireNars: { operation: "BATCH", table: "loose_nar" },
  recordHistory: { operation: "BATCH", table: "history" },
  history: select("history"),
  recordPulls: { operation: "BATCH", table: "pull" },
  pulls: select("pull"),
  findPull: select("pull"),
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
function spanOf(method: string, { operation, table }: TracedQuery, system: string): SpanStart {
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

/** A store with a span for each file operation. Requests to S3 are spans below it. */
export function tracedNars(inner: NarStore, kind: "local" | "s3", tracer: Tracer): NarStore {
  const store = traced(inner, tracer, {
    open: { name: "open nar file" },
    put: { name: "publish nar file" },
    remove: { name: "remove nar file" },
  });
  return kind === "s3" ? readsTraced(store, tracer) : store;
}

/** A store whose reads are part of the trace in which a file was opened. */
function readsTraced(inner: NarStore, tracer: Tracer): NarStore {
  return {
    async open(at: StoredName, options: OpenOptions): Promise<StoredNar | undefined> {
      if (tracer.ids() === undefined) return await inner.open(at, options);
      const run = tracer.here();
      const stored = await inner.open(at, options);
      return stored && readsBelow(stored, run);
    },
    put: (at, path) => inner.put(at, path),
    remove: (at) => inner.remove(at),
    list: (prefix, options) => inner.list(prefix, options),
  };
}

function readsBelow(stored: StoredNar, run: RunBelow): StoredNar {
  const { fileSize, seal } = stored;
  return {
    ...{ fileSize, seal },
    bytes: (options) => run(() => stored.bytes(options)),
    read: (start, end, options) => streamBelow(stored.read(start, end, options), run),
    [Symbol.asyncDispose]: () => stored[Symbol.asyncDispose](),
  };
}

/** The server reads a body outside of its request's span. */
function streamBelow(body: ReadableStream<Bytes>, run: RunBelow): ReadableStream<Bytes> {
  const reader = body.getReader();
  return streamFrom({
    next: async () => (await run(() => reader.read())).value,
    cancel: (reason) => reader.cancel(reason),
  });
}

/** A space with a span for each wait. */
export function tracedSpace(inner: Space, tracer: Tracer): Space {
  return traced(inner, tracer, {
    reserve: { name: "wait for space" },
    grow: { name: "wait for more space" },
  });
}
