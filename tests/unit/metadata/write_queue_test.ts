import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import type { Change } from "../../../src/metadata/metadata_store.ts";
import { ChangeApplier } from "../../../src/metadata/sqlite/change_applier.ts";
import { openDatabase } from "../../../src/metadata/sqlite/connection.ts";
import { Protection } from "../../../src/metadata/sqlite/pins.ts";
import { prepareStatements } from "../../../src/metadata/sqlite/statements.ts";
import { Transactions, WriteQueue } from "../../../src/metadata/sqlite/write_queue.ts";
import { hash, put } from "../../support/metadata_rows.ts";
import { tempFolder } from "../../support/temp_folder.ts";

const [path, reference] = [hash("a"), hash("b")];

Deno.test("WriteQueue: a list that meets a lock is not overtaken by a later one", async () => {
  await using scene = await Scene.open();
  // The first transaction holds all lists; the second is the first list alone.
  scene.lockedAt = 2;
  const refused = put(hash("c"), [reference, reference]);
  const outcomes = await Promise.allSettled([
    scene.queue.write([said("first")]),
    scene.queue.write([said("second")]),
    scene.queue.write([refused]),
  ]);
  assert.deepEqual(outcomes.map(({ status }) => status), ["fulfilled", "fulfilled", "rejected"]);
  assert.equal(scene.locks, 1);
  assert.equal(scene.body(), "second");
});

function said(body: string): Change {
  const change = put(path, []);
  return { ...change, row: { ...change.row, body } };
}

/** A queue whose database another connection locks during one chosen transaction. */
class Scene implements AsyncDisposable {
  lockedAt = 0;
  locks = 0;
  readonly queue: WriteQueue;
  readonly #other: DatabaseSync;
  readonly #resources: AsyncDisposableStack;

  private constructor(resources: AsyncDisposableStack, queue: WriteQueue, other: DatabaseSync) {
    [this.#resources, this.queue, this.#other] = [resources, queue, other];
  }

  static async open(): Promise<Scene> {
    await using opening = new AsyncDisposableStack();
    const databasePath = `${opening.use(tempFolder()).path}/db.sqlite`;
    const database = await openDatabase(databasePath);
    const statements = prepareStatements(database);
    const transactions = opening.use(new Transactions(database, statements));
    const other = opening.adopt(new DatabaseSync(databasePath), (open) => open.close());
    let count = 0;
    const within = <Value>(work: () => Value): Value => {
      const write = () => transactions.within(work);
      return ++count === scene.lockedAt ? scene.#locked(write) : write();
    };
    const applier = new ChangeApplier(statements, new Protection(statements), { within });
    const scene: Scene = new Scene(opening.move(), new WriteQueue(applier), other);
    return scene;
  }

  body(): unknown {
    return this.#other.prepare("SELECT body FROM narinfo").get()?.["body"];
  }

  #locked<Value>(work: () => Value): Value {
    this.locks++;
    this.#other.exec("BEGIN IMMEDIATE");
    try {
      return work();
    } finally {
      this.#other.exec("ROLLBACK");
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.queue.close(0);
    await this.#resources.disposeAsync();
  }
}
