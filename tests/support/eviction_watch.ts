import type { MetadataStore } from "../../src/metadata/metadata_store.ts";
import type { Evicted, EvictionOrder } from "../../src/metadata/space_keeper.ts";
import type { NarName } from "../../src/nix/nar_name.ts";
import { narNameOf } from "../../src/nix/stored_name.ts";
import type { StorePathHash } from "../../src/nix/store_path.ts";
import type { ModelConnection } from "./model_database.ts";
import { narNamed, type SmallWorld } from "./small_world.ts";

interface Entry {
  /** `null` where no narinfo names the file. */
  readonly hash: StorePathHash | null;
  readonly name: NarName;
  readonly used_at_ms: number;
  /** The store's own opinion. */
  readonly protected: number | boolean;
  /** Whether there is a NAR file: an entry that frees nothing may stay. */
  readonly kept: number | boolean;
}

/** The state when an eviction begins. */
interface Moment {
  readonly entries: readonly Entry[];
  readonly pins: readonly number[];
  readonly underWay: ReadonlySet<NarName>;
}

const ENTRIES_SQL = `
  SELECT p.hash, n.name, u.used_at_ms, u.protected, n.kept_size IS NOT NULL AS kept FROM narinfo i
    JOIN narinfo_use u ON u.path_id = i.path_id
    JOIN path p ON p.id = i.path_id JOIN nar n ON n.id = i.nar_id
  UNION ALL
  SELECT NULL, n.name, l.used_at_ms, 1 = 0, 1 = 1 FROM loose_nar l JOIN nar n ON n.id = l.nar_id
    WHERE l.kept`;

/**
 * Judges each eviction at its very moment, by the entries and pins of then, and by the world's
 * references. Does not ask the store which paths it takes for protected.
 */
export class EvictionWatch {
  readonly violations: string[] = [];
  /** The paths that have gone since `forget`. */
  readonly paths = new Set<number>();
  readonly nars = new Set<NarName>();
  readonly #world: SmallWorld;
  /** The NARs under way when the order left its member. */
  readonly #underWay = new WeakMap<EvictionOrder, ReadonlySet<NarName>>();

  constructor(world: SmallWorld) {
    this.#world = world;
  }

  forget(): void {
    this.paths.clear();
    this.nars.clear();
  }

  /** The store as those behind the watch have it. */
  watched(metadata: MetadataStore, database: ModelConnection): MetadataStore {
    return withEvict(metadata, (order) => this.#evict(metadata, database, order));
  }

  /**
   * The store as a member has it, which reads and downloads `underWay`. An order may wait for its
   * turn at the database: a read that begins meanwhile comes too late for it.
   */
  ordered(metadata: MetadataStore, underWay: () => ReadonlySet<NarName>): MetadataStore {
    return withEvict(metadata, (order) => {
      this.#underWay.set(order, underWay());
      return metadata.evict(order);
    });
  }

  async #evict(
    metadata: MetadataStore,
    database: ModelConnection,
    order: EvictionOrder,
  ): Promise<Evicted> {
    const looked = [ENTRIES_SQL, "SELECT hash FROM pin_root"].map((sql) => database.rows(sql));
    // Without a turn of the event loop where the rows are there at once.
    const isLater = looked.some((rows) => rows instanceof Promise);
    const [entries = [], roots = []] = (isLater ? await Promise.all(looked) : looked) as [
      readonly Entry[],
      readonly { readonly hash: StorePathHash }[],
    ];
    const pins = roots.map(({ hash }) => this.#world.numberOf(hash));
    const underWay = this.#underWay.get(order) ?? new Set();
    const before = database.version();
    // Nothing of the same process comes in between.
    const evicted = await metadata.evict(order);
    for (const { at } of evicted.files) this.nars.add(narNameOf(at));
    for (const hash of evicted.narinfos) this.paths.add(this.#world.numberOf(hash));
    // Another one that evicted at the same time has changed the choice.
    const isAlone = database.version() === before;
    if (isAlone) this.#judge({ entries, pins, underWay }, order, evicted);
    return evicted;
  }

  #judge(
    { entries, pins, underWay }: Moment,
    { bytesMin }: EvictionOrder,
    { narinfos, files }: Evicted,
  ): void {
    const stored = new Set(entries.map(({ hash }) => hash ? this.#world.numberOf(hash) : -1));
    const closure = this.#world.closure(pins, stored);
    const names = files.map(({ at }) => narNameOf(at));
    const gone = new Set<string>([...narinfos, ...names]);
    const isGone = ({ hash, name }: Entry) => gone.has(hash ?? name);
    const left = entries.filter((entry) => !isGone(entry));
    const youngest = Math.max(...entries.filter(isGone).map((entry) => entry.used_at_ms));

    for (const hash of narinfos) {
      const path = this.#world.numberOf(hash);
      if (closure.has(path)) this.violations.push(`evicted path ${path} of a pinned closure`);
    }
    for (const { name } of entries.filter(isGone)) {
      if (underWay.has(name)) this.violations.push(`evicted ${name}, which is on its way`);
    }
    for (const narName of names) {
      const owner = left.find(({ hash, name }) => hash !== null && name === narName);
      if (owner) this.violations.push(`evicted ${narName}, which ${owner.hash} still needs`);
    }
    for (const { hash, name, used_at_ms, protected: isProtected, kept } of left) {
      if (used_at_ms >= youngest || Boolean(isProtected) || underWay.has(name)) continue;
      if (!kept) continue;
      this.violations.push(`${hash ?? name} is older than what was evicted, and stays`);
    }
    const bytes = names.slice(0, -1).map((narName) => narNamed(narName).bytes.length);
    const freed = bytes.reduce((sum, size) => sum + size, 0);
    if (files.length > 0 && freed >= bytesMin) this.violations.push("evicted more than was asked");
  }
}

function withEvict(metadata: MetadataStore, evict: MetadataStore["evict"]): MetadataStore {
  return new Proxy(metadata, {
    get: (target, name) => {
      if (name === "evict") return evict;
      const method: unknown = Reflect.get(target, name);
      return typeof method === "function" ? method.bind(target) : method;
    },
  });
}
