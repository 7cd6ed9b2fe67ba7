/** The headers of a request. */
export interface RequestHeaders {
  /** Repeated fields are joined with ", ". The case of `name` does not matter. */
  get(name: string): string | null;
}
