import assert from "node:assert/strict";
import { eventually } from "../support/eventually.ts";
import { fakeUpstream } from "../support/fake_upstream.ts";
import { stallAfter } from "../support/faults.ts";
import { PERMISSIONS } from "../support/larder_process.ts";
import { runLarder, withoutProgress } from "../support/run_larder.ts";
import { silenceMembers } from "../support/silenced_members.ts";
import { accountsOf, filesBelow, narBytesIn } from "../support/storage_look.ts";
import { chain } from "../support/store_object.ts";
import { tempFolder } from "../support/temp_folder.ts";

const MAIN = new URL("../../main.ts", import.meta.url).pathname;
const objects = chain(4);
const [, stalled, , top] = objects;

for (const signal of ["SIGKILL", "SIGINT"] as const) {
  Deno.test(`import: ended by ${signal}, it goes on where it ended`, async () => {
    using storage = tempFolder();
    await using upstream = await fakeUpstream({ objects, compression: "none" });
    assert.ok(stalled && top);
    upstream.breakNar(stallAfter(50), stalled);
    const words = [
      ...["import", "cache", upstream.url, top.storePath],
      ...["--cache-storage-local", storage.path, "--cache-verify-threads", "1"],
      ...["--cache-upstream-public-key", upstream.publicKey],
    ];

    const first = runThrough(words);
    await upstream.requested(`/${await upstream.narUrlOf(stalled)}`);
    const isLeft = () => accountsOf(storage.path).narinfos.size === objects.length - 1;
    await eventually("all but one are stored", isLeft);
    first.kill(signal);
    const { code, stderr } = await first.output();
    assert.notEqual(code, 0);
    const said = new TextDecoder().decode(stderr);
    assert.equal(said.includes("larder: stopped; run it again to go on"), signal === "SIGINT");
    assert.ok(!accountsOf(storage.path).narinfos.has(stalled.storePathHash));

    upstream.mend();
    silenceMembers(storage.path);
    const second = await runLarder(words);
    assert.deepEqual([second.status, withoutProgress(second.err)], [0, ""]);
    const { keptFiles, countedBytes, pending } = accountsOf(storage.path);
    assert.deepEqual([keptFiles, pending], [objects.length, []]);
    assert.equal(countedBytes, narBytesIn(storage.path));
    assert.equal(filesBelow(`${storage.path}/tmp`).size, 0, "no partial file is left");
    for (const object of objects.filter((one) => one !== stalled)) {
      assert.equal(upstream.count(`/${await upstream.narUrlOf(object)}`), 1, object.storePath);
    }
  });
}

/** A larder of its own that runs these words. */
function runThrough(words: readonly string[]): Deno.ChildProcess {
  const executable = Deno.env.get("LARDER_EXECUTABLE");
  const [program = "", ...args] = executable === undefined
    ? [Deno.execPath(), "run", "--cached-only", ...PERMISSIONS, MAIN, ...words]
    : [executable, ...words];
  return new Deno.Command(program, { args, stdin: "null", stdout: "piped", stderr: "piped" })
    .spawn();
}
