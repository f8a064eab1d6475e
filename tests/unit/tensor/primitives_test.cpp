// The primitive library against the reference kernels on random sizes, in plain formats and in its own.
#include <gtest/gtest.h>

#include "oracle.h"

namespace muster {
namespace {

class Primitives : public ::testing::Test {
 protected:
  void SetUp() override {
    if (primitive_library() == nullptr) GTEST_SKIP() << "there is no primitive library here";
  }
};

TEST_F(Primitives, ConvolveAsTheReferenceDoes) {
  EXPECT_GT(convolve_as_the_reference_does(*primitive_library(), 3), 400) << "the library refuses too much";
}

TEST_F(Primitives, ConvolveVolumesAsTheReferenceDoes) {
  EXPECT_GT(convolve_volumes_as_the_reference_does(*primitive_library()), 300)
      << "the library refuses too much";
}

TEST_F(Primitives, PoolAsTheReferenceDoes) {
  EXPECT_GT(pool_as_the_reference_does(*primitive_library(), 3), 270) << "the library refuses too much";
}

TEST_F(Primitives, NormaliseAsTheReferenceDoes) { normalise_as_the_reference_does(*primitive_library(), 4); }

}  // namespace
}  // namespace muster
