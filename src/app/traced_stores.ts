import type { Space } from "../lru/space.ts";
import type { MetadataStore } from "../metadata/metadata_store.ts";
import type { NarStore } from "../storage/nar_store.ts";
import { type SpanStart, traced, type Tracer } from "../telemetry/tracer.ts";

/** A span for each query. Lies below what keeps answers in memory: those are no queries. */
export function tracedMetadata<Store extends MetadataStore>(inner: Store, tracer: Tracer): Store {
  const query = (operation: string): SpanStart => ({
    name: operation,
    kind: "client",
    facts: { "db.system.name": "sqlite", "db.operation.name": operation },
  });
  return traced<Store>(inner, tracer, {
    findNarinfo: query("findNarinfo"),
    findNar: query("findNar"),
    sourcesOf: query("sourcesOf"),
    narinfosOf: query("narinfosOf"),
    referencesOf: query("referencesOf"),
    findPin: query("findPin"),
    pins: query("pins"),
    findDocument: query("findDocument"),
    documentPiece: query("documentPiece"),
    archiveOf: query("archiveOf"),
    apply: query("apply"),
    stock: query("stock"),
    protect: query("protect"),
  } as Partial<Record<keyof Store & string, SpanStart>>);
}

/** A span for each operation on a file. */
export function tracedNars(inner: NarStore, tracer: Tracer): NarStore {
  return traced(inner, tracer, {
    open: { name: "open nar file" },
    publish: { name: "publish nar file" },
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
