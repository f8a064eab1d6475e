// Ops and redistributions over meshes whose ranks are threads: what one rank alone computes, and what flows
// back, whichever dimensions are cut.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "mesh_ranks.h"
#include "muster/graph/graph.h"
#include "muster/graph/kernel.h"
#include "muster/graph/plan.h"
#include "muster/graph/sharding/dimensions.h"
#include "muster/graph/sharding/mesh.h"

namespace muster::graph {
namespace {
namespace sharding_test {

using Body = std::function<Values(std::span<const Value>)>;
using Layouts = std::vector<std::string>;  // by input; empty: it is not divided

// What a rank computes: elements of the outputs, then of the gradients of the floating inputs, as doubles.
using Numbers = std::vector<std::vector<double>>;

Tensor made_for(const TensorType& type, std::uint64_t stream) {
  Tensor made(DType::float64, type.shape);
  const RandomStream random(11, stream);
  for (std::int64_t i = 0; i < made.elements(); ++i) {
    const double number = random.uniform(static_cast<std::uint64_t>(i));
    made.data<double>()[i] = is_floating(type.dtype) ? 0.2 + 0.7 * number : std::floor(4 * number);
  }
  return made.cast(type.dtype);
}

std::vector<double> as_doubles(const Tensor& tensor) {
  const Tensor wide = tensor.cast(DType::float64);
  return {wide.span<double>().begin(), wide.span<double>().end()};
}

// A sum of everything, in which every element weighs another amount.
Value weighed(const Values& outputs) {
  Value total;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (!is_floating(outputs[i].dtype())) continue;
    const Value weights(made_for(outputs[i].type(), 100 + i));
    // What flows back depends on the output, so that it is divided as that is.
    const Value part = apply("reduce_sum", {apply("mul", {apply("square", {outputs[i]}), weights})});
    const Value wide =
        part.dtype() == DType::float32 ? part : apply("cast", {part}, {{"dtype", DType::float32}});
    total = total.defined() ? apply("add", {total, wide}) : wide;
  }
  return total;
}

struct Traced {
  Graph graph;
  std::vector<Tensor> inputs;
};

// The body's outputs, and gradients where `with_gradients`, of inputs that are divided by `layouts`.
Result<Traced> traced(const Body& body, const std::vector<TensorType>& types, const std::string& mesh,
                      const Layouts& layouts, std::uint32_t rank, bool with_gradients) {
  Traced made;
  const auto trace = Trace::begin("f");
  std::vector<Value> given, floating;
  for (std::size_t i = 0; i < types.size(); ++i) {
    made.inputs.push_back(made_for(types[i], i));
    given.push_back(trace->input(types[i]));
    if (is_floating(types[i].dtype)) floating.push_back(given.back());
  }
  const Result<Graph> graph = catch_error([&] {
    const Trace::Scope scope(*trace);
    std::vector<Value> sharded = given;
    for (std::size_t i = 0; i < sharded.size(); ++i)
      if (!layouts[i].empty())
        sharded[i] =
            apply("shard", {sharded[i]},
                  {{"mesh", mesh}, {"layout", layouts[i]}, {"rank", static_cast<std::int64_t>(rank)}});
    Values outputs = body(sharded);
    if (with_gradients) {
      const Value loss = weighed(outputs);
      const std::vector<Value> gradients = trace->gradient({&loss, 1}, floating);
      outputs.insert(outputs.end(), gradients.begin(), gradients.end());
    }
    return trace->finish(outputs);
  });
  if (!graph) return fail(graph.error());
  made.graph = *graph;
  return made;
}

struct Made {
  Numbers numbers;
  std::string problem;
};

Made run(const Body& body, const std::vector<TensorType>& types, const std::string& mesh,
         const Layouts& layouts, std::uint32_t rank, const RunContext& context, bool with_gradients) {
  Made made;
  const auto numbers = [&]() -> Result<Numbers> {
    MUSTER_TRY(const Traced whole, traced(body, types, mesh, layouts, rank, with_gradients));
    MUSTER_TRY(const auto plan, Plan::compile(whole.graph, {.threads = 1}));
    MUSTER_TRY(const std::vector<Tensor> outputs, plan->run(whole.inputs, context));
    Numbers found;
    for (const Tensor& output : outputs) found.push_back(as_doubles(output));
    return found;
  }();
  if (numbers)
    made.numbers = *numbers;
  else
    made.problem = numbers.error().message;
  return made;
}

void expect_near(const Numbers& found, const Numbers& wanted, double tolerance) {
  ASSERT_EQ(found.size(), wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    ASSERT_EQ(found[i].size(), wanted[i].size());
    for (std::size_t k = 0; k < wanted[i].size(); ++k)
      ASSERT_NEAR(found[i][k], wanted[i][k], tolerance * (1 + std::abs(wanted[i][k])))
          << "result " << i << ", element " << k;
  }
}

// The ops that compute pieces on rank 0.
std::set<std::string_view> divided_ops(const Graph& whole) {
  std::set<std::pair<const Op*, std::string>> before;
  const auto types_of = [](const Graph& graph, const Node& node) {
    std::string text;
    for (const ValueId id : node.inputs) text += to_string(graph.values[id]) + ";";
    return text;
  };
  for (const Node& node : whole.nodes) before.insert({node.op, types_of(whole, node)});
  Graph made = whole;
  EXPECT_TRUE(divide_over_mesh(made, **mesh_of(made)));
  std::set<std::string_view> names;
  for (const Node& node : made.nodes)
    if (!before.contains({node.op, types_of(made, node)})) names.insert(node.op->name);
  return names;
}

// ---- Between layouts --------------------------------------------------------------------------------------

const std::string two_by_two = "a=2,b=2";

// Every way to cut `rank` dimensions by the two axes.
std::vector<std::string> layouts_of(std::size_t rank) {
  std::vector<std::string> all;
  for (std::size_t a = 0; a <= rank; ++a)
    for (std::size_t b = 0; b <= rank; ++b) {
      std::string text;
      for (std::size_t dim = 0; dim < rank; ++dim) {
        if (dim > 0) text += ';';
        if (a == dim) text += 'a';
        if (a == dim && b == dim) text += '+';
        if (b == dim) text += 'b';
      }
      all.push_back(text);
    }
  return all;
}

Value sharded(const Value& x, const std::string& layout, std::uint32_t rank) {
  return apply("shard", {x},
               {{"mesh", two_by_two}, {"layout", layout}, {"rank", static_cast<std::int64_t>(rank)}});
}

// tanh in one layout, its square in the other.
Body between(const std::string& from, const std::string& to, std::uint32_t rank) {
  return [=](std::span<const Value> inputs) -> Values {
    const Value y = sharded(apply("tanh", {sharded(inputs[0], from, rank)}), to, rank);
    return apply("square", {y});
  };
}

void expect_every_pair(const std::vector<std::string>& layouts, const TensorType& type) {
  const std::string nowhere = layouts.back();
  const Numbers wanted = run(between(nowhere, nowhere, 0), {type}, "a=1,b=1", {""}, 0, {}, true).numbers;
  using All = std::vector<Made>;
  const std::vector<All> found = on_mesh<All>(4, [&](std::uint32_t rank, const RunContext& context) {
    All all;
    for (const std::string& from : layouts)
      for (const std::string& to : layouts)
        all.push_back(run(between(from, to, rank), {type}, two_by_two, {""}, rank, context, true));
    return all;
  });
  std::size_t at = 0;
  for (const std::string& from : layouts)
    for (const std::string& to : layouts) {
      SCOPED_TRACE(fmt::format("'{}' to '{}'", from, to));
      for (const All& rank : found) {
        ASSERT_EQ(rank[at].problem, "");
        expect_near(rank[at].numbers, wanted, 0);
      }
      ++at;
    }
}

TEST(Redistribution, EveryPairOfLayoutsOfAMatrixHasTheBitsOfOneRankAndItsGradients) {
  expect_every_pair(layouts_of(2), {DType::float32, {4, 8}});
}

TEST(Redistribution, EveryPairOfLayoutsOfThreeDimensionsHasThemToo) {
  expect_every_pair(layouts_of(3), {DType::float32, {4, 8, 4}});
}

// The square of a product whose parts the ranks of some axes have, in another layout.
Body product_in(const std::string& inner, const std::string& layout, std::uint32_t rank) {
  return [=](std::span<const Value> inputs) -> Values {
    const Value x = sharded(inputs[0], ";" + inner, rank), w = sharded(inputs[1], inner + ";", rank);
    return apply("square", {sharded(apply("matmul", {x, w}), layout, rank)});
  };
}

TEST(Redistribution, PartsOfASumBecomePiecesOfAnyLayout) {
  const std::vector<TensorType> types{{DType::float32, {4, 8}}, {DType::float32, {8, 4}}};
  const Layouts none(types.size());
  const Body alone = [](std::span<const Value> inputs) -> Values {
    return apply("square", {apply("matmul", {inputs[0], inputs[1]})});
  };
  const Numbers wanted = run(alone, types, two_by_two, none, 0, {}, true).numbers;
  for (const std::string& layout : layouts_of(2))
    for (const std::string inner : {"a", "b", "a+b"}) {
      SCOPED_TRACE(fmt::format("{} summed, to '{}'", inner, layout));
      for (const Made& made : on_mesh<Made>(4, [&](std::uint32_t rank, const RunContext&context) {
             return run(product_in(inner, layout, rank), types, two_by_two, none, rank, context, true);
           })) {
        ASSERT_EQ(made.problem, "");
        expect_near(made.numbers, wanted, 1e-5);
      }
    }
}

std::string calls_between(const Body& body, const std::vector<TensorType>& types) {
  Result<Traced> made = traced(body, types, two_by_two, Layouts(types.size()), 0, false);
  EXPECT_TRUE(made && divide_over_mesh(made->graph, **mesh_of(made->graph)));
  std::string names;
  for (const Node& node : made->graph.nodes)
    if (node.op->collective) names += (names.empty() ? "" : " ") + std::string(node.op->name);
  return names;
}

TEST(Redistribution, TakesTheSmallestCalls) {
  const std::vector<TensorType> matrix{{DType::float32, {4, 8}}};
  const std::string last = " all_gather";  // outputs are whole
  EXPECT_EQ(calls_between(between(";", "a;", 0), matrix), "all_gather");
  EXPECT_EQ(calls_between(between("a;", ";a", 0), matrix), "all_to_all" + last);
  EXPECT_EQ(calls_between(between("a+b;", "a;b", 0), matrix), "all_to_all" + last + last);
  EXPECT_EQ(calls_between(between("a+b;", ";a+b", 0), matrix), "all_to_all" + last);
  EXPECT_EQ(calls_between(between("a;b", ";", 0), matrix), "all_gather all_gather");
  const auto product = [](const std::string& layout) -> Body {
    return [=](std::span<const Value> inputs) -> Values {
      return sharded(apply("matmul", {sharded(inputs[0], ";a", 0), sharded(inputs[1], "a;", 0)}), layout, 0);
    };
  };
  const std::vector<TensorType> matrices{{DType::float32, {4, 8}}, {DType::float32, {8, 4}}};
  EXPECT_EQ(calls_between(product(";"), matrices), "all_reduce");
  EXPECT_EQ(calls_between(product("a;"), matrices), "reduce_scatter" + last);
  EXPECT_EQ(calls_between(product(";a"), matrices), "reduce_scatter" + last);
}

// ---- Rules ------------------------------------------------------------------------------------------------

struct RuleCase {
  std::string_view op;
  std::vector<TensorType> inputs;
  Attributes attributes = {};
  bool has_gradient = true;
};

using Ints = std::vector<std::int64_t>;
const TensorType images{DType::float32, {4, 4, 6, 6}}, rows{DType::float32, {4, 6}};
const TensorType heads{DType::float32, {2, 4, 6, 4}}, channels{DType::float32, {4}};
const TensorType labels{DType::int32, {4}}, number{DType::float32, {}};
const TensorType classes{DType::float32, {16, 4}}, classes_of{DType::int32, {16}};  // every class is there

const std::vector<RuleCase>& rule_cases() {
  static const std::vector<RuleCase> cases{
      {"matmul", {rows, {DType::float32, {6, 8}}}},
      {"matmul", {rows, {DType::float32, {8, 6}}}, {{"transpose_b", true}}},
      {"matmul", {{DType::float32, {6, 4}}, {DType::float32, {6, 8}}}, {{"transpose_a", true}}},
      {"batch_matmul", {heads, {DType::float32, {4, 4, 6}}}},
      {"bias_add", {rows, {DType::float32, {6}}}},
      {"add", {rows, {DType::float32, {1, 6}}}},
      {"select", {{DType::bool_, {4, 6}}, rows, rows}},
      {"clip", {rows}, {{"min", 0.3}, {"max", 0.6}}},
      {"cast", {rows}, {{"dtype", DType::float64}}},
      {"reduce_sum", {heads}, {{"axes", Ints{1, 3}}}},
      {"reduce_mean", {heads}, {{"axes", Ints{0}}, {"keep_dims", true}}},
      {"reduce_max", {heads}, {{"axes", Ints{2}}}},
      {"reduce_min", {heads}, {{"axes", Ints{-1}}}},
      {"sum_of_squares", {heads}},
      {"sum_to", {heads}, {{"shape", Ints{4, 1, 4}}}},
      {"broadcast_to", {{DType::float32, {4, 1, 4}}}, {{"shape", Ints{2, 4, 6, 4}}}},
      {"reshape", {heads}, {{"shape", Ints{8, 24}}}},
      {"transpose", {heads}, {{"perm", Ints{2, 0, 3, 1}}}},
      {"slice", {heads}, {{"begin", Ints{0, 1, 0, 0}}, {"size", Ints{2, 2, 6, 4}}}},
      {"pad", {heads}, {{"begin", Ints{0, 1, 0, 0}}, {"shape", Ints{2, 6, 6, 4}}}},
      {"concat", {rows, {DType::float32, {2, 6}}}, {{"axis", std::int64_t{0}}}},
      {"split", {heads}, {{"axis", std::int64_t{2}}, {"sizes", Ints{4, 2}}}},
      {"gather", {{DType::float32, {4, 6}}, {DType::int32, {2, 4}}}},
      {"gather",
       {{DType::float32, {4, 4, 6}}, {DType::int32, {4, 2}}},
       {{"axis", std::int64_t{1}}, {"batch_dims", std::int64_t{1}}}},
      {"gather", {{DType::float32, {2, 4, 6}}, {DType::int32, {4, 2}}}, {{"axis", std::int64_t{1}}}},
      {"gather_elements", {{DType::float32, {4, 4}}, {DType::int64, {2, 4}}}, {{"axis", std::int64_t{0}}}},
      {"flat_index", {labels, labels}, {{"sizes", Ints{4, 4}}, {"axes", Ints{0, 1}}}, false},
      {"one_hot",
       {{DType::int32, {2, 4}}, number, number},
       {{"depth", std::int64_t{6}}, {"axis", std::int64_t{1}}},
       false},
      {"topk", {rows}, {{"k", std::int64_t{2}}}},
      {"sort", {rows}, {{"axis", std::int64_t{0}}}},
      {"argmax", {heads}, {{"axis", std::int64_t{1}}}, false},
      {"argmin", {heads}, {}, false},
      {"cumsum", {rows}, {{"axis", std::int64_t{1}}}},
      {"cumprod", {rows}, {{"axis", std::int64_t{1}}}},
      {"cummax", {rows}, {{"axis", std::int64_t{1}}}},
      {"cummin", {rows}, {{"axis", std::int64_t{0}}}},
      {"logcumsumexp", {rows}, {{"axis", std::int64_t{1}}}},
      {"softmax", {heads}, {{"axis", std::int64_t{1}}}},
      {"log_softmax", {heads}, {{"axis", std::int64_t{-1}}}},
      {"layer_norm",
       {heads, {DType::float32, {6, 4}}, {DType::float32, {6, 4}}},
       {{"begin_norm_axis", std::int64_t{2}}}},
      {"rms_norm", {heads, {DType::float32, {4}}}},
      {"conv2d", {images, {DType::float32, {8, 4, 3, 3}}}, {{"pads", Ints{1, 1, 1, 1}}}},
      {"conv2d", {images, {DType::float32, {8, 4, 3, 3}}, {DType::float32, {8}}}, {{"strides", Ints{2, 2}}}},
      {"conv2d", {images, {DType::float32, {4, 2, 3, 3}}}, {{"group", std::int64_t{2}}}},
      {"max_pool2d", {images}, {{"kernel", Ints{2, 2}}, {"strides", Ints{2, 2}}}},
      {"avg_pool2d", {images}, {{"kernel", Ints{2, 2}}, {"strides", Ints{2, 2}}}},
      {"adaptive_avg_pool2d", {images}, {{"output_size", Ints{3, 2}}}},
      {"batch_norm", {images, channels, channels, channels, channels}},
      {"scaled_dot_product_attention", {heads, heads, heads}},
      {"scaled_dot_product_attention", {heads, heads, heads}, {{"is_causal", true}}},
      {"scaled_dot_product_attention",
       {heads, {DType::float32, {2, 2, 4, 4}}, {DType::float32, {2, 2, 4, 4}}, {DType::bool_, {2, 1, 6, 4}}}},
      {"scaled_dot_product_attention",
       {{DType::float32, {2, 6, 4, 4}}, {DType::float32, {2, 6, 4, 4}}, {DType::float32, {2, 6, 4, 4}}},
       {{"rows_first", true}}},
      {"softmax_cross_entropy", {classes, classes_of}, {{"reduction", std::string("none")}}},
      {"softmax_cross_entropy", {classes, classes_of}, {{"label_smoothing", 0.1}}},
      {"softmax_cross_entropy", {classes, classes_of}, {{"ignore_index", std::int64_t{2}}}},
      {"nll_loss", {classes, classes_of}, {{"reduction", std::string("sum")}}},
      {"nll_loss", {classes, classes_of}},
      {"dropout", {rows}, {{"keep_prob", 0.6}, {"stream", std::int64_t{5}}}},
      {"batch_norm", {images, channels, channels, channels, channels}, {{"training", true}}},
      {"scaled_dot_product_attention",
       {heads, heads, heads},
       {{"keep_prob", 0.7}, {"stream", std::int64_t{3}}}},
  };
  return cases;
}

// As many inputs as it takes, all alike, of the first dtype that goes; nothing where none does.
std::optional<RuleCase> plain_case(const Op& op) {
  for (const DType dtype : {DType::float32, DType::int32, DType::bool_}) {
    RuleCase made{op.name, std::vector<TensorType>(op.inputs_min, TensorType{dtype, rows.shape})};
    if (op.infer({made.inputs, {}, {}})) return made;
  }
  return std::nullopt;
}

// Which layouts cut one label of the op by axis a, and another one (or the same) by b.
std::vector<Layouts> layouts_for(const RuleCase& given) {
  const Op& op = required_op(given.op);
  const std::vector<TensorType> outputs = op.infer({given.inputs, {}, given.attributes}).value();
  DimensionMap map(given.inputs, outputs, given.attributes);
  op.dimensions(map);
  std::set<int> names;
  for (const auto& labels_of : map.of_inputs) names.insert(labels_of.begin(), labels_of.end());
  names.erase(DimensionMap::whole);
  if (names.empty()) names = {1000};  // what expands has no labels: its samples are cut below
  std::vector<Layouts> all;
  const auto layouts = [&](int first, int second) {
    Layouts made;
    for (std::size_t i = 0; i < given.inputs.size(); ++i) {
      std::string text;
      bool is_cut = false;
      for (std::size_t dim = 0; dim < map.of_inputs[i].size(); ++dim) {
        const int label = map.of_inputs[i][dim];
        const std::int64_t size = given.inputs[i].shape[dim];
        std::string cut;
        if (label == first && size % 2 == 0) cut = "a";
        if (label == second && label != DimensionMap::whole && size % (cut.empty() ? 2 : 4) == 0)
          cut += cut.empty() ? "b" : "+b";
        is_cut = is_cut || !cut.empty();
        text += (dim > 0 ? ";" : "") + cut;
      }
      made.push_back(is_cut ? text : "");
    }
    return made;
  };
  for (auto first = names.begin(); first != names.end(); ++first) {
    const auto next = std::next(first) == names.end() ? names.begin() : std::next(first);
    all.push_back(layouts(*first, *first));
    all.push_back(layouts(*first, *next));
  }
  if (names.contains(1000)) {
    const std::size_t rank = given.inputs[0].shape.rank();
    for (const std::string cut : {"a", "a+b"}) {
      Layouts samples(given.inputs.size());
      samples[0] = cut + std::string(rank - 1, ';');
      all.push_back(samples);
    }
    Layouts second(given.inputs.size());
    second[0] = "a;b" + std::string(rank - 2, ';');
    if (rank > 2) all.push_back(second);
  }
  std::erase_if(all, [](const Layouts& each) {
    return std::ranges::all_of(each, [](const std::string& text) { return text.empty(); });
  });
  return all;
}

// What it adds to `seen`: the ops that were divided.
void expect_alike_over_a_mesh(const RuleCase& given, std::set<std::string_view>& seen) {
  const Op& op = required_op(given.op);
  const bool with_gradients = given.has_gradient && op.gradient != nullptr;
  const Body body = [&](std::span<const Value> inputs) { return apply_all(op, inputs, given.attributes); };
  const Layouts none(given.inputs.size());
  const Made alone = run(body, given.inputs, two_by_two, none, 0, {.seed = 3}, with_gradients);
  ASSERT_EQ(alone.problem, "");
  const std::vector<Layouts> all = layouts_for(given);
  ASSERT_FALSE(all.empty());
  const auto found = on_mesh<std::vector<Made>>(4, [&](std::uint32_t rank, const RunContext& context) {
    std::vector<Made> made;
    for (const Layouts& layouts : all)
      made.push_back(run(body, given.inputs, two_by_two, layouts, rank, context, with_gradients));
    return made;
  });
  for (std::size_t i = 0; i < all.size(); ++i) {
    SCOPED_TRACE(fmt::format("inputs cut as '{}'", fmt::join(all[i], "' '")));
    const Result<Traced> whole = traced(body, given.inputs, two_by_two, all[i], 0, with_gradients);
    ASSERT_TRUE(whole) << whole.error().message;
    seen.merge(divided_ops(whole->graph));
    for (const auto& rank : found) {
      ASSERT_EQ(rank[i].problem, "");
      expect_near(rank[i].numbers, alone.numbers, 2e-5);
    }
  }
}

TEST(RulesOfRows, GiveTheNumbersOfOneRankWhateverIsCut) {
  std::set<std::string_view> seen;
  for (const RuleCase& given : rule_cases()) {
    SCOPED_TRACE(fmt::format("{} {}", given.op, to_string(given.attributes)));
    expect_alike_over_a_mesh(given, seen);
  }
  for (const Op* op : ops()) {
    if (op->dimensions == nullptr || seen.contains(op->name)) continue;
    SCOPED_TRACE(op->name);
    if (const auto plain = plain_case(*op)) expect_alike_over_a_mesh(*plain, seen);
  }
  for (const Op* op : ops())
    EXPECT_TRUE(op->dimensions == nullptr || seen.contains(op->name))
        << op->name << " has a rule, and was divided in no case: add one";
}

}  // namespace sharding_test
}  // namespace
}  // namespace muster::graph
