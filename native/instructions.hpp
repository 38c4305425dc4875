// Which instruction set this processor has, read from the processor itself.
//
// This is the only file that knows of a kind of processor. Elsewhere there is the baseline alone.
#pragma once

#include <cstdlib>
#include <cstring>

#include "kernels.hpp"

#if defined(VOICECF_X86)
#include <cpuid.h>
#endif

namespace voicecf {

struct InstructionSet {
    const char* name;
    const Kernels* kernels;
};

#if defined(VOICECF_X86)

// Whether the system saves the registers that `mask` stands for.
inline bool saved(unsigned mask) {
    unsigned a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & (1u << 27))) return false;
    unsigned low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (low & mask) == mask;
}

// Bits of leaf 7, subleaf 0, register b.
inline bool has(unsigned bits) {
    unsigned a, b, c, d;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & bits) == bits;
}

inline bool has_avx2() { return saved(0x6) && has(1u << 5); }
inline bool has_avx512() {
    return saved(0xe6) && has((1u << 16) | (1u << 17) | (1u << 30) | (1u << 31));  // F, DQ, BW, VL
}

#endif

// The widest set, unless VOICECF_INSTRUCTIONS names one that there is.
inline InstructionSet chosen_set() {
    const char* wanted = std::getenv("VOICECF_INSTRUCTIONS");
#if defined(VOICECF_X86)
    const InstructionSet wider[] = {{"avx512", has_avx512() ? &avx512::kernels() : nullptr},
                                    {"avx2", has_avx2() ? &avx2::kernels() : nullptr}};
    for (const InstructionSet& set : wider)
        if (set.kernels && (!wanted || std::strcmp(wanted, set.name) == 0)) return set;
#else
    (void)wanted;
#endif
    return {"baseline", &baseline::kernels()};
}

}  // namespace voicecf
