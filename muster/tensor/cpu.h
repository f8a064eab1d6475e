// What this processor can do.
#pragma once

#include <string_view>

namespace muster {

// Vector instructions that fast kernels are written for, each including those before it.
enum class Isa { none, avx2, avx512 };

// The best of this processor: none elsewhere than on x86-64, where the reference kernels serve.
Isa processor_isa();
std::string_view to_string(Isa isa);

}  // namespace muster
