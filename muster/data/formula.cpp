#include "muster/data/formula.h"

#include <array>
#include <cstring>

#include "muster/data/look_up.h"

namespace muster::data {
namespace {

[[gnu::always_inline]] inline void compute_all(const Formula& formula, const std::uint8_t* in,
                                               std::size_t count, float* out) {
  const auto [scale, shift, mean, deviation] = formula;
  for (std::size_t i = 0; i < count; ++i)
    out[i] = (static_cast<float>(in[i]) * scale + shift - mean) / deviation;
}

#ifdef __x86_64__
[[gnu::target("avx2")]] void compute_avx2(const Formula& formula, const std::uint8_t* in, std::size_t count,
                                          float* out) {
  compute_all(formula, in, count, out);
}
bool has_avx2() { return __builtin_cpu_supports("avx2"); }
#else
void compute_avx2(const Formula&, const std::uint8_t*, std::size_t, float*) {}
bool has_avx2() { return false; }
#endif

}  // namespace

bool gives(const Formula& formula, std::span<const float> table) {
  std::array<std::uint8_t, 256> bytes{};
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(i);
  std::array<float, 256> made{};
  compute(formula, bytes.data(), bytes.size(), made.data());
  return table.size() == made.size() && std::memcmp(table.data(), made.data(), sizeof made) == 0;
}

bool computes_faster() {
  static const bool is_faster = has_avx2() && !looks_up_many();
  return is_faster;
}

void compute(const Formula& formula, const std::uint8_t* in, std::size_t count, float* out) {
  static const bool is_wide = has_avx2();
  if (is_wide)
    compute_avx2(formula, in, count, out);
  else
    compute_all(formula, in, count, out);
}

}  // namespace muster::data
