/**
 * A box with a lid.
 * @class
 */
class Box {
  /**
   * @param {string} name - What is written on it.
   * @param {object} [options] - How to make it.
   * @param {number} [options.size=10] - How many things fit in.
   */
  constructor(name, options) {}
  /**
   * Picks one thing out of the box.
   * @param {string} key - Its name.
   * @param {...number} rest - What else.
   * @returns {Promise<Map<string, number>>} The thing.
   * @throws {RangeError} If there is no such thing.
   * @example
   * box.pick("a");
   */
  pick(key, ...rest) {}
  /**
   * The weight in grams.
   * @type {number}
   */
  get weight() { return 1; }
}
/**
 * Opens the box at a path.
 * @param {string} path - The place of the box.
 * @param {(string|number)} [mode="r"] - How.
 * @returns {Box}
 */
function open(path, mode = "r") {}
/** The colours.
 * @enum {string}
 * @readonly */
const Colour = { /** As blood. */ RED: "red", GREEN: "green" };
