// Schemas of the rows: what they name is there, and calls by them check their arguments.
#include <gmock/gmock.h>

#include <set>

#include "muster/graph/graph.h"
#include "muster/graph/kernel.h"

namespace muster::graph {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string error_of(std::string_view op, const Values& inputs, const Attributes& attributes) {
  try {
    call_op(required_op(op), inputs, attributes);
  } catch (const Exception& exception) {
    return exception.error().message;
  }
  return "";
}

TEST(Schema, FitsToTheRow) {
  for (const Op* op : ops()) {
    const Schema& schema = op->schema;
    if (!schema.has_functions()) continue;
    SCOPED_TRACE(op->name);
    EXPECT_GE(schema.inputs.size(), op->inputs_min);
    EXPECT_LE(schema.inputs.size(), op->inputs_max);
    EXPECT_LE(schema.results, op->outputs);
    for (const Argument& argument : schema.attributes) {
      EXPECT_FALSE(argument.required && argument.optional) << argument.name;
      EXPECT_TRUE(!argument.casts || std::holds_alternative<DType>(argument.otherwise)) << argument.name;
      EXPECT_NO_THROW(require_in_range(*op, argument, argument.otherwise)) << argument.name;
    }
  }
}

TEST(Schema, NamesArgumentsThatAreThere) {
  for (const Op* op : ops()) {
    for (const Alias& alias : op->schema.methods) EXPECT_NO_THROW(parameters_of(*op, alias.arguments, 1));
    for (const Alias& alias : op->schema.mindspore) EXPECT_NO_THROW(parameters_of(*op, alias.arguments));
    for (const PrimitiveAlias& primitive : op->schema.primitives) {
      EXPECT_NO_THROW(parameters_of(*op, primitive.settings, op->schema.inputs.size()));
      EXPECT_NO_THROW(parameters_of(*op, primitive.arguments));
    }
  }
}

TEST(Schema, GivesEachNameToOneOp) {
  std::multiset<std::string> methods, functions, primitives;
  for (const Op* op : ops()) {
    for (const Alias& alias : op->schema.methods) methods.emplace(alias.name);
    for (const Alias& alias : op->schema.mindspore) functions.emplace(alias.name);
    for (const PrimitiveAlias& primitive : op->schema.primitives) primitives.emplace(primitive.name);
  }
  for (const auto& names : {methods, functions, primitives})
    for (const std::string& name : names) EXPECT_EQ(names.count(name), 1u) << name;
}

TEST(Schema, RenamesArguments) {
  const Op& op = required_op("cumsum");
  const auto found = parameters_of(op, {"dim:axis", "reverse"}, 1);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].name, "dim");
  EXPECT_EQ(found[0].attribute->name, "axis");
  EXPECT_EQ(found[1].attribute->name, "reverse");
  EXPECT_EQ(parameters_of(op, {"input"}).front().attribute, nullptr);
  EXPECT_THROW(parameters_of(op, {"dim:axes"}), Exception);
}

TEST(Calls, NameTheArgumentThatIsMissing) {
  EXPECT_THAT(error_of("cumsum", {Tensor::scalar(1.0F)}, {}), HasSubstr("cumsum: axis is missing"));
}

TEST(Calls, NameTheRangeOfAnArgument) {
  const Op op{.name = "scale", .documentation = "", .kernels = {}};
  const Argument argument{.name = "factor", .otherwise = 1.0, .range = {.min = 0, .max = 2}};
  EXPECT_NO_THROW(require_in_range(op, argument, 2.0));
  try {
    require_in_range(op, argument, 2.5);
    FAIL() << "2.5 passed";
  } catch (const Exception& exception) {
    EXPECT_THAT(exception.error().message,
                AllOf(HasSubstr("scale"), HasSubstr("factor is 2.5"), HasSubstr("from 0 to 2")));
  }
  const Argument kind{.name = "kind", .otherwise = std::string("sum"), .choices = {"sum", "mean"}};
  EXPECT_NO_THROW(require_in_range(op, kind, std::string("mean")));
  EXPECT_THROW(require_in_range(op, kind, std::string("max")), Exception);
}

TEST(Calls, PromoteTheInputsAsTheSchemaSays) {
  const Value whole = Tensor::scalar(std::int32_t{7});
  const Value fraction = Tensor::scalar(2.0);
  EXPECT_EQ(call_op(required_op("add"), Values{whole, fraction})[0].dtype(), DType::float64);
  EXPECT_EQ(call_op(required_op("div"), Values{whole, whole})[0].dtype(), DType::float32);
  EXPECT_EQ(call_op(required_op("floor_div"), Values{whole, whole})[0].dtype(), DType::int32);
  EXPECT_EQ(call_op(required_op("exp"), Values{whole})[0].dtype(), DType::float32);
  EXPECT_EQ(call_op(required_op("neg"), Values{whole})[0].dtype(), DType::int32);
}

TEST(Calls, CastTheFirstInputWhereADtypeIsGiven) {
  const Values found = call_op(required_op("cumsum"), Values{Tensor(DType::int32, {2})},
                               {{"axis", std::int64_t{0}}, {"dtype", DType::float64}});
  EXPECT_EQ(found[0].dtype(), DType::float64);
}

}  // namespace
}  // namespace muster::graph
