import assert from "node:assert/strict";
import { type Compression, COMPRESSIONS } from "../../src/nix/compression.ts";
import { dialectAvailable, fakeUpstream } from "../support/fake_upstream.ts";
import { cutAfter, Gate, status } from "../support/faults.ts";
import { startLarder } from "../support/larder_process.ts";
import { testUnless } from "../support/program.ts";
import { RawConnection, rawRequest, requestText } from "../support/raw_http.ts";
import { checkNar, servedNar, servedNarinfo } from "../support/served_nar.ts";
import { makeStoreObject } from "../support/store_object.ts";

const SIZE = 2_000_000;

// Without file hashes: the NARs are decompressed while they come in.
for (const compression of Object.keys(COMPRESSIONS) as Compression[]) {
  testUnless(
    dialectAvailable("attic", compression),
    `a NAR that breaks off does not hurt another in flight, ${compression}`,
    () => breakOneOfTwo(compression),
  );
}

async function breakOneOfTwo(compression: Compression): Promise<void> {
  const [good, bad] = [1, 2].map((seed) =>
    makeStoreObject({ name: "neighbour", size: SIZE, seed })
  );
  assert.ok(good && bad);
  const objects = [good, bad];
  await using upstream = await fakeUpstream({ dialect: "attic", compression, objects });
  // Compressed before anybody waits for it.
  await Promise.all(objects.map((object) => upstream.narFileOf(object)));
  const gate = new Gate();
  upstream.breakNar(gate.fault, good);
  // Else larder requests the rest until it gives up, and the other client waits as long.
  let asked = 0;
  upstream.breakNar((answer, exchange) => {
    return (asked++ === 0 ? cutAfter(SIZE / 2) : status(404))(answer, exchange);
  }, bad);
  await using larder = await startLarder({
    "cache-upstream-url": upstream.url,
    "cache-upstream-public-key": upstream.publicKey,
  });
  const narinfo = await servedNarinfo(larder.port, good.storePathHash);
  await using connection = await RawConnection.open(larder.port);
  await connection.send(requestText("GET", narinfo.narPath));
  gate.release(SIZE / 2);
  const { status: answered, reader } = await connection.answer();
  assert.equal(answered, 200);
  const start = await reader.read(SIZE / 4);

  const broken = await servedNarinfo(larder.port, bad.storePathHash);
  const cut = await rawRequest(larder.port, requestText("GET", broken.narPath));
  assert.equal(cut.complete, false);

  gate.open();
  const whole = await new Blob([start, await reader.read()]).bytes();
  assert.ok(reader.isComplete, "the other one's transfer is whole");
  await checkNar(narinfo, whole);
  await larder.logged("nar cached successfully");
  assert.equal((await servedNar(larder.port, narinfo)).headers.get("x-cache"), "HIT");
}
