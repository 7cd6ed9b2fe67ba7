import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import pLimit from "p-limit";
import { sha256FromDigest } from "../../src/nix/hash.ts";
import { parseNarinfo } from "../../src/nix/narinfo_parse.ts";
import type { PublicKey } from "../../src/nix/signature.ts";
import { TrustedKeys } from "../../src/nix/trusted_keys.ts";
import type { Published } from "./corpus.ts";
import type { Server } from "./server.ts";

/** As many as a Nix client has under way. */
const SIDE_BY_SIDE = 25;

/**
 * Between two checks lie minutes; a connection that the server closes at the moment in which it is
 * used again would fail the check.
 */
const CLIENT = Deno.createHttpClient({ poolIdleTimeout: 5_000 });

/** A NAR whose narinfo the server has given. */
export interface Found extends Published {
  /** As that narinfo says it. */
  readonly narPath: string;
}

/**
 * Asks one server for every narinfo, and throws unless each is a 200 of the length announced,
 * describes the object, and carries the upstream's signature.
 */
export async function checkNarinfos(
  server: Server,
  objects: readonly Published[],
  publicKey: PublicKey,
): Promise<readonly Found[]> {
  const keys = new TrustedKeys([publicKey]);
  return await pLimit(SIDE_BY_SIDE).map(objects, async (object) => {
    const url = server.url + object.narinfoPath;
    const response = await fetch(url, { client: CLIENT });
    const bytes = await response.bytes();
    assert.equal(response.status, 200, `${server.name}: ${url}`);
    assert.equal(Number(response.headers.get("content-length")), bytes.length, url);
    const narinfo = parseNarinfo(new TextDecoder().decode(bytes));
    assert.equal(narinfo.storePath, object.storePath, url);
    assert.equal(narinfo.narHash, object.narHash, url);
    assert.ok(keys.signerOf(narinfo) !== undefined, `${server.name}: not signed: ${url}`);
    return { ...object, narPath: `/${narinfo.url}` };
  });
}

/** Fetches every NAR, and throws unless each is whole and has the hash its narinfo announced. */
export async function checkNars(server: Server, nars: readonly Found[]): Promise<void> {
  await pLimit(SIDE_BY_SIDE).map(nars, async ({ narPath, narHash, narSize }) => {
    const url = server.url + narPath;
    const response = await fetch(url, { client: CLIENT });
    assert.equal(response.status, 200, `${server.name}: ${url}`);
    assert.equal(Number(response.headers.get("content-length")), narSize, url);
    const hash = createHash("sha256");
    for await (const chunk of response.body ?? []) hash.update(chunk);
    assert.equal(sha256FromDigest(hash.digest()), narHash, url);
  });
}

/** Throws unless each path is a 404. */
export async function checkAbsent(server: Server, paths: readonly string[]): Promise<void> {
  await pLimit(SIDE_BY_SIDE).map(paths, async (path) => {
    const response = await fetch(server.url + path, { client: CLIENT });
    await response.bytes();
    assert.equal(response.status, 404, `${server.name}: ${path}`);
  });
}

const KEEP_MAX_MS = 20_000;
const LOOK_EVERY_MS = 5;

/** Resolves when a cache says that it has these; one that says nothing has them. */
export async function checkKept(server: Server, paths: readonly string[]): Promise<void> {
  const untilMs = performance.now() + KEEP_MAX_MS;
  await pLimit(SIDE_BY_SIDE).map(paths, async (path) => {
    for (;;) {
      const response = await fetch(server.url + path, { method: "HEAD", client: CLIENT });
      await response.body?.cancel();
      const source = response.headers.get("x-cache") ?? "HIT";
      if (source === "HIT") break;
      assert.ok(performance.now() < untilMs, `${server.name}: ${path} stays ${source}`);
      await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS));
    }
  });
}
