import { Failure } from "../../base/failure.ts";

/** Reads a small document. Throws a Failure "corrupt" when it is over `bytesMax`. */
export async function boundedText(response: Response, bytesMax: number): Promise<string> {
  const announced = Number(response.headers.get("content-length") ?? NaN);
  if (announced > bytesMax) {
    await response.body?.cancel();
    throw tooLong(bytesMax);
  }
  if (announced <= bytesMax) return await response.text();
  if (response.body === null) return "";
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response.body) {
    size += chunk.length;
    // Leaving the loop cancels the body.
    if (size > bytesMax) throw tooLong(bytesMax);
    chunks.push(chunk);
  }
  return new TextDecoder().decode(await new Blob(chunks as BlobPart[]).arrayBuffer());
}

function tooLong(bytesMax: number): Failure {
  return new Failure("corrupt", `Cannot read document: it is over ${bytesMax} bytes`);
}
