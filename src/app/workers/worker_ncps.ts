import { Failure, reasonOf } from "../../base/failure.ts";
import { formatMs } from "../../base/format_units.ts";
import { unlessAborted } from "../../base/unless_aborted.ts";
import { checkKind } from "../../cache/import/foreign_file.ts";
import type {
  NcpsContents,
  NcpsEntryRows,
  NcpsTables,
} from "../../cache/import/ncps/ncps_tables.ts";
import { clock } from "../../runtime/current.ts";
import { WORKER_THREADS } from "../../runtime/threads.ts";
import { JobWorker } from "./job_worker.ts";
import type { FromNcpsWorker, ToNcpsWorker } from "./messages.ts";

/** The time limits of the lists of everything, which may begin with a copy, and of one narinfo. */
const CONTENTS_MAX_MS = 300_000;
const ENTRY_MAX_MS = 30_000;
const CLOSE_MAX_MS = 1_000;

/** Reads the database of an ncps in a Worker: this thread still gets signals. */
export class WorkerNcps implements NcpsTables {
  readonly #path: string;
  readonly #copyFolder = Deno.makeTempDirSync({ prefix: "larder-copy-" });
  readonly #worker: JobWorker<ToNcpsWorker, FromNcpsWorker>;

  constructor(path: string) {
    this.#path = path;
    this.#worker = new JobWorker<ToNcpsWorker, FromNcpsWorker>({
      threads: WORKER_THREADS,
      url: new URL("./ncps_worker.ts", import.meta.url),
      died: (id, error) => ({ id, error }),
    });
  }

  async contents(signal: AbortSignal): Promise<NcpsContents> {
    const path = this.#path;
    try {
      checkKind(await unlessAborted(Deno.stat(path), signal));
      const order = { type: "open", path, copyFolder: this.#copyFolder } as const;
      return await this.#answer(
        (id) => ({ ...order, id }),
        CONTENTS_MAX_MS,
        signal,
      ) as NcpsContents;
    } catch (error) {
      if (signal.aborted) throw error;
      const message = `Cannot read the database of ncps ${path}: ${reasonOf(error)}`;
      throw new Failure("broken", `${message}; name it with --database sqlite:PATH`, {}, error);
    }
  }

  async entry(narinfoId: bigint, signal: AbortSignal): Promise<NcpsEntryRows | undefined> {
    const order = (id: number) => ({ type: "entry", id, narinfoId }) as const;
    try {
      return await this.#answer(order, ENTRY_MAX_MS, signal) as NcpsEntryRows | undefined;
    } catch (error) {
      if (signal.aborted) throw error;
      throw new Failure("corrupt", `Cannot read its rows: ${reasonOf(error)}`, {}, error);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // A Worker in an endless query does not answer. It ends with the process.
    await clock.within(this.#worker.ask((id) => ({ type: "close", id })), CLOSE_MAX_MS);
    this.#worker[Symbol.dispose]();
    Deno.removeSync(this.#copyFolder, { recursive: true });
  }

  async #answer(
    orderOf: (id: number) => ToNcpsWorker,
    limitMs: number,
    signal: AbortSignal,
  ): Promise<unknown> {
    const asked = this.#worker.ask(orderOf);
    const found = await clock.within(unlessAborted(asked, signal), limitMs);
    if (found === undefined) throw new Error(`no answer within ${formatMs(limitMs)}`);
    if ("error" in found) throw new Error(found.error);
    return found.answer;
  }
}
