#include "muster/train/shared_evaluation.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <utility>

#include "muster/checkpoint/checkpoint.h"
#include "muster/train/aborted_step.h"
#include "muster/train/job.h"
#include "muster/train/process.h"
#include "muster/train/recovery_point.h"
#include "muster/train/session.h"

namespace muster::train {
namespace {

using EvaluatingRanks = std::span<const EvaluationFacts>;

// Facts as all ranks send them. Of what the text does not hold the hash tells the difference.
struct FactsRow {
  std::uint64_t evaluates = 0;
  std::uint64_t epochs_hash = 0;
  std::int64_t shards = 0, shard = 0;
  std::uint64_t is_mixed = 0;
  std::uint64_t metrics_hash = 0;
  char metrics[208] = {};
  char epochs[64] = {};
};

FactsRow row_of(const EvaluationFacts& facts) {
  FactsRow row{.evaluates = facts.evaluates ? 1U : 0U,
               .epochs_hash = hash_text(facts.epochs),
               .shards = facts.shard.count,
               .shard = facts.shard.index,
               .is_mixed = facts.shard.is_mixed ? 1U : 0U,
               .metrics_hash = hash_text(facts.metrics)};
  facts.metrics.copy(row.metrics, sizeof(row.metrics) - 1);
  facts.epochs.copy(row.epochs, sizeof(row.epochs) - 1);
  return row;
}

EvaluationFacts facts_of(const FactsRow& row) {
  return {.evaluates = row.evaluates != 0,
          .epochs = row.epochs,
          .shard = {.count = row.shards, .index = row.shard, .is_mixed = row.is_mixed != 0},
          .metrics = row.metrics};
}

template <class Row>
Result<std::vector<Row>> gather_rows(const Row& mine, Communicator& workers) {
  std::vector<Row> rows(workers.size());
  MUSTER_TRY_VOID(workers.all_gather(&mine, rows.data(), sizeof(Row)));
  return rows;
}

Result<> check_evaluates_alike(EvaluatingRanks ranks) {
  const EvaluationFacts& first = ranks.front();
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    const EvaluationFacts& other = ranks[rank];
    if (other.shard.is_mixed)
      return fail(
          Code::invalid_argument,
          fmt::format("rank {} evaluates a dataset that joins parts which are sharded in different ways, "
                      "so that some rows would count more than once: give each of them the same "
                      "num_shards and shard_id",
                      rank));
    if (other.shard.count != first.shard.count)
      return fail(Code::invalid_argument,
                  fmt::format("rank 0 evaluates one of {} shards but rank {} one of {}: give the validation "
                              "dataset of every rank the same num_shards, or of none",
                              first.shard.count, rank, other.shard.count));
    if (other.epochs != first.epochs)
      return fail(Code::invalid_argument,
                  fmt::format("rank 0 evaluates {} but rank {} {}: valid_frequency is the same on every rank",
                              first.epochs, rank, other.epochs));
    if (other.metrics != first.metrics)
      return fail(Code::invalid_argument,
                  fmt::format("rank 0 counts other metrics ({}) than rank {} ({}): every rank must give its "
                              "Model the same",
                              first.metrics, rank, other.metrics));
  }
  return {};
}

NamedMetrics merging(const NamedMetrics& metrics) {
  NamedMetrics chosen;
  for (const auto& metric : metrics)
    if (metric.second->merges()) chosen.push_back(metric);
  return chosen;
}

// Label and content of a point, one after the other.
Result<std::vector<std::byte>> bytes_of(const checkpoint::Point& point) {
  MUSTER_TRY(const std::string label, checkpoint::label_of(point));
  const std::uint64_t label_bytes = label.size();
  std::vector<std::byte> bytes;
  const auto append = [&bytes](std::span<const std::byte> more) {
    bytes.insert(bytes.end(), more.begin(), more.end());
  };
  append(std::as_bytes(std::span(&label_bytes, 1)));
  append(std::as_bytes(std::span(label)));
  for (const std::span<const std::byte> part : checkpoint::content_of(point)) append(part);
  return bytes;
}

Result<checkpoint::Point> point_in(std::span<const std::byte> bytes) {
  const auto take = [&bytes](std::span<std::byte> into) {
    if (into.size() > bytes.size()) return false;
    if (!into.empty()) std::memcpy(into.data(), bytes.data(), into.size());
    bytes = bytes.subspan(into.size());
    return true;
  };
  const auto cut_off = [] { return fail(Code::corrupt, "what a worker tells of its metrics is cut off"); };
  std::uint64_t label_bytes = 0;
  if (!take(std::as_writable_bytes(std::span(&label_bytes, 1))) || label_bytes > bytes.size())
    return cut_off();
  std::string label(label_bytes, '\0');
  (void)take(std::as_writable_bytes(std::span(label.data(), label.size())));
  MUSTER_TRY(checkpoint::SerializedPoint serialized,
             checkpoint::SerializedPoint::from_label(label, [](const auto& records) {
               std::vector<Tensor> tensors;
               for (const auto& record : records) tensors.emplace_back(record.dtype, record.shape);
               return tensors;
             }));
  for (const std::span<std::byte> part : serialized.content())
    if (!take(part)) return cut_off();
  return std::move(serialized).open();
}

}  // namespace

// ---- Who counts -------------------------------------------------------------------------------------------

EvaluationFacts evaluation_facts(const data::Dataset& dataset, const NamedMetrics& metrics,
                                 std::string epochs) {
  EvaluationFacts facts{.epochs = std::move(epochs), .shard = dataset.shard()};
  for (const auto& [name, metric] : metrics)
    facts.metrics +=
        fmt::format("{}{}{}", facts.metrics.empty() ? "" : ", ", name, metric->merges() ? "" : " alone");
  return facts;
}

Result<EvaluationShares> evaluation_shares(EvaluatingRanks ranks) {
  std::vector<std::size_t> idle;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank)
    if (!ranks[rank].evaluates) idle.push_back(rank);
  if (idle.size() == ranks.size()) return EvaluationShares{};
  if (!idle.empty())
    return EvaluationShares{
        .note = fmt::format("worker {} evaluates nothing: the metrics of each of the others are of what that "
                            "one was given alone. Give fit() a valid_dataset on every worker",
                            fmt::join(idle, ", "))};
  MUSTER_TRY_VOID(check_evaluates_alike(ranks));
  EvaluationShares shares{.is_together = true};
  const std::int64_t count = ranks.front().shard.count;
  if (count == 1) return shares;
  std::vector<std::int64_t> missing;
  for (std::int64_t shard = 0; shard < count; ++shard) {
    const auto reader = std::find_if(ranks.begin(), ranks.end(), [shard](const EvaluationFacts& facts) {
      return facts.shard.index == shard;
    });
    if (reader == ranks.end())
      missing.push_back(shard);
    else
      shares.counted.push_back(static_cast<std::uint32_t>(reader - ranks.begin()));
  }
  if (missing.size() > 8) missing.resize(8);
  if (!missing.empty())
    shares.note = fmt::format(
        "{} of {} shards of the validation dataset are read by no worker, and their rows "
        "are not counted: {}{}",
        static_cast<std::size_t>(count) - shares.counted.size(), count, fmt::join(missing, ", "),
        missing.size() == 8 ? ", ..." : "");
  return shares;
}

Result<EvaluationShares> agree_on_shares(const EvaluationFacts& mine, Communicator& workers) {
  MUSTER_TRY(const std::vector<FactsRow> rows, gather_rows(row_of(mine), workers));
  std::vector<EvaluationFacts> ranks;
  for (const FactsRow& row : rows) {
    ranks.push_back(facts_of(row));
    if (row.metrics_hash != rows.front().metrics_hash) ranks.back().metrics += " ...";
    if (row.epochs_hash != rows.front().epochs_hash) ranks.back().epochs += " ...";
  }
  return evaluation_shares(ranks);
}

Result<> in_evaluation(const Collectives::GroupCall& call) {
  return call_in_body(
             [&] { return Session::current()->recovery().explicit_collective("the evaluation", {}, call); })
      .map_error([](Error error) {
        if (error.code != Code::invalid_argument)
          error.message +=
              " (while all workers evaluate together: every worker makes the same calls of eval)";
        return error;
      });
}

// ---- Metrics ----------------------------------------------------------------------------------------------

Result<MetricCounts> counts_of(const NamedMetrics& metrics) {
  MUSTER_TRY(const checkpoint::Point point, point_of_metrics(merging(metrics)));
  return bytes_of(point);
}

Result<std::vector<MetricCounts>> gather_counts(const MetricCounts& mine, const EvaluationShares& shares,
                                                Communicator& workers) {
  const bool counts =
      std::find(shares.counted.begin(), shares.counted.end(), workers.rank()) != shares.counted.end();
  MetricCounts given = counts ? mine : MetricCounts{};
  MUSTER_TRY(const std::vector<std::uint64_t> sizes, gather_rows<std::uint64_t>(given.size(), workers));
  const std::size_t width = *std::max_element(sizes.begin(), sizes.end());
  if (width == 0) return std::vector<MetricCounts>{};
  given.resize(width);
  std::vector<std::byte> rows(width * workers.size());
  MUSTER_TRY_VOID(workers.all_gather(given.data(), rows.data(), width));
  std::vector<MetricCounts> gathered;
  for (const std::uint32_t rank : shares.counted) {
    const auto row = std::span(rows).subspan(rank * width, sizes[rank]);
    gathered.emplace_back(row.begin(), row.end());
  }
  return gathered;
}

Result<> merge_counts(const NamedMetrics& all, std::span<const MetricCounts> counts) {
  if (counts.empty()) return {};
  const NamedMetrics metrics = merging(all);
  for (const auto& [name, metric] : metrics)
    MUSTER_TRY_VOID(catch_error([&metric] { return metric->clear(); }));
  for (const MetricCounts& of_worker : counts) {
    MUSTER_TRY(const checkpoint::Point point, point_in(of_worker));
    for (const auto& [name, metric] : metrics)
      MUSTER_TRY_VOID(catch_error([&] {
                        return metric->merge(state_of_metric(point, name));
                      }).map_error([&](Error error) {
        error.message =
            fmt::format("metric '{}', while the counts of all workers are merged: {}", name, error.message);
        return error;
      }));
  }
  return {};
}

void warn_of_evaluation(const std::string& text) {
  if (!text.empty() && process().warnings_given.insert(text).second) log::warning(text);
}

std::string alone_text(const NamedMetrics& metrics) {
  std::vector<std::string> names;
  for (const auto& [name, metric] : metrics)
    if (!metric->merges()) names.push_back(name);
  if (names.empty()) return {};
  return fmt::format(
      "metric{} '{}' {} of each worker's rows alone: a metric that defines state_dict() and "
      "merge(state) is counted over all workers",
      names.size() == 1 ? "" : "s", fmt::join(names, "', '"), names.size() == 1 ? "is" : "are");
}

Result<std::string> compare_values(const MetricValues& values, Communicator& workers) {
  std::vector<double> mine;
  for (const auto& [name, value] : values) mine.push_back(number_of(value).value_or(0));
  std::vector<double> all(mine.size() * workers.size());
  if (mine.empty()) return std::string();
  MUSTER_TRY_VOID(workers.all_gather(mine.data(), all.data(), mine.size() * sizeof(double)));
  for (std::size_t i = mine.size(); i < all.size(); ++i) {
    const std::size_t metric = i % mine.size();
    const double first = all[metric], other = all[i];
    // Hosts with other instructions round otherwise.
    if (!(std::fabs(first - other) > 1e-6 * std::fabs(first))) continue;
    return fmt::format(
        "'{}' is {} on worker 0 and {} on worker {}, though each evaluates all rows of its "
        "dataset: if the script gives each worker a part of them, say so by num_shards and "
        "shard_id, or by mark_shard(num_shards, shard_id)",
        values[metric].first, number_text(first), number_text(other), i / mine.size());
  }
  return std::string();
}

// ---- Moving statistics ------------------------------------------------------------------------------------

FirstWorkersStatistics::FirstWorkersStatistics(const nn::Cell& network) {
  for (const graph::ParameterPtr& parameter : network.parameters())
    if (parameter->is_statistic() && parameter->absence() == nullptr) parameters_.push_back(parameter);
}

FirstWorkersStatistics::~FirstWorkersStatistics() {
  if (own_.empty()) return;
  const std::byte* from = own_.data();
  for (const graph::ParameterPtr& parameter : parameters_) {
    const Tensor& values = parameter->writable(seed());
    std::memcpy(values.bytes(), from, values.size_bytes());
    from += values.size_bytes();
  }
}

Result<> FirstWorkersStatistics::take(Communicator& workers) {
  std::vector<std::byte> bytes;
  for (const graph::ParameterPtr& parameter : parameters_) {
    const Tensor& values = parameter->materialize(seed());
    bytes.insert(bytes.end(), values.bytes(), values.bytes() + values.size_bytes());
  }
  std::vector<std::byte> of_first = bytes;
  MUSTER_TRY_VOID(workers.broadcast(of_first.data(), of_first.size(), 0));
  if (workers.rank() == 0) return {};
  const std::byte* from = of_first.data();
  for (const graph::ParameterPtr& parameter : parameters_) {
    const Tensor& values = parameter->writable(seed());
    std::memcpy(values.bytes(), from, values.size_bytes());
    from += values.size_bytes();
  }
  own_ = std::move(bytes);
  return {};
}

}  // namespace muster::train
