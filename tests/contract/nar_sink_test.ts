import { createHash } from "node:crypto";
import { narOrderOf } from "../../src/cache/fetch/nar_fetcher.ts";
import { PartialFile, WriteAllowance } from "../../src/cache/fetch/partial_file.ts";
import { ClientReader, ClientSink } from "../../src/cache/pass_through/client_sink.ts";
import type { NarRow } from "../../src/metadata/metadata_store.ts";
import { type FileHash, type NarHash, sha256FromDigest } from "../../src/nix/hash.ts";
import { narName } from "../../src/nix/nar_name.ts";
import { tempFolder } from "../support/temp_folder.ts";
import { checkContract, type Harness } from "./contract.ts";
import { FILE, type FileFacts, narSinkClauses, type SinkMaker } from "./nar_sink_contract.ts";

const sha256 = sha256FromDigest(createHash("sha256").update(FILE).digest());

function rowOf({ hash, size }: FileFacts): NarRow {
  return {
    name: narName(sha256, "xz"),
    compression: "xz",
    narHash: sha256 as NarHash,
    narSize: 100,
    ...(hash ? { fileHash: sha256 as FileHash } : {}),
    ...(size ? { fileSize: FILE.length } : {}),
  };
}

/** Decompresses nothing: the sources' bytes are not judged here. */
const verifier = {
  passThrough: () => ({
    write: () => Promise.resolve(),
    end() {},
    measure: new Promise<never>(() => undefined),
    [Symbol.dispose]() {},
  }),
};

const harnesses: readonly Harness<SinkMaker>[] = [
  {
    name: "PartialFile",
    open() {
      const folder = tempFolder();
      const path = `${folder.path}/file`;
      Deno.writeTextFileSync(path, "");
      const allowance = new WriteAllowance(0, (bytes) => Promise.resolve(bytes));
      return Promise.resolve({
        hasBytes: true,
        open: (facts) => {
          const order = { ...narOrderOf(rowOf(facts)), path, roomBytes: 0 };
          return new PartialFile({ order, allowance, report: () => undefined });
        },
        [Symbol.asyncDispose]: async () => folder[Symbol.dispose](),
      });
    },
  },
  {
    name: "ClientSink",
    open: () =>
      Promise.resolve({
        hasBytes: false,
        open: (facts) =>
          new ClientSink({
            check: { nar: rowOf(facts), verifier, wrong: () => undefined },
            client: new ClientReader(),
            listener: { progress: () => undefined, room: (bytes) => Promise.resolve(bytes) },
          }),
        [Symbol.asyncDispose]: () => Promise.resolve(),
      }),
  },
];

for (const harness of harnesses) checkContract(harness, narSinkClauses);
