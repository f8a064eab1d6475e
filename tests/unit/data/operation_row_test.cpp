#include "muster/data/operation_row.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::data {
namespace {
namespace operation_row_test {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string error_of(std::string_view name, const Settings& settings) {
  const auto made = make_operation(name, settings);
  return made ? "no error" : made.error().message;
}

TEST(OperationRow, MakesTheOperationThatItsNameSays) {
  for (const OperationRow* row : operation_rows()) {
    Settings required;
    for (const OperationArgument& argument : row->arguments)
      if (argument.required)
        required.set(argument.name, std::holds_alternative<WholeNumbers>(argument.otherwise)
                                        ? Setting(WholeNumbers{1})
                                        : argument.otherwise);
    const auto made = make_operation(*row, required);
    ASSERT_TRUE(made) << made.error().message;
    EXPECT_EQ((*made)->name(), row->name);
  }
}

TEST(OperationRow, SaysWhichArgumentCannotBe) {
  EXPECT_THAT(error_of("CentreCrop", {}), HasSubstr("'CentreCrop'"));
  EXPECT_THAT(error_of("CenterCrop", {}), HasSubstr("size is missing"));
  EXPECT_THAT(error_of("CenterCrop", {{"side", WholeNumbers{1}}}), HasSubstr("no argument 'side'"));
  EXPECT_THAT(error_of("CenterCrop", {{"size", 1.0}}), HasSubstr("type"));
  EXPECT_THAT(error_of("CenterCrop", {{"size", WholeNumbers{1, 2, 3}}}),
              AllOf(HasSubstr("size"), HasSubstr("(1, 2, 3)"), HasSubstr("(height, width)")));
  EXPECT_THAT(error_of("Pad", {{"padding", WholeNumbers{1}}, {"fill_value", WholeNumbers{256}}}),
              AllOf(HasSubstr("fill_value"), HasSubstr("(256)"), HasSubstr("255")));
  EXPECT_THAT(error_of("Decode", {{"to_pil", true}}),
              AllOf(HasSubstr("to_pil"), HasSubstr("True"), HasSubstr("False")));
}

}  // namespace operation_row_test
}  // namespace
}  // namespace muster::data
