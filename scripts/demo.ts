// Demonstrates larder without Nix and internet. It pulls a closure from a small signed upstream
// through larder, stops the upstream, and pulls the closure again.
import { parseNarinfo } from "../src/nix/narinfo_parse.ts";
import { fingerprintOf } from "../src/nix/fingerprint.ts";
import type { Narinfo } from "../src/nix/narinfo.ts";
import { parsePublicKey, type PublicKey } from "../src/nix/signature.ts";
import { hashOfBaseName, type StorePathHash } from "../src/nix/store_path.ts";
import { TrustedKeys } from "../src/nix/trusted_keys.ts";
import { clock } from "../src/runtime/current.ts";
import { type FakeUpstream, fakeUpstream } from "../tests/support/fake_upstream.ts";
import { type LarderProcess, startLarder } from "../tests/support/larder_process.ts";
import { checkNar, servedNarinfo } from "../tests/support/served_nar.ts";
import { makeStoreObject } from "../tests/support/store_object.ts";

const libc = makeStoreObject({ name: "libc-2.40", size: 2_000_000 });
const zlib = makeStoreObject({ name: "zlib-1.3", references: [libc], size: 200_000 });
const editor = makeStoreObject({
  name: "editor-9.1",
  references: [libc, zlib],
  selfReference: true,
  size: 800_000,
});
const OBJECTS = [libc, zlib, editor];
const RETRIES_MAX = 10;
const RETRY_AFTER_MS = 500;

await using upstream = await fakeUpstream({ objects: OBJECTS });
await using larder = await startLarder({
  "cache-upstream-url": upstream.url,
  "cache-upstream-public-key": upstream.publicKey,
  "cache-hostname": "larder.demo",
});
const ownKey = parsePublicKey(await textOf(`${larder.url}/pubkey`));
say(`An upstream cache with ${OBJECTS.length} store objects at ${upstream.url}`);
say(`larder in front of it at ${larder.url}, its data in ${larder.storage}`);

say("\nA client pulls the closure of editor-9.1 for the first time:");
await pull(larder, upstream, ownKey);
say("\nThe upstream stops. Another client pulls the same closure:");
await upstream.stop();
await pull(larder, upstream, ownKey);

const requests = OBJECTS.length * 2;
const asked = upstream.count(/narinfo$|^\/nar\//);
say(`\nTwo pulls were ${requests * 2} requests; the upstream saw ${asked} of them.`);
larder.kill("SIGTERM");
const { code } = await larder.ended;
say(`larder stopped with exit status ${code}; its data is removed.`);
// On a busy machine larder gives up some prefetches, and asks again for a client.
if (asked < requests || asked >= requests * 2 || code !== 0) Deno.exitCode = 1;

async function pull(from: LarderProcess, signer: FakeUpstream, own: PublicKey): Promise<void> {
  const seen = new Set<StorePathHash>([editor.storePathHash]);
  for (const storePathHash of seen) {
    const response = await narinfoOf(from, storePathHash);
    const narinfo = parseNarinfo(await response.text());
    const name = narinfo.baseName.slice(storePathHash.length + 1);
    const keys = [parsePublicKey(signer.publicKey), own];
    const signers = keys.filter((key) => isSignedBy(narinfo, key));
    say(`  ${cell(response)} narinfo ${name}: signatures of ${namesOf(signers)} verified`);
    for (const reference of narinfo.references) seen.add(hashOfBaseName(reference));
    await pullNar(from, narinfo, name);
  }
}

/** A busy machine may connect to the upstream later than larder lets a client wait. */
async function narinfoOf(from: LarderProcess, storePathHash: StorePathHash): Promise<Response> {
  for (let left = RETRIES_MAX; true; left--) {
    const response = await fetch(`${from.url}/${storePathHash}.narinfo`);
    if (response.ok || left === 0) return response;
    await response.body?.cancel();
    await clock.pause(RETRY_AFTER_MS);
  }
}

async function pullNar(from: LarderProcess, narinfo: Narinfo, name: string): Promise<void> {
  const response = await fetch(`${from.url}/${narinfo.url}`);
  const bytes = await response.bytes();
  await checkNar(await servedNarinfo(from.port, narinfo.storePathHash), bytes);
  const kind = `${bytes.length} bytes of ${narinfo.compression}, file hash and NAR hash verified`;
  // A prefetch that is still running is JOINED: its client has the bytes before they are kept.
  const isNew = response.headers.get("x-cache") !== "HIT";
  if (isNew) await kept(from, narinfo);
  say(`  ${cell(response)} nar     ${name}: ${kind}${isNew ? ", kept" : ""}`);
}

/** Resolves when larder has kept the NAR. */
async function kept(from: LarderProcess, { url }: Narinfo): Promise<void> {
  await from.logged("nar cached successfully", ({ nar }) => url === `nar/${nar}`);
}

function isSignedBy(narinfo: Narinfo, key: PublicKey): boolean {
  return new TrustedKeys([key]).signerOf(narinfo, fingerprintOf(narinfo)) === key;
}

function namesOf(keys: readonly PublicKey[]): string {
  return keys.map((key) => key.name).join(" and ");
}

function cell(response: Response): string {
  return (response.headers.get("x-cache") ?? "?").padEnd("JOINED".length);
}

async function textOf(url: string): Promise<string> {
  return await (await fetch(url)).text();
}

function say(line: string): void {
  console.log(line);
}
