/** A host and a port. */
export interface NetworkAddress {
  readonly host: string;
  readonly port: number;
}
