/** A box with a lid. */
export class Box<T extends object = {}> {
  /** How many things fit in. */
  readonly size: number = 10;
  /** @param name what is written on it */
  constructor(public name: string) {}
  /**
   * Picks one thing out of the box.
   * @param key its name
   * @param options how to pick
   * @param options.strict whether a missing name is an error
   * @returns the thing
   * @throws RangeError if there is no such thing
   */
  pick<K extends keyof T>(key: K, options?: { strict?: boolean }): T[K] { return null as any; }
  /** The weight in grams. */
  get weight(): number { return 1; }
}
/** The colours of a box. */
export enum Colour {
  /** As blood. */
  Red = "red",
  Green = "green",
}
/** What opening takes. */
export interface OpenOptions {
  /** `r` or `w`. */
  mode?: "r" | "w";
  /** Called at the end. */
  done(error: Error | null): void;
}
/**
 * Opens the box at a path.
 * @param path the place of the box
 * @param rest what else goes in
 */
export function open(path: string, ...rest: number[]): Promise<Map<string, number[]>>;
/** Opens the box by a number.
 * @param fd the number
 */
export function open(fd: number): Promise<Map<string, number[]>>;
export function open(a: any): any {}
/** A part of a box. */
export class Part {
  /**
   * Screws it on.
   * @param turns how often the screw is turned
   */
  fasten(turns: number): boolean { return true; }
}
/** A lid is a part. */
export class Lid extends Part {
  /**
   * Lifts it.
   * @param angle degrees
   */
  lift(angle: number): void {}
}
