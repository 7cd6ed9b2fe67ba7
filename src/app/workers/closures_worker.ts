// The Worker that counts pinned closures, with its own database connection.
import { Failure, messageOf } from "../../base/failure.ts";
import { workerScope } from "../../base/worker_scope.ts";
import { openForReading } from "../../metadata/sqlite/connection.ts";
import { SqliteMetadataStore } from "../../metadata/sqlite/sqlite_metadata_store.ts";
import { PinnedClosures } from "../../pins/pinned_closures.ts";
import type { DatabaseJob, FromClosuresWorker } from "./messages.ts";

const scope = workerScope<DatabaseJob, FromClosuresWorker>();

scope.onmessage = ({ data: { id, databasePath } }) => void count(id, databasePath);

async function count(id: number, databasePath: string): Promise<void> {
  try {
    await using metadata = new SqliteMetadataStore(openForReading(databasePath));
    scope.postMessage({ id, closures: await new PinnedClosures({ metadata }).list() });
  } catch (error) {
    const isOverloaded = error instanceof Failure && error.kind === "overloaded";
    scope.postMessage({ id, error: messageOf(error), isOverloaded });
  }
}
