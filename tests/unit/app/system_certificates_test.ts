import assert from "node:assert/strict";
import { systemCertificates } from "../../../src/app/system_certificates.ts";

const PEM = "-----BEGIN CERTIFICATE-----\nabc\n-----END CERTIFICATE-----";
const FILES: Readonly<Record<string, string>> = {
  "/one.pem": PEM,
  "/key.pem": "-----BEGIN PRIVATE KEY-----\nabc\n-----END PRIVATE KEY-----\n",
  "/etc/pki/tls/certs/ca-bundle.crt": `${PEM}\n${PEM}\n`,
};

function found(env: Readonly<Record<string, string>>) {
  const readTextFile = (path: string) => {
    const text = FILES[path];
    if (text === undefined) throw new Deno.errors.NotFound("No such file or directory");
    return text;
  };
  return systemCertificates({ env, readTextFile });
}

Deno.test("certificates: the system's are those of the first bundle that is there", async () => {
  assert.equal((await found({})).length, 2);
  assert.equal((await found({ SSL_CERT_FILE: "" })).length, 2);
});

for (const name of ["NIX_SSL_CERT_FILE", "SSL_CERT_FILE"]) {
  Deno.test(`certificates: ${name} without certificates is an error that names it`, async () => {
    assert.deepEqual(await found({ [name]: "/one.pem" }), [PEM]);
    for (const path of ["/none.pem", "/key.pem"]) {
      const sentence = new RegExp(`^Cannot use ${name} ${path}: \\S`);
      await assert.rejects(found({ [name]: path }), { message: sentence });
    }
  });
}
