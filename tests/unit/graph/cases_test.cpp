// Runs each case file against every kernel of its op, and checks gradients in float64 by finite differences.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <algorithm>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "case_file.h"
#include "muster/graph/execution/execute.h"
#include "muster/graph/kernel.h"

namespace muster::graph {
namespace {
namespace cases_test {

constexpr std::string_view suffix = ".case";

std::vector<std::string> case_names() {
  std::vector<std::string> names;
  const auto files = real_files().list(MUSTER_CASES);
  MUSTER_CHECK(files.has_value(), "the case files are not there");
  for (const std::string& file : *files)
    if (file.size() > suffix.size() && file.ends_with(suffix))
      names.push_back(file.substr(0, file.size() - suffix.size()));
  return names;
}

std::vector<double> as_doubles(const Tensor& tensor) {
  const Tensor wide = tensor.cast(DType::float64);
  return {wide.span<double>().begin(), wide.span<double>().end()};
}

void expect_equal(const std::vector<double>& found, const std::vector<double>& expected, double tolerance) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (std::isnan(expected[i]))
      EXPECT_TRUE(std::isnan(found[i])) << "element " << i << " is " << found[i];
    else if (std::isinf(expected[i]))
      EXPECT_EQ(found[i], expected[i]) << "element " << i;
    else
      EXPECT_NEAR(found[i], expected[i], tolerance * (1 + std::abs(expected[i]))) << "element " << i;
  }
}

// One case for one dtype: tensors made fresh for each kernel, since some kernels write.
struct Run {
  const Op& op;
  const Case& given;
  DType floating;
  std::vector<Tensor> inputs = {};
  std::vector<Tensor> outputs = {};

  Result<std::vector<TensorType>> prepare() {
    inputs.clear();
    outputs.clear();
    std::vector<TensorType> types;
    for (const CaseTensor& input : given.inputs) {
      inputs.push_back(to_tensor(input, floating));
      types.push_back({inputs.back().dtype(), inputs.back().shape()});
    }
    MUSTER_TRY(const auto output_types, op.infer({types, {}, given.attributes}));
    for (const TensorType& type : output_types) {
      if (op.sharing == Sharing::in_place || op.sharing == Sharing::view) {
        outputs.push_back(inputs[0].reshaped(type.shape));
      } else {
        outputs.emplace_back(type.dtype, type.shape);
        std::memset(outputs.back().bytes(), 0xA5, outputs.back().size_bytes());
      }
      types.push_back(type);
    }
    return types;
  }

  Result<> run(const Kernel& kernel, const Prepared& prepared) {
    std::vector<std::byte*> addresses;
    for (const Tensor& tensor : inputs) addresses.push_back(tensor.bytes());
    for (const Tensor& tensor : outputs) addresses.push_back(tensor.bytes());
    const auto scratch = Buffer::allocate(prepared.scratch_bytes);
    std::optional<Error> failure;
    const RunContext context;
    kernel.run({.inputs = addresses.data(),
                .outputs = addresses.data() + inputs.size(),
                .settings = prepared.settings.get(),
                .scratch = scratch->data(),
                .threads = 2,
                .context = &context,
                .failure = &failure});
    if (failure) return fail(*failure);
    return {};
  }

  void expect_results() const {
    const double tolerance = 2e-6;  // the digits of the case files
    ASSERT_EQ(outputs.size(), given.outputs.size());
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      SCOPED_TRACE(fmt::format("output {}", i));
      EXPECT_EQ(outputs[i].shape(), given.outputs[i].shape);
      EXPECT_EQ(outputs[i].dtype(), to_tensor(given.outputs[i], floating).dtype());
      expect_equal(as_doubles(outputs[i]), given.outputs[i].values, tolerance);
    }
    for (const CaseAfter& after : given.after) {
      SCOPED_TRACE(fmt::format("input {} afterwards", after.input));
      expect_equal(as_doubles(inputs[after.input]), after.values, tolerance);
    }
  }
};

bool takes(const Kernel& kernel, std::span<const TensorType> types) {
  return std::all_of(types.begin(), types.end(),
                     [&](const TensorType& type) { return kernel.takes.contains(type.dtype); });
}

void run_every_kernel(const Op& op, const Case& given, DType floating) {
  Run run{op, given, floating};
  auto types = run.prepare();
  if (!types) {
    ASSERT_FALSE(given.error.empty()) << types.error().message;
    EXPECT_THAT(types.error().message, ::testing::HasSubstr(given.error));
    return;
  }
  if (op.sharing == Sharing::view) return run.expect_results();
  int kernels = 0;
  const auto expect = [&](const Kernel& kernel, const Prepared& prepared) {
    ++kernels;
    const Result<> done = run.run(kernel, prepared);
    if (given.error.empty()) {
      ASSERT_TRUE(done) << done.error().message;
      run.expect_results();
    } else {
      ASSERT_FALSE(done);
      EXPECT_THAT(done.error().message, ::testing::HasSubstr(given.error));
    }
  };
  for (const Kernel& kernel : op.kernels) {
    SCOPED_TRACE(fmt::format("kernel {}", kernel.name));
    types = run.prepare();
    const std::span<const TensorType> all = *types;
    const Signature signature{all.first(run.inputs.size()), all.subspan(run.inputs.size()), given.attributes};
    if (!takes(kernel, all) || !kernel.usable(signature) || kernel.prepare(signature).declined) continue;
    expect(kernel, kernel.prepare(signature));
  }
  if (kernels > 0) return;
  // None takes these dtypes: one of a wider dtype does, between copies.
  const std::span<const TensorType> all = *types;
  const auto chosen =
      choose_kernel(op, {all.first(run.inputs.size()), all.subspan(run.inputs.size()), given.attributes});
  ASSERT_TRUE(chosen) << chosen.error().message;
  expect(*chosen->kernel, chosen->prepared);
}

// sum(output 0 * fixed weights): a scalar with a gradient that differs everywhere.
Value weighted_sum(const Value& output) {
  Tensor weights(DType::float64, output.shape());
  for (std::int64_t i = 0; i < weights.elements(); ++i)
    weights.data<double>()[i] = 0.5 + 0.25 * static_cast<double>(i % 5);
  return apply("reduce_sum", {apply("mul", {output, weights})});
}

void check_gradients(const Op& op, const Case& given) {
  const auto function = value_and_grad(std::string(op.name),
                                       [&](std::span<const Value> inputs) -> Values {
                                         return weighted_sum(apply(op.name, inputs, given.attributes));
                                       },
                                       {.parameters = {}, .positions = given.gradients});
  std::vector<Tensor> inputs;
  for (const CaseTensor& input : given.inputs) inputs.push_back(to_tensor(input, DType::float64));
  const auto analytic = function->call(inputs, {}, {});
  ASSERT_TRUE(analytic) << analytic.error().message;
  constexpr double step = 1e-6;
  for (std::size_t g = 0; g < given.gradients.size(); ++g) {
    const Tensor& input = inputs[given.gradients[g]];
    for (std::int64_t i = 0; i < input.elements(); ++i) {
      double& element = input.data<double>()[i];
      const double kept = element;
      element = kept + step;
      const double above = *(*function->call(inputs, {}, {}))[0].data<double>();
      element = kept - step;
      const double below = *(*function->call(inputs, {}, {}))[0].data<double>();
      element = kept;
      const double numeric = (above - below) / (2 * step);
      EXPECT_NEAR((*analytic)[1 + g].data<double>()[i], numeric, 1e-6 * (1 + std::abs(numeric)))
          << "gradient of input " << given.gradients[g] << ", element " << i;
    }
  }
}

class Cases : public ::testing::TestWithParam<std::string> {};

TEST_P(Cases, HoldForEveryKernel) {
  const Op* op = find_op(GetParam());
  ASSERT_NE(op, nullptr) << "no op has this name";
  const auto bytes = real_files().read(std::string(MUSTER_CASES) + "/" + GetParam() + std::string(suffix));
  ASSERT_TRUE(bytes) << bytes.error().message;
  const auto cases = read_cases({reinterpret_cast<const char*>(bytes->data()), bytes->size()});
  ASSERT_TRUE(cases) << cases.error().message;
  ASSERT_FALSE(cases->empty());
  for (const Case& given : *cases) {
    SCOPED_TRACE(given.sentence);
    for (const DType floating : given.floats()) {
      SCOPED_TRACE(muster::to_string(floating));
      run_every_kernel(*op, given, floating);
    }
    if (!given.gradients.empty()) check_gradients(*op, given);
  }
}

// ---- bfloat16 --------------------------------------------------------------------------------------------

// The inputs of a case whose floating ones are bfloat16: all, or where the rest must be float32 (the
// statistics of a normalisation) the first one or two. Nothing where the row takes none.
std::optional<std::vector<Tensor>> in_bfloat16(const Op& op, const Case& given) {
  for (const std::size_t lows : {given.inputs.size(), std::size_t{1}, std::size_t{2}}) {
    std::vector<Tensor> inputs;
    std::vector<TensorType> types;
    for (std::size_t i = 0; i < given.inputs.size(); ++i) {
      inputs.push_back(to_tensor(given.inputs[i], i < lows ? DType::bfloat16 : DType::float32));
      types.push_back({inputs.back().dtype(), inputs.back().shape()});
    }
    if (op.infer({types, {}, given.attributes})) return inputs;
  }
  return std::nullopt;
}

std::vector<Tensor> in_float32(const std::vector<Tensor>& tensors) {
  std::vector<Tensor> made;
  for (const Tensor& tensor : tensors)
    made.push_back(tensor.dtype() == DType::bfloat16 ? tensor.cast(DType::float32) : tensor.clone());
  return made;
}

// Results in bfloat16 are what float32 gives, rounded; another order of sums may round to the neighbour.
void expect_rounded(const Tensor& found, const Tensor& wide) {
  if (found.dtype() != DType::bfloat16) return expect_equal(as_doubles(found), as_doubles(wide), 2e-6);
  expect_equal(as_doubles(found), as_doubles(wide.cast(DType::bfloat16)), 1.0 / 128);
}

void compare_with_float32(const Op& op, const Case& given, const std::vector<Tensor>& low) {
  const std::vector<Tensor> wide = in_float32(low);
  const auto computed = [&](const std::vector<Tensor>& inputs) {
    return apply_all(op.name, std::vector<Value>(inputs.begin(), inputs.end()), given.attributes);
  };
  const Values found = computed(low);
  const Values expected = computed(wide);
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    SCOPED_TRACE(fmt::format("output {}", i));
    expect_rounded(found[i].tensor(), expected[i].tensor());
  }
  for (std::size_t i = 0; i < low.size(); ++i) {
    SCOPED_TRACE(fmt::format("input {} afterwards", i));
    expect_rounded(low[i], wide[i]);
  }
}

TEST_P(Cases, AreInBfloat16WhatFloat32GivesRounded) {
  const Op* op = find_op(GetParam());
  const auto bytes = real_files().read(std::string(MUSTER_CASES) + "/" + GetParam() + std::string(suffix));
  const auto cases = read_cases({reinterpret_cast<const char*>(bytes->data()), bytes->size()});
  ASSERT_TRUE(op != nullptr && cases);
  for (const Case& given : *cases) {
    if (!given.error.empty() || given.floats().size() == 1) continue;
    SCOPED_TRACE(given.sentence);
    if (const auto low = in_bfloat16(*op, given))
      compare_with_float32(*op, given, *low);
    else
      EXPECT_EQ(op->name, "all_reduce") << "no bfloat16";
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, Cases, ::testing::ValuesIn(case_names()),
                         [](const auto& param_info) { return param_info.param; });

TEST(OpTable, EveryOpHasACaseFileAndIsDocumented) {
  const std::vector<std::string> names = case_names();
  for (const Op* op : ops()) {
    EXPECT_THAT(names, ::testing::Contains(std::string(op->name)));
    EXPECT_FALSE(op->documentation.empty()) << op->name;
    EXPECT_NE(op->infer, nullptr) << op->name;
    EXPECT_TRUE(op->sharing == Sharing::view || !op->kernels.empty()) << op->name;
  }
}

}  // namespace cases_test
}  // namespace
}  // namespace muster::graph
