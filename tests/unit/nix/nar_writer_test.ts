import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { type NarTree, writeNar } from "../../support/nar.ts";
import { programsMissing, testUnless } from "../../support/program.ts";
import { tempFolder } from "../../support/temp_folder.ts";

const TREE: NarTree = {
  dir: {
    "empty": { file: "" },
    "eight": { file: "12345678" },
    "run": { file: "#!/bin/sh\n", executable: true },
    "bytes": { file: new Uint8Array([0, 255, 10]) },
    "link": { symlink: "../else where" },
    "folder": { dir: { "a": { dir: {} }, "A": { file: "x" }, "a-b": { file: "y" } } },
    // By UTF-8 the second comes later, by UTF-16 it would come first.
    "\u{ff5e}": { file: "bmp" },
    "\u{1f600}": { file: "astral" },
  },
};

Deno.test("NAR writer: one short file, byte by byte", () => {
  const words = ["nix-archive-1", "(", "type", "regular", "contents", "hi", ")"];
  const expected = Buffer.concat(words.map((word) => {
    const padded = Buffer.alloc(8 + Math.ceil(word.length / 8) * 8);
    padded.writeUInt8(word.length);
    padded.write(word, 8);
    return padded;
  }));

  assert.deepEqual(writeNar({ file: "hi" }), new Uint8Array(expected));
});

Deno.test("NAR writer: the order of the entries given does not matter", () => {
  const reversed = { dir: Object.fromEntries(Object.entries(TREE.dir).reverse()) };

  assert.deepEqual(writeNar(reversed), writeNar(TREE));
});

testUnless(
  programsMissing("nix-store"),
  "NAR writer: Nix restores a NAR of ours, and dumps the same",
  async () => {
    const nar = writeNar(TREE);
    using folder = tempFolder();
    const tree = `${folder.path}/tree`;
    await nixStore(["--restore", tree], nar);
    const dumped = await nixStore(["--dump", tree]);

    assert.deepEqual(dumped, nar);
    assert.equal(await Deno.readLink(`${tree}/link`), "../else where");
  },
);

async function nixStore(args: string[], input = new Uint8Array()): Promise<Uint8Array> {
  const options = { args, stdin: "piped", stdout: "piped", stderr: "piped" } as const;
  const child = new Deno.Command("nix-store", options).spawn();
  const writer = child.stdin.getWriter();
  await writer.write(input);
  await writer.close();
  const { success, stdout, stderr } = await child.output();
  assert.ok(success, new TextDecoder().decode(stderr));
  return stdout;
}
