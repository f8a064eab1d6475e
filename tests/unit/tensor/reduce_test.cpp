// Reductions of bfloat16 against those of the same numbers as float32, rounded.
#include "muster/tensor/kernels/reduce.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "muster/base/base.h"

namespace muster::kernels {
namespace {

struct Folded {
  Shape shape;
  std::vector<bool> axes;
};

TEST(Reductions, OfBfloat16HaveTheBitsOfFloat32RoundedOnce) {
  const std::vector<Folded> all{{{70, 130}, {true, false}},
                                {{70, 130}, {false, true}},
                                {{3, 5, 7}, {true, false, true}},
                                {{3, 40, 33}, {false, true, false}},
                                {{1, 200000}, {false, true}},
                                {{788, 769}, {true, false}},
                                {{2, 9, 4, 6}, {false, true, false, true}}};
  for (const auto& [shape, axes] : all)
    for (const Reduce kind :
         {Reduce::sum, Reduce::mean, Reduce::max, Reduce::min, Reduce::prod, Reduce::sum_of_squares})
      for (const int threads : {1, 3}) {
        SCOPED_TRACE(to_string(shape) + ", kind " + std::to_string(static_cast<int>(kind)) + ", " +
                     std::to_string(threads) + " threads");
        const RandomStream random(31, static_cast<std::uint64_t>(kind));
        std::vector<float> wide(static_cast<std::size_t>(shape.elements()));
        std::vector<bfloat16> narrow;
        for (std::size_t i = 0; i < wide.size(); ++i) {
          narrow.emplace_back(static_cast<float>(random.below(i, 2000)) / 1000 - 0.5F);
          wide[i] = narrow.back();
        }
        const ReduceLoops loops = reduce_loops(shape, axes);
        const auto outputs = static_cast<std::size_t>(loops.outputs);
        std::vector<bfloat16> found(outputs);
        std::vector<float> wanted(outputs);
        reduce(kind, DType::bfloat16, loops, narrow.data(), found.data(), threads);
        reduce(kind, DType::float32, loops, wide.data(), wanted.data(), 1);
        for (std::size_t i = 0; i < outputs; ++i) ASSERT_EQ(found[i].bits(), bfloat16(wanted[i]).bits()) << i;
      }
}

}  // namespace
}  // namespace muster::kernels
