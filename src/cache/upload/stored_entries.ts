import type { ActiveReads } from "../../space/active_reads.ts";
import type { KeptNars } from "../kept/kept_nars.ts";
import type { Uses } from "../uses.ts";

/** What is stored here: how it is opened, spared and noted as used. */
export interface StoredEntries {
  readonly kept: Pick<KeptNars, "open">;
  readonly reads: ActiveReads;
  readonly uses: Pick<Uses, "narinfo" | "nar" | "document">;
}
