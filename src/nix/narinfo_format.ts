import type { Narinfo } from "./narinfo.ts";

export interface NarinfoFormat {
  /** Our URL of the NAR; takes the place of the one read. */
  readonly url: string;
  /** This very signature is left out: the caller adds it. Others of its key are kept. */
  readonly withoutSignature?: string | undefined;
  /** What holds of the NAR file: a FileHash or FileSize that does not is left out or replaced. */
  readonly file?: { readonly hasHash: boolean; readonly fileSize?: number | undefined };
}

/**
 * The narinfo's text with our URL and the compression always said, since clients take a
 * missing one for bzip2. Every other line stays byte for byte as it was read.
 */
export function formatNarinfo(narinfo: Narinfo, format: NarinfoFormat): string {
  const hasCompression = narinfo.lines.some((line) => line.key === "Compression");
  const { file } = format;
  const compression = `Compression: ${narinfo.compression}\n`;
  let text = "";
  for (const { key, value } of narinfo.lines) {
    if (key === "URL") {
      text += `URL: ${format.url}\n`;
      if (!hasCompression) text += compression;
    } else if (key === "Compression") {
      text += compression;
    } else if (key === "FileSize" && file !== undefined) {
      if (file.fileSize !== undefined) text += `FileSize: ${file.fileSize}\n`;
    } else if (key === "FileHash" && file?.hasHash === false) {
      continue;
    } else if (key !== "Sig" || value !== format.withoutSignature) {
      text += `${key}: ${value}\n`;
    }
  }
  return text;
}
