/** The headers of a request. */
export interface RequestHeaders {
  /** It joins repeated fields with ", ". The case of `name` does not matter. */
  get(name: string): string | null;
}
