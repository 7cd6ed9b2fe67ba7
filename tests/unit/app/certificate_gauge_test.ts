import assert from "node:assert/strict";
import { certificateGauge } from "../../../src/app/start_telemetry.ts";
import { Metrics } from "../../../src/telemetry/metrics.ts";
import { prometheusText } from "../../../src/telemetry/prometheus.ts";
import { programsMissing, testUnless } from "../../support/program.ts";
import { OwnCertificate } from "../../support/tls_front.ts";

const SECONDS_PER_DAY = 86_400;

testUnless(
  programsMissing("openssl"),
  "certificate gauge: the time at which it expires",
  async () => {
    using certificate = new OwnCertificate();
    const { cert } = certificate.pems;
    const shown = async (pem: string) => {
      const metrics = new Metrics({ groups: [], domains: { upstreams: [] } });
      certificateGauge(metrics)(pem);
      const text = await prometheusText(metrics.snapshot());
      return /^larder_tls_certificate_expiry_timestamp_seconds (\S+)$/m.exec(text)?.[1];
    };

    // The test's certificates are good for two days.
    const leftS = Number(await shown(cert)) - Date.now() / 1_000;
    assert.ok(leftS > 1.9 * SECONDS_PER_DAY && leftS <= 2 * SECONDS_PER_DAY, String(leftS));
    assert.equal(await shown(`${cert}\nmore`), await shown(cert), "of a chain the first");
    assert.equal(await shown("nonsense"), undefined);
  },
);
