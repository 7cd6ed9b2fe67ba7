// The Worker that reads the database of an ncps: a query blocks its thread, and may never end.
import { reasonOf } from "../../base/failure.ts";
import { workerScope } from "../../base/worker_scope.ts";
import { NcpsDatabase } from "../../cache/import/ncps/ncps_database.ts";
import type { FromNcpsWorker, ToNcpsWorker } from "./messages.ts";

const scope = workerScope<ToNcpsWorker, FromNcpsWorker>();

let database: NcpsDatabase;

scope.onmessage = ({ data }) => {
  try {
    scope.postMessage({ id: data.id, answer: answerTo(data) });
  } catch (error) {
    scope.postMessage({ id: data.id, error: reasonOf(error) });
  }
};

function answerTo(order: ToNcpsWorker) {
  switch (order.type) {
    case "open":
      database = new NcpsDatabase(order.path, order.copyFolder);
      return database.contents();
    case "entry":
      return database.entry(order.narinfoId);
    case "close":
      return database[Symbol.dispose]();
  }
}
