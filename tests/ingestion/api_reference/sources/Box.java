package lumora;

import java.util.*;

/**
 * A box with a lid.
 *
 * @param <T> what goes in
 * @since 1.2
 */
public class Box<T extends Comparable<T>> {
    /** How many things fit in. */
    public static final int SIZE = 10;

    /** The colours of a box. */
    public enum Colour {
        /** As blood. */
        RED,
        /** As grass. */
        GREEN
    }

    /**
     * Makes an empty box.
     *
     * @param name what is written on it
     */
    public Box(String name) {}

    /**
     * Picks one thing out of the box.
     *
     * @param key its name
     * @param fallback what else
     * @param rest more names
     * @return the thing
     * @throws NoSuchElementException if there is no such thing
     * @throws IllegalStateException if the box is shut
     * @see #open(String)
     */
    public T pick(String key, Map<String, ? super T> fallback, int... rest) throws NoSuchElementException { return null; }

    /**
     * Opens a box.
     * @param path the place
     * @return a box
     * @deprecated use another
     */
    @Deprecated
    public static <K extends Comparable<K>> Box<K> open(String path) { return null; }
}
