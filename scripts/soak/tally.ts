/** Counts of the clients' results, and of forbidden ones. */
export class Tally {
  readonly counts = new Map<string, number>();
  /** Descriptions of the first faults. */
  readonly wrongs: string[] = [];
  wrongCount = 0;
  answeredBytes = 0;

  count(what: string): void {
    this.counts.set(what, (this.counts.get(what) ?? 0) + 1);
  }

  wrong(what: string): void {
    if (this.wrongCount++ < WRONGS_MAX) this.wrongs.push(what);
  }

  of(what: string): number {
    return this.counts.get(what) ?? 0;
  }
}

const WRONGS_MAX = 20;
