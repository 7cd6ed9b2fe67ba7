import assert from "node:assert/strict";
import { fakeUpstream } from "../../support/fake_upstream.ts";
import { runLarder } from "../../support/run_larder.ts";
import { chain } from "../../support/store_object.ts";
import { TestCache } from "../../support/test_cache.ts";

const objects = chain(2);
const [leaf, root] = objects;
const UNKNOWN = "0".repeat(32);

Deno.test("larder pin: paths that are here are pinned and named, others are listed", async () => {
  await using upstream = await fakeUpstream({ objects, stored: true });
  await using cache = await TestCache.open({ upstreams: [upstream] });
  await using server = cache.listen();
  await cache.narinfo(root?.storePathHash ?? "");
  const surroundings = {
    env: { LARDER_SERVER: server.url },
    links: { "/home/ada/result": String(root?.storePath) },
  };

  const pinned = await runLarder(["pin", UNKNOWN, "./result"], surroundings);
  assert.equal(pinned.status, 1);
  assert.equal(pinned.out, `pinned ${root?.baseName} (./result)\n`);
  assert.equal(
    pinned.err,
    `larder: 1 of 2 not pinned:\n  ${UNKNOWN}: the cache has no such path; fetch it first: ` +
      `larder warm ${UNKNOWN}\n`,
  );
  assert.deepEqual(await (await cache.get("/pins")).json(), [root?.storePathHash]);

  const unpinned = await runLarder(["unpin", `${root?.storePath}/bin/x`, UNKNOWN], surroundings);
  assert.deepEqual([unpinned.status, unpinned.err], [0, ""]);
  assert.equal(unpinned.out, `unpinned ${root?.baseName}\nunpinned ${UNKNOWN}\n`);
  assert.deepEqual(await (await cache.get("/pins")).json(), []);
});

Deno.test("larder pin: one word that is no store path, and nothing is sent", async () => {
  await using cache = await TestCache.open({ upstreams: [] });
  await using server = cache.listen();
  const words = [UNKNOWN, "./none", "--server", server.url];

  for (const command of ["pin", "unpin", "warm"]) {
    const { status, out, err } = await runLarder([command, ...words]);
    assert.deepEqual([status, out], [2, ""]);
    assert.match(err, /^larder: "\.\/none": expected a store path, [^\n]*\n$/);
    assert.equal((await runLarder([command])).status, 2);
  }
});

Deno.test("larder pins: a table for people, JSON for programs", async () => {
  await using upstream = await fakeUpstream({ objects, stored: true });
  await using cache = await TestCache.open({ upstreams: [upstream] });
  await using server = cache.listen();
  const env = { LARDER_SERVER: server.url };
  const empty = await runLarder(["pins"], { env });
  assert.deepEqual(empty, { status: 0, out: "", err: "nothing is pinned\n" });
  assert.equal((await runLarder(["pins", "--json"], { env })).out, "[]\n");

  await cache.narinfo(root?.storePathHash ?? "");
  await runLarder(["pin", String(root?.storePath)], { env });
  const { out } = await runLarder(["pins"], { env });
  const [head, row, ...rest] = out.split("\n");
  assert.deepEqual(rest, [""]);
  assert.match(head ?? "", /^ROOT +NAME +STORED +COMPLETE +OWN +SIZE +PINNED$/);
  assert.match(
    row ?? "",
    new RegExp(
      `^${root?.storePathHash}  link-1 +0 +2 missing +0 B +0 B  \\d{4}-\\d\\d-\\d\\d$`,
    ),
  );
  const [told] = JSON.parse((await runLarder(["pins", "--json"], { env })).out);
  const [served] = await (await cache.get("/pins/closures")).json();
  assert.deepEqual(told, served);
  assert.equal(told.root, root?.storePathHash);
  assert.ok(leaf);
});

Deno.test("larder pins: a response that is not larder's is not shown", async () => {
  const good = {
    root: UNKNOWN,
    name: null,
    stored: 0,
    missing: 1,
    bytes: 0,
    pinned_at: "2026-01-02T03:04:05.000Z",
  };
  for (
    const text of [
      "<html>",
      "{}",
      "[null]",
      JSON.stringify([{ ...good, name: "\u001b[2J" }]),
      JSON.stringify([{ ...good, bytes: "1" }]),
      JSON.stringify([{ ...good, pinned_at: "now" }]),
      JSON.stringify([good, { ...good, root: "x" }]),
    ]
  ) {
    const options = { hostname: "127.0.0.1", port: 0, onListen() {} };
    await using server = Deno.serve(options, () => new Response(text));
    const url = `http://127.0.0.1:${server.addr.port}`;

    const { status, out, err } = await runLarder(["pins", "--server", url]);

    assert.deepEqual([status, out], [1, ""]);
    const expected = text === "<html>"
      ? "larder: Cannot read /pins/closures: it is no JSON; is it larder?\n"
      : "larder: Cannot read the server's list of pins: is it larder?\n";
    assert.equal(err, expected);
  }
});

Deno.test("larder pin and pins: files that wait for verification are told of", async () => {
  const root = "0".repeat(32);
  const pin = { root, name: "app-1", stored: 0, missing: 33, bytes: 0, own_bytes: 0 };
  const answers: Readonly<Record<string, unknown>> = {
    "/stats": { verification_backlog: { files: 33 } },
    "/pins/closures": [{ ...pin, pinned_at: "2026-01-02T03:04:05.000Z" }],
  };
  const options = { hostname: "127.0.0.1", port: 0, onListen() {} };
  await using server = Deno.serve(
    options,
    (request) => Response.json(answers[new URL(request.url).pathname] ?? "pinned"),
  );
  const url = `http://127.0.0.1:${server.addr.port}`;
  const pinned = await runLarder(["pin", root, "--server", url]);
  assert.deepEqual([pinned.status, pinned.out], [0, `pinned ${root}\n`]);
  assert.match(
    pinned.err,
    /33 of its paths are not kept: 33 NAR files still wait for verification/,
  );
  const { status, err } = await runLarder(["pins", "--server", url]);
  assert.equal(status, 0);
  assert.match(err, /^larder: 33 NAR files still wait for verification: their paths are missing/);
});

const HASHES = ["0", "1", "2", "3"].map((digit) => digit.repeat(32));

/** A server that has these pins, and notes each path that a client unpins. */
function pinServer(names: readonly string[]) {
  const unpinned: string[] = [];
  const pins = names.map((name, at) => ({
    ...{
      root: HASHES[at],
      name,
      stored: at,
      missing: 3 - at,
      bytes: 1024 * ((at * 3) % 4),
      own_bytes: 0,
    },
    pinned_at: `2026-01-0${at + 1}T03:04:05.000Z`,
  }));
  const options = { hostname: "127.0.0.1", port: 0, onListen() {} };
  const server = Deno.serve(options, ({ method, url }) => {
    const { pathname } = new URL(url);
    if (method === "GET") return Response.json(pathname === "/pins/closures" ? pins : []);
    unpinned.push(pathname.slice("/pin/".length, -".narinfo".length));
    return new Response("not pinned\n");
  });
  const env = { LARDER_SERVER: `http://127.0.0.1:${server.addr.port}` };
  return { env, unpinned, [Symbol.asyncDispose]: () => server.shutdown() };
}

Deno.test("larder pins --sort: the oldest, the first name or the largest comes first", async () => {
  await using server = pinServer(["b-1", "d-1", "a-1", "c-1"]);
  const order = async (sort: string) => {
    const { out } = await runLarder(["pins", "--json", "--sort", sort], server);
    return JSON.parse(out).map(({ name }: { name: string }) => name[0]).join("");
  };

  assert.deepEqual(
    await Promise.all(["age", "name", "size", "stored", "missing"].map(order)),
    ["bdac", "abcd", "dacb", "cadb", "bdac"],
  );
  assert.equal((await runLarder(["pins", "--sort", "colour"], server)).status, 2);
});

Deno.test("larder unpin: a package's name is enough where one pin has it", async () => {
  await using server = pinServer(["firefox-130.0", "hello-2.12", "hello-2.10", "hello-wayland-1"]);

  const ran = await runLarder(["unpin", "firefox", "hello-2.10", "hello", "vim"], server);

  assert.equal(ran.status, 1);
  assert.deepEqual(server.unpinned, [HASHES[0], HASHES[2]]);
  assert.equal(
    ran.out,
    `unpinned ${HASHES[0]}-firefox-130.0 (firefox)\nunpinned ${
      HASHES[2]
    }-hello-2.10 (hello-2.10)\n`,
  );
  assert.equal(
    ran.err,
    `larder: 2 of 4 not unpinned:
  hello: 2 pins have this name; give one of
    ${HASHES[1]}-hello-2.12  3.0 KiB, pinned 2026-01-02
    ${HASHES[2]}-hello-2.10  2.0 KiB, pinned 2026-01-03
  vim: no pin has this name; larder pins lists them all
`,
  );
});

Deno.test("larder pins: a long name leaves the table as wide as the terminal", async () => {
  await using server = pinServer(["a".repeat(200), "b-1"]);
  const { out } = await runLarder(["pins"], { ...server, columns: 110 });
  const lines = out.trimEnd().split("\n");
  assert.ok(lines.every(({ length }) => length <= 110), out);
  assert.match(lines[1] ?? "", / a+… /);
  const piped = await runLarder(["pins"], server);
  assert.match(piped.out, /a{200}/, "a pipe gets all of it");
});
