import assert from "node:assert/strict";
import { eventually } from "../support/eventually.ts";
import { fakeUpstream } from "../support/fake_upstream.ts";
import { type LarderProcess, startLarder } from "../support/larder_process.ts";
import { withoutProgress } from "../support/run_larder.ts";
import { chain, makeStoreObject } from "../support/store_object.ts";
import { tempFolder } from "../support/temp_folder.ts";

const libs = chain(5);
const app = makeStoreObject({ name: "app-1.0", references: libs, size: 200_000 });

const MAIN = new URL("../../main.ts", import.meta.url).pathname;

/** Runs a command as a shell in `folder` does, with the permissions of the executable. */
async function command(folder: string, server: string, ...words: readonly string[]) {
  const executable = Deno.env.get("LARDER_EXECUTABLE");
  const permissions = ["net", "read", "write", "env", "sys"].map((name) => `--allow-${name}`);
  const args = ["run", "--cached-only", "--quiet", ...permissions, MAIN, ...words];
  const { code, stdout, stderr } = await new Deno.Command(executable ?? Deno.execPath(), {
    args: executable === undefined ? args : [...words],
    cwd: folder,
    env: { LARDER_SERVER: server },
  }).output();
  const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
  return { code, out: text(stdout), err: text(stderr) };
}

for (const address of ["127.0.0.1:0", "unix"]) {
  Deno.test(`commands: warm --pin, pins and unpin of ./result, by ${address}`, async () => {
    using folder = tempFolder();
    await using upstream = await fakeUpstream({ objects: [...libs, app], stored: true });
    await using larder: LarderProcess = await startLarder({
      "cache-upstream-url": upstream.url,
      "cache-upstream-public-key": upstream.publicKey,
      "server-addr": address === "unix" ? `unix:${folder.path}/socket` : address,
    });
    Deno.symlinkSync("result-1-link", `${folder.path}/result`);
    Deno.symlinkSync(app.storePath, `${folder.path}/result-1-link`);
    const run = (...words: readonly string[]) => command(folder.path, larder.url, ...words);
    const pinned = async () => JSON.parse((await run("pins", "--json")).out);

    const early = await run("pin", "./result");
    assert.deepEqual([early.code, early.out], [1, ""]);
    assert.match(early.err, /fetch it first: larder warm \.\/result\n$/);

    const warm = await run("warm", "./result", "--pin");
    assert.deepEqual([warm.code, withoutProgress(warm.err)], [0, ""]);
    assert.match(warm.out, /^fetched 6 paths: .*\npinned \S+-app-1\.0 \(\.\/result\)\n$/);

    // The last of them may still be verified.
    await eventually("all is kept", async () => (await pinned())[0].missing === 0);
    // Whether larder has looked at it yet is a matter of time.
    const { pinned_at: _, complete: _complete, look: _look, bytes, own_bytes, ...pin } =
      (await pinned())[0];
    assert.deepEqual(pin, {
      ...{ root: app.storePathHash, name: "app-1.0", stored: 6, missing: 0 },
      keep_complete: false,
    });
    assert.ok(bytes > 200_000);
    assert.equal(own_bytes, bytes, "no other pin holds any of it");

    // Its libraries come after it under a name, and push it out; the pin by hand stays.
    const roll = (path: string) => run("pin", "--name", "host/laptop", "--keep", "2", path);
    for (const { storePath } of [app, ...libs.slice(0, 2)]) {
      const { code, out } = await roll(storePath);
      assert.deepEqual([code, out.endsWith(" under host/laptop\n")], [0, true]);
    }
    const held = (await pinned()).map((pin: { root: string; under?: unknown }) => pin.under);
    assert.deepEqual(held, [undefined, ["host/laptop"], ["host/laptop"]]);
    assert.match((await run("pins")).out, /^ROOT .* UNDER\n(?:.*\n)+.*-\d\d {2}host\/laptop\n/);
    const ended = await run("unpin", "--name", "host/laptop");
    assert.deepEqual([ended.code, ended.out], [0, "unpinned host/laptop\n"]);
    assert.deepEqual((await pinned()).map(({ root }: { root: string }) => root), [
      app.storePathHash,
    ]);

    await upstream.stop();
    assert.equal((await run("warm", app.baseName)).code, 0, "all of it is here");

    const unpin = await run("unpin", "./result/bin/app");
    assert.deepEqual([unpin.code, unpin.err], [0, ""]);
    assert.deepEqual(await pinned(), []);
  });
}
