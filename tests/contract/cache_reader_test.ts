import {
  type CacheReader,
  FolderReader,
} from "../../src/cache/import/binary_cache/binary_cache_source.ts";
import { writeBinaryCache } from "../support/binary_cache_folder.ts";
import { DirectoryUpstream } from "../support/directory_upstream.ts";
import { httpCacheReader } from "../support/http_cache_reader.ts";
import { tempFolder } from "../support/temp_folder.ts";
import { cacheReaderClauses, OBJECT, type ReaderScene } from "./cache_reader_contract.ts";
import { checkContract } from "./contract.ts";

/** The cache is a folder of that name below the other. */
const CACHE = "cache";

type Opener = (opened: AsyncDisposableStack, parent: string) => CacheReader;

const openers: Readonly<Record<string, Opener>> = {
  FolderReader: (_opened, parent) => new FolderReader(`${parent}/${CACHE}`, Date.now),
  UpstreamReader: (opened, parent) =>
    httpCacheReader(`${opened.use(new DirectoryUpstream(parent, "")).url}/${CACHE}`),
};

for (const [name, open] of Object.entries(openers)) {
  checkContract({ name, open: () => sceneOf(open) }, cacheReaderClauses);
}

async function sceneOf(open: Opener): Promise<ReaderScene & AsyncDisposable> {
  const opened = new AsyncDisposableStack();
  const { path } = opened.use(tempFolder());
  const folder = `${path}/${CACHE}`;
  await writeBinaryCache(folder, [OBJECT]);
  const reader = opened.use(open(opened, path));
  return { reader, folder, [Symbol.asyncDispose]: () => opened.disposeAsync() };
}
