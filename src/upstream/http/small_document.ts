import { boundedText } from "../../base/bounded_text.ts";
import { readStatus } from "../read_narinfo.ts";
import type { DocumentReading } from "../upstream.ts";
import { readRefusal } from "./failed_reading.ts";

/** Real narinfos have a few KiB; one with 10,000 references has half a MiB. */
const DOCUMENT_BYTES_MAX = 2 << 20;

/** Reads the response to a request for a narinfo or a nix-cache-info, with its body. */
export async function readSmallDocument(response: Response): Promise<DocumentReading> {
  if (readStatus(response.status) !== "found") return await readRefusal(response);
  return { kind: "found", text: await boundedText(response, { bytesMax: DOCUMENT_BYTES_MAX }) };
}
