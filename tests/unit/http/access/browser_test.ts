import assert from "node:assert/strict";
import {
  isChangeByBrowser,
  isOfSameOrigin,
  isReadByBrowser,
} from "../../../../src/http/access/access_rules.ts";

type Lines = Readonly<Record<string, string>>;

const signs = (headers: Lines) => ({ headers: new Headers(headers) });

/** Reads that only a browser sends so. */
const BROWSER_READS: readonly Lines[] = [
  { origin: "https://evil.example" },
  { referer: "https://evil.example/" },
  { "sec-fetch-site": "none" },
  { "sec-fetch-mode": "navigate" },
  { "sec-fetch-dest": "document" },
  { "sec-fetch-user": "?1" },
  { "upgrade-insecure-requests": "1" },
  { "accept-language": "en" },
  { "user-agent": "Mozilla/5.0 (X11; Linux x86_64)" },
];

const PROGRAM_READS: readonly Lines[] = [
  {},
  { "accept-language": "*" },
  { "user-agent": "curl/8.9 Nix/2.26", accept: "*/*" },
];

Deno.test("browser: each of its signs alone gives a read away, and no program's header", () => {
  for (const headers of BROWSER_READS) {
    assert.equal(isReadByBrowser(signs(headers)), true, JSON.stringify(headers));
  }
  for (const headers of PROGRAM_READS) {
    assert.equal(isReadByBrowser(signs(headers)), false, JSON.stringify(headers));
  }
});

Deno.test("browser: a change with an origin or a site is a browser's, any other is not", () => {
  assert.equal(isChangeByBrowser(signs({ origin: "null" })), true);
  assert.equal(isChangeByBrowser(signs({ "sec-fetch-site": "cross-site" })), true);
  assert.equal(isChangeByBrowser(signs({ referer: "http://larder/" })), false);
});

/** Headers of a change, and whether it is of this server's origin, without TLS and with it. */
const ORIGINS: readonly (readonly [headers: Lines, plain: boolean, tls: boolean])[] = [
  [{}, true, true],
  [{ "sec-fetch-site": "none" }, true, true],
  [{ "sec-fetch-site": "same-origin" }, true, true],
  [{ "sec-fetch-site": "same-site" }, false, false],
  [{ "sec-fetch-site": "cross-site" }, false, false],
  [{ origin: "null" }, false, false],
  [{ origin: "http://larder" }, true, false],
  [{ origin: "https://larder" }, true, true],
  [{ origin: "https://larder:443" }, true, true],
  [{ origin: "https://larder:8443" }, false, false],
  [{ origin: "https://evil.example" }, false, false],
];

Deno.test("browser: only a change from this server's own page is of the same origin", () => {
  for (const [headers, plain, tls] of ORIGINS) {
    for (const [usesTls, expected] of [[false, plain], [true, tls]] as const) {
      const actual = isOfSameOrigin(signs({ host: "larder", ...headers }), usesTls);
      assert.equal(actual, expected, `${JSON.stringify(headers)}, TLS: ${usesTls}`);
    }
  }
});
