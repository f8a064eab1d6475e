#include "muster/nn/cell_text.h"

#include <gtest/gtest.h>

#include "muster/nn/nn.h"

namespace muster::nn {
namespace {

TEST(CellText, WritesValuesAsPythonDoes) {
  EXPECT_EQ(CellText().add("eps", 1e-5).add("p", 1.0).add("bias", true).take(),
            "eps=1e-05, p=1.0, bias=True");
  EXPECT_EQ(CellText().add(Size2d(3)).add(Size2d(3, 5)).add(Shape{8}).take(), "3, (3, 5), (8,)");
  EXPECT_EQ(CellText().add_unless("group", std::int64_t{1}, 1).take(), "");
}

TEST(CellText, IsATreeOfANetwork) {
  SequentialCell network;
  network.insert_child("0", std::make_shared<Dense>(4, 2));
  network.insert_child("1", std::make_shared<ReLU>());
  EXPECT_EQ(to_string(network), "SequentialCell(\n  (0): Dense(4, 2)\n  (1): ReLU()\n)");
}

}  // namespace
}  // namespace muster::nn
