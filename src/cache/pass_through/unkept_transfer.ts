import { Failure } from "../../base/failure.ts";
import type { NarRow } from "../../metadata/metadata_store.ts";
import type { NarName } from "../../nix/nar_name.ts";
import { beginSpan } from "../../telemetry/begin_span.ts";
import { stepsBelow } from "../../telemetry/steps_below.ts";
import type { NarVerifier } from "../verify/nar_verifier.ts";
import type { OpenSpan, Tracer } from "../../telemetry/tracer.ts";
import type { PassedPart } from "../download/download.ts";
import { Mismatch } from "../verify/mismatch.ts";
import { passThrough } from "./pass_through.ts";
import type { PassThroughTransfers } from "./pass_through_transfers.ts";
import { UnkeptBody, type UnkeptBodyDeps, type UnkeptOptions } from "./unkept_body.ts";

export interface UnkeptTransferDeps extends UnkeptBodyDeps {
  readonly tracer: Tracer;
  readonly transfers: Pick<PassThroughTransfers, "enter">;
  readonly verifier: Pick<NarVerifier, "pass">;
}

/** What was passed on is not the file that was announced. */
export class WrongNar extends Failure {
  /** The one that is to blame, as far as can be told. */
  readonly upstream: string;

  constructor(nar: NarName, mismatch: Mismatch, upstream: string) {
    super("absent", `Cannot pass NAR on: ${mismatch.message}`, { nar }, mismatch);
    this.upstream = upstream;
  }
}

/** A NAR file that is passed on to one client without being kept. */
export class UnkeptTransfer implements AsyncDisposable {
  readonly #deps: UnkeptTransferDeps;
  readonly #nar: NarRow;
  readonly #span: OpenSpan;
  readonly #entry: Disposable;
  #body: UnkeptBody | undefined;
  #isOver = false;

  private constructor(deps: UnkeptTransferDeps, nar: NarRow) {
    this.#deps = deps;
    this.#nar = nar;
    const facts = { "larder.nar": nar.name };
    this.#span = beginSpan(deps.tracer, { name: "pass nar on", facts });
    this.#entry = deps.transfers.enter(nar.name, () => (
      this.#body && { receivedBytes: this.#body.received, fileSize: this.#body.fileSize }
    ));
  }

  /** `undefined` when no upstream has it now. */
  static async open(
    deps: UnkeptTransferDeps,
    nar: NarRow,
    { requestId, except }: UnkeptOptions,
  ): Promise<UnkeptTransfer | undefined> {
    const transfer = new UnkeptTransfer(deps, nar);
    try {
      transfer.#body = await transfer.#span.run(() =>
        UnkeptBody.open(deps, nar, { requestId, except })
      );
      if (transfer.#body !== undefined) return transfer;
      transfer.#span.fail("absent");
    } catch (error) {
      transfer.#span.fail(reasonOf(error));
      await transfer[Symbol.asyncDispose]();
      throw error;
    }
    await transfer[Symbol.asyncDispose]();
    return undefined;
  }

  /** Where the narinfo or an upstream says it. */
  get fileSize(): number | undefined {
    return this.#body?.fileSize;
  }

  /** A part of the file, once, while all of it is checked: a wrong one throws before its end. */
  async *pieces(part: PassedPart): AsyncGenerator<Uint8Array<ArrayBuffer>> {
    const body = this.#body;
    if (body === undefined) return;
    const { run } = this.#span;
    const facts = { "larder.nar.compression": this.#nar.compression };
    const verifying = run(() => beginSpan(this.#deps.tracer, { name: "verify nar", facts }));
    try {
      yield* stepsBelow(run, this.#passThrough(body, part), undefined);
    } catch (error) {
      // Whoever left has nothing to blame it for.
      if (!this.#isOver) this.#span.fail(reasonOf(error));
      if (!(error instanceof Mismatch)) throw error;
      verifying.fail(error.reason);
      throw new WrongNar(this.#nar.name, error, run(() => body.wrong(error)));
    } finally {
      verifying.end();
      await this[Symbol.asyncDispose]();
    }
  }

  #passThrough(body: UnkeptBody, part: PassedPart): AsyncGenerator<Uint8Array<ArrayBuffer>> {
    const { verifier } = this.#deps;
    const { run } = this.#span;
    const wrong = (mismatch: Mismatch) => void run(() => body.wrong(mismatch));
    return passThrough({ pieces: body.pieces(), nar: this.#nar, verifier, wrong }, part);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isOver = true;
    this.#entry[Symbol.dispose]();
    await this.#body?.[Symbol.asyncDispose]();
    this.#span.end();
  }
}

/** One of few. */
function reasonOf(error: unknown): string {
  if (error instanceof Mismatch) return error.reason;
  return error instanceof Failure ? error.kind : "broken";
}
