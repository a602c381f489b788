/** @file
 *  Boxes. */
/** Colours of a box. */
enum Colour {
  RED, /**< As blood. */
  GREEN = 2 /**< As grass. */
};
namespace lumora {
/** A box with a lid.
 *  @tparam T what goes in */
template <typename T> class Box {
public:
  /** What closes it. */
  class Lid { public: /** Lifts. @param angle degrees */ void lift(double angle = 45.0); };
  /** Makes a box. @param name what is written on it */
  explicit Box(const char *name);
  /**
   * Picks one thing out of the box.
   *
   * @param[in] key its name
   * @param[out] found whether it was there
   * @return the thing
   * @retval nullptr if it is empty
   * @throws std::out_of_range if there is no such thing
   */
  const T *pick(const char *key, bool *found = nullptr) const;
  int size; ///< How many things fit in.
};
/** Opens a box.
 *  @param path the place
 *  @param flags how
 *  @return 0 or an error */
int open(const char *path, int flags);
/** Opens by number. @param fd the number */
int open(int fd);
}
