import assert from "node:assert/strict";
import { formatNarinfo } from "../../../src/nix/narinfo_format.ts";
import { parseNarinfo } from "../../../src/nix/narinfo_parse.ts";
import { NARINFO_FIXTURES } from "../../support/narinfo_fixtures.ts";

const HEAD = "StorePath: /nix/store/3acqrvb06vw0w3s9fa3wci433snbi2bg-x\n";
const TAIL = "NarHash: sha256:0mdqa9w1p6cmli6976v4wi0sw9r4p5prkj7lzfd1877wk11c9c73\nNarSize: 120\n";

Deno.test("narinfo text: with its own URL a narinfo comes back byte for byte", () => {
  for (const [, text] of NARINFO_FIXTURES) {
    const narinfo = parseNarinfo(text);
    assert.equal(formatNarinfo(narinfo, { url: narinfo.url }), text);
  }
});

Deno.test("narinfo text: only the URL line changes with the URL", () => {
  for (const [, text] of NARINFO_FIXTURES) {
    const formatted = formatNarinfo(parseNarinfo(text), { url: "nar/ours.nar" });
    assert.equal(formatted, text.replace(/^URL: .*$/m, "URL: nar/ours.nar"));
  }
});

Deno.test("narinfo text: the compression is said where the narinfo left it out", () => {
  const expected = `${HEAD}URL: ours\nCompression: bzip2\n${TAIL}`;
  for (const compression of ["", "Compression: \n", "Compression: bzip2\n"]) {
    const narinfo = parseNarinfo(`${HEAD}URL: theirs\n${compression}${TAIL}`);
    assert.equal(formatNarinfo(narinfo, { url: "ours" }), expected);
  }
});

Deno.test("narinfo text: a compression before the URL stays there", () => {
  const narinfo = parseNarinfo(`Compression: xz\n${HEAD}URL: theirs\n${TAIL}`);

  const text = formatNarinfo(narinfo, { url: "ours" });

  assert.equal(text, `Compression: xz\n${HEAD}URL: ours\n${TAIL}`);
});

Deno.test("narinfo text: the given signature is left out, all other lines stay", () => {
  const [ours, second, theirs] = ["ours", "ours", "theirs"].map((name, index) =>
    `${name}:${new Uint8Array(64).fill(index).toBase64()}`
  );
  const others = `Sig: ${second}\nSig: ${theirs}\nX: ours:z\nX: ours:z\n`;
  const narinfo = parseNarinfo(`${HEAD}URL: u\nCompression: xz\n${TAIL}Sig: ${ours}\n${others}`);

  const text = formatNarinfo(narinfo, { url: "u", withoutSignature: ours });
  const all = formatNarinfo(narinfo, { url: "u" });

  assert.equal(text, `${HEAD}URL: u\nCompression: xz\n${TAIL}${others}`);
  assert.equal(all, `${HEAD}URL: u\nCompression: xz\n${TAIL}Sig: ${ours}\n${others}`);
});

Deno.test("narinfo: a FileHash or FileSize that does not hold is left out", () => {
  const lines = ["StorePath: /nix/store/%-x", "URL: nar/x", "Compression: none"];
  const claims = [`FileHash: sha256:${"0".repeat(52)}`, "FileSize: 7"];
  const signed = [`NarHash: sha256:${"1".repeat(52)}`, "NarSize: 9", "References: ", ""];
  const hash = "0".repeat(32);
  const text = [...lines, ...claims, ...signed].join("\n").replace("%", hash);
  const format = { url: "nar/x", file: { hasHash: false } };
  const without = [...lines, ...signed].join("\n").replace("%", hash);
  assert.equal(formatNarinfo(parseNarinfo(text), format), without);
  const known = { url: "nar/x", file: { hasHash: true, fileSize: 9 } };
  assert.equal(formatNarinfo(parseNarinfo(text), known), text.replace("Size: 7", "Size: 9"));
});
