import assert from "node:assert/strict";
import {
  checkCertificate,
  checkCertificateOf,
} from "../../../../src/cli/doctor/certificate_check.ts";
import { resolveSettings } from "../../../../src/config/settings.ts";
import { inputsOf } from "../../../support/config_inputs.ts";
import { tempFolder } from "../../../support/temp_folder.ts";
import { programsMissing, testUnless } from "../../../support/program.ts";
import { OwnCertificate } from "../../../support/tls_front.ts";

const DAY_MS = 86_400_000;

function certificateTest(name: string, fn: () => void): void {
  testUnless(programsMissing("openssl"), name, fn);
}

certificateTest("doctor: the certificate is checked before, while and after it is good", () => {
  using certificate = new OwnCertificate("IP:127.0.0.1", false, 60);
  const { cert, key } = certificate.pems;
  const at = (days: number) =>
    checkCertificate({ path: "c.pem", cert, key, nowMs: Date.now() + days * DAY_MS });

  const marks = [-1, 1, 45.5, 46.5, 61].map((days) => at(days).mark);

  assert.deepEqual(marks, ["failed", "ok", "ok", "warning", "failed"]);
  assert.match(at(-1).fact, /^c\.pem is good from .* only$/);
  assert.match(at(46.5).fact, /^c\.pem expires in 13d\d\dh, on \d{4}-\d\d-\d\d$/);
  assert.match(at(61).advice ?? "", /^renew it/);
});

certificateTest("doctor: another certificate's key is found", () => {
  using certificate = new OwnCertificate();
  using other = new OwnCertificate();
  const facts = { path: "c.pem", cert: certificate.pems.cert, nowMs: Date.now() };

  const finding = checkCertificate({ ...facts, key: other.pems.key });

  assert.deepEqual([finding.mark, finding.fact], ["failed", "the key is not that of c.pem"]);
  // Soon over, but no fault of a key that nobody may read.
  assert.equal(checkCertificate({ ...facts, key: undefined }).mark, "warning");
});

certificateTest(
  "doctor: a certificate's files are read, and a missing one is a failure",
  async () => {
    using certificate = new OwnCertificate();
    using folder = tempFolder();
    const marksWith = async (cert: string, key: string) => {
      const args = [`--server-tls-cert=${cert}`, `--server-tls-key=${key}`];
      const { settings } = resolveSettings(inputsOf({ args }));
      return (await checkCertificateOf(settings, Date.now())).map(({ mark }) => mark);
    };
    Deno.writeTextFileSync(`${folder.path}/text`, "no certificate");

    assert.deepEqual(await marksWith(certificate.caFile, certificate.keyFile), ["warning"]);
    assert.deepEqual(await marksWith(`${folder.path}/none`, certificate.keyFile), ["failed"]);
    assert.deepEqual(await marksWith(`${folder.path}/text`, certificate.keyFile), ["failed"]);
  },
);
