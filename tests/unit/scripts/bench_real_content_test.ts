import assert from "node:assert/strict";
import { joinedFiles, type Place } from "../../../scripts/bench/real_content.ts";
import { tempFolder } from "../../support/temp_folder.ts";

const textOf = (places: readonly Place[], bytes: number) =>
  new TextDecoder().decode(joinedFiles(places, bytes));

Deno.test("bench real content: files of further places, and lone files, fill up the bytes", () => {
  using folder = tempFolder();
  const { path } = folder;
  Deno.mkdirSync(`${path}/few/below`, { recursive: true });
  Deno.writeTextFileSync(`${path}/few/below/b`, "two,");
  Deno.writeTextFileSync(`${path}/few/c`, "one,");
  Deno.writeTextFileSync(`${path}/lone`, "three");
  const places = ["none", "few", "lone"].map((name) => ({ path: `${path}/${name}` }));
  assert.equal(textOf(places, 10), "one,two,th");
});

Deno.test("bench real content: links to files count in a profile alone", () => {
  using folder = tempFolder();
  const { path } = folder;
  Deno.writeTextFileSync(`${path}/target`, "bytes");
  Deno.mkdirSync(`${path}/profile`);
  Deno.symlinkSync(`${path}/target`, `${path}/profile/a`);
  Deno.symlinkSync(`${path}/nowhere`, `${path}/profile/b`);
  const place = { path: `${path}/profile` };
  assert.equal(textOf([{ ...place, followsLinks: true }], 5), "bytes");
  assert.throws(() => joinedFiles([place], 5), /of 5 bytes: this machine has 0 in .*profile/);
});
