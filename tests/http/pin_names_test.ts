import assert from "node:assert/strict";
import { KEEP_MAX, NAME_LENGTH_MAX } from "../../src/pins/pin_name.ts";
import { fakeUpstream } from "../support/fake_upstream.ts";
import { makeStoreObject } from "../support/store_object.ts";
import { TestCache } from "../support/test_cache.ts";

const objects = ["one", "two", "three", "four"].map((name) => makeStoreObject({ name }));
const [one = "", two = "", three = "", four = ""] = objects.map((each) => each.storePathHash);
const UNKNOWN = "0".repeat(32);

/** A cache that has the narinfos of all objects, and a fresh clock for each pin. */
async function scene() {
  const resources = new AsyncDisposableStack();
  const upstream = resources.use(await fakeUpstream({ objects, stored: true }));
  const cache = resources.use(await TestCache.open({ upstreams: [upstream] }));
  for (const { storePathHash } of objects) await cache.narinfo(storePathHash);
  const send = async (method: string, values: Readonly<Record<string, string | number>>) => {
    const query = Object.entries(values).map(([key, value]) => [key, String(value)]);
    const answer = await cache.request(method, `/pins/names?${new URLSearchParams(query)}`);
    return { status: answer.status, text: await answer.text() };
  };
  return {
    cache,
    send,
    roll: async (name: string, keep: number, ...roots: readonly string[]) => {
      for (const root of roots) {
        const { status, text } = await send("POST", { name, keep, root });
        assert.deepEqual([status, text], [200, `pinned ${root} under ${name}\n`]);
      }
    },
    pins: async () => await (await cache.get("/pins")).json(),
    [Symbol.asyncDispose]: () => resources.disposeAsync(),
  };
}

Deno.test("pin names: the newest under a name stay pinned, and the list has them first", async () => {
  await using at = await scene();
  assert.equal(await (await at.cache.get("/pins/names")).text(), "[]");
  await at.roll("host/laptop", 2, one, two, three);
  await at.roll("ci/a+b@c", 1, four);
  assert.deepEqual(await at.pins(), [two, three, four], "the roots alone, as ever");
  const answer = await at.cache.get("/pins/names");
  assert.equal(answer.headers.get("content-type"), "application/json");
  const names: readonly { roots: readonly { root: string; pinned_at: string }[] }[] = await answer
    .json();
  assert.ok(
    names.flatMap(({ roots }) => roots).every(({ pinned_at }) => Date.parse(pinned_at) > 0),
  );
  assert.deepEqual(
    names.map(({ roots, ...rest }) => ({ ...rest, roots: roots.map(({ root }) => root) })),
    [
      { name: "ci/a+b@c", keep: 1, roots: [four] },
      { name: "host/laptop", keep: 2, roots: [three, two] },
    ],
  );
});

Deno.test("pin names: a root pinned again becomes the newest, and pushes nothing out", async () => {
  await using at = await scene();
  await at.roll("a", 2, one, two, one, one);
  assert.deepEqual(await at.pins(), [one, two]);
  await at.roll("a", 2, three);
  assert.deepEqual(await at.pins(), [one, three], "two was the oldest");
});

Deno.test("pin names: what another pin holds stays when it rolls off", async () => {
  await using at = await scene();
  await at.cache.request("POST", `/pin/${one}.narinfo`);
  await at.roll("a", 1, one, two);
  await at.roll("b", 1, two);
  await at.roll("a", 1, three);
  assert.deepEqual(await at.pins(), [one, two, three]);
  assert.equal((await at.send("DELETE", { name: "b" })).status, 200);
  assert.deepEqual(await at.pins(), [one, three], "a plain pin and a name hold them");
  assert.equal((await at.cache.request("POST", `/pin/${three}.narinfo`)).status, 200);
  await at.roll("a", 1, four);
  assert.deepEqual(await at.pins(), [one, three, four], "it was pinned by hand as well");
});

Deno.test("pin names: DELETE of a root unpins it, whatever names hold it", async () => {
  await using at = await scene();
  await at.roll("a", 2, one, two);
  await at.roll("b", 2, two, three);
  assert.equal((await at.cache.request("DELETE", `/pin/${two}.narinfo`)).status, 200);
  assert.deepEqual(await at.pins(), [one, three]);
  await at.roll("a", 2, four);
  assert.deepEqual(await at.pins(), [one, three, four], "its place in the name is free");
});

Deno.test("pin names: the closures of the pins say what holds each", async () => {
  await using at = await scene();
  await at.cache.request("POST", `/pin/${one}.narinfo`);
  await at.roll("b", 2, one, two);
  await at.roll("a", 2, two);
  const holders = async () =>
    (await (await at.cache.get("/pins/closures")).json()).map((
      { under, rolls }: { under?: unknown; rolls?: unknown },
    ) => [under, rolls]);
  assert.deepEqual(await holders(), [[["b"], undefined], [["a", "b"], true]]);
  const stats = await (await at.cache.get("/stats")).json();
  assert.deepEqual(
    stats.pins.roots.map(({ under, rolls }: { under: unknown; rolls: unknown }) => [under, rolls]),
    [[["a", "b"], true], [["b"], false]],
  );
  await at.send("DELETE", { name: "b" });
  assert.deepEqual(await holders(), [[undefined, undefined], [["a"], true]]);
});

Deno.test("pin names: a path that is not here is 404, and nothing is fetched or rolled", async () => {
  await using at = await scene();
  await at.roll("a", 1, one);
  for (const root of [UNKNOWN]) {
    assert.equal((await at.send("POST", { name: "a", keep: 1, root })).status, 404);
  }
  assert.equal((await at.send("DELETE", { name: "b" })).status, 404, "nothing is under it");
  assert.deepEqual(await at.pins(), [one]);
});

Deno.test("pin names: bad input gets a sentence, which repeats what is plain", async () => {
  await using at = await scene();
  const good = { name: "a", keep: 1, root: one };
  const long = "a".repeat(NAME_LENGTH_MAX + 1);
  const names = [
    "",
    "/",
    "/a",
    "a/",
    "a//b",
    "../a",
    "a/../b",
    "a/.",
    "-a",
    "a b",
    "ä",
    "<a>",
    long,
  ];
  for (const name of names) {
    for (const [method, values] of [["POST", { ...good, name }], ["DELETE", { name }]] as const) {
      const { status, text } = await at.send(method, values);
      assert.equal(status, 400, name);
      assert.match(text, /^Bad Request: expected a name such as host\/laptop: [ -~]*\n$/);
      assert.ok(!text.includes("<"), "it is nothing that a browser could take for HTML");
    }
  }
  const branch = await at.send("POST", { ...good, name: "ci/fix#12" });
  assert.match(branch.text, /at most 100 characters, not ci\/fix#12\n$/);
  for (const keep of ["0", "", "-1", "1.5", "x", "1e2", KEEP_MAX + 1, "9".repeat(40)]) {
    const { status, text } = await at.send("POST", { ...good, keep });
    const not = keep === "" ? "" : `, not ${keep}`;
    const line = `Bad Request: expected keep from 1 to ${KEEP_MAX}${not}\n`;
    assert.deepEqual([status, text], [400, line]);
  }
  for (const root of ["xyz", "", `e${UNKNOWN.slice(1)}`, `/nix/store/${one}-x`]) {
    const { status, text } = await at.send("POST", { ...good, root });
    const not = root === "" ? "" : `, not ${root}`;
    const form = 'root, the 32 characters between "/nix/store/" and the name';
    assert.deepEqual([status, text], [400, `Bad Request: expected ${form}${not}\n`]);
  }
  const missing = {
    "": "name, keep, root",
    "name=a": "keep, root",
    "name=a&keep=1": "root",
    [`keep=1&root=${one}`]: "name",
    [`name=a&root=${one}`]: "keep",
  };
  for (const [query, names] of Object.entries(missing)) {
    const answer = await at.cache.request("POST", `/pins/names?${query}`);
    assert.deepEqual([answer.status, await answer.text()], [
      400,
      `Bad Request: expected name, keep and root, each of them once: without ${names}\n`,
    ]);
  }
  const twice = `name=a&name=b&keep=1&root=${one}`;
  for (const query of [twice, `name=a&keep=1&root=${one}&more=1`, `name=a&keep=1&keep=2&root=x`]) {
    assert.equal((await at.cache.request("POST", `/pins/names?${query}`)).status, 400);
  }
  assert.equal((await at.cache.request("DELETE", "/pins/names")).status, 400);
  assert.deepEqual(await at.pins(), []);
  await at.roll("a".repeat(NAME_LENGTH_MAX), KEEP_MAX, one);
});
