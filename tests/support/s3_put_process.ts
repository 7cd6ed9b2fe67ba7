// Puts a small NAR file into a bucket, then one of so many MiB. Prints by how many bytes the second
// one raised the peak of this process's memory.
import type { S3Place } from "../../src/storage/s3/s3_access.ts";
import { openS3 } from "../../src/storage/s3/s3_access.ts";
import { S3NarStore } from "../../src/storage/s3/s3_nar_store.ts";
import { peakBytes } from "./peak_bytes.ts";
import type { StoredName } from "../../src/nix/stored_name.ts";

const [place = "", mebibytes = "", small = "", large = ""] = Deno.args;
await using store = new S3NarStore(openS3(JSON.parse(place) as S3Place));
await put(small, 1_000);
const before = peakBytes();
await put(large, Number(mebibytes) * 2 ** 20);
console.log(peakBytes() - before);

async function put(name: string, byteLength: number): Promise<void> {
  const path = Deno.makeTempFileSync();
  Deno.truncateSync(path, byteLength);
  await store.put(name as StoredName, path);
}
