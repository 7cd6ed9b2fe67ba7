import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import type { Bytes } from "../../src/base/bytes.ts";
import type { Compression } from "../../src/nix/compression.ts";
import { encodeNix32 } from "../../src/nix/nix32.ts";
import { decompress } from "./decompressors.ts";
import { type RawAnswer, rawRequest, requestText } from "./raw_http.ts";

/** A narinfo as a client takes it: the lines that describe the NAR. */
export interface ServedNarinfo {
  /** With a slash in front. */
  readonly narPath: string;
  readonly compression: Compression;
  readonly narHash: string;
  readonly narSize: number;
  readonly fileHash: string | undefined;
  readonly fileSize: number | undefined;
}

/** The narinfo that is served on a port of 127.0.0.1. Fails unless it is there. */
export async function servedNarinfo(port: number, storePathHash: string): Promise<ServedNarinfo> {
  return narinfoIn(await get(port, `/${storePathHash}.narinfo`));
}

/** The narinfo of an answer. Fails unless it is there. */
export function narinfoIn({ status, body }: RawAnswer): ServedNarinfo {
  assert.equal(status, 200, "the narinfo's status");
  const lines = new Map(
    new TextDecoder().decode(body).split("\n").map((line) => {
      const colon = line.indexOf(": ");
      return [line.slice(0, colon), line.slice(colon + 2)];
    }),
  );
  const fileSize = lines.get("FileSize");
  return {
    narPath: `/${lines.get("URL")}`,
    compression: lines.get("Compression") as Compression,
    narHash: lines.get("NarHash") ?? "",
    narSize: Number(lines.get("NarSize")),
    fileHash: lines.get("FileHash"),
    fileSize: fileSize === undefined ? undefined : Number(fileSize),
  };
}

/**
 * Asks for the NAR. Fails when the answer is 200 and is not all of the very NAR that the
 * narinfo describes, or is neither 200 nor 404.
 */
export async function servedNar(port: number, narinfo: ServedNarinfo): Promise<RawAnswer> {
  const answer = await get(port, narinfo.narPath);
  if (answer.status === 404) return answer;
  assert.equal(answer.status, 200, "the NAR's status");
  assert.ok(answer.complete, "the NAR's transfer is whole");
  await checkNar(narinfo, answer.body);
  return answer;
}

/**
 * Fails unless these bytes are the NAR that the narinfo describes, before and after decompression.
 */
export async function checkNar(
  narinfo: ServedNarinfo,
  bytes: Bytes,
): Promise<void> {
  const { fileHash, fileSize, compression, narHash, narSize } = narinfo;
  if (fileSize !== undefined) assert.equal(bytes.length, fileSize, "FileSize");
  if (fileHash !== undefined) assert.equal(sha256(bytes), fileHash, "FileHash");
  const nar = await decompress(bytes, compression);
  assert.equal(nar.length, narSize, "NarSize");
  assert.equal(sha256(nar), narHash, "NarHash");
}

function get(port: number, path: string): Promise<RawAnswer> {
  return rawRequest(port, requestText("GET", path));
}

function sha256(bytes: Uint8Array): string {
  return `sha256:${encodeNix32(createHash("sha256").update(bytes).digest())}`;
}
