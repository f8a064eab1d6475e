#include "muster/data/operation_row.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::data {
namespace {

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
  EXPECT_EQ(error_of("CentreCrop", {}), "there is no operation 'CentreCrop'");
  EXPECT_EQ(error_of("CenterCrop", {}), "CenterCrop: size is missing");
  EXPECT_EQ(error_of("CenterCrop", {{"side", WholeNumbers{1}}}), "CenterCrop: there is no argument 'side'");
  EXPECT_EQ(error_of("CenterCrop", {{"size", 1.0}}), "CenterCrop: size is of another type");
  EXPECT_EQ(error_of("CenterCrop", {{"size", WholeNumbers{1, 2, 3}}}),
            "CenterCrop: size is a number or (height, width)");
  EXPECT_EQ(error_of("Pad", {{"padding", WholeNumbers{1}}, {"fill_value", WholeNumbers{256}}}),
            "Pad: fill_value is 0 to 255, or one for each of three channels");
  EXPECT_EQ(error_of("Decode", {{"to_pil", true}}),
            "Decode: to_pil is False: the image is an array, no PIL image");
}

}  // namespace
}  // namespace muster::data
