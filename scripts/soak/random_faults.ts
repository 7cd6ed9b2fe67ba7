import { DROP, type Exchange } from "../../tests/support/exact_server.ts";
import type { FakeUpstream } from "../../tests/support/fake_upstream.ts";
import {
  chunked,
  corruptByteAt,
  cutAfter,
  dropped,
  endAfter,
  type Fault,
  followedBy,
  heldUntil,
  inByteChunks,
  inOrder,
  stallAfter,
  status,
} from "../../tests/support/faults.ts";
import { badSignature, garbage, wrongFileSize } from "../../tests/support/narinfo_faults.ts";
import type { Answer } from "../../tests/support/wire_answer.ts";
import type { Dice } from "./dice.ts";

/** Share of faulty answers. */
const FAULTY_PART = 0.25;

/** One silence within the header timeout of the soak's larder, and one beyond it. */
const SILENCES_MS = [200, 2_500];

/**
 * Deno's HTTP client returns one chunk in each turn of the fetch Worker's event loop. With 80
 * downloads in flight that were 50 bytes a second.
 */
const BYTE_CHUNKS = 200;

interface Choice {
  readonly weight: number;
  readonly make: (dice: Dice, fileBytes: number) => Fault;
}

const BEFORE_THE_BODY: readonly Choice[] = [
  { weight: 3, make: () => status(500) },
  { weight: 2, make: () => status(404) },
  { weight: 3, make: () => status(429, { "retry-after": "0" }) },
  { weight: 2, make: () => status(503, { "retry-after": "1" }) },
  { weight: 3, make: () => dropped() },
  { weight: 2, make: (dice) => heldUntil(pause(dice.pick(SILENCES_MS))) },
];

const NARINFO_CHOICES: readonly Choice[] = [
  ...BEFORE_THE_BODY,
  { weight: 1, make: () => garbage() },
  { weight: 1, make: () => badSignature() },
  { weight: 1, make: () => wrongFileSize() },
  { weight: 1, make: (dice) => cutAfter(dice.below(300)) },
  { weight: 1, make: () => inByteChunks() },
];

const NAR_CHOICES: readonly Choice[] = [
  ...BEFORE_THE_BODY,
  { weight: 8, make: (dice, bytes) => cutAfter(dice.below(bytes)) },
  { weight: 3, make: (dice, bytes) => inOrder(chunked(), cutAfter(dice.below(bytes))) },
  { weight: 2, make: (dice, bytes) => endAfter(dice.below(bytes)) },
  { weight: 1, make: (dice, bytes) => corruptByteAt(dice.below(bytes)) },
  { weight: 1, make: () => followedBy(new Uint8Array(10)) },
  { weight: 1, make: () => inByteChunks(BYTE_CHUNKS) },
  { weight: 1, make: (dice, bytes) => stallAfter(dice.below(bytes), pause(4_000)) },
  { weight: 3, make: (dice, bytes) => stallAfter(dice.below(bytes), pause(dice.below(1_000))) },
];

/** Breaks this upstream's answers at random until `mend`. */
export function breakAtRandom(upstream: FakeUpstream, dice: Dice): void {
  upstream.breakNarinfo(chosenFrom(NARINFO_CHOICES, dice));
  upstream.breakNar(chosenFrom(NAR_CHOICES, dice));
}

function chosenFrom(choices: readonly Choice[], dice: Dice): Fault {
  return (answer: Answer, exchange: Exchange): ReturnType<Fault> => {
    if (dice.part() >= FAULTY_PART) return answer;
    const bytes = answer.body instanceof Uint8Array ? answer.body.length : 1;
    const fault = dice.weighted(choices).make(dice, bytes);
    return fault(answer, exchange) ?? DROP;
  };
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
