/** A larger JSON text is checked at both ends only: parsing blocks requests. */
const PARSED_BYTES_MAX = 512 * 1024;

const WHITE_SPACE = " \t\r\n";

/** False for anything but one JSON object, as far as both ends show. */
export function looksLikeObject(bytes: Uint8Array): boolean {
  if (bytes.length > PARSED_BYTES_MAX) {
    return endOf(bytes, 0, 1) === "{" && endOf(bytes, -1, -1) === "}";
  }
  try {
    const value = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
    return typeof value === "object" && value !== null && !Array.isArray(value);
  } catch {
    return false;
  }
}

/** The first character from one end that is no white space. */
function endOf(bytes: Uint8Array, start: number, step: number): string {
  for (let at = start; bytes.at(at) !== undefined; at += step) {
    const character = String.fromCharCode(bytes.at(at) ?? 0);
    if (!WHITE_SPACE.includes(character)) return character;
  }
  return "";
}
