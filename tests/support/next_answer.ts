import type { MetadataStore } from "../../src/metadata/metadata_store.ts";

/** A held answer of a store. */
export interface HeldAnswer {
  /** Resolves once the store has read the row. */
  readonly read: Promise<void>;
  release(): void;
}

type Finder = "findNarinfo" | "findNar" | "findDocument";

/** Holds the next answer of `method`. It is as old as the call, whatever is written meanwhile. */
export function nextAnswer(store: Pick<MetadataStore, Finder>, method: Finder): HeldAnswer {
  const read = Promise.withResolvers<void>();
  const released = Promise.withResolvers<void>();
  const find: (key: never) => Promise<unknown> = store[method].bind(store);
  const own = Object.getOwnPropertyDescriptor(store, method);
  let isNext = true;
  Object.assign(store, {
    async [method](key: never) {
      // A wrapper around the store may still have this method then.
      if (!isNext) return await find(key);
      isNext = false;
      if (own === undefined) Reflect.deleteProperty(store, method);
      else Object.defineProperty(store, method, own);
      const row = await find(key);
      read.resolve();
      await released.promise;
      return row;
    },
  });
  return { read: read.promise, release: released.resolve };
}
