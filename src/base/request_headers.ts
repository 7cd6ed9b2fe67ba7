/** The headers of a request. */
export interface RequestHeaders {
  /** It joins repeated fields with ", ". `name` is in lower case. */
  get(name: string): string | null;
}
