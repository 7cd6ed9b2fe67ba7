import assert from "node:assert/strict";
import { columnsOf } from "../../../src/cli/command_process.ts";
import { refilled, wrapped } from "../../../src/base/wrapped.ts";
import { fakeUpstream } from "../../support/fake_upstream.ts";
import { runLarder } from "../../support/run_larder.ts";
import { makeStoreObject } from "../../support/store_object.ts";
import { TestCache } from "../../support/test_cache.ts";

const COLUMNS = 60;
const long = makeStoreObject({ name: `source-${"of-something-".repeat(10)}1.0` });
const other = makeStoreObject({ name: "hello-2.12", seed: 1 });

Deno.test("larder: what commands tell people fits 60 columns, long paths stand alone", async () => {
  await using upstream = await fakeUpstream({ objects: [long, other], stored: true });
  const upstreams = [upstream, "http://127.0.0.1:1"];
  await using cache = await TestCache.open({ upstreams, limitBytes: 90_000 });
  for (const { storePathHash } of [long, other]) {
    await (await cache.get(await cache.narPath(storePathHash))).bytes();
    await cache.request("POST", `/pin/${storePathHash}.narinfo`);
  }
  await cache.downloadsOver();
  await using server = cache.listen();
  const at = ["--server", server.url];
  const paths = [long, other].map(({ storePath }) => storePath);
  for (
    const words of [
      ["status"],
      ["pins"],
      ["explain", ...paths],
      ["verify", "--pins"],
      ["plan", ...paths],
      ["pulls"],
    ]
  ) {
    const { out } = await runLarder([...words, ...at], { columns: COLUMNS });
    const wide = out.split("\n").filter((line) => line.length > COLUMNS && / /.test(line.trim()));
    assert.deepEqual(wide, [], words.join(" "));
    assert.doesNotMatch(words[0] === "status" ? out : "", /…/, "nothing is cut");
  }
  const { out } = await runLarder(["pins", "--json", ...at], { columns: COLUMNS });
  assert.equal(JSON.parse(out).length, 2);
});

Deno.test("larder: in a pipe, COLUMNS says how wide its text may be", () => {
  assert.deepEqual(
    ["100", "60", "20", undefined, "", "wide", "-1"].map(columnsOf),
    [100, 60, 60, undefined, undefined, undefined, undefined],
  );
});

Deno.test("larder: a long line goes on below with its indent, a long word alone", () => {
  assert.equal(wrapped("  one two three", 9), "  one two\n  three");
  assert.equal(wrapped("one two three", 8, 2), "one two\n  three");
  assert.equal(wrapped("  aaaaaaaaaaaa b", 8), "  aaaaaaaaaaaa\n  b");
  assert.equal(wrapped("a bbbbbbbbbbbb c", 8, 4), "a\n    bbbbbbbbbbbb\n    c");
});

Deno.test("larder: lines of a paragraph and of an explanation are joined before they wrap", () => {
  assert.equal(refilled("one two\nthree four", 13), "one two three\nfour");
  assert.equal(
    refilled("  a   one two\n        three\n  b   four", 13),
    [
      "  a   one two",
      "        three",
      "  b   four",
    ].join("\n"),
  );
  assert.equal(
    refilled("  a  one two\n     three four\n  b  five", 15),
    [
      "  a  one two",
      "     three four",
      "  b  five",
    ].join("\n"),
  );
  assert.equal(
    refilled("Title:\n  one\n  two\n\nthree\nfour", 80),
    [
      ...["Title:", "  one", "  two", "", "three four"],
    ].join("\n"),
  );
  assert.equal(refilled("one\ntwo"), "one\ntwo");
});
