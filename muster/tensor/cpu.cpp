#include "muster/tensor/cpu.h"

namespace muster {
namespace {

Isa detect() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq");
  if (avx2 && avx512) return Isa::avx512;
  if (avx2) return Isa::avx2;
#endif
  return Isa::none;
}

}  // namespace

Isa processor_isa() {
  static const Isa isa = detect();
  return isa;
}

std::string_view to_string(Isa isa) {
  switch (isa) {
    case Isa::none:
      break;
    case Isa::avx2:
      return "avx2";
    case Isa::avx512:
      return "avx512";
  }
  return "none";
}

}  // namespace muster
