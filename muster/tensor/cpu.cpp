#include "muster/tensor/cpu.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace muster {
namespace {

#if defined(__x86_64__)
// Bits of cpuid's leaf 7, subleaf 0, register edx.
constexpr unsigned amx_bf16_bit = 1U << 22;
constexpr unsigned amx_tile_bit = 1U << 24;

bool has_amx_bf16() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  constexpr unsigned both = amx_bf16_bit | amx_tile_bit;
  return __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0 && (edx & both) == both;
}
#endif

Processor detect() {
  Processor found;
#if defined(__x86_64__)
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq");
  if (avx2) found.isa = avx512 ? Isa::avx512 : Isa::avx2;
  found.avx512_bf16 = avx512 && __builtin_cpu_supports("avx512bf16");
  found.amx_bf16 = found.avx512_bf16 && has_amx_bf16();
  found.slow_bfloat16 = !found.amx_bf16 && (!found.avx512_bf16 || __builtin_cpu_is("intel"));
#endif
  return found;
}

}  // namespace

const Processor& this_processor() {
  static const Processor processor = detect();
  return processor;
}

bool may_use_tiles() {
#if defined(__x86_64__)
  constexpr long ask_for_state = 0x1023, tile_data = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILE_DATA
  return this_processor().amx_bf16 && syscall(SYS_arch_prctl, ask_for_state, tile_data) == 0;
#else
  return false;
#endif
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

std::string bfloat16_instructions(const Processor& processor) {
  if (processor.amx_bf16) return "AVX512_BF16 and AMX_BF16";
  return processor.avx512_bf16 ? "AVX512_BF16" : "";
}

}  // namespace muster
