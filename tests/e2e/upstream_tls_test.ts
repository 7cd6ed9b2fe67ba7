import assert from "node:assert/strict";
import { fakeUpstream } from "../support/fake_upstream.ts";
import { startLarder } from "../support/larder_process.ts";
import { assertSameBytes } from "../support/same_bytes.ts";
import { makeStoreObject } from "../support/store_object.ts";
import { programsMissing, testUnless } from "../support/program.ts";
import { TlsFront } from "../support/tls_front.ts";
import { TRUST_WAYS } from "../support/trust_ways.ts";

const object = makeStoreObject({ name: "thing-1.0" });

const WAYS: typeof TRUST_WAYS = { ...TRUST_WAYS, "neither": () => ({}) };

for (const [name, trust] of Object.entries(WAYS)) {
  testUnless(
    programsMissing("openssl"),
    `TLS: an upstream's certificate is checked by ${name}`,
    async () => {
      await using upstream = await fakeUpstream({ objects: [object], stored: true });
      using front = new TlsFront(upstream.port);
      const { flags, environment } = trust(front.caFile);
      await using larder = await startLarder({
        "cache-upstream-url": front.url,
        "cache-upstream-public-key": upstream.publicKey,
        ...flags,
      }, environment);
      const narinfo = await fetch(`${larder.url}/${object.storePathHash}.narinfo`);
      const text = await narinfo.text();
      if (name === "neither") {
        assert.equal(narinfo.status, 404);
        const { detail } = await larder.logged("upstream failed");
        assert.match(String(detail), /certificate/i);
        return;
      }
      const nar = await fetch(`${larder.url}/${/^URL: (.*)$/m.exec(text)?.[1]}`);
      assertSameBytes(await nar.bytes(), (await upstream.narFileOf(object)).bytes);
    },
  );
}
