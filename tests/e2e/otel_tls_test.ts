import assert from "node:assert/strict";
import { startLarder } from "../support/larder_process.ts";
import { recordsOf } from "../support/otlp.ts";
import { Collector, COLLECTOR_UNAVAILABLE } from "../support/otelcol.ts";
import { programsMissing, testUnless } from "../support/program.ts";
import { OwnCertificate } from "../support/tls_front.ts";
import { type Trust, TRUST_WAYS } from "../support/trust_ways.ts";

const excuse = COLLECTOR_UNAVAILABLE || programsMissing("openssl");

function start(collector: Collector, { flags, environment }: Trust) {
  return startLarder({
    "cache-upstream-url": "http://127.0.0.1:1",
    "cache-require-upstream-signature": "false",
    "otel-enabled": "true",
    "otel-grpc-url": collector.url,
    ...flags,
  }, environment);
}

for (const [name, trust] of Object.entries(TRUST_WAYS)) {
  testUnless(excuse, `otel: over https, a collector is trusted by ${name}`, async () => {
    using certificate = new OwnCertificate();
    await using collector = await Collector.start(certificate);
    await using larder = await start(collector, trust(certificate.caFile));
    await (await fetch(`${larder.url}/healthz`)).text();
    larder.kill("SIGTERM");
    await larder.ended;
    await collector.stop();
    for (const signal of ["traces", "metrics", "logs"] as const) {
      assert.ok(collector.received(signal).length > 0, signal);
    }
    const records = recordsOf(collector.received("logs"));
    assert.ok(records.some(({ msg }) => msg === "server shutdown"));
  });
}

testUnless(
  excuse,
  "otel: over https, a collector that is not trusted gets nothing",
  async () => {
    using certificate = new OwnCertificate();
    await using collector = await Collector.start(certificate);
    await using larder = await start(collector, {});
    const { reason } = await larder.logged("telemetry dropped");
    assert.match(String(reason), /certificate|UnknownIssuer/i);
    larder.kill("SIGTERM");
    await larder.ended;
    await collector.stop();
    assert.deepEqual(collector.received("logs"), []);
  },
);
