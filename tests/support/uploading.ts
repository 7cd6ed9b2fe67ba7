import type { Compression } from "../../src/nix/compression.ts";
import { generateSecretKey, type SecretKey } from "../../src/nix/signature.ts";
import { DIALECTS, type NarFile, narinfoText } from "./dialects.ts";
import { narFileOf } from "./nar_files.ts";
import type { StoreObject } from "./store_object.ts";
import { TestCache, type TestCacheOptions } from "./test_cache.ts";

export const WRITE_TOKEN = { name: "ci", role: "write", secret: "write-secret" } as const;

export const AS_WRITER = { authorization: `Bearer ${WRITE_TOKEN.secret}` };

/** A key that an upload may be signed with. */
export const uploadKey = generateSecretKey("builder-1");

export const ALLOWED = { allowed: true, keys: [], requireSignature: false } as const;

/** A cache that takes uploads with a write token, without upstreams unless some are given. */
export function uploadCache(options: Partial<TestCacheOptions> = {}): Promise<TestCache> {
  return TestCache.open({ upstreams: [], uploads: ALLOWED, tokens: [WRITE_TOKEN], ...options });
}

/** The requests of a client for one store object. */
export interface Push {
  readonly object: StoreObject;
  readonly file: NarFile;
  readonly narPath: string;
  readonly narinfoPath: string;
  readonly narinfo: string;
}

export interface PushOptions {
  /** Default: zstd. */
  readonly compression?: Compression;
  readonly key?: SecretKey;
}

export async function pushOf(
  object: StoreObject,
  { compression = "zstd", key }: PushOptions = {},
): Promise<Push> {
  const file = await narFileOf(object.nar, { compression, stored: true });
  const row = DIALECTS.nixos;
  return {
    object,
    file,
    narPath: `/upload/${row.narUrl(object, file)}`,
    narinfoPath: `/upload/${object.storePathHash}.narinfo`,
    narinfo: narinfoText({ row, object, file, ...(key && { key }) }),
  };
}

/** Sends NAR and narinfo as a writer; the statuses of both. */
export async function push(cache: TestCache, one: Push): Promise<readonly [number, number]> {
  const nar = await cache.put(one.narPath, one.file.bytes, AS_WRITER);
  await nar.text();
  const narinfo = await cache.put(one.narinfoPath, one.narinfo, AS_WRITER);
  await narinfo.text();
  return [nar.status, narinfo.status];
}

/** Status and line of an answer. */
export async function said(answer: Response): Promise<readonly [number, string]> {
  return [answer.status, (await answer.text()).trimEnd()];
}

/** One document of each kind for a store object: its path, and its text. */
export function documentsOf({ storePathHash, baseName }: StoreObject) {
  const drv = `${baseName}.drv`;
  return [
    [`/${storePathHash}.ls`, '{"version":1}'],
    [`/log/${drv}`, "built\n"],
    [`/build-trace-v2/${drv}/out.doi`, '{"outPath":"x"}'],
    [`/realisations/sha256:${"a".repeat(64)}!out.doi`, '{"id":"x"}'],
    [`/debuginfo/${"ab".repeat(20)}`, '{"archive":"../nar/x"}'],
  ] as const;
}
