// The door: what comes from Python is checked here, and trusted by the loops behind it.
//
// A loop over problems start to stop of n reads and writes without looking. It is right if
//
//     0 <= start <= stop <= n,   shapes agree,   0 <= i < size for every index i into an array of that size,
//
// and these are the checks. Each names the argument, what was given and what is allowed. A batch is looked
// at once, one comparison an index.
#pragma once

#include <climits>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels.hpp"

namespace voicecf {

using Shape = std::vector<std::size_t>;

inline void require(bool holds, const char* what) {
    if (!holds) throw std::invalid_argument(what);
}

template <class Array>
Shape shape_of(const Array& array) {
    Shape shape(array.ndim());
    for (std::size_t i = 0; i < shape.size(); ++i) shape[i] = array.shape(i);
    return shape;
}

// As Python writes it: (4, 2), or (4,).
inline std::string text_of(const Shape& shape) {
    std::string text = "(";
    for (std::size_t i = 0; i < shape.size(); ++i)
        text += (i ? ", " : "") + std::to_string(shape[i]);
    return text + (shape.size() == 1 ? ",)" : ")");
}

// An array of exactly this shape.
template <class Array>
void shaped(const char* name, const Array& array, const Shape& needed) {
    if (shape_of(array) == needed) return;
    throw std::invalid_argument(std::string(name) + " has shape " + text_of(shape_of(array)) + ", but " +
                                text_of(needed) + " is needed.");
}

// An array with one row for all, or one for each of n.
template <class Array>
void one_or_each(const char* name, const Array& array, std::size_t n, std::size_t width) {
    const Shape shape = shape_of(array), one = {1, width}, each = {n, width};
    if (shape == one || shape == each) return;
    throw std::invalid_argument(std::string(name) + " has shape " + text_of(shape) + ", but " +
                                text_of(one) + " or " + text_of(each) + " is needed.");
}

// A size that an int holds, and at least `least`.
inline int counted(const char* name, std::size_t size, std::size_t least = 0) {
    if (size >= least && size <= std::size_t(INT_MAX)) return int(size);
    throw std::invalid_argument(std::string(name) + ": there are " + std::to_string(size) +
                                ", but between " + std::to_string(least) + " and " +
                                std::to_string(INT_MAX) + " are allowed.");
}

// A number from low to high; `at` says which one of several, if it is one of several.
inline void between(const char* name, std::int64_t value, std::int64_t low, std::int64_t high,
                    std::int64_t at = -1) {
    if (low <= value && value <= high) return;
    const std::string which = at < 0 ? "" : "[" + std::to_string(at) + "]";
    const std::string allowed = std::to_string(low) + " to " + std::to_string(high) + " is allowed.";
    throw std::out_of_range(name + which + " is " + std::to_string(value) + ", but " +
                            (low > high ? "there is nothing to choose from." : allowed));
}

// Part start to stop of n.
inline Span part(std::int64_t start, std::int64_t stop, std::size_t n) {
    between("start", start, 0, std::int64_t(n));
    between("stop", stop, start, std::int64_t(n));
    return {start, stop};
}

// Indices into an array of this size: those of the span.
inline void within(const char* name, const std::int64_t* indices, Span span, std::size_t size) {
    bool out = false;
    for (std::int64_t q = span.start; q < span.stop; ++q) out |= std::uint64_t(indices[q]) >= size;
    for (std::int64_t q = span.start; out && q < span.stop; ++q)
        between(name, indices[q], 0, std::int64_t(size) - 1, q);
}

}  // namespace voicecf
