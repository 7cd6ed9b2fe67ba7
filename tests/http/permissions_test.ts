import assert from "node:assert/strict";
import { AccessRules } from "../../src/http/access/access_rules.ts";
import { OwnNames } from "../../src/http/access/own_names.ts";
import { PERMISSIONS } from "../../src/http/access/permissions.ts";
import type { Token } from "../../src/http/access/tokens.ts";
import { type Role, statusAnswer } from "../../src/http/message/message.ts";
import { runLarder } from "../support/run_larder.ts";
import { TestCache } from "../support/test_cache.ts";

const HASH = "0123456789abcdfghijklmnpqrsvwxyz";
const NAR = `${"0".repeat(52)}.nar.xz`;

/** A path of each route. */
const PATHS: Readonly<Record<string, string>> = {
  "/pin/{hash}.narinfo": `/pin/${HASH}.narinfo`,
  "/{hash}.narinfo": `/${HASH}.narinfo`,
  "/nar/{name}": `/nar/${NAR}`,
  "/{hash}.ls": `/${HASH}.ls`,
  "/log/{drv}": `/log/${HASH}-a.drv`,
  "/build-trace-v2/{drv}/{output}.doi": `/build-trace-v2/${HASH}-a.drv/out.doi`,
  "/realisations/{id}.doi": `/realisations/sha256:${"0".repeat(64)}!out.doi`,
  "/debuginfo/{id}": `/debuginfo/${"0".repeat(40)}.debug`,
};

/** The required roles by configured roles, in the order of `CONFIGURED`. `-`: none. */
type Needs = readonly (Role | "-" | "operator" | "nobody")[];

const CONFIGURED: readonly (readonly Role[])[] = [
  [],
  ["read"],
  ["write"],
  ["admin"],
  ["read", "write"],
  ["read", "admin"],
  ["write", "admin"],
  ["read", "write", "admin"],
];
const NONE: Needs = ["-", "-", "-", "-", "-", "-", "-", "-"];
const READING: Needs = ["-", "read", "-", "-", "read", "read", "-", "read"];
const MANAGING: Needs = ["-", "read", "-", "admin", "read", "admin", "admin", "admin"];
const REMOVING: Needs = ["-", "admin", "admin", "admin", "admin", "admin", "admin", "admin"];
const UPLOADING: Needs = ["-", "read", "write", "write", "write", "write", "write", "write"];
const VOUCHING: Needs = ["nobody", "nobody", ...UPLOADING.slice(2)];
const OPERATING = "operator";
const EVICTING: Needs = [
  ...[OPERATING, OPERATING, OPERATING, "admin"],
  ...[OPERATING, "admin", "admin", "admin"],
] as Needs;

const SIGNED = ["/{hash}.narinfo", "/nar/{name}"];
const DOCUMENTS = [
  ...["/{hash}.ls", "/log/{drv}", "/debuginfo/{id}"],
  ...["/build-trace-v2/{drv}/{output}.doi", "/realisations/{id}.doi"],
];

const EXPECTED: Readonly<Record<string, Needs>> = {
  "GET /nix-cache-info": NONE,
  "GET /healthz": NONE,
  "GET /readyz": NONE,
  "GET /pubkey": READING,
  "GET /{hash}.narinfo": READING,
  "GET /nar/{name}": READING,
  "GET /{hash}.ls": READING,
  "GET /log/{drv}": READING,
  "GET /build-trace-v2/{drv}/{output}.doi": READING,
  "GET /realisations/{id}.doi": READING,
  "GET /debuginfo/{id}": READING,
  "GET /upload/nix-cache-info": NONE,
  ...Object.fromEntries([...SIGNED, ...DOCUMENTS].flatMap((route) => [
    [`GET /upload${route}`, READING],
    [`PUT /upload${route}`, SIGNED.includes(route) ? UPLOADING : VOUCHING],
  ])),
  "GET /metrics": READING,
  "GET /": READING,
  "POST /": READING,
  "GET /client-config": READING,
  "GET /stats": READING,
  "GET /explain": READING,
  "POST /plan": READING,
  "GET /pulls": READING,
  "GET /pulls/{id}": READING,
  "GET /sign-in": MANAGING,
  "GET /pins": MANAGING,
  "GET /pins/closures": MANAGING,
  "GET /pins/names": MANAGING,
  "POST /pins/names": MANAGING,
  "DELETE /pins/names": MANAGING,
  "POST /pins/verify": MANAGING,
  "POST /pin/{hash}.narinfo": MANAGING,
  "DELETE /pin/{hash}.narinfo": MANAGING,
  "POST /page/pin": MANAGING,
  "POST /page/unpin": MANAGING,
  "POST /page/evict": EVICTING,
  "POST /gc": EVICTING,
  "DELETE /{hash}.narinfo": REMOVING,
  "DELETE /nar/{name}": REMOVING,
};

/** A browser has to ask for another token there: each that does not suffice counts as none. */
const SIGN_IN = "GET /sign-in";

const ROLES: readonly Role[] = ["read", "write", "admin"];
const TOKENS: readonly Token[] = ROLES.map((role) => (
  { name: `${role}-laptop`, role, secret: `secret-of-${role}` }
));

const uploads = { allowed: true, keys: [], requireSignature: false };

/** 0: no token, or a wrong one. Else the place in `ROLES`, from 1. */
const rankOf = (role: string) => ROLES.indexOf(role as Role) + 1;

Deno.test("permissions: every route has one row, and every row is in this test", () => {
  const rows = PERMISSIONS.map(({ method, route }) => `${method} ${route}`);
  assert.deepEqual(rows.toSorted(), Object.keys(EXPECTED).toSorted());
});

Deno.test("permissions: a route without a row ends the start", () => {
  const route = { name: "/new", path: "/new", methods: { GET: () => statusAnswer(200, false) } };
  const settings = { ownNames: new OwnNames([]), usesTls: false, tokens: [] };
  assert.throws(() => new AccessRules(settings, [route]), /permission for GET \/new/);
});

for (const [at, configured] of CONFIGURED.entries()) {
  const set = configured.join(" and ") || "no";
  Deno.test(`permissions: with ${set} tokens, each route wants its role`, async () => {
    const tokens = TOKENS.filter(({ role }) => configured.includes(role));
    await using cache = await TestCache.open({ upstreams: [], allowDelete: true, uploads, tokens });
    for (const [asked, needs] of Object.entries(EXPECTED)) {
      const [method = "", route = ""] = asked.split(" ");
      const need = needs[at] ?? "-";
      for (const [given, headers] of givenTokens(configured)) {
        // Another address for each route: many failures of one slow it.
        for (const network of ["127.0.0", "192.0.2"]) {
          const peer = `${network}.${Object.keys(EXPECTED).indexOf(asked)}`;
          const answer = await cache.request(method, pathOf(route), headers, { peer });
          await answer.body?.cancel();
          const what = `${asked} with ${given} of ${peer}`;
          assert.deepEqual([refusalOf(answer.status), what], [
            expected(
              need,
              asked === SIGN_IN && rankOf(given) < rankOf(need) ? 0 : rankOf(given),
              peer,
            ),
            what,
          ]);
          const challenge = answer.headers.get("www-authenticate");
          if (answer.status === 401) assert.equal(challenge, 'Basic realm="larder"', what);
          else assert.ok(!challenge?.startsWith("Basic"), what);
          if (answer.status === 401 || answer.status === 403) {
            assert.equal(answer.headers.get("x-cache"), null, what);
          }
        }
      }
    }
  });
}

function pathOf(route: string): string {
  const below = route.startsWith("/upload/") ? route.slice("/upload".length) : route;
  return `${route === below ? "" : "/upload"}${PATHS[below] ?? below}`;
}

/** The refusal; 0 for any answer of the route itself. */
function refusalOf(status: number): number {
  return status === 401 || status === 403 ? status : 0;
}

function expected(need: Needs[number], rank: number, peer: string): number {
  if (need === "-") return 0;
  if (need === "nobody") return 403;
  if (need === "operator") return peer.startsWith("127.") ? 0 : 403;
  if (rank === 0) return 401;
  return rank >= rankOf(need) ? 0 : 403;
}

/** Each token that the server knows; one of another role is a wrong one. */
function givenTokens(configured: readonly Role[]): readonly (readonly [string, HeadersInit])[] {
  return [
    ["no token", {}],
    ["a wrong token", { authorization: "Bearer secret-of-nobody" }],
    ...configured.map((role) => [role, { authorization: `Bearer secret-of-${role}` }] as const),
  ];
}

Deno.test("permissions: an admin token alone leaves the page without buttons and the figures open", async () => {
  const tokens: readonly Token[] = [{ role: "admin", name: "alice", secret: "s".repeat(32) }];
  await using cache = await TestCache.open({ upstreams: [], tokens });

  const page = await cache.get("/", { accept: "text/html" });
  const html = await page.text();

  assert.equal(page.status, 200);
  assert.doesNotMatch(html, /action="\/page\//, "no form that changes something");
  for (const path of ["/stats", `/explain?path=${HASH}`]) {
    const answer = await cache.get(path);
    await answer.body?.cancel();
    assert.equal(answer.status, 200, path);
  }
  await using server = cache.listen();
  const { status, out, err } = await runLarder(["status", "--server", server.url]);
  assert.deepEqual([status, err], [0, ""]);
  assert.match(out, /^Requests /m);
});

Deno.test("permissions: a read token closes page and figures, and opens them", async () => {
  const secret = "r".repeat(32);
  const tokens: readonly Token[] = [{ role: "read", name: "laptop", secret }];
  await using cache = await TestCache.open({ upstreams: [], tokens });
  for (const path of ["/", "/stats", `/explain?path=${HASH}`]) {
    for (const [headers, expected] of [[{}, 401], [bearing(secret), 200]] as const) {
      const answer = await cache.get(path, headers);
      await answer.body?.cancel();
      assert.equal(answer.status, expected, path);
    }
  }
  await using server = cache.listen();
  const { status, out, err } = await runLarder(["status", "--server", server.url]);
  assert.deepEqual([status, out], [0, `larder answers at ${server.url}\n`]);
  assert.match(err, /Cannot show figures/);
  const known = await runLarder(["status", "--server", server.url, "--token", secret]);
  assert.match(known.out, /^Requests /m);
});

const bearing = (secret: string) => ({ authorization: `Bearer ${secret}` });
