import assert from "node:assert/strict";
import { runLarder } from "../../../support/run_larder.ts";
import { programsMissing, testUnless } from "../../../support/program.ts";
import { TlsFront } from "../../../support/tls_front.ts";

type Environment = Readonly<Record<string, string>>;

interface ServerCertificate {
  readonly subject?: string;
  readonly isAuthority?: boolean;
}

/** The result of `larder pins` on a server whose certificate only its own file vouches for. */
async function pinsOver(
  env: Environment,
  { subject, isAuthority }: ServerCertificate = {},
  scheme = "https:",
) {
  const options = { hostname: "127.0.0.1", port: 0, onListen() {} };
  await using server = Deno.serve(options, () => new Response("[]"));
  using front = new TlsFront(server.addr.port, subject, isAuthority);
  const files = { "/ca.pem": Deno.readTextFileSync(front.caFile), "/empty.pem": "" };
  const url = front.url.replace("https:", scheme);
  return await runLarder(["pins", "--server", url], { env, files });
}

function promise(name: string, fn: () => Promise<void>): void {
  testUnless(programsMissing("openssl"), `server client over TLS: ${name}`, fn);
}

for (const variable of ["NIX_SSL_CERT_FILE", "SSL_CERT_FILE"]) {
  promise(`the authorities of ${variable} are trusted`, async () => {
    const ran = await pinsOver({ [variable]: "/ca.pem" });

    assert.deepEqual(ran, { status: 0, out: "", err: "nothing is pinned\n" });
  });
}

promise("Nix's variable wins over OpenSSL's, as in Nix", async () => {
  const env = { NIX_SSL_CERT_FILE: "/empty.pem", SSL_CERT_FILE: "/ca.pem" };

  assert.equal((await pinsOver(env)).status, 1);
});

promise("an authority that is not trusted is named, with the variables to set", async () => {
  const { status, err } = await pinsOver({});

  assert.equal(status, 1);
  assert.match(err, /^larder: Cannot reach https:\S+: its certificate is of an authority that is /);
  assert.match(err, /set NIX_SSL_CERT_FILE or SSL_CERT_FILE/);
  assert.doesNotMatch(err, /is larder running|unknownissuer/i);
});

promise("a certificate for another name is named, with the option to give", async () => {
  const { status, err } = await pinsOver(
    { SSL_CERT_FILE: "/ca.pem" },
    { subject: "DNS:cache.example" },
  );

  assert.equal(status, 1);
  assert.match(err, /its certificate is not accepted \([^)]*name.*\); give --server the name that/);
  assert.doesNotMatch(err, /is larder running/);
});

promise("an authority's certificate as the server's own is said", async () => {
  const { status, err } = await pinsOver({ SSL_CERT_FILE: "/ca.pem" }, { isAuthority: true });

  assert.equal(status, 1);
  assert.match(
    err,
    /: its certificate is an authority's, which cannot be a server's own; give the/,
  );
  assert.doesNotMatch(err, /EndEntity|is larder running|--server/);
});

promise("a server that wants TLS is running, and --server is said", async () => {
  const { status, err } = await pinsOver({}, undefined, "http:");

  assert.equal(status, 1);
  assert.match(err, /: it does not speak plain HTTP; give --server https:\/\/$/m);
});
