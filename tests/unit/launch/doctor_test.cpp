#include "muster/launch/doctor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/base/mentions.h"

namespace muster::launch {
namespace {

std::string bfloat16_of(const Processor& processor) {
  for (const Finding& finding : examine_host(FixedEnvironment({}), processor))
    if (finding.subject == "bfloat16") return finding.value;
  return "not examined";
}

TEST(Doctor, NamesTheInstructionsForBfloat16OrThoseThatMixedPrecisionNeeds) {
  EXPECT_EQ(bfloat16_of({.isa = Isa::avx512, .avx512_bf16 = true}), "AVX512_BF16");
  EXPECT_THAT(bfloat16_of({.isa = Isa::avx512, .avx512_bf16 = true, .slow_bfloat16 = true}),
              Mentions("AVX512_BF16", "float32"));
  EXPECT_THAT(bfloat16_of({.isa = Isa::avx512}), Mentions("processor", "AVX512_BF16"));
}

}  // namespace
}  // namespace muster::launch
