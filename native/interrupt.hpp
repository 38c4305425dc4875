// Ends loops before their last row, when a user presses Ctrl-C.
//
// Loops ask `interrupted` once a node of branch and bound, or once a block of points. Whatever they have
// written until then is of no use: the binding that called the loop raises an exception.
#pragma once

#include <atomic>
#include <chrono>

namespace voicecf {

// What ends the loops of one thread. It does not end by itself: `interrupted` stays true until the binding
// returns. A thread of a pool looks at the flag of the call that it works for. A thread that nobody waits for
// has no flag, and asks Python for signals itself.
struct Interrupt {
    using Clock = std::chrono::steady_clock;
    static constexpr std::chrono::milliseconds PAUSE{50};  // between two questions to Python

    const std::atomic<bool>* flag = nullptr;
    bool (*signalled)() = nullptr;
    Clock::time_point next{};
    bool raised = false;

    void begin(bool (*ask)()) {
        signalled = ask;
        raised = false;
        if (!flag) next = Clock::now() + PAUSE;
    }
    bool asked() {
        if (flag) return flag->load(std::memory_order_relaxed);
        if (raised || Clock::now() < next) return raised;
        raised = signalled();
        next = Clock::now() + PAUSE;
        return raised;
    }
};

inline thread_local Interrupt interrupt;

inline bool interrupted() { return interrupt.asked(); }

}  // namespace voicecf
