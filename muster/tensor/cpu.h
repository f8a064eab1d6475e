// Features of this processor.
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <string_view>

namespace muster {

// Vector instructions that fast kernels are written for, each including those before it.
enum class Isa { none, avx2, avx512 };

struct Processor {
  Isa isa = Isa::none;  // none elsewhere than on x86-64, where the reference kernels serve
  // Products of bfloat16, summed in float32.
  bool avx512_bf16 = false;
  bool amx_bf16 = false;
  // Whether products in float32 take less time: where there are no instructions for them, and where Intel's
  // AVX512_BF16 is without AMX, or with one that a virtual machine hides: it has half the rate of float32.
  // AMD's has twice that.
  bool slow_bfloat16 = false;
};

const Processor& this_processor();
inline Isa processor_isa() { return this_processor().isa; }
std::string_view to_string(Isa isa);
// Of kernels that stand by their `isa`, the widest first: those that this processor can run.
template <class Kernel>
std::span<const Kernel> usable_here(std::span<const Kernel> kernels) {
  const auto can_run = [](const Kernel& kernel) { return kernel.isa <= processor_isa(); };
  return {std::find_if(kernels.begin(), kernels.end(), can_run), kernels.end()};
}
// Whether this process may use AMX's tiles: it asks the system, which makes signal frames larger from then
// on.
bool may_use_tiles();
// "AVX512_BF16 and AMX_BF16", "" when there is none.
std::string bfloat16_instructions(const Processor& processor);

}  // namespace muster
