import type { PinnedClosure } from "../../pins/pinned_closures.ts";

/** One pin, as a verification found it. */
export type VerifiedPin =
  & { readonly event: "pin" }
  & Pick<PinnedClosure, "root" | "name" | "keepComplete" | "complete" | "look">;

export interface VerifyProgress {
  readonly event: "progress";
  readonly pinsDone: number;
  readonly pinsAll: number;
  /** Paths looked at, and bytes of the files read. */
  readonly paths: number;
  readonly bytes: number;
}

export interface VerifyDone {
  readonly event: "done";
  readonly pins: number;
  readonly complete: number;
  /** Paths whose file was damaged; it may have been fetched again since. */
  readonly damaged: number;
  readonly paths: number;
  readonly bytes: number;
}

/** What `POST /pins/verify` reports. */
export type VerifyEvent = VerifyProgress | VerifiedPin | VerifyDone;
