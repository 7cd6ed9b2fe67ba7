import assert from "node:assert/strict";
import fc from "fast-check";
import type { Change, MetadataStore } from "../../src/metadata/metadata_store.ts";
import { openDatabase } from "../../src/metadata/sqlite/connection.ts";
import { SqliteMetadataStore } from "../../src/metadata/sqlite/sqlite_metadata_store.ts";
import { Pins } from "../../src/pins/pins.ts";
import { MemoryMetadataStore } from "../support/memory_metadata_store.ts";
import { fileOf, hash, keep, narOf, put } from "../support/metadata_rows.ts";
import { newPostgresStore, PostgresServer } from "../support/postgres.ts";
import { postgresMissing } from "../support/postgres_missing.ts";
import { checkProperty } from "../support/property.ts";

/** Few of each, so that names share roots and roots come back. */
const ROOTS = Array.from({ length: 5 }, (_, index) => hash(`root ${index}`));
const NAMES = ["ci/main", "host/a", "host/b"];

const root = fc.constantFrom(...ROOTS);
const name = fc.constantFrom(...NAMES);

const deed = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.tuple(fc.constant("roll"), root, name, fc.integer({ min: 1, max: 3 })),
  },
  { weight: 2, arbitrary: fc.tuple(fc.constant("pin"), root) },
  { weight: 2, arbitrary: fc.tuple(fc.constant("unpin"), root) },
  fc.tuple(fc.constant("end"), name),
) as fc.Arbitrary<Deed>;

type Root = typeof ROOTS[number];
type Deed =
  | readonly ["roll", Root, string, number]
  | readonly ["pin" | "unpin", Root]
  | readonly ["end", string];

/** What the words promise: the plain pins, and the newest roots of each name, oldest first. */
class Promised {
  readonly plain = new Set<Root>();
  readonly names = new Map<string, readonly Root[]>();

  perform(deed: Deed): void {
    switch (deed[0]) {
      case "pin":
        return void this.plain.add(deed[1]);
      case "end":
        return void this.names.delete(deed[1]);
      case "roll": {
        const [, rolled, name, keep] = deed;
        const others = this.#of(name).filter((one) => one !== rolled);
        return void this.names.set(name, [...others, rolled].slice(-keep));
      }
      case "unpin":
        this.plain.delete(deed[1]);
        for (const name of NAMES) {
          this.names.set(name, this.#of(name).filter((one) => one !== deed[1]));
        }
    }
  }

  get pinned(): ReadonlySet<Root> {
    return new Set([...this.plain, ...NAMES.flatMap((name) => this.#of(name))]);
  }

  /** As the store lists them. */
  get named(): readonly string[] {
    return NAMES.flatMap((name) => this.#of(name).map((one) => `${name} ${one}`));
  }

  #of(name: string): readonly Root[] {
    return this.names.get(name) ?? [];
  }
}

const server = PostgresServer.start();

const STORES: Readonly<
  Record<string, readonly [() => Promise<MetadataStore & AsyncDisposable>, number, string?]>
> = {
  "the maps": [async () => new MemoryMetadataStore(), 300],
  SQLite: [async () => new SqliteMetadataStore(await openDatabase(":memory:")), 100],
  PostgreSQL: [() => newPostgresStore(server), 15, postgresMissing],
};

for (const [kind, [open, runs, excuse = ""]] of Object.entries(STORES)) {
  checkProperty(
    `pin names: in ${kind}, exactly what a plain pin or the newest of a name holds is pinned`,
    fc.asyncProperty(fc.array(deed, { maxLength: 30 }), async (deeds) => {
      await using metadata = await open();
      await metadata.apply(ROOTS.flatMap(stored));
      let nowMs = 0;
      const pins = new Pins({
        ...{ metadata, nowMs: () => ++nowMs, changed: () => undefined },
        keepsComplete: () => undefined,
      });
      const promised = new Promised();
      for (const each of deeds) {
        promised.perform(each);
        await perform(pins, each);
        const roots = await metadata.pins();
        assert.deepEqual(new Set(roots.map(({ storePathHash }) => storePathHash)), promised.pinned);
        const rolling = roots.filter(({ rolls }) => !rolls).map((pin) => pin.storePathHash);
        assert.deepEqual(new Set(rolling), promised.plain);
        const named = (await metadata.namedPins()).map((one) => `${one.name} ${one.storePathHash}`);
        assert.deepEqual(named, promised.named);
      }
      // And nothing else is protected.
      while (await metadata.protect(100));
      const free = ROOTS.filter((each) => !promised.pinned.has(each));
      assert.deepEqual(await freeIn(metadata), new Set(free));
    }),
    { runs, excuse },
  );
}

/** A narinfo with its NAR file: without it, there is nothing to evict. */
function stored(root: Root): readonly Change[] {
  return [put(root, [], 1), ...keep(fileOf(narOf(root).name, 100), 1)];
}

async function perform(pins: Pins, deed: Deed): Promise<void> {
  switch (deed[0]) {
    case "roll":
      return void assert.ok(await pins.roll({ name: deed[2], keep: deed[3] }, deed[1]));
    case "pin":
      return void assert.ok(await pins.pin(deed[1]));
    case "unpin":
      return await pins.unpin(deed[1]);
    case "end":
      return void await pins.unpinName(deed[1]);
  }
}

/** What eviction may take. */
async function freeIn(metadata: MetadataStore): Promise<ReadonlySet<Root>> {
  const order = { bytesMin: Infinity, entriesMax: 1_000, spared: new Set<never>(), owner: "we" };
  await metadata.evict(order);
  const left = await Promise.all(ROOTS.map((each) => metadata.findNarinfo(each)));
  return new Set(ROOTS.filter((_, at) => left[at] === undefined));
}
