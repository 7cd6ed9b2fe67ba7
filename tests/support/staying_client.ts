import type { OpenOptions } from "../../src/storage/nar_store.ts";

/** A client that does not leave before it has its answer. */
export const STAYS: OpenOptions = { signal: new AbortController().signal };
