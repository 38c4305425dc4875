// Compiled once for each instruction set: all loops, with their working memory.

#include <cstdlib>
#include <cstring>

#include "kernels.hpp"
#include "price.hpp"
#include "project.hpp"

namespace voicecf {
namespace VOICECF_SET {
namespace {

// Zeroed memory that starts on a cache line; null where there is none.
struct Memory {
    void* held;
    char* start;

    explicit Memory(std::size_t size) : held(std::calloc(size + 64, 1)), start(nullptr) {
        const auto at = reinterpret_cast<std::uintptr_t>(held);
        if (held) start = reinterpret_cast<char*>((at + 63) / 64 * 64);
    }
    ~Memory() { std::free(held); }
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;
};

template <class Real>
std::size_t size_of(const Rows<Real>& rows) {
    Arena arena;
    Workspace<Real> w;
    lay_out(arena, rows, w);
    return arena.used;
}

template <class Real>
bool project(const Rows<Real>& rows, const Batch& batch, const Results& out, Span span) {
    const Memory memory(size_of(rows));
    if (!memory.start) return false;
    Arena arena{memory.start, 0};
    Workspace<Real> w;
    lay_out(arena, rows, w);
    project_chunk(rows, batch, out, span.start, span.stop, w);
    return true;
}

bool price(const Rows<double>& rows, const Batch& batch, const Results& out, Span span) {
    Arena count;
    PriceSpace v;
    lay_out(count, rows, v);
    const Memory memory(count.used);
    if (!memory.start) return false;
    Arena arena{memory.start, 0};
    lay_out(arena, rows, v);
    price_chunk(rows, batch, out, span.start, span.stop, v);
    return true;
}

template <class Real>
bool nearest(const Rows<Real>& rows, const double* points, std::int64_t* labels, bool* doubtful,
             Span span) {
    const Memory memory(size_of(rows));
    if (!memory.start) return false;
    Arena arena{memory.start, 0};
    Workspace<Real> w;
    lay_out(arena, rows, w);
    nearest_chunk(rows, points, {labels, doubtful}, span.start, span.stop, w);
    return true;
}

bool branch(const Rows<double>& rows, const Batch& batch, const Rules& r, const Found& out, Span span) {
    Arena count;
    Search f;
    lay_out(count, rows, r, f);
    const Memory memory(count.used);
    if (!memory.start) return false;
    Arena arena{memory.start, 0};
    lay_out(arena, rows, r, f);
    f.stack = {nullptr, nullptr, 0, 32, f.root.size, 2 * r.many + rows.count + 1};
    const bool enough = grow(f.stack);
    if (enough) branch_chunk(rows, batch, r, out, span.start, span.stop, f);
    std::free(f.stack.nodes);
    std::free(f.stack.numbers);
    return enough;
}

bool floors(const Rows<double>& rows, const Prefixes& f, const Batch& batch, Span span) {
    const Memory memory((rows.wide + rows.count) * sizeof(double));
    if (memory.start)
        prefix_floors(rows, f, batch, span.start, span.stop, reinterpret_cast<double*>(memory.start));
    return memory.start;
}

void measured(const Measure& m, Span span) { measure_chunk(m, span.start, span.stop); }

// Columns of the rows in flight.
std::size_t columns_of(const Table& t) { return std::size_t(t.d) * LLOYD_ROWS * sizeof(double); }

bool lloyd_nearest(const Table& t, std::int32_t* labels, double* closest, Span span) {
    const Memory memory(columns_of(t));
    if (memory.start)
        nearest_rows(t, span.start, span.stop, labels, closest,
                     reinterpret_cast<double*>(memory.start));
    return memory.start;
}

bool lloyd_sweep(const Table& t, std::int64_t n, const Sums& out) {
    const Memory memory(columns_of(t));
    if (memory.start) sweep_rows(t, n, out, reinterpret_cast<double*>(memory.start));
    return memory.start;
}

bool lloyd_distances(const Table& t, double* out, Span span) {
    const Memory memory(columns_of(t));
    if (memory.start)
        distances(t, span.start, span.stop, out, reinterpret_cast<double*>(memory.start));
    return memory.start;
}

}  // namespace

const Kernels& kernels() {
    static const Kernels all = {
        project<double>, project<float>, price,         nearest<double>, nearest<float>, branch,
        floors,          measured,       lloyd_nearest, lloyd_sweep,     lloyd_distances,
    };
    return all;
}

}  // namespace VOICECF_SET
}  // namespace voicecf
