import { DirectoryUpstream } from "./directory_upstream.ts";
import { NixClient } from "./nix_client.ts";
import { addObjects, type NixObject, storePathOf } from "./nix_store_objects.ts";
import { tempFolder } from "./temp_folder.ts";

/** The packages of the documents. A page shows their real store paths. */
const OBJECTS: readonly NixObject[] = [
  { name: "hello-2.12.2" },
  { name: "libc-2.40", content: { bytes: 2_000_000 } },
  { name: "zlib-1.3", content: { bytes: 200_000 } },
  { name: "editor-9.1", content: { bytes: 800_000 }, references: ["libc-2.40", "zlib-1.3"] },
  { name: "plugin-0.3" },
  { name: "runtime-14", content: { bytes: 2_000_000 } },
  {
    name: "toolchain-14",
    content: { bytes: 6_000_000 },
    references: ["runtime-14", "plugin-0.3"],
  },
];

/** The name of a store object that no upstream has. */
const ABSENT = "plugin-0.3";

/** A signed binary cache that stands in for every upstream of the documents. */
export class DocWorld implements AsyncDisposable {
  /** The cache as files, such as on a stick. */
  readonly folder: string;
  readonly upstream: DirectoryUpstream;
  /** The key of another upstream. */
  readonly otherKey: string;
  readonly #owned: Disposable;

  private constructor(owned: Disposable, folder: string, keys: readonly [string, string]) {
    this.#owned = owned;
    this.folder = folder;
    this.upstream = new DirectoryUpstream(folder, keys[0]);
    this.otherKey = keys[1];
  }

  /** `objects`: those of its upstream; empty where a test needs no upstream. */
  static async open(objects: readonly NixObject[] = OBJECTS): Promise<DocWorld> {
    using owned = new DisposableStack();
    const { path } = owned.use(tempFolder());
    const maker = owned.use(new NixClient());
    if (objects.length > 0) await addObjects(maker, objects);
    const key = await maker.makeKey("stand-in-1");
    const other = await maker.makeKey("stand-in-2");
    for (const { name } of objects) {
      await maker.copyTo(path, storePathOf(name), { compression: "zstd", key });
    }
    if (objects.some(({ name }) => name === ABSENT)) {
      Deno.removeSync(`${path}/${hashOf(ABSENT)}.narinfo`);
    }
    return new DocWorld(owned.move(), path, [key.publicKey, other.publicKey]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.upstream[Symbol.asyncDispose]();
    this.#owned[Symbol.dispose]();
  }
}

function hashOf(name: string): string {
  return storePathOf(name).slice("/nix/store/".length).split("-")[0] ?? "";
}
