/** Reasons to refuse an upload. larder keeps nothing of it. */
export type UploadFault =
  /** The upload differs from its own claims, or larder lacks an entry that it needs. */
  | "invalid"
  /** Something else is here under its name. */
  | "conflict"
  /** The upload is larger than the limit. */
  | "too-large"
  /** The upload does not fit beside the stored bytes. */
  | "no-room"
  /** Its Content-Encoding is unknown. */
  | "encoding"
  /** Its client left in the middle of it. */
  | "cut"
  /** Its client stopped in the middle of it. */
  | "stalled"
  /** The server is out of memory for it, or too slow. */
  | "overloaded";

/** Result of an upload. */
export type UploadOutcome =
  | { readonly kind: "stored" }
  /** The same was here. */
  | { readonly kind: "known" }
  | UploadRefusal;

export interface UploadRefusal {
  readonly kind: "refused";
  readonly fault: UploadFault;
  /** One line for the client: the expectation that the upload missed. */
  readonly line: string;
  /** The failure behind it, for the log; `undefined`: the upload itself, or a bound. */
  readonly cause?: unknown;
}

/** Ends an upload. */
export class UploadRefused extends Error {
  override readonly name = "UploadRefused";
  readonly fault: UploadFault;

  constructor(fault: UploadFault, line: string, cause?: unknown) {
    super(line, { cause });
    this.fault = fault;
  }
}

/** The outcome of `work`; a thrown UploadRefused is one, too. */
export async function outcomeOf(work: () => Promise<UploadOutcome>): Promise<UploadOutcome> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof UploadRefused)) throw error;
    return { kind: "refused", fault: error.fault, line: error.message, cause: error.cause };
  }
}
