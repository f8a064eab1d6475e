#include "muster/server/table.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <set>

#include "muster/graph/graph.h"
#include "muster/nn/nn.h"
#include "tests/unit/base/mentions.h"

namespace muster::server {
namespace {
namespace table_test {

using ::testing::ElementsAre;
using Ids = std::vector<std::uint64_t>;

Table table_of(TableSpec spec, Share share = {}) { return Table::make(std::move(spec), share).value(); }

TableSpec embedding(std::uint64_t rows, std::uint32_t width) {
  return {.name = "embedding", .rows = rows, .width = width, .seed = 7};
}

TableSpec of_any_id(std::uint32_t width = 2) {
  return {.name = "users", .sharding = Sharding::hash, .width = width, .seed = 7};
}

std::vector<float> values_of(const Table& table, const Ids& ids) {
  std::vector<float> values(ids.size() * table.spec().width);
  EXPECT_TRUE(table.read(ids, values));
  return values;
}

void add(Table& table, const Ids& ids, float gradient, UpdateStep step = {.learning_rate = 1}) {
  const std::vector<float> gradients(ids.size() * table.spec().width, gradient);
  EXPECT_TRUE(table.update(ids, gradients, step));
}

// The first values of the dense parameter of this name.
std::vector<float> dense(const TableSpec& spec, const nn::Initializer& initializer) {
  const Tensor made(DType::float32, {static_cast<std::int64_t>(spec.rows), spec.width});
  initializer(made, RandomStream(spec.seed, hash_text(spec.name)));
  return {made.span<float>().begin(), made.span<float>().end()};
}

Ids every_id(std::uint64_t rows) {
  Ids ids(rows);
  std::iota(ids.begin(), ids.end(), 0);
  return ids;
}

TEST(Tables, BeginWithTheBitsOfADenseParameter) {
  TableSpec spec = embedding(9, 3);  // an odd width: rows share draws of normal numbers with their neighbours
  EXPECT_EQ(values_of(table_of(spec), every_id(9)), dense(spec, nn::normal()));
  spec.first_value = {.kind = FirstValue::Kind::normal, .scale = 2, .mean = -1};
  EXPECT_EQ(values_of(table_of(spec), every_id(9)), dense(spec, nn::normal(2, -1)));
  spec.first_value = {.kind = FirstValue::Kind::uniform, .scale = 0.07};
  EXPECT_EQ(values_of(table_of(spec), every_id(9)), dense(spec, nn::uniform()));
  spec.first_value = {.kind = FirstValue::Kind::constant, .mean = 0.5};
  EXPECT_EQ(values_of(table_of(spec), every_id(9)), dense(spec, nn::constant(0.5)));
}

TEST(Tables, HaveTheSameRowsOnAnyNumberOfServers) {
  const TableSpec spec = embedding(10, 3);
  const std::vector<float> whole = values_of(table_of(spec), every_id(10));
  for (std::uint32_t server = 0; server < 4; ++server) {
    const RowRange range = range_of(10, {server, 4});
    Ids ids(range.size());
    std::iota(ids.begin(), ids.end(), range.begin);
    EXPECT_EQ(values_of(table_of(spec, {server, 4}), ids),
              std::vector<float>(whole.begin() + static_cast<std::ptrdiff_t>(range.begin * 3),
                                 whole.begin() + static_cast<std::ptrdiff_t>(range.end * 3)));
  }
}

TEST(Tables, KeepOnlyRowsThatWereUpdated) {
  Table table = table_of(embedding(std::uint64_t{1} << 24, 1024));  // 64 GiB, if it were all in memory
  const Ids far{0, 1 << 20, (std::uint64_t{1} << 24) - 1};
  const std::vector<float> before = values_of(table, far);
  EXPECT_EQ(table.rows(), 0U);
  add(table, {far[2]}, 1);
  EXPECT_EQ(table.rows(), 1U);
  EXPECT_THAT(table.ids().size(), 1U);
  std::vector<float> expected = before;
  for (std::size_t i = 2 * 1024; i < 3 * 1024; ++i) expected[i] -= 1;
  EXPECT_EQ(values_of(table, far), expected);
}

TEST(Tables, TakeAnyIdWithoutAVocabulary) {
  Table table = table_of(of_any_id());
  const Ids ids{0, ~std::uint64_t{0}, std::uint64_t{1} << 63, 12345678901234567};
  const std::vector<float> first = values_of(table, ids);
  EXPECT_EQ(std::set<float>(first.begin(), first.end()).size(), first.size());  // each row has its own
  add(table, {ids[1], ids[3]}, 0.5);
  EXPECT_THAT(table.ids(), ElementsAre(ids[3], ids[1]));
  EXPECT_EQ(values_of(table, {ids[3]}), (std::vector<float>{first[6] - 0.5F, first[7] - 0.5F}));
  EXPECT_EQ(values_of(table, {ids[2]}), (std::vector<float>{first[4], first[5]}));
}

// Against a map, with ids that are close, far and alike in their lower bits, and rows that leave.
TEST(Tables, HoldWhatAMapHolds) {
  TableSpec spec = of_any_id(1);
  spec.first_value = {.kind = FirstValue::Kind::constant, .mean = 0};
  spec.eviction = {.age_max = 20};
  Table table = table_of(spec);
  std::map<std::uint64_t, std::pair<float, std::uint64_t>> expected;
  const RandomStream random(1, 2);
  for (std::uint64_t step = 0; step < 300; ++step) {
    std::set<std::uint64_t> drawn;
    for (std::uint64_t i = 0; i < 40; ++i)
      drawn.insert(random.below(step * 100 + i, 2000) << (random.below(step * 100 + 50 + i, 3) * 20));
    const Ids ids(drawn.begin(), drawn.end());
    add(table, ids, -1, {.learning_rate = 1, .steps = step});
    for (const std::uint64_t id : ids) expected[id] = {expected[id].first + 1, step + 1};
    table.evict(step + 1);
    std::erase_if(expected, [&](const auto& row) { return row.second.second + 20 < step + 1; });
    ASSERT_EQ(table.rows(), expected.size()) << step;
  }
  for (const auto& [id, row] : expected) ASSERT_THAT(values_of(table, {id}), ElementsAre(row.first)) << id;
}

TEST(Tables, ForgetRowsThatNobodyUpdates) {
  TableSpec spec = of_any_id();
  spec.eviction = {.age_max = 2};
  Table table = table_of(spec);
  const std::vector<float> first = values_of(table, {5});
  add(table, {5, 6}, 1, {.learning_rate = 1, .steps = 0});
  add(table, {6}, 1, {.learning_rate = 1, .steps = 1});
  EXPECT_EQ(table.evict(3), 0U);
  EXPECT_EQ(table.evict(4), 1U);
  EXPECT_THAT(table.ids(), ElementsAre(6));
  EXPECT_EQ(values_of(table, {5}), first);  // it would begin anew
}

TEST(Tables, ListTheRowsOfTheirSlots) {
  TableSpec spec = of_any_id();
  spec.eviction = {.age_max = 2};
  Table table = table_of(spec);
  add(table, {7, 5, 6}, 1, {.learning_rate = 1, .steps = 0});
  add(table, {7, 6}, 1, {.learning_rate = 1, .steps = 3});
  table.evict(4);  // the second slot is empty
  EXPECT_EQ(table.slots(), 3U);
  std::vector<std::uint64_t> ids;
  std::vector<float> values;
  table.list(0, 2, ids, values);
  EXPECT_THAT(ids, ElementsAre(7));
  table.list(2, 100, ids, values);
  EXPECT_THAT(ids, ElementsAre(7, 6));
  EXPECT_EQ(values, values_of(table, {7, 6}));
}

TEST(Tables, KeepTheRowsUpdatedLastWhereThereIsARoomForSoMany) {
  TableSpec spec = of_any_id();
  spec.eviction = {.rows_max = 2};
  Table table = table_of(spec);
  for (const std::uint64_t id : {4, 3, 2, 1}) add(table, {id}, 1, {.learning_rate = 1, .steps = 4 - id});
  add(table, {3}, 1, {.learning_rate = 1, .steps = 4});
  EXPECT_EQ(table.evict(5), 2U);
  EXPECT_THAT(table.ids(), ElementsAre(1, 3));
  EXPECT_EQ(table.size_bytes() >> 20, 64U);  // their places are taken again
}

TEST(Tables, RefuseRowsOfOtherServers) {
  Table table = table_of(embedding(10, 1), {.server = 1, .servers = 2});
  std::vector<float> values(2);
  EXPECT_THAT(table.read(Ids{5, 4}, values).error().message, Mentions("embedding", "row 4", "5 to 10"));
  EXPECT_THAT(table.update(Ids{5, 10}, values, {.learning_rate = 1}).error().message, Mentions("row 10"));
  EXPECT_EQ(table.rows(), 0U);  // nothing of a refused update is done
}

TEST(Tables, HoldRowsOf16BitsWithStatesOf32) {
  TableSpec spec = embedding(4, 3);
  spec.dtype = DType::bfloat16;
  spec.rule = {.kind = RuleKind::adam};
  Table table = table_of(spec);
  std::vector<float> expected = dense(spec, nn::normal());
  for (float& value : expected) value = bfloat16(value);
  EXPECT_EQ(values_of(table, every_id(4)), expected);
  add(table, {2}, 0.25, {.learning_rate = 0.5});
  EXPECT_EQ(table.row_bytes(2).size(), 8U + 2 * 3 * 4);
  float square = 0;
  std::memcpy(&square, table.row_bytes(2).data() + 8 + 12, sizeof square);
  EXPECT_EQ(square, static_cast<float>(1 - 0.999) * 0.25F * 0.25F);
  for (const float value : values_of(table, {2})) EXPECT_EQ(value, bfloat16(value));
}

TEST(Tables, TakeValuesThatWorkersHaveMade) {
  Table table = table_of(embedding(4, 2));
  ASSERT_TRUE(table.assign({.ids = Ids{1, 3}, .values = std::vector<float>{1, 2, 3, 4}}));
  EXPECT_EQ(values_of(table, {3, 1}), (std::vector<float>{3, 4, 1, 2}));
}

TEST(Tables, TakeWholeRowsOfAnotherTableAndGoOnWithItsBits) {
  TableSpec spec = of_any_id();
  spec.rule = {.kind = RuleKind::adam};
  spec.eviction = {.age_max = 50};
  Table table = table_of(spec), again = table_of(spec);
  for (std::uint64_t step = 0; step < 90; ++step)
    add(table, {5, 9}, 0.5, {.learning_rate = 1, .steps = step});
  std::vector<std::uint64_t> ids;
  std::vector<float> rows;
  table.list(0, table.slots(), ids, rows, true);
  ASSERT_EQ(rows.size(), 2 * whole_width(spec));
  ASSERT_TRUE(again.assign({.ids = ids, .values = rows, .has_states = true, .steps = 90}));
  EXPECT_EQ(again.evict(90), 0U);
  for (Table* each : {&table, &again}) add(*each, {9}, -2, {.learning_rate = 1, .steps = 90});
  EXPECT_EQ(values_of(again, {5, 9}), values_of(table, {5, 9}));
}

TEST(TableSpecs, SayWhatIsWrongWithThem) {
  const auto wrong = [](TableSpec spec, std::uint32_t servers = 1) {
    return check(spec, servers).error().message;
  };
  EXPECT_THAT(wrong({.name = "t", .width = 1}), Mentions("'t'", "hash"));
  EXPECT_THAT(wrong({.name = "t", .rows = 4, .width = 0}), Mentions("1 to"));
  EXPECT_THAT(wrong({.name = "t", .rows = std::uint64_t{1} << 40}), Mentions("more servers"));
  EXPECT_THAT(wrong({.name = "t", .rows = 4, .dtype = DType::int32}), Mentions("int32", "bfloat16"));
  EXPECT_THAT(wrong({.name = "t", .rows = 4, .eviction = {.age_max = 1}}), Mentions("vocabulary"));
  EXPECT_THAT(wrong({.name = "t", .rows = 4}, 0), Mentions("MS_SERVER_NUM"));
  EXPECT_THAT(rule_of_optimizer("Lamb").error().message, Mentions("Lamb", "LazyAdam", "FTRL"));
}

TEST(TableSpecs, TellTheMemoryOfAShare) {
  // 64 bytes of values, 128 of Adam's state, 4 of the index.
  TableSpec spec = embedding(10, 16);
  spec.rule = {.kind = RuleKind::adam};
  EXPECT_EQ(share_size_bytes(spec, 4), 3U * (64 + 128 + 4));
}

// ---- Rules
// -------------------------------------------------------------------------------------------------

struct Rule {
  std::string name;
  RuleSettings settings;
  std::function<std::shared_ptr<nn::Optimizer>(const graph::ParameterPtr&)> dense;
};

template <class Optimizer, class Options>
Rule rule(std::string name, RuleSettings settings, Options options) {
  options.learning_rate = 0.0625;
  settings.weight_decay = options.weight_decay.decay();
  settings.loss_scale = options.loss_scale;
  return {std::move(name), settings, [options](const graph::ParameterPtr& parameter) {
            return std::make_shared<Optimizer>(nn::ParameterGroups{parameter}, options);
          }};
}

std::vector<Rule> every_rule() {
  using namespace nn;
  using enum RuleKind;
  return {
      rule<SGD>("SGD", {.kind = sgd}, SGDOptions{.weight_decay = 0.01, .loss_scale = 3}),
      rule<SGD>("SGD with dampened momentum", {.kind = sgd, .momentum = 0.9, .dampening = 0.3},
                SGDOptions{.momentum = 0.9, .dampening = 0.3}),
      rule<SGD>("SGD with Nesterov's", {.kind = sgd, .momentum = 0.9, .nesterov = true},
                SGDOptions{.momentum = 0.9, .nesterov = true}),
      rule<Momentum>("Momentum", {.kind = momentum, .momentum = 0.8},
                     MomentumOptions{.momentum = 0.8, .weight_decay = 0.1, .loss_scale = 7}),
      rule<Adagrad>("Adagrad", {.kind = adagrad, .eps = 0, .initial = 0.2}, AdagradOptions{.accum = 0.2}),
      rule<Adagrad>("Adagrad without slots", {.kind = adagrad, .eps = 0, .accumulate = false},
                    AdagradOptions{.update_slots = false}),
      rule<Adam>("Adam", {.kind = adam, .beta1 = 0.8, .eps = 1e-5},
                 AdamOptions{.beta1 = 0.8, .eps = 1e-5, .weight_decay = 0.02, .loss_scale = 3}),
      rule<Adam>("Adam with Nesterov's", {.kind = adam, .nesterov = true}, AdamOptions{.use_nesterov = true}),
      rule<Adam>("Amsgrad", {.kind = adam, .amsgrad = true}, AdamOptions{.use_amsgrad = true}),
      rule<FTRL>("FTRL", {.kind = ftrl, .l1 = 0.001, .l2 = 0.01}, FTRLOptions{.l1 = 0.001, .l2 = 0.01}),
      rule<FTRL>("FTRL with a power", {.kind = ftrl, .initial = 0.3, .power = -0.4},
                 FTRLOptions{.initial_accum = 0.3, .lr_power = -0.4, .loss_scale = 5, .weight_decay = 0.05}),
  };
}

constexpr std::int64_t rule_rows = 300, rule_width = 7;  // more than one block of rows

std::vector<float> drawn_gradient(std::uint64_t step) {
  std::vector<float> gradient(rule_rows * rule_width);
  const RandomStream random(3, step);
  for (std::size_t i = 0; i < gradient.size(); ++i) gradient[i] = static_cast<float>(random.normal(i));
  return gradient;
}

void dense_step(nn::Optimizer& optimizer, const std::vector<float>& gradient) {
  optimizer.call(std::vector<graph::Value>{Tensor::from<float>(gradient, {rule_rows, rule_width})});
}

TEST(RowRules, GiveEveryRowTheBitsOfTheDenseOptimizer) {
  for (const Rule& rule : every_rule()) {
    TableSpec spec = embedding(rule_rows, rule_width);
    spec.rule = rule.settings;
    Table table = table_of(spec);
    const auto parameter = std::make_shared<graph::Parameter>(
        "embedding", Tensor::from<float>(dense(spec, nn::normal()), {rule_rows, rule_width}));
    const auto optimizer = rule.dense(parameter);
    Ids backwards = every_id(rule_rows);
    std::reverse(backwards.begin(), backwards.end());
    for (std::uint64_t step = 0; step < 4; ++step) {
      const std::vector<float> gradient = drawn_gradient(step);
      dense_step(*optimizer, gradient);
      std::vector<float> turned;
      for (const std::uint64_t id : backwards)
        turned.insert(turned.end(), gradient.begin() + static_cast<std::ptrdiff_t>(id * rule_width),
                      gradient.begin() + static_cast<std::ptrdiff_t>((id + 1) * rule_width));
      ASSERT_TRUE(table.update(backwards, turned, {.learning_rate = 0.0625, .steps = step}));
    }
    const auto expected = parameter->storage().span<float>();
    EXPECT_EQ(values_of(table, every_id(rule_rows)), std::vector<float>(expected.begin(), expected.end()))
        << rule.name;
  }
}

TEST(RowRules, LeaveRowsWithoutGradientAlone) {
  for (const Rule& rule : every_rule()) {
    TableSpec spec = embedding(4, 2);
    spec.rule = rule.settings;
    Table table = table_of(spec);
    add(table, {0, 1}, 0.5, {.learning_rate = 0.1, .steps = 0});
    const std::vector<float> one = values_of(table, {1});
    const auto bytes = table.row_bytes(1);
    const std::vector<std::byte> before(bytes.begin(), bytes.end());
    add(table, {0, 2}, 0.5, {.learning_rate = 0.1, .steps = 1});
    EXPECT_EQ(values_of(table, {1}), one) << rule.name;
    EXPECT_THAT(table.row_bytes(1), ::testing::ElementsAreArray(before)) << rule.name;
  }
}

// What a copy of `from` has that was begun before `change` and read after it.
Table copied(Table& from, const std::function<void()>& change) {
  const SlotBlocks blocks = from.begin_copy();
  change();
  Table to = table_of(from.spec());
  EXPECT_TRUE(to.begin_fill(blocks));
  for (std::uint64_t block = 0; block < blocks.count(); ++block) {
    std::vector<std::byte> bytes(blocks.size_bytes(block));
    from.copy_block(block, bytes);
    const Table::BlockPlaces places = to.places(blocks, block);
    std::copy_n(bytes.begin(), places.keys.size(), places.keys.begin());
    std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(places.keys.size()), places.rows.size(),
                places.rows.begin());
    EXPECT_TRUE(to.filled(blocks, block));
  }
  from.end_copy();
  EXPECT_TRUE(to.end_fill());
  return to;
}

TEST(Tables, AreCopiedAsTheyWereWhateverIsUpdatedMeanwhile) {
  TableSpec any = of_any_id();
  any.eviction.age_max = 5;
  for (const TableSpec& spec : {embedding(20'000, 64), any}) {  // the first one has several blocks
    Table table = table_of(spec);
    const Ids ids = every_id(15'000);
    add(table, ids, 0.5, {.learning_rate = 1, .steps = 0});
    const std::vector<float> before = values_of(table, ids);
    const Table copy = copied(table, [&] {
      add(table, every_id(17'000), 0.25, {.learning_rate = 1, .steps = 1});
      add(table, {3}, 0.25, {.learning_rate = 1, .steps = 20});
      table.evict(21);
      add(table, {900'000 % 20'000}, 1, {.learning_rate = 1, .steps = 21});
    });
    EXPECT_EQ(copy.ids(), ids) << spec.name;
    EXPECT_EQ(values_of(copy, ids), before) << spec.name;
  }
}

// Several threads work on many rows.
TEST(Tables, HaveTheSameRowsHoweverManyAreUpdatedAtOnce) {
  TableSpec low = embedding(50'000, 3);
  low.dtype = DType::bfloat16;
  for (TableSpec spec : {embedding(50'000, 3), of_any_id(3), low}) {
    spec.rule.kind = RuleKind::adam;
    Table at_once = table_of(spec), in_parts = table_of(spec);
    for (std::uint64_t step = 0; step < 2;
         ++step) {  // rows that are new, and rows that are there among new ones
      Ids ids;
      for (std::uint64_t id = 0; id < 40'000; id += 2 - step) ids.push_back(id);
      std::vector<float> gradients(ids.size() * spec.width);
      std::iota(gradients.begin(), gradients.end(), -5.0F);
      const UpdateStep update{.learning_rate = 0.5, .steps = step};
      EXPECT_TRUE(at_once.update(ids, gradients, update));
      for (std::size_t begin = 0; begin < ids.size(); begin += 1000) {
        const std::size_t count = std::min<std::size_t>(1000, ids.size() - begin);
        EXPECT_TRUE(in_parts.update(std::span(ids).subspan(begin, count),
                                    std::span(gradients).subspan(begin * spec.width, count * spec.width),
                                    update));
      }
    }
    std::size_t different = 0;
    for (std::uint64_t id = 0; id < 40'000; ++id)
      different += std::ranges::equal(at_once.row_bytes(id), in_parts.row_bytes(id)) ? 0 : 1;
    EXPECT_EQ(different, 0) << spec.name;
  }
}

}  // namespace table_test
}  // namespace
}  // namespace muster::server
