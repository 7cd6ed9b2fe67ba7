import assert from "node:assert/strict";
import { Download } from "../../../src/cache/download/run_download.ts";
import { GrowingFile } from "../../../src/cache/download/growing_file.ts";
import { progressOf } from "../../../src/cache/fetch/nar_fetcher.ts";
import { RunningUploads } from "../../../src/cache/upload/nar_uploads.ts";
import { sha256FromDigest } from "../../../src/nix/hash.ts";
import { narName } from "../../../src/nix/nar_name.ts";
import { PlayedTime } from "../../support/played_time.ts";
import { tempFolder } from "../../support/temp_folder.ts";

const NAME = narName(sha256FromDigest(new Uint8Array(32)), "none");

Deno.test("transfer rates: a download that stalls has a rate of 0", () => {
  using time = new PlayedTime();
  using folder = tempFolder();
  Deno.writeTextFileSync(`${folder.path}/growing`, "");
  const file = new GrowingFile(`${folder.path}/growing`);
  const download = new Download({ name: NAME, file, startedAtMs: 0, origin: "client" });
  using _use = download.use(undefined);
  const rate = () => progressOf(download)?.bytesPerSecond;
  time.standStill(3_000);
  assert.equal(rate(), undefined);

  download.advance({ type: "opened", fileSize: 9_000 });
  time.standStill(1_900);
  download.advance({ type: "bytes", received: 4_000 });
  time.standStill(100);
  assert.equal(rate(), 2_000);
  time.standStill(15_000);
  assert.equal(rate(), 0);
  download.advance({ type: "end", fileSize: 9_000, released: false });
  assert.equal(rate(), undefined);
});

Deno.test("transfer rates: an upload that stalls has a rate of 0", () => {
  let nowMs = 1_000;
  const uploads = new RunningUploads(() => nowMs);
  using upload = uploads.enter({ narName: NAME, fileSize: 9_000, peer: undefined });
  const rate = () => uploads.progress(1)[0]?.bytesPerSecond;
  assert.equal(rate(), undefined);

  nowMs += 1_900;
  upload.received(4_000);
  nowMs += 100;
  assert.equal(rate(), 2_000);
  nowMs += 15_000;
  assert.equal(rate(), 0);
  upload.ended();
  assert.equal(rate(), undefined);
});
