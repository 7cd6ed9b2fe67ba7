import { DatabaseSync } from "node:sqlite";
import { WorkerNcps } from "../../src/app/workers/worker_ncps.ts";
import {
  BinaryCacheSource,
  FolderReader,
} from "../../src/cache/import/binary_cache/binary_cache_source.ts";
import { NcpsSource } from "../../src/cache/import/ncps/ncps_source.ts";
import { NginxSource } from "../../src/cache/import/nginx/nginx_source.ts";
import { writeBinaryCache } from "../support/binary_cache_folder.ts";
import { DirectoryUpstream } from "../support/directory_upstream.ts";
import { httpCacheReader } from "../support/http_cache_reader.ts";
import {
  NCPS_KINDS,
  NCPS_PINNED,
  NCPS_UNAVAILABLE,
  type NcpsKind,
  ncpsStorage,
} from "../support/ncps_storage.ts";
import { STAYS } from "../support/staying_client.ts";
import { chain } from "../support/store_object.ts";
import { tempFolder } from "../support/temp_folder.ts";
import { checkContract, type Harness } from "./contract.ts";
import { type ImportScene, importSourceClauses } from "./import_source_contract.ts";

const OBJECTS = chain(3);
const [LEAF, , TOP] = OBJECTS;

type Scene = ImportScene & AsyncDisposable;

const harnesses: readonly Harness<ImportScene>[] = [
  {
    name: "BinaryCacheSource of a folder",
    open: async () => {
      const opened = new AsyncDisposableStack();
      const { path, ...scene } = await cacheFolder(opened);
      const reader = new FolderReader(path, Date.now);
      const wanted = { roots: reader.list(), hasClosures: false };
      return { ...scene, source: opened.use(new BinaryCacheSource(reader, wanted)) };
    },
  },
  {
    name: "BinaryCacheSource of a URL",
    open: async () => {
      const opened = new AsyncDisposableStack();
      const { path, ...scene } = await cacheFolder(opened);
      const reader = httpCacheReader(opened.use(new DirectoryUpstream(path, "")).url);
      const wanted = { roots: TOP ? [TOP.storePathHash] : [], hasClosures: true };
      return { ...scene, source: opened.use(new BinaryCacheSource(reader, wanted)) };
    },
  },
  { name: "NginxSource", open: nginxScene },
  ...NCPS_KINDS.map((kind): Harness<ImportScene> => ({
    name: `NcpsSource of ${kind} NARs`,
    unavailable: NCPS_UNAVAILABLE,
    open: () => ncpsScene(kind),
  })),
];

for (const harness of harnesses) checkContract(harness, importSourceClauses);

/** A folder that is a binary cache of OBJECTS. */
async function cacheFolder(opened: AsyncDisposableStack) {
  const { path } = opened.use(tempFolder());
  await writeBinaryCache(path, OBJECTS);
  return {
    path,
    storePaths: OBJECTS.map(({ storePath }) => storePath).toSorted(),
    pinned: [],
    spoil() {
      Deno.writeTextFileSync(`${path}/${LEAF?.storePathHash}.narinfo`, "no narinfo");
      return LEAF?.storePath ?? "";
    },
    loseNars: () => Deno.removeSync(`${path}/nar`, { recursive: true }),
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}

/** The same cache as the files of an nginx. */
async function nginxScene(): Promise<Scene> {
  const opened = new AsyncDisposableStack();
  const { path, ...scene } = await cacheFolder(opened);
  const nginx = `${path}/nginx`;
  Deno.mkdirSync(nginx);
  const nars = [...Deno.readDirSync(`${path}/nar`)].map(({ name }) => `nar/${name}`);
  const narinfos = OBJECTS.map(({ storePathHash }) => `${storePathHash}.narinfo`);
  const files = new Map([...narinfos, ...nars].map((key, at) => [key, nginxFile(nginx, at)]));
  const head = (key: string) =>
    `\nKEY: http://cache.example/${key}\nHTTP/1.1 200 OK\r\nserver: x\r\n\r\n`;
  for (const [key, file] of files) {
    Deno.writeTextFileSync(file, head(key));
    Deno.writeFileSync(file, Deno.readFileSync(`${path}/${key}`), { append: true });
  }
  return {
    ...scene,
    source: opened.use(await NginxSource.open(nginx, STAYS.signal)),
    spoil() {
      const key = `${LEAF?.storePathHash}.narinfo`;
      Deno.writeTextFileSync(files.get(key) ?? "", `${head(key)}no narinfo`);
      return LEAF?.storePath ?? "";
    },
    loseNars() {
      for (const key of nars) Deno.removeSync(files.get(key) ?? "");
    },
  };
}

/** nginx names a file by a hash of its key. */
function nginxFile(folder: string, at: number): string {
  return `${folder}/${String(at).padStart(32, "0")}`;
}

/** The storage of a real ncps. */
async function ncpsScene(kind: NcpsKind): Promise<Scene> {
  const opened = new AsyncDisposableStack();
  const { folder, databasePath, storePaths } = opened.use(await ncpsStorage(kind));
  const [spoilt = ""] = storePaths;
  return {
    source: opened.use(
      await NcpsSource.open(`${folder}/store`, new WorkerNcps(databasePath), STAYS.signal),
    ),
    storePaths: storePaths.toSorted(),
    pinned: [NCPS_PINNED],
    spoil() {
      using database = new DatabaseSync(databasePath);
      database.prepare("UPDATE narinfos SET nar_hash = 'x' WHERE store_path = ?").run(spoilt);
      return spoilt;
    },
    loseNars() {
      const isChunked = kind === "chunked";
      Deno.removeSync(`${folder}/store/${isChunked ? "chunk" : "nar"}`, { recursive: true });
    },
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}
