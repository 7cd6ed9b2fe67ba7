import { clock } from "../runtime/current.ts";

/** The newest transfers that count. */
const TRANSFERS_MAX = 20;

/** Fewer bytes say more about latency than about the rate. */
const BYTES_MIN = 256 * 1024;

interface Transfer {
  bytes: number;
  ms: number;
}

/** The rates at which upstreams send NAR files: the mean of the newest transfers. */
export class NarRates {
  readonly #transfers = new Map<string, Transfer[]>();

  /** Call it at the first byte of a transfer, and its result with the bytes that came since. */
  begin(upstream: string): (bytes: number) => void {
    const startedAtMs = clock.nowMs();
    let transfer: Transfer | undefined;
    let bytes = 0;
    return (more) => {
      bytes += more;
      if (bytes < BYTES_MIN) return;
      transfer ??= this.#added(upstream);
      transfer.bytes = bytes;
      transfer.ms = clock.nowMs() - startedAtMs;
    };
  }

  /** Bytes in a second of one transfer; `undefined` before the first of some size. */
  of(upstream: string): number | undefined {
    const all = this.#transfers.get(upstream) ?? [];
    const sum = (of: keyof Transfer) => all.reduce((whole, one) => whole + one[of], 0);
    return all.length === 0 ? undefined : Math.round(sum("bytes") * 1_000 / Math.max(1, sum("ms")));
  }

  #added(upstream: string): Transfer {
    const all = this.#transfers.get(upstream) ?? [];
    if (all.length >= TRANSFERS_MAX) all.shift();
    const transfer = { bytes: 0, ms: 0 };
    all.push(transfer);
    this.#transfers.set(upstream, all);
    return transfer;
  }
}
