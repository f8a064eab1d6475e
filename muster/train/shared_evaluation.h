// Private to train: evaluations of which each worker of a data-parallel job makes a share (ADR 36).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "muster/base/base.h"
#include "muster/data/data.h"
#include "muster/nn/nn.h"
#include "muster/train/collectives.h"
#include "muster/train/metric.h"

namespace muster::train {

// What a worker says of an evaluation.
struct EvaluationFacts {
  bool evaluates = true;
  std::string epochs = {};  // after which: "every 2 epochs"
  data::Shard shard = {};
  std::string metrics = {};  // their names, and which of them merge
};
EvaluationFacts evaluation_facts(const data::Dataset& dataset, const NamedMetrics& metrics,
                                 std::string epochs = {});

struct EvaluationShares {
  bool is_together = false;  // all workers evaluate at the same time
  // One worker for each shard that is read, in the order of the shards; none: each worker reads all rows.
  std::vector<std::uint32_t> counted = {};
  std::string note = {};  // for people; empty where all is as it should be
};

// By rank. The same answer on all workers; an error names the ranks that cannot evaluate together.
Result<EvaluationShares> evaluation_shares(std::span<const EvaluationFacts> ranks);
// The same, as a collective call in which each rank tells its facts.
Result<EvaluationShares> agree_on_shares(const EvaluationFacts& mine, Communicator& workers);

// What the metrics that merge have counted, for the other workers.
using MetricCounts = std::vector<std::byte>;
Result<MetricCounts> counts_of(const NamedMetrics& metrics);
// A collective call: those of the workers that count, in the order of the shards.
Result<std::vector<MetricCounts>> gather_counts(const MetricCounts& mine, const EvaluationShares& shares,
                                                Communicator& workers);
// From now on the metrics that merge have counted that, in this order, and nothing else.
Result<> merge_counts(const NamedMetrics& metrics, std::span<const MetricCounts> counts);
// A collective call of an evaluation, which `call` makes. In the body of a loop that recovers it may be made
// more than once; in one that is aborted it does nothing.
Result<> in_evaluation(const Collectives::GroupCall& call);
// Which metrics do not merge, for people; empty where all do.
std::string alone_text(const NamedMetrics& metrics);
// Once in a process, and nothing where it is empty.
void warn_of_evaluation(const std::string& text);

// A collective call of workers of which each has read all rows: whose numbers differ from those of rank 0,
// for people; empty where none do.
Result<std::string> compare_values(const MetricValues& values, Communicator& workers);

// While it lives, the moving statistics of a network are those of rank 0 of the group, which its checkpoints
// have: of its own samples each worker has its own.
class FirstWorkersStatistics {
 public:
  explicit FirstWorkersStatistics(const nn::Cell& network);
  FirstWorkersStatistics(const FirstWorkersStatistics&) = delete;
  FirstWorkersStatistics& operator=(const FirstWorkersStatistics&) = delete;
  ~FirstWorkersStatistics();

  bool empty() const { return parameters_.empty(); }
  // A collective call, once.
  Result<> take(Communicator& workers);

 private:
  std::vector<graph::ParameterPtr> parameters_;
  std::vector<std::byte> own_;  // one after the other, once they are replaced
};

}  // namespace muster::train
