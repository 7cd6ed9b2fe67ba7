/** Why an upload is refused. Nothing of it is kept. */
export type UploadFault =
  /** It is not what it says, or what it needs is not here. */
  | "invalid"
  /** Something else is here under its name. */
  | "conflict"
  /** It would never fit. */
  | "too-large"
  /** It does not fit beside what is here. */
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
  /** One line for the client: what was expected. */
  readonly line: string;
}

/** Ends an upload. */
export class UploadRefused extends Error {
  override readonly name = "UploadRefused";
  readonly fault: UploadFault;

  constructor(fault: UploadFault, line: string) {
    super(line);
    this.fault = fault;
  }
}

/** The outcome of `work`; a thrown UploadRefused is one, too. */
export async function outcomeOf(work: () => Promise<UploadOutcome>): Promise<UploadOutcome> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof UploadRefused)) throw error;
    return { kind: "refused", fault: error.fault, line: error.message };
  }
}
