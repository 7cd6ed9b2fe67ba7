import assert from "node:assert/strict";
import { eventually } from "../support/eventually.ts";
import { fakeUpstream } from "../support/fake_upstream.ts";
import { startLarder } from "../support/larder_process.ts";
import { record } from "../support/reliability_record.ts";
import { checkNar, servedNar, servedNarinfo } from "../support/served_nar.ts";
import { filesBelow } from "../support/storage_look.ts";
import { makeStoreObject } from "../support/store_object.ts";

/** A shell in which no file grows beyond 4 MiB: writing more fails, as on a full disk. */
const FULL_DISK = ["sh", "-c", `trap "" XFSZ; ulimit -f 8192; exec "$0" "$@"`];

const large = makeStoreObject({ name: "large", size: 12_000_000, seed: 1 });
const small = makeStoreObject({ name: "small", size: 100_000, seed: 2 });

for (const dialect of ["nixos", "attic"] as const) {
  Deno.test(`full disk: clients get their NARs of ${dialect} whole, and it goes on`, async () => {
    await using upstream = await fakeUpstream({ objects: [large, small], dialect, stored: true });
    await using larder = await startLarder(
      {
        "cache-upstream-url": upstream.url,
        "cache-upstream-public-key": upstream.publicKey,
        "prometheus-enabled": "true",
      },
      {},
      FULL_DISK,
    );
    const narinfo = await servedNarinfo(larder.port, large.storePathHash);

    const answers = await Promise.all([1, 2, 3].map(() => servedNar(larder.port, narinfo)));

    for (const answer of answers) {
      assert.equal(answer.status, 200);
      await checkNar(narinfo, answer.body);
    }
    // Its log comes through a pipe, perhaps behind the answers.
    const failed = await larder.logged("nars cannot be kept: they pass through");
    assert.match(String(failed["detail"]), /too large|space/i);
    assert.equal(filesBelow(`${larder.storage}/nar`).size, 0);
    assert.equal(filesBelow(`${larder.storage}/tmp`).size, 0);
    const metrics = await (await fetch(`${larder.url}/metrics`)).text();
    assert.match(metrics, /^larder_nar_not_kept_total\{reason="disk_error"\} [1-9]/m);
    // larder keeps a file that fits, as ever.
    const other = await servedNarinfo(larder.port, small.storePathHash);
    await servedNar(larder.port, other);
    await larder.logged("nar cached successfully");
    assert.equal((await servedNar(larder.port, other)).headers.get("x-cache"), "HIT");
    // Nor do those that came before make it news that the next one does not fit.
    await servedNar(larder.port, narinfo);
    await eventually("it is over", () => filesBelow(`${larder.storage}/tmp`).size === 0);
    larder.kill("SIGTERM");
    await larder.ended;
    const errors = larder.lines.filter(({ level }) => level === "error");
    assert.deepEqual(errors, [failed], "it is said once");
    if (dialect === "nixos") {
      record({ area: "machine", fault: "the disk is full", saw: "whole", kept: "narinfo" });
    }
  });
}
