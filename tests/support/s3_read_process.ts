// Reads a large NAR file of a bucket as slowly as a slow client, then the rest at once. Prints by
// how many bytes that raised the peak of this process's memory.
import type { StoredName } from "../../src/nix/stored_name.ts";
import { clock } from "../../src/runtime/current.ts";
import { openS3, type S3Place } from "../../src/storage/s3/s3_access.ts";
import { S3NarStore } from "../../src/storage/s3/s3_nar_store.ts";
import { peakBytes } from "./peak_bytes.ts";
import { STAYS } from "./staying_client.ts";

const SLOW_MS = 2_000;
const PAUSE_MS = 50;

const [place = "", small = "", large = ""] = Deno.args;
await using store = new S3NarStore(openS3(JSON.parse(place) as S3Place));
await read(small, 0);
const before = peakBytes();
await read(large, SLOW_MS);
console.log(peakBytes() - before);

/** Reads all bytes; for so long a piece at a time. */
async function read(name: string, slowMs: number): Promise<void> {
  const nar = await store.open(name as StoredName, STAYS);
  if (nar === undefined) throw new Error(`Cannot find ${name}`);
  const slowUntil = performance.now() + slowMs;
  let bytes = 0;
  for await (const piece of nar.read(0, nar.fileSize)) {
    bytes += piece.length;
    if (performance.now() < slowUntil) await clock.pause(PAUSE_MS);
  }
  if (bytes !== nar.fileSize) throw new Error(`Cannot read ${name}: got ${bytes} bytes`);
}
