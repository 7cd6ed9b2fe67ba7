import { FairTurns } from "../../src/http/server/http_server.ts";

let waiting = 0;
const turns = new FairTurns(() => waiting);

/**
 * Begins a read or write of a connection. Many connections of one test take turns, so that none
 * waits for seconds while the others go on.
 */
export async function inTurn<T>(begin: () => Promise<T>): Promise<T> {
  waiting++;
  try {
    return await (turns.areCrowded ? turns.run(begin) : begin());
  } finally {
    waiting--;
  }
}
