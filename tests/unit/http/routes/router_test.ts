import assert from "node:assert/strict";
import { Answer } from "../../../../src/http/message/message.ts";
import { type Handler, type Route, Router } from "../../../../src/http/routes/router.ts";

const handler: Handler = () => new Answer(null, 200, {});
const routes: readonly Route[] = [
  { name: "exact", path: "/pins", methods: { GET: handler } },
  {
    name: "narinfo",
    path: { before: "/", behind: ".narinfo" },
    methods: { GET: handler, DELETE: handler },
  },
  { name: "nar", path: { before: "/nar/", behind: "" }, methods: { GET: handler } },
  { name: "pin", path: /^\/pin\/([^/]*)\.narinfo$/, methods: { POST: handler } },
];
const router = new Router(routes);

Deno.test("Router: exact paths, patterns and named paths are found, with their names", () => {
  const found = (method: string, path: string) => {
    const match = router.match(method, path);
    return match.kind === "route" && [match.route.name, ...match.params];
  };
  assert.deepEqual(found("GET", "/pins"), ["exact"]);
  assert.deepEqual(found("POST", "/pin/abc.narinfo"), ["pin", "abc"]);
  assert.deepEqual(found("GET", "/abc.narinfo"), ["narinfo", "abc"]);
  assert.deepEqual(found("GET", "/.narinfo"), ["narinfo", ""]);
  assert.deepEqual(found("GET", "/nar/"), ["nar", ""]);
  assert.deepEqual(found("GET", "/nar/a.nar"), ["nar", "a.nar"]);
});

Deno.test("Router: an exact path that a named one takes is an error", () => {
  const named: Route = { name: "any", path: { before: "/", behind: "" }, methods: {} };
  assert.throws(() => new Router([...routes, named]), {
    message: "Cannot route /pins: any takes it",
  });
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
  for (
    const path of [
      "/",
      "",
      "/pins/",
      "//pins",
      "/x/abc.narinfo",
      "/abc.narinfo/",
      "/..",
      ".narinfo",
      "/nar",
      "/nar/a/b",
    ]
  ) {
    assert.equal(router.match("GET", path).kind, "none", path);
  }
});
