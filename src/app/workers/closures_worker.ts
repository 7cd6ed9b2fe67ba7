// The Worker that counts pinned closures, with its own database connection.
import { Failure, messageOf } from "../../base/failure.ts";
import { workerScope } from "../../base/worker_scope.ts";
import { openForReading } from "../../metadata/sqlite/connection.ts";
import { SqliteMetadataStore } from "../../metadata/sqlite/sqlite_metadata_store.ts";
import { PinnedClosures } from "../../pins/pinned_closures.ts";
import type { ClosuresJob, FromClosuresWorker } from "./messages.ts";

const scope = workerScope<ClosuresJob, FromClosuresWorker>();

scope.onmessage = ({ data }) => void answer(data);

async function answer({ id, databasePath, root }: ClosuresJob): Promise<void> {
  try {
    await using metadata = new SqliteMetadataStore(openForReading(databasePath));
    const lister = new PinnedClosures({ metadata });
    if (root === undefined) scope.postMessage({ id, closures: await lister.list() });
    else scope.postMessage({ id, paths: await lister.paths(root) });
  } catch (error) {
    const isOverloaded = error instanceof Failure && error.kind === "overloaded";
    scope.postMessage({ id, error: messageOf(error), isOverloaded });
  }
}
