import assert from "node:assert/strict";
import { AccessRules } from "../../../../src/http/access/access_rules.ts";
import { OwnNames } from "../../../../src/http/access/own_names.ts";
import { describe, PERMISSIONS } from "../../../../src/http/access/permissions.ts";
import { type Role, statusAnswer } from "../../../../src/http/message/message.ts";

const handler = () => statusAnswer(200, false);
const GC = { name: "/gc", path: "/gc", methods: { POST: handler } };
const LISTING = { name: "/upload/{hash}.ls", path: "/upload/x.ls", methods: { PUT: handler } };

/** The hint for the log of a request without a token, from another machine. */
function hintFor(route: typeof GC | typeof LISTING, ...roles: readonly Role[]): string {
  const tokens = roles.map((role) => ({ name: role, role, secret: `secret-of-${role}` }));
  const rules = new AccessRules({ ownNames: new OwnNames([]), usesTls: false, tokens }, [route]);
  const [method = ""] = Object.keys(route.methods);
  const access = rules.decide({
    ...{ method, url: route.path, headers: new Headers(), body: null, peer: "192.0.2.7" },
    signal: new AbortController().signal,
  }, route);
  return access.kind === "refused" ? access.refusal.hint : "none";
}

Deno.test("access rules: a refusal's hint names what to send, and what to set where it is not", () => {
  assert.equal(hintFor(LISTING, "write"), "send a token of --cache-put-token");
  assert.equal(hintFor(LISTING, "admin"), "set --cache-put-token, and send a token of it");
  assert.match(hintFor(LISTING), /^set --cache-put-token, and send a token of it: no key/);
  assert.equal(
    hintFor(GC),
    "send the request from this machine, to a loopback address or the Unix socket, or set " +
      "--cache-admin-token",
  );
});

Deno.test("permissions: the printed table says of each row who needs which role", () => {
  for (const permission of PERMISSIONS) {
    const { role, openTo } = describe(permission);
    assert.equal(role === "none", permission.right === "none");
    assert.equal(openTo === "anybody", permission.right === "none");
  }
});
