import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import pLimit from "p-limit";
import { sha256FromDigest } from "../../src/nix/hash.ts";
import { parseNarinfo } from "../../src/nix/narinfo_parse.ts";
import type { PublicKey } from "../../src/nix/signature.ts";
import { TrustedKeys } from "../../src/nix/trusted_keys.ts";
import { clock } from "../../src/runtime/current.ts";
import type { Published } from "./corpus.ts";
import { PEER, type Server, type Workplace } from "./servers.ts";

const SCRIPT = new URL("./requests.lua", import.meta.url).pathname;

/** Timeout of a run that should end by itself. */
const ONCE_MAX_S = 120;

export interface Load {
  readonly paths: readonly string[];
  readonly connections: number;
  /** "once": each path once, at full speed. */
  readonly seconds: number | "once";
  /** The required status of every answer; default: 200. */
  readonly status?: 200 | 404;
}

export interface LoadResult {
  readonly perSecond: number;
  /** Processor time of the server for each request, in microseconds. */
  readonly cpuUs: number;
  /** Time of 99 of 100 answers at most, in milliseconds; 0 of paths that are requested once. */
  readonly lateMs: number;
}

/** Loads one server with wrk's one thread. Throws if an answer was wrong. */
export async function runLoad(
  workplace: Workplace,
  server: Server,
  { paths, connections, seconds, status = 200 }: Load,
): Promise<LoadResult> {
  // Loads of several servers may run side by side.
  const file = `${workplace.folder}/paths-${new URL(server.url).port}.txt`;
  Deno.writeTextFileSync(file, paths.join("\n") + "\n");
  const [duration, mode] = seconds === "once" ? [ONCE_MAX_S, ["once"]] : [seconds, []];
  const options = ["-t", "1", "-c", String(connections), "-d", `${duration}s`, "-s", SCRIPT];
  const before = server.cpuSeconds();
  const output = await workplace.run("wrk", ...options, server.url, "--", file, ...mode);
  const cpuS = server.cpuSeconds() - before;
  const found = /^result (\d+) (\d+) (\d+) (\d+) (\d+)$/m.exec(output) ?? [];
  const [count = 0, us = NaN, refused = 0, broken = 0, lateUs = 0] = found.slice(1).map(Number);
  if (count === 0 || broken > 0 || refused !== (status === 200 ? 0 : count)) {
    throw new Error(`Cannot measure ${server.name}: it answered otherwise: ${output}`);
  }
  return { perSecond: 1e6 * count / us, cpuUs: 1e6 * cpuS / count, lateMs: lateUs / 1_000 };
}

/** Fetches a file with curl, which drops it. Throws unless it is a whole 200. */
export async function download(workplace: Workplace, url: string, wanted?: number) {
  const format = "%{http_code} %{size_download} %{time_total} %{time_starttransfer}";
  const options = ["--silent", "--show-error", "--noproxy", "*", "--output", "/dev/null"];
  const output = await workplace.run("curl", ...options, "--write-out", format, url);
  const [status, bytes = 0, seconds = 0, firstByteS = 0] = output.split(" ").map(Number);
  if (status !== 200 || bytes !== (wanted ?? bytes)) {
    throw new Error(`Cannot measure ${url}: status ${status}, ${bytes} bytes`);
  }
  return { bytes, seconds, firstByteMs: firstByteS * 1_000 };
}

/** The number of requests that a Nix client has in flight. */
const SIDE_BY_SIDE = 25;

/** Minutes pass between two checks, and a server may just then close a reused connection. */
const CLIENT = Deno.createHttpClient({ poolIdleTimeout: 5_000 });

/** A NAR with its path, from the narinfo of the server. */
export interface Found extends Published {
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

/**
 * Fetches every NAR. Throws unless each is whole and has the hash of its narinfo. Only another
 * cache may announce no length, while it fetches the NAR.
 */
export async function checkNars(server: Server, nars: readonly Found[]): Promise<void> {
  await pLimit(SIDE_BY_SIDE).map(nars, async ({ narPath, narHash, narSize }) => {
    const url = server.url + narPath;
    // The bytes as they are: ncps compresses them for clients that take that.
    const headers = { "accept-encoding": "identity" };
    const response = await fetch(url, { client: CLIENT, headers });
    assert.equal(response.status, 200, `${server.name}: ${url}`);
    const announced = response.headers.get("content-length");
    if (server.name !== PEER || announced !== null) assert.equal(Number(announced), narSize, url);
    const hash = createHash("sha256");
    for await (const chunk of response.body ?? []) hash.update(chunk);
    assert.equal(sha256FromDigest(hash.digest()), narHash, url);
  });
}

const STORE_MAX_MS = 20_000;
const LOOK_EVERY_MS = 5;

/** Resolves when a cache reports these paths as hits. Servers without X-Cache have them. */
export async function checkStored(server: Server, paths: readonly string[]): Promise<void> {
  const untilMs = performance.now() + STORE_MAX_MS;
  await pLimit(SIDE_BY_SIDE).map(paths, async (path) => {
    for (;;) {
      const response = await fetch(server.url + path, { method: "HEAD", client: CLIENT });
      await response.body?.cancel();
      const source = response.headers.get("x-cache") ?? "HIT";
      if (source === "HIT") break;
      assert.ok(performance.now() < untilMs, `${server.name}: ${path} stays ${source}`);
      await clock.pause(LOOK_EVERY_MS);
    }
  });
}
