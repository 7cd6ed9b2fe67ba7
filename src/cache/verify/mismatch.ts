/** What an upstream sent is not what it announced; the reasons are label values. */
export class Mismatch extends Error {
  readonly reason: "file_size" | "file_hash" | "nar_size" | "nar_hash" | "undecodable";

  constructor(reason: Mismatch["reason"], message: string) {
    super(message);
    this.reason = reason;
  }
}
