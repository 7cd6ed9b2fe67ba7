import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import pLimit from "p-limit";
import { sha256FromDigest } from "../../src/nix/hash.ts";
import { parseNarinfo } from "../../src/nix/narinfo_parse.ts";
import type { PublicKey } from "../../src/nix/signature.ts";
import { TrustedKeys } from "../../src/nix/trusted_keys.ts";
import type { Published } from "./corpus.ts";
import { PEER, type Server } from "./server.ts";

/** The number of requests that a Nix client has in flight. */
const SIDE_BY_SIDE = 25;

/**
 * Minutes pass between two checks. Reusing a connection at the moment the server closes it would
 * fail the check.
 */
const CLIENT = Deno.createHttpClient({ poolIdleTimeout: 5_000 });

/** A NAR with its narinfo from the server. */
export interface Found extends Published {
  /** Path of the NAR, from the narinfo. */
  readonly narPath: string;
}

/**
 * Requests every narinfo of one server. Throws unless each is a 200 of the announced length,
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

/** The bytes as they are: ncps compresses them for clients that take that. */
const AS_IT_IS = { "accept-encoding": "identity" };

/**
 * Fetches every NAR. Throws unless each is whole and has the hash of its narinfo. Only another
 * cache may announce no length, while it fetches the NAR.
 */
export async function checkNars(server: Server, nars: readonly Found[]): Promise<void> {
  await pLimit(SIDE_BY_SIDE).map(nars, async ({ narPath, narHash, narSize }) => {
    const url = server.url + narPath;
    const response = await fetch(url, { client: CLIENT, headers: AS_IT_IS });
    assert.equal(response.status, 200, `${server.name}: ${url}`);
    const announced = response.headers.get("content-length");
    if (server.name !== PEER || announced !== null) assert.equal(Number(announced), narSize, url);
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

/** Resolves when a cache reports these paths as hits. Servers without X-Cache have them. */
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
