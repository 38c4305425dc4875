// The compiled loops of one instruction set, and which sets there are.
#pragma once

#include "branch.hpp"
#include "lloyd.hpp"
#include "loops.hpp"
#include "problem.hpp"

namespace voicecf {

// Rows start to stop of a batch.
struct Span {
    std::int64_t start, stop;
};

// Loops over a span. Those that need working memory say whether there was any.
struct Kernels {
    bool (*project)(const Rows<double>&, const Batch&, const Results&, Span);
    bool (*project_many)(const Rows<float>&, const Batch&, const Results&, Span);
    bool (*price)(const Rows<double>&, const Batch&, const Results&, Span);
    bool (*nearest)(const Rows<double>&, const double*, std::int64_t*, bool*, Span);
    bool (*nearest_many)(const Rows<float>&, const double*, std::int64_t*, bool*, Span);
    bool (*branch)(const Rows<double>&, const Batch&, const Rules&, const Found&, Span);
    bool (*prefix_floors)(const Rows<double>&, const Prefixes&, const Batch&, Span);
    void (*measure)(const Measure&, Span);
    bool (*lloyd_nearest)(const Table&, std::int32_t* labels, double* closest, Span);
    bool (*lloyd_sweep)(const Table&, std::int64_t n, const Sums&);
    bool (*lloyd_distances)(const Table&, double*, Span);
};

namespace baseline {
const Kernels& kernels();
}
namespace avx2 {
const Kernels& kernels();
}
namespace avx512 {
const Kernels& kernels();
}

}  // namespace voicecf
