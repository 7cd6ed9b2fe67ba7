// The thread that copies the write-ahead log into the database file.
import { DatabaseSync } from "node:sqlite";
import type { CheckpointScope } from "./write_queue.ts";

const scope = globalThis as unknown as CheckpointScope;

/** One checkpoint for each path that it receives; it replies when the checkpoint is over. */
scope.onmessage = ({ data: path }) => {
  const database = new DatabaseSync(path);
  try {
    // PASSIVE neither waits for other connections nor blocks them.
    database.exec("PRAGMA wal_checkpoint(PASSIVE)");
  } finally {
    database.close();
  }
  scope.postMessage(undefined);
};
