// The Worker that reads the health of a database: a check of its pages blocks its thread.
import { messageOf } from "../../base/failure.ts";
import { workerScope } from "../../base/worker_scope.ts";
import { openForReading } from "../../metadata/sqlite/connection.ts";
import { SqliteMetadataStore } from "../../metadata/sqlite/sqlite_metadata_store.ts";
import { readStorageHealth } from "../../metadata/storage_health.ts";
import type { DatabaseJob, FromHealthWorker } from "./messages.ts";

const scope = workerScope<DatabaseJob, FromHealthWorker>();

scope.onmessage = ({ data }) => void readHealth(data);

async function readHealth({ id, databasePath }: DatabaseJob): Promise<void> {
  try {
    await using metadata = new SqliteMetadataStore(openForReading(databasePath));
    scope.postMessage({ id, health: await readStorageHealth(metadata) });
  } catch (error) {
    scope.postMessage({ id, error: messageOf(error) });
  }
}
