import type { Narinfo } from "./narinfo.ts";

export interface NarinfoFormat {
  /** larder's URL of the NAR, which replaces the original. */
  readonly url: string;
  /** Leaves out exactly this signature, which the caller adds. Others of its key stay. */
  readonly withoutSignature?: string | undefined;
  /**
   * Facts of the NAR file. It leaves out or replaces a FileHash or FileSize that contradicts them.
   */
  readonly file?: { readonly hasHash: boolean; readonly fileSize?: number | undefined };
}

/**
 * The narinfo's text with larder's URL and an explicit compression: clients take a missing one for
 * bzip2. Every other line stays byte for byte as read.
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
