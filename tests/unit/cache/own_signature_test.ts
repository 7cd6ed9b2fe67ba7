import assert from "node:assert/strict";
import { createSigner } from "../../../src/cache/narinfo/serve_narinfo.ts";
import { parseNarinfo } from "../../../src/nix/narinfo_parse.ts";
import type { NarName } from "../../../src/nix/nar_name.ts";
import { signNarinfo } from "../../../src/nix/sign_narinfo.ts";
import { generateSecretKey } from "../../../src/nix/signature.ts";
import { makeStoreObject } from "../../support/store_object.ts";
import { pushOf } from "../../support/uploading.ts";

const OBJECT = makeStoreObject({ name: "thing-1.0" });
const BODY = (await pushOf(OBJECT)).narinfo;
const NARINFO = parseNarinfo(BODY);
const [OLD, NEW] = [generateSecretKey("larder-1"), generateSecretKey("larder-2")];
const ROW = {
  ...{ storePathHash: OBJECT.storePathHash, narName: "" as NarName, body: BODY, trusted: true },
  ownSignature: signNarinfo(OLD, NARINFO),
};

Deno.test("own signature: a narinfo has that of the current key, kept or made anew", () => {
  for (const key of [OLD, NEW]) {
    const text = `${BODY}Sig: ${signNarinfo(key, NARINFO).text}\n`;
    assert.equal(createSigner(key).textOf(ROW), text);
  }
  const kept = { ...ROW.ownSignature, text: "larder-1:kept" };
  assert.equal(
    createSigner(OLD).textOf({ ...ROW, ownSignature: kept }),
    `${BODY}Sig: ${kept.text}\n`,
  );
});

Deno.test("own signature: none without a key, and none beside no trusted one", () => {
  assert.equal(createSigner(undefined).textOf(ROW), BODY);
  assert.equal(createSigner(undefined).sign(NARINFO), undefined);
  assert.equal(createSigner(NEW).textOf({ ...ROW, trusted: false }), BODY);
});
