import assert from "node:assert/strict";
import { Answer } from "../../../../src/http/message/answer.ts";
import { type Handler, type Route, Router } from "../../../../src/http/routes/router.ts";

const handler: Handler = () => new Answer(null, 200, {});
const routes: readonly Route[] = [
  { name: "exact", path: "/pins", methods: { GET: handler } },
  { name: "narinfo", path: /^\/([^/]*)\.narinfo$/, methods: { GET: handler, DELETE: handler } },
  { name: "pin", path: /^\/pin\/([^/]*)\.narinfo$/, methods: { POST: handler } },
];
const router = new Router(routes);

Deno.test("Router: an exact path and a pattern with its group are found", () => {
  const exact = router.match("GET", "/pins");
  assert.equal(exact.kind === "route" && exact.route.name, "exact");
  const pattern = router.match("GET", "/abc.narinfo");
  assert.deepEqual(pattern.kind === "route" && pattern.params, ["abc"]);
});

Deno.test("Router: HEAD goes to the handler of GET", () => {
  assert.equal(router.match("HEAD", "/pins").kind, "route");
  assert.equal(router.match("HEAD", "/pin/abc.narinfo").kind, "method");
});

Deno.test("Router: another method gets the list of allowed ones", () => {
  for (const method of ["POST", "constructor", "__proto__", "get", ""]) {
    const match = router.match(method, "/abc.narinfo");
    assert.equal(match.kind === "method" && match.allow, "GET, HEAD, DELETE", method);
  }
});

Deno.test("Router: a path without a route is none, nearly right paths too", () => {
  for (const path of ["/", "", "/pins/", "//pins", "/x/abc.narinfo", "/abc.narinfo/", "/.."]) {
    assert.equal(router.match("GET", path).kind, "none", path);
  }
});
