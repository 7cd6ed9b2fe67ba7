import { newMemberId } from "../../src/base/member_id.ts";
import { LocalSpool } from "../../src/storage/local/local_spool.ts";
import { SILENT } from "../../src/telemetry/logger.ts";
import { NO_SPOOL } from "../support/no_spool.ts";
import { tempFolder } from "../support/temp_folder.ts";
import { checkContract, type Harness } from "./contract.ts";
import { loneSpoolClauses, spoolClauses, type SpoolScene } from "./spool_contract.ts";

const local: Harness<SpoolScene> = {
  name: "LocalSpool",
  open: async () => {
    const opened = new AsyncDisposableStack();
    const base = opened.use(tempFolder()).path;
    const member = newMemberId("host.example", Deno.pid);
    const spool = opened.use(new LocalSpool(base, { member, log: SILENT }));
    return { spool, base, own: spool.path, [Symbol.asyncDispose]: () => opened.disposeAsync() };
  },
};

checkContract(local, spoolClauses);
checkContract(local, loneSpoolClauses);
checkContract({
  name: "NO_SPOOL",
  open: async () => ({ spool: NO_SPOOL, async [Symbol.asyncDispose]() {} }),
}, loneSpoolClauses);
